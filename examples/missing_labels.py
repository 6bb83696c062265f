"""Missing labels
==============

Compare models that treat missing labels as missing and as absent.

Half of the training labels of Debian's package tags are hidden.  The first model knows which entries are
unobserved; they add nothing to its loss.  The second treats every hidden tag as absent, as is necessary if a
data set does not mark missing values.  The third has all labels.  Run ``python examples/missing_labels.py``;
it takes a few seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/missing_labels.png'
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave import LabelMatrix, MaxMarginClassifier, datasets, metrics

ROWS = 8_000
LABELS = 60  # the most frequent tags
OBSERVED = 0.5


def main() -> None:
    """Hide labels, fit the three models, and compare them on test packages."""
    X, Y, X_test, Y_test = _frequent_tags()
    seen = np.random.default_rng(0).random(Y.shape) < OBSERVED
    positives = sp.csr_array(Y.multiply(seen))
    targets = {
        "everything observed": Y,
        "half hidden, marked as unobserved": hide(positives, seen),
        "half hidden, taken as negative": positives,
    }
    print(f"{X.shape[0]} packages to learn from, {X_test.shape[0]} to test on, {Y.shape[1]} tags")
    print(f"{'training labels':36s}{'recall':>8s}{'precision':>11s}{'micro F1':>10s}")
    for name, target in targets.items():
        predicted = MaxMarginClassifier(C=0.5).fit(X, target).predict(X_test)
        recall = metrics.recall_score(Y_test, predicted, average="micro")
        precision = metrics.precision_score(Y_test, predicted, average="micro")
        f1 = metrics.f1_score(Y_test, predicted, average="micro")
        print(f"{name:36s}{recall:8.3f}{precision:11.3f}{f1:10.3f}")


def _frequent_tags() -> tuple[Any, Any, Any, Any]:
    X, Y, X_test, Y_test = datasets.load_debtags(return_X_y=True)
    rows = np.random.default_rng(1).permutation(X.shape[0])[:ROWS]
    tags = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:LABELS])
    return X[rows], Y[rows][:, tags], X_test, Y_test[:, tags]


def hide(positives: sp.csr_array, seen: np.ndarray) -> LabelMatrix:
    """Make targets whose hidden entries are unobserved."""
    return LabelMatrix(positives).masked(sp.csr_array(seen))


if __name__ == "__main__":
    main()
