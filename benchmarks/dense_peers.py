"""Linear models of dense vectors compared with scikit-learn's, which fits one label after the other.

Rows are Debian's texts by truncated SVD, of unit length, with their most frequent tags, at most 366.  A fifth
of the training rows chooses one threshold per label, that of its best F1, in the same way for every program;
micro-F1 is of other rows.  Times are CPU seconds on one thread, including scores of these rows.  With
``--every k`` models of scikit-learn are fitted to every k-th label, and the seconds multiplied, since they
are proportional to the labels.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.dense_peers --labels 50
"""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from benchmarks.frame import command
from benchmarks.rare_losses import best_threshold
from labelweave import MaxMarginClassifier
from labelweave.datasets import load_debtags


def vectors(columns: int = 384) -> tuple[Any, Any, Any, Any]:
    """Return training and test vectors with their tags, frequent ones first."""
    X, Y, X_test, Y_test = load_debtags(return_X_y=True)
    svd = TruncatedSVD(columns, random_state=0)
    tables = [svd.fit_transform(X), svd.transform(X_test)]
    tables = [table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12) for table in tables]
    order = np.argsort(-np.asarray((Y > 0).sum(axis=0)).ravel(), kind="stable")
    return tables[0], Y[:, order].toarray(), tables[1], Y_test[:, order].toarray()


@command(rows=20000, labels=50, every=1)
def main(options: Any) -> None:
    X, Y, X_test, Y_test = vectors()
    X, Y, Y_test = X[: options.rows], Y[: options.rows, : options.labels], Y_test[:, : options.labels]
    held = np.arange(len(X)) % 5 == 0
    warnings.simplefilter("ignore", ConvergenceWarning)
    for cost in (1.0, 10.0):
        for name, every in (("labelweave", 1), ("LogisticRegression", 0), ("LinearSVC, hinge", 0)):
            labels = np.arange(0, Y.shape[1], every or options.every)
            decide, scores, begin = [], [], time.process_time()
            if every:  # its C is half of theirs
                model: Any = MaxMarginClassifier(C=cost / 2, threshold=0.0, n_jobs=1)
                model.fit(X[~held], Y[~held])
                decide, scores = model.decision_function(X[held]).T, model.decision_function(X_test).T
            for label in [] if every else labels:
                kind = LogisticRegression(C=cost) if name[1] == "o" else LinearSVC(C=cost, loss="hinge")
                kind.fit(X[~held], Y[~held, label])
                decide.append(kind.decision_function(X[held]))
                scores.append(kind.decision_function(X_test))
            seconds = (time.process_time() - begin) * Y.shape[1] / len(labels)
            common = range(0, Y.shape[1], options.every)
            if every:
                decide, scores = decide[:: options.every], scores[:: options.every]
            cuts = [best_threshold(*pair) for pair in zip(Y[held][:, common].T, decide, strict=True)]
            found = np.asarray(cuts) < np.asarray(scores).T
            f1 = f1_score(Y_test[:, common], found, average="micro")
            print(f"C = {cost:g}, {name}: {seconds:.1f} s, micro-F1 {f1:.4f}", flush=True)
