"""Metrics of predicted label sets: Hamming loss, subset accuracy, precision, recall, F1.

All of them are made of three counts over observed entries: true positives,
predicted positives and actual positives, added up by label or by example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np

from labelweave.array_types import Floats
from labelweave.metrics._entry_counts import EntryCounts, label_counts, row_counts
from labelweave.metrics._inputs import mean_of_defined, read_targets, read_weights

__all__ = ["f1_score", "hamming_loss", "precision_score", "recall_score", "subset_accuracy"]

Average = Literal["micro", "macro", "example", "samples"] | None


def hamming_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any | None = None) -> float:
    """Compute the share of observed entries that are predicted wrongly.

    An unobserved entry is counted neither as right nor as wrong.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L)
        Predicted labels, 0/1 or -1/1, without missing entries.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float
        The loss, from 0 (best) to 1.

    Raises
    ------
    ValueError
        If the shapes disagree, Y_pred has missing entries or nothing was observed.
    """
    targets = read_targets(Y_true)
    counts = row_counts(targets, Y_pred)
    weights = read_weights(sample_weight, targets)
    total = weights @ counts.observed
    return float(weights @ counts.wrong / total) if total > 0 else float("nan")


def subset_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any | None = None) -> float:
    """Compute the share of examples whose observed entries are all predicted correctly.

    An unobserved entry is not compared; examples without an observed entry are
    left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L)
        Predicted labels, 0/1 or -1/1, without missing entries.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float
        The accuracy, from 0 to 1 (best).

    Raises
    ------
    ValueError
        If the shapes disagree, Y_pred has missing entries or nothing was observed.
    """
    targets = read_targets(Y_true)
    counts = row_counts(targets, Y_pred)
    correct = np.where(counts.observed > 0, counts.wrong == 0, np.nan)
    return mean_of_defined(correct, read_weights(sample_weight, targets))


def precision_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    sample_weight: Any | None = None,
) -> float | Floats:
    """Compute the share of predicted positives that are positive.

    An unobserved entry is in no count.  Labels (macro) and examples (example)
    without an observed entry are left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L)
        Predicted labels, 0/1 or -1/1, without missing entries.
    average : {"micro", "macro", "example", "samples"} or None, default="micro"
        Over all entries, over labels, over examples ("samples" is the same), or
        one value a label.
    zero_division : {0.0, 1.0, nan}, default=0.0
        The value where nothing is predicted; NaN leaves it out of the mean.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The precision, from 0 to 1 (best); an array, NaN at labels without an
        observed entry, if average is None.

    Raises
    ------
    ValueError
        If the shapes disagree, Y_pred has missing entries or nothing was observed.
    """
    counts, weights = _counts_for(Y_true, Y_pred, average, sample_weight)
    return _averaged(counts, weights, average, zero_division, _precision_parts)


def recall_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    sample_weight: Any | None = None,
) -> float | Floats:
    """Compute the share of positives that are predicted.

    An unobserved entry is in no count.  Labels (macro) and examples (example)
    without an observed entry are left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L)
        Predicted labels, 0/1 or -1/1, without missing entries.
    average : {"micro", "macro", "example", "samples"} or None, default="micro"
        Over all entries, over labels, over examples ("samples" is the same), or
        one value a label.
    zero_division : {0.0, 1.0, nan}, default=0.0
        The value where nothing is positive; NaN leaves it out of the mean.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The recall, from 0 to 1 (best); an array, NaN at labels without an
        observed entry, if average is None.

    Raises
    ------
    ValueError
        If the shapes disagree, Y_pred has missing entries or nothing was observed.
    """
    counts, weights = _counts_for(Y_true, Y_pred, average, sample_weight)
    return _averaged(counts, weights, average, zero_division, _recall_parts)


def f1_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    sample_weight: Any | None = None,
) -> float | Floats:
    """Compute the harmonic mean of precision and recall.

    An unobserved entry is in no count.  Labels (macro) and examples (example)
    without an observed entry are left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L)
        Predicted labels, 0/1 or -1/1, without missing entries.
    average : {"micro", "macro", "example", "samples"} or None, default="micro"
        Over all entries, over labels, over examples ("samples" is the same), or
        one value a label.
    zero_division : {0.0, 1.0, nan}, default=0.0
        The value where nothing is positive or predicted; NaN leaves it out of
        the mean.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The F1 score, from 0 to 1 (best); an array, NaN at labels without an
        observed entry, if average is None.

    Raises
    ------
    ValueError
        If the shapes disagree, Y_pred has missing entries or nothing was observed.
    """
    counts, weights = _counts_for(Y_true, Y_pred, average, sample_weight)
    return _averaged(counts, weights, average, zero_division, _f1_parts)


Parts = Callable[[EntryCounts], tuple[Floats, Floats]]


def _precision_parts(counts: EntryCounts) -> tuple[Floats, Floats]:
    return counts.hit, counts.predicted


def _recall_parts(counts: EntryCounts) -> tuple[Floats, Floats]:
    return counts.hit, counts.positive


def _f1_parts(counts: EntryCounts) -> tuple[Floats, Floats]:
    return 2 * counts.hit, counts.predicted + counts.positive


def _counts_for(
    Y_true: Any, Y_pred: Any, average: Average, sample_weight: Any | None
) -> tuple[EntryCounts, Floats]:
    """Count by example or by label, with the weights of the lines in a mean."""
    if average not in ("micro", "macro", "example", "samples", None):
        raise ValueError(
            f"average is {average!r}; it must be 'micro', 'macro', 'example' (or 'samples') or None."
        )
    targets = read_targets(Y_true)
    weights = read_weights(sample_weight, targets)
    if average in ("example", "samples"):
        return row_counts(targets, Y_pred), weights
    counts = label_counts(targets, Y_pred, weights)
    if average == "micro":
        counts = counts.total()
    return counts, np.ones(len(counts.hit))


def _averaged(
    counts: EntryCounts, weights: Floats, average: Average, zero_division: float, parts: Parts
) -> float | Floats:
    if not isinstance(zero_division, (int, float)) or not (
        zero_division in (0, 1) or np.isnan(zero_division)
    ):
        raise ValueError(f"zero_division is {zero_division!r}; it must be 0.0, 1.0 or nan.")
    numerator, denominator = parts(counts)
    values = np.full(len(numerator), float(zero_division))
    np.divide(numerator, denominator, out=values, where=denominator > 0)
    values[counts.observed == 0] = np.nan
    return cast(Floats, values) if average is None else mean_of_defined(values, weights)
