"""How far probabilities of labels are from the frequencies they announce."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.array_types import Floats
from labelweave.metrics._inputs import mean_of_defined, read_scores, read_targets, row_blocks

__all__ = ["expected_calibration_error"]


def expected_calibration_error(
    Y_true: Any,
    probabilities: Any,
    *,
    n_bins: Any = 15,
    average: Literal["micro", "macro"] | None = "micro",
) -> float | Floats:
    """Compute the mean distance between probabilities and the frequencies of what they announce.

    Entries are sorted into bins of equal width by their probability.  In each bin the mean probability is
    compared with the share of positive entries; the distances are averaged with the bins' sizes
    as weights (Naeini, Cooper and Hauskrecht, AAAI 2015).  An unobserved entry is in no bin.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    probabilities : DataFrame or array-like of shape (n, L)
        Of the labels, each from 0 to 1.
    n_bins : int, default=15
        The number of bins.
    average : {"micro", "macro"} or None, default="micro"
        Over all entries together, the mean over labels, or one value a label.  Where most entries are
        negative and safely so, as with hundreds of labels, all of them are small.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The error, from 0 (best) to 1; an array, NaN at labels without an observed entry, if average is None.

    Raises
    ------
    ValueError
        If the shapes disagree, a probability is outside 0 to 1 or nothing was observed.

    Examples
    --------
    >>> from labelweave.metrics import expected_calibration_error
    >>> round(expected_calibration_error([[1], [1], [0], [1]], [[0.9], [0.9], [0.9], [0.9]]), 2)
    0.15
    """
    if average not in ("micro", "macro", None):
        raise ValueError(f"average is {average!r}; it must be 'micro', 'macro' or None.")
    if not isinstance(n_bins, Integral) or n_bins < 1:
        raise ValueError(f"n_bins is {n_bins!r}; it must be a whole number of at least 1.")
    targets = read_targets(Y_true)
    if sp.issparse(probabilities):
        probabilities = probabilities.toarray()
    table = read_scores(probabilities, targets)
    sums = np.zeros((3, targets.n_labels, int(n_bins)))  # of entries, probabilities and positives
    for rows in row_blocks(table):
        _add_to_bins(sums, table[rows].astype(np.float64), targets[rows].to_signs(), rows.start)
    if average == "micro":
        return float(_error(sums.sum(axis=1, keepdims=True))[0])
    errors = _error(sums)
    return errors if average is None else mean_of_defined(errors, np.ones(len(errors)))


def _add_to_bins(sums: Floats, block: Floats, signs: npt.NDArray[np.int8], start: int) -> None:
    outside = (block < 0) | (block > 1)
    if outside.any():
        row, label = np.argwhere(outside)[0]
        raise ValueError(
            f"The probability at row {start + row}, label {label} is {block[row, label]}; probabilities are "
            "from 0 to 1."
        )
    n_bins = sums.shape[2]
    place = np.minimum((block * n_bins).astype(np.intp), n_bins - 1)
    flat = (np.arange(block.shape[1]) * n_bins + place).ravel()
    seen = (signs != 0).astype(float)
    for number, weights in enumerate((seen, seen * block, signs > 0)):
        found = np.bincount(flat, weights.ravel(), minlength=sums[number].size)
        sums[number] += found.reshape(sums[number].shape)


def _error(sums: Floats) -> Floats:
    """Add up the bins' distances of every line: shape (lines,)."""
    counts, probabilities, positives = sums
    total = counts.sum(axis=1)
    distances = np.abs(probabilities - positives).sum(axis=1)
    errors = np.full(len(total), np.nan)
    np.divide(distances, total, out=errors, where=total > 0)
    return errors
