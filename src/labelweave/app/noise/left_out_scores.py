"""Out-of-fold scores of any multi-label classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.decisions.label_scores import rows_of, targets_for
from labelweave.estimators.targets import check_lengths
from labelweave.foundation.array_types import PerRow, RowsByLabels
from labelweave.foundation.arrays import checked_csr
from labelweave.foundation.sklearn_compat import _safe_split
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import label_scores

_LEAST_PROBABILITY = 1e-4


def left_out_scores(
    estimator: Any, X: Any, labels: LabelMatrix, folds: PerRow, tell: Callable[[str], object]
) -> RowsByLabels:
    """Fit an estimator to all folds but one, in turn, and score that one; an automatic model has its own.

    Raises ValueError if X and labels differ in rows, or the estimator lacks one score per label.
    Returns scores (n, L); probabilities as log-odds.
    """
    X = checked_csr(X, "X") if sp.issparse(X) else X
    check_lengths(rows_of(X), len(labels))
    if isinstance(estimator, AutoLabelClassifier):
        tell("fitting AutoLabelClassifier")
        scores = clone(estimator).fit(X, labels)._left_out_probabilities()
    else:
        scores, n_folds = np.empty(labels.shape), int(folds.max()) + 1
        for fold in range(n_folds):
            tell(f"fitting {type(estimator).__name__}, fold {fold + 1} of {n_folds}")
            train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            model = clone(estimator)
            X_train = _safe_split(model, X, None, train)[0]
            model.fit(X_train, targets_for(model, labels[train]))
            X_held = _safe_split(model, X, None, held, train)[0]
            scores[held] = label_scores(model, X_held, labels.n_labels)
    return as_log_odds(scores)


def as_log_odds(scores: RowsByLabels) -> RowsByLabels:
    """Convert probabilities to log-odds; keep scores if some are not probabilities."""
    if scores.size and (scores.min() < 0.0 or scores.max() > 1.0):
        return scores
    return np.asarray(np.log(scores + _LEAST_PROBABILITY) - np.log1p(_LEAST_PROBABILITY - scores))
