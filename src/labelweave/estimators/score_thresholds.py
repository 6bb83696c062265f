"""From scores to label sets: thresholds chosen on observed entries that the fit did not see."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.labels import LabelMatrix

__all__ = ["best_thresholds"]

Array = npt.NDArray[Any]


def best_thresholds(labels: LabelMatrix, scores: Array, *, by_label: bool, fallback: float) -> Array:
    """Choose the thresholds of the highest F1 score.

    Parameters
    ----------
    labels : LabelMatrix of n rows
        What is true; unobserved entries do not count.
    scores : ndarray of shape (n, L)
        The scores.
    by_label : bool
        Whether every label gets a threshold of its own, or all one (the micro-averaged F1 score).
    fallback : float
        The threshold of a label without positive entries, and the one for all if none is positive.

    Returns
    -------
    ndarray of float64, shape (L,)
        Scores above are positive.
    """
    signs = labels.to_signs()
    if not by_label:
        seen = signs != 0
        return np.full(labels.n_labels, _best(signs[seen], scores[seen], fallback))
    columns = []
    for label in range(labels.n_labels):
        seen = signs[:, label] != 0
        columns.append(_best(signs[seen, label], scores[seen, label], fallback))
    return np.asarray(columns)


def _best(signs: Array, scores: Array, fallback: float) -> float:
    """Find the cut of the highest F1 score, half way between the scores on both its sides."""
    positives = int((signs > 0).sum())
    if positives == 0:
        return fallback
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order].astype(np.float64)
    hits = np.cumsum(signs[order] > 0)
    f1 = 2.0 * hits / (np.arange(1, len(hits) + 1) + positives)
    is_end = np.append(ranked[1:] < ranked[:-1], True)  # equal scores go together
    last = int(np.argmax(np.where(is_end, f1, -1.0)))
    below = ranked[last + 1] if last + 1 < len(ranked) else ranked[last] - 1.0
    return float(0.5 * (ranked[last] + below))
