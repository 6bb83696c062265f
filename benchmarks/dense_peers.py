"""Linear models of dense rows compared with scikit-learn's, which fits one label after the other.

Problems: the bundled debtags by truncated SVD to 384 dimensions in rows of unit length, delicious with its
500 features as dense rows, and synthetic rows of 384 columns; the most frequent labels of each.  Times are
CPU seconds on one thread, including scores of the test rows; medians of interleaved runs.  With ``--every k``
models of scikit-learn are fitted to every k-th label, and the seconds multiplied, since they are proportional
to the labels.

- ``--loss hinge``: a fifth of the training rows chooses one threshold per label, that of its best F1, in the
  same way for every program; micro-F1 is of the test rows.
- ``--loss log``: log loss of test entries, at scikit-learn's C = 1 (lbfgs).  The low-rank model has its
  default penalty, the trace norm, and the ridge penalty with lambda = 1, whose objective is scikit-learn's
  except that it penalizes the intercepts.  Kernel logistic classification has a linear kernel of scale 10,
  the default (C = 10 there), and of scale 1, whose objective is scikit-learn's except for the intercepts.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.dense_peers --labels 50
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.dense_peers --loss log --problems debtags delicious
"""

from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from benchmarks.frame import command, flag, quiet, timed
from benchmarks.problems import read_tables, read_vectors
from benchmarks.rare_losses import best_threshold
from labelweave import KernelLogisticClassifier, LowRankClassifier, MaxMarginClassifier

_WIDTH = 384
_LOW_RANK = LowRankClassifier(loss="log_loss", n_jobs=1)
_KERNEL = KernelLogisticClassifier("linear", hyperparameters="fixed", n_jobs=1)
_MODELS: dict[str, dict[str, Any]] = {
    "hinge": {  # labelweave's C is half of theirs
        f"{name}, C = {cost:g}": model
        for cost in (1.0, 10.0)
        for name, model in (
            ("labelweave", MaxMarginClassifier(C=cost / 2, threshold=0.0, n_jobs=1)),
            ("LogisticRegression", LogisticRegression(C=cost)),
            ("LinearSVC, hinge", LinearSVC(C=cost, loss="hinge")),
        )
    },
    "log": {
        "LogisticRegression, C = 1": LogisticRegression(max_iter=1000),
        "low rank, trace norm": _LOW_RANK,
        "low rank, ridge": clone(_LOW_RANK).set_params(penalty="ridge"),
        "kernel logistic, scale 10": clone(_KERNEL).set_params(scale=10.0),
        "kernel logistic, scale 1": clone(_KERNEL).set_params(scale=1.0),
    },
}


def _data(name: str, options: Any) -> list[Any]:
    if name == "debtags":
        tables = read_vectors(_WIDTH)
    elif name == "synthetic":
        tables = made_rows(options.rows, options.labels)
    else:
        tables = tuple(table.toarray() if sp.issparse(table) else table for table in read_tables(name))
    X, Y, X_test, Y_test = tables
    kept = np.argsort(-Y.sum(axis=0), kind="stable")[: options.labels]
    return [X[: options.rows].astype(float), Y[: options.rows, kept], X_test.astype(float), Y_test[:, kept]]


def made_rows(n: int, n_labels: int) -> tuple[Any, Any, Any, Any]:
    """Make rows with 40 leading directions, and labels with frequencies from 1 to 20 %."""
    rng, n_all = np.random.default_rng(0), n + n // 4
    X = rng.standard_normal((n_all, 40)) @ rng.standard_normal((40, _WIDTH)) / 6
    X += rng.standard_normal((n_all, _WIDTH))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    shared = rng.standard_normal((_WIDTH, 20)) @ rng.standard_normal((20, n_labels)) / 4
    scores = 4 * X @ (shared + 0.5 * rng.standard_normal((_WIDTH, n_labels)))
    scores += rng.logistic(size=scores.shape)
    shares = rng.uniform(0.01, 0.2, n_labels)
    limits = [np.quantile(column, 1 - share) for column, share in zip(scores.T, shares, strict=True)]
    Y = (scores > limits).astype(np.int8)
    return X[:n], Y[:n], X[n:], Y[n:]


def _scores(model: Any, X: Any, Y: Any, parts: list[Any]) -> list[Any]:
    """Fit, and return the scores (rows, L) of parts; log-odds of models of probabilities."""
    if isinstance(model, LogisticRegression | LinearSVC):
        models = [clone(model).fit(X, y) for y in Y.T]
        return [np.column_stack([one.decision_function(rows) for one in models]) for rows in parts]
    fitted = clone(model).fit(X, Y)
    if isinstance(model, LowRankClassifier):
        return [rows @ fitted.coef_.T + fitted.intercept_ for rows in parts]
    return [fitted.decision_function(rows) for rows in parts]


def _quality(scores: list[Any], held: Any, truth: Any) -> str:
    if len(scores) == 2:
        cuts = [best_threshold(*pair) for pair in zip(held.T, scores[1].T, strict=True)]
        return f"micro-F1 {f1_score(truth, np.asarray(cuts) < scores[0], average='micro'):.4f}"
    shares = np.clip(expit(scores[0]), 1e-12, 1 - 1e-12)
    return f"log loss {-np.where(truth > 0, np.log(shares), np.log1p(-shares)).mean():.5f}"


@command(
    problems=["debtags"],
    loss=flag("hinge", choices=list(_MODELS)),
    rows=flag(20_000, "of training, at most"),
    labels=50,
    every=flag(1, "scikit-learn fits every so many labels"),
    runs=flag(1, "interleaved; the median is told"),
)
def main(options: Any) -> None:
    for name in options.problems:
        X, Y, X_test, Y_test = _data(name, options)
        held = np.arange(len(X)) % 5 == 0 if options.loss == "hinge" else np.zeros(len(X), bool)
        parts, models = [X_test, *([X[held]] if held.any() else [])], _MODELS[options.loss]
        seconds: dict[str, list[float]] = {title: [] for title in models}
        for _ in range(options.runs):
            for title, model in models.items():
                is_peer = isinstance(model, LogisticRegression | LinearSVC)
                labels = np.arange(0, Y.shape[1], options.every if is_peer else 1)
                with quiet():
                    _scores(model, X[:500], Y[:500, :3], [])  # compiles
                    scores, spent = timed(_scores, model, X[~held], Y[~held][:, labels], parts)
                seconds[title].append(spent * Y.shape[1] / len(labels))
                quality = _quality(scores, Y[held][:, labels], Y_test[:, labels])
                print(f"{name}, {title}: {median(seconds[title]):.1f} s, {quality}", flush=True)
