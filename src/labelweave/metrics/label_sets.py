"""Metrics of predicted label sets: Hamming loss, subset accuracy, precision, recall, F1.

All are computed from counts over observed entries: hits, predicted and actual positives, by label or by
example.  Entries with a probability (``LabelMatrix.from_probabilities``) count with their expected values;
subset accuracy takes the more probable value of each entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import ratios
from labelweave.labels import LabelMatrix
from labelweave.metrics import _inputs

Average = Literal["micro", "macro", "example", "samples"] | None


@checked
def hamming_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any | None = None) -> float:
    """Compute the fraction of observed entries that are predicted wrongly.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix, array-like of shape (n, L) or n lists of tags
        True labels, 0/1 or -1/1, NaN where not observed; unobserved entries are ignored.
    Y_pred : DataFrame, sparse matrix, array-like of shape (n, L) or n lists of tags
        Predicted labels, 0/1 or -1/1, without missing entries.  If both are lists of tags, the labels are the
        union of their tags.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight per row, by default ones.

    Returns
    -------
    float
        The loss, from 0 (best) to 1.

    Raises
    ------
    ValueError
        If the shapes differ, Y_pred has missing entries or nothing is observed.
    """
    targets = _inputs.read_targets(Y_true, Y_pred, is_soft=True)
    counts = row_counts(targets, Y_pred)
    weights = _inputs.read_weights(sample_weight, targets)
    total = weights @ counts.observed
    return float(weights @ counts.wrong / total) if total > 0 else float("nan")


@checked
def subset_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any | None = None) -> float:
    """Compute the fraction of examples whose observed entries are all predicted correctly; 1 is best.

    Examples without an observed entry are ignored.  For parameters and errors see :func:`hamming_loss`.
    """
    targets = _inputs.read_targets(Y_true, Y_pred)
    counts = row_counts(targets, Y_pred)
    correct = np.where(counts.observed > 0, counts.wrong == 0, np.nan)
    return _inputs.mean_of_defined(correct, _inputs.read_weights(sample_weight, targets))


@checked
def precision_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    sample_weight: Any | None = None,
) -> float | Floats:
    """Compute the fraction of predicted positives that are positive.

    ``zero_division`` is the value where nothing is predicted.  For the rest see :func:`f1_score`.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The precision, from 0 to 1 (best).
    """
    return _share(lambda c: (c.hit, c.predicted), Y_true, Y_pred, average, zero_division, sample_weight)


@checked
def recall_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    sample_weight: Any | None = None,
) -> float | Floats:
    """Compute the fraction of positives that are predicted.

    ``zero_division`` is the value where nothing is positive.  For the rest see :func:`f1_score`.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The recall, from 0 to 1 (best).
    """
    return _share(lambda c: (c.hit, c.positive), Y_true, Y_pred, average, zero_division, sample_weight)


@checked
def f1_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    sample_weight: Any | None = None,
) -> float | Floats:
    """Compute the harmonic mean of precision and recall over observed entries.

    For the other parameters and errors see :func:`hamming_loss`.

    Parameters
    ----------
    average : {"micro", "macro", "example", "samples"} or None, default="micro"
        Over all entries; over labels or examples ("samples" is the same), without those that have no observed
        entry; or None for one value per label.
    zero_division : {0.0, 1.0, nan}, default=0.0
        The value where nothing is positive or predicted; NaN excludes it from the mean.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The F1 score, from 0 to 1 (best); an array, NaN at labels without an observed entry, if average is
        None.
    """
    return _share(_f1, Y_true, Y_pred, average, zero_division, sample_weight)


_Fraction = Callable[["EntryCounts"], tuple[Floats, Floats]]


def _f1(counts: EntryCounts) -> tuple[Floats, Floats]:
    return 2 * counts.hit, counts.predicted + counts.positive


def _share(
    fraction: _Fraction, Y_true: Any, Y_pred: Any, average: Average, zero_division: float, sample_weight: Any
) -> float | Floats:
    """Divide counts, and average over lines: all entries as one, labels, or examples."""
    if average not in ("micro", "macro", "example", "samples", None):
        raise ValueError(f"average is {average!r}; pass 'micro', 'macro', 'example' (or 'samples') or None.")
    if zero_division not in (0, 1) and not (isinstance(zero_division, float) and np.isnan(zero_division)):
        raise ValueError(f"zero_division is {zero_division!r}; pass 0.0, 1.0 or nan.")
    targets = _inputs.read_targets(Y_true, Y_pred, is_soft=True)
    weights = _inputs.read_weights(sample_weight, targets)
    if average in ("example", "samples"):
        counts = row_counts(targets, Y_pred)
    else:
        counts = label_counts(targets, Y_pred, weights)
        if average == "micro":
            counts = counts.of_all
        weights = np.ones(len(counts.hit))
    values = _shares(fraction, counts, zero_division)
    return values if average is None else _inputs.mean_of_defined(values, weights)


def _shares(fraction: _Fraction, counts: EntryCounts, zero_division: float) -> Floats:
    values = ratios(*fraction(counts), zero_division)
    values[counts.observed == 0] = np.nan
    return values


def f1_of(counts: EntryCounts) -> Floats:
    """Compute F1 per line; 0 where nothing is positive or predicted, NaN where nothing is observed."""
    return _shares(_f1, counts, 0.0)


class EntryCounts(NamedTuple):
    """Numbers of hits, of predicted, positive and of all observed entries, one per line."""

    hit: Floats
    predicted: Floats
    positive: Floats
    observed: Floats

    @property
    def of_all(self) -> EntryCounts:
        return EntryCounts(*(column.sum(keepdims=True) for column in self))

    @property
    def wrong(self) -> Floats:
        return self.predicted + self.positive - 2 * self.hit


def row_counts(targets: LabelMatrix, Y_pred: Any) -> EntryCounts:
    counts: list[Array] = [
        np.diff(pattern.indptr) if pattern.dtype.kind == "i" else np.asarray(pattern.sum(axis=1))
        for pattern in _patterns(targets, Y_pred)
    ]
    return EntryCounts(
        *(count.astype(np.float64) for count in [*counts, _inputs.row_observed_counts(targets)])
    )


def label_counts(targets: LabelMatrix, Y_pred: Any, weights: Floats) -> EntryCounts:
    """Count per label, every entry with the weight of its row."""
    hit, predicted, positive = (pattern.T @ weights for pattern in _patterns(targets, Y_pred))
    if targets.observed is None:
        return EntryCounts(hit, predicted, positive, np.full(targets.n_labels, weights.sum()))
    return EntryCounts(hit, predicted, positive, abs(targets.observed).T @ weights)


def _patterns(targets: LabelMatrix, Y_pred: Any) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array]:
    predicted = _inputs.read_predictions(Y_pred, targets)
    positive = targets.expected_positives
    hit = positive.multiply(predicted).tocsr()
    if targets.observed is not None:
        predicted = predicted.multiply(abs(targets.observed)).tocsr()
    return hit, predicted, positive
