"""Few observed labels
===================

Learn tags when only a fifth of them is observed: one model per tag, or a few factors for all tags.

Four fifths of the training entries of Debian's package tags are hidden, present and absent tags alike.  One
linear model per tag (binary relevance) and low-rank models are fitted to the same observed entries with the
same loss; then all of them rank all tags of test packages.  Precision measures the top of these rankings,
where frequent tags are; the area under the ROC curve weights all tags equally, including rare ones.  Run
``python examples/few_observed_labels.py``; it takes some ten seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/few_observed_labels.png'
from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave import BinaryRelevance, LabelMatrix, LowRankClassifier, datasets, metrics

ROWS = 3_000
LABELS = 200  # the most frequent tags
LEAST_PACKAGES = 3  # words of fewer packages are dropped
OBSERVED = 0.2


def main() -> None:
    """Hide entries, fit the models, compare their rankings."""
    X, Y, X_test, Y_test = _frequent_tags()
    seen = sp.csr_array(np.random.default_rng(0).random(Y.shape) < OBSERVED)
    partly = LabelMatrix(sp.csr_array(Y.multiply(seen))).masked(seen)
    print(f"{X.shape[0]} packages, {X.shape[1]} words, {Y.shape[1]} tags, {OBSERVED:.0%} of the entries seen")
    print(f"{'':34s}{'P@1':>8s}{'P@3':>8s}{'P@5':>8s}{'AUC':>8s}{'numbers':>10s}{'seconds':>9s}")
    for name, model in _models().items():
        start = time.perf_counter()
        scores = model.fit(X, partly).decision_function(X_test)
        seconds = time.perf_counter() - start
        precisions = [metrics.precision_at_k(Y_test, scores, k=k) for k in (1, 3, 5)]
        values = "".join(f"{value:8.3f}" for value in [*precisions, metrics.average_auc(Y_test, scores)])
        print(f"{name:34s}{values}{_size(model):10,d}{seconds:9.1f}")


def _models() -> dict[str, Any]:
    share = 0.2  # of the number of tags
    return {
        "a linear model a tag": BinaryRelevance(),
        "rank 0.2, ridge penalty": LowRankClassifier(share, penalty="ridge", tol=1e-3),
        "rank 0.2, trace norm": LowRankClassifier(share, alpha=2.0, tol=1e-3),
    }


def _size(model: Any) -> int:
    """Count the weights that a model keeps."""
    if hasattr(model, "feature_factors_"):
        return int(model.feature_factors_.size + model.label_factors_.size)
    return int(model.coef_.size)


def _frequent_tags() -> tuple[Any, Any, Any, Any]:
    X, Y, X_test, Y_test = datasets.load_debtags(return_X_y=True)
    rows = np.random.default_rng(1).permutation(X.shape[0])[:ROWS]
    tags = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:LABELS])
    X, Y = X[rows], Y[rows][:, tags]
    words = np.flatnonzero(np.diff(sp.csc_array(X).indptr) >= LEAST_PACKAGES)
    return X[:, words], Y, X_test[:, words], Y_test[:, tags]


if __name__ == "__main__":
    main()
