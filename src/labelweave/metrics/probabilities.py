"""Metrics of probabilities: log loss of classes and labels, and expected calibration error."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import log_loss as sklearn_log_loss

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import checked_csr, numbers_of, ratios
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.labels.targets import has_many_labels
from labelweave.metrics import _inputs
from labelweave.metrics._classes import NOT_A_CLASS, Classes, ClassRows, as_text, read_class_rows
from labelweave.metrics._inputs import Scores

_MOST_BINS = 10_000


@checked
def log_loss(
    y_true: Any,
    probabilities: Any,
    classes: Classes = None,
    *,
    taxonomy: Taxonomy | None = None,
    sample_weight: Any | None = None,
) -> float:
    """Compute the mean negative log likelihood of the observed classes or labels, in nats.

    For one class per row, the mean of -log P(true class) over rows; for labels, the binary log loss over
    entries.  As in scikit-learn, probabilities are clipped to [eps, 1 - eps] of their float type.

    Parameters
    ----------
    y_true : array-like of shape (n,); or array-like, DataFrame, sparse or LabelMatrix of shape (n, L)
        True classes, None or NaN where not observed; or labels, 0/1 or -1/1, NaN where not observed.
    probabilities : DataFrame or array-like of shape (n, C) or (n, L)
        Of the classes, with rows that sum to 1; or of the labels, each from 0 to 1.
    classes : sequence of length C or None, default=None
        The class of each column, by default the DataFrame's columns or 0, 1, ...; only for one class per row.
    taxonomy : Taxonomy or None, default=None
        If given, a true class may be an inner node, whose probability is the sum over the classes below it.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight per row, by default ones.

    Returns
    -------
    float
        The loss, at least 0 (best).

    Raises
    ------
    ValueError
        If the shapes differ, values are not probabilities, a truth is not a class or nothing is observed.

    Examples
    --------
    >>> from labelweave.metrics import log_loss
    >>> round(log_loss(["a", None], [[0.5, 0.5], [0.9, 0.1]], classes=["a", "b"]), 4)
    0.6931
    >>> round(log_loss([[1, 0], [float("nan"), 1]], [[0.5, 0.5], [0.9, 0.5]]), 4)
    0.6931
    """
    if not has_many_labels(y_true):
        rows = read_class_rows(y_true, probabilities, classes, sample_weight, taxonomy)
        return class_log_loss(rows, taxonomy)
    if classes is not None or taxonomy is not None:
        raise ValueError(
            "classes or a taxonomy need one class per row, but y_true has several labels per row; omit them, "
            "or pass a vector of classes."
        )
    return _label_log_loss(y_true, probabilities, sample_weight)


def class_log_loss(given: ClassRows, taxonomy: Taxonomy | None) -> float:
    """Compute the log loss of one class per row; raise for an inner node with no class below it."""
    masses = given.per_row(lambda block, codes: block[np.arange(len(codes)), np.maximum(codes, 0)])
    if taxonomy is not None:
        names = [str(as_text(name)) for name in given.classes]
        rows_of = dict[Any, list[int]]()
        for row in np.flatnonzero(given.codes == NOT_A_CLASS).tolist():
            rows_of.setdefault(given.values[row], []).append(row)
        for node, rows in rows_of.items():
            below = taxonomy.under([str(as_text(node))], names).indices
            if not len(below):
                raise ValueError(
                    f"No class lies below the inner node {node!r} in y_true, so it has no "
                    "probability; pass None for such rows."
                )
            masses[rows] = given.table[np.ix_(given.numbers[rows], below)].sum(axis=1)
    return float(_binary_losses(np.ones(len(masses), bool), masses, given.weights) / given.weights.sum())


def _label_log_loss(Y_true: Any, probabilities: Any, sample_weight: Any) -> float:
    targets = _inputs.read_targets(Y_true, is_soft=True)
    weights = _inputs.read_weights(sample_weight, targets)
    table = _read_label_probabilities(probabilities, targets)
    losses, total = 0.0, 0.0
    for rows in _inputs.row_blocks(table):
        signs = targets[rows].to_soft_signs()
        seen = signs != 0
        if seen.any():
            entry_weights, values = np.repeat(weights[rows], seen.sum(axis=1)), table[rows][seen]
            most_likely, share = signs[seen] > 0, 0.5 + 0.5 * abs(signs[seen])  # of the more probable value
            losses += _binary_losses(most_likely, values, share * entry_weights)
            if signs.dtype.kind == "f":
                losses += _binary_losses(~most_likely, values, (1.0 - share) * entry_weights)
            total += float(entry_weights.sum())
    return losses / total if total > 0 else float("nan")


def _read_label_probabilities(
    probabilities: Any, targets: LabelMatrix, *, may_be_sparse: bool = False
) -> Scores:
    if sp.issparse(probabilities):
        if not may_be_sparse:
            raise ValueError("The probabilities are a sparse matrix; pass them dense, one column per label.")
        table = checked_csr(probabilities, "The table of probabilities").copy()
        table.sum_duplicates()
        listed = sp.coo_array(table)
        outside = np.flatnonzero(~((listed.data >= 0) & (listed.data <= 1)))
        if len(outside):
            first = outside[0]
            _refuse_probability(listed.row[first], listed.col[first], listed.data[first])
        return _inputs.read_scores(table, targets)
    values = numbers_of(probabilities, "The table of probabilities")
    for rows in _inputs.row_blocks(values) if values.ndim == 2 and values.dtype.kind in "fiub" else ():
        inside = (values[rows] >= 0) & (values[rows] <= 1)  # false for NaN
        if not inside.all():
            row, label = np.argwhere(~inside)[0]
            _refuse_probability(rows.start + row, label, values[rows][row, label])
    return _inputs.read_scores(probabilities, targets)


def _refuse_probability(row: int, label: int, value: Any) -> NoReturn:
    raise ValueError(f"The probability at row {row}, label {label} is {value}; pass numbers from 0 to 1.")


def _binary_losses(positive: Array, values: Array, weights: Array) -> float:
    """Sum binary log losses with scikit-learn; a class row has a single answer, its class's probability."""
    if not weights.any():
        return 0.0
    values = np.minimum(values, 1)  # row sums may exceed 1 by rounding
    weighted = {"sample_weight": weights, "normalize": False}
    return float(sklearn_log_loss(positive, values, labels=[False, True], **weighted))


CALIBRATION_FROM = 0.05
"""Entries above this probability reveal calibration; nearly all others are negative for any model."""


@checked
def expected_calibration_error(
    Y_true: Any, probabilities: Any, *, n_bins: Any = 15, average: Literal["micro", "macro"] | None = "micro",
    least: float = 0.0, sample_weight: Any = None,
) -> float | Floats:  # fmt: skip
    """Compute the mean distance between predicted probabilities and observed frequencies.

    Observed entries are sorted into bins of equal width by their probability.  The distances between the mean
    probability and the fraction of positives in each bin are averaged, weighted by bin size (Naeini, Cooper
    and Hauskrecht, AAAI 2015).  For the labels, their probabilities and errors see :func:`log_loss`.

    Parameters
    ----------
    n_bins : int, default=15
        The number of bins, at most 10,000: every label stores that many counts.
    average : {"micro", "macro"} or None, default="micro"
        Over all entries together, the mean over labels, or one value per label.  With hundreds of labels most
        entries are clearly negative, which makes all of these small; see ``least``.
    least : float, default=0.0
        Count only entries above this probability, from 0 to below 1.  With 0.05 a table of few positives does
        not look calibrated because of entries that nearly every model gets right; NaN if no probability is
        higher.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the rows.

    Returns
    -------
    float or ndarray of float64, shape (L,)
        The error, from 0 (best) to 1; an array, NaN at labels without an observed entry, if average is None.

    Examples
    --------
    >>> from labelweave.metrics import expected_calibration_error
    >>> round(expected_calibration_error([[1], [1], [0], [1]], [[0.9], [0.9], [0.9], [0.9]]), 2)
    0.15
    """
    if average not in ("micro", "macro", None):
        raise ValueError(f"average is {average!r}; pass 'micro', 'macro' or None.")
    if not 0 <= least < 1:
        raise ValueError(f"least is {least!r}; pass a number from 0 to below 1.")
    if not isinstance(n_bins, Integral) or not 1 <= int(n_bins) <= _MOST_BINS:
        raise ValueError(
            f"n_bins is {n_bins!r}; pass an integer from 1 to "
            f"{_MOST_BINS:,}, since every label stores that many counts."
        )
    targets = _inputs.read_targets(Y_true, is_soft=True)
    table = _read_label_probabilities(probabilities, targets, may_be_sparse=True)
    weights = None if sample_weight is None else _inputs.read_weights(sample_weight, targets)
    sums = calibration_bins(targets, table, int(n_bins), least, weights)
    if average == "micro":
        sums = sums.sum(axis=1, keepdims=True)
    counts, announced, positives = sums
    errors = ratios(np.abs(announced - positives).sum(axis=1), counts.sum(axis=1), np.nan)
    return errors if average is None else _inputs.mean_of_defined(errors)


def calibration_bins(
    targets: LabelMatrix, table: Scores, n_bins: int, least: float = 0.0, weights: Floats | None = None
) -> Floats:
    """Sum entries, probabilities and expected positives in bins of probability: shape (3, L, n_bins).

    table (n, L): dense, or CSR with 0 where nothing is stored.
    least: entries that are not above it are ignored; 0 keeps all.
    weights (n,): the weight of each row's entries; 1 by default.
    """
    sums = np.zeros((3, targets.n_labels, n_bins))
    for rows in _inputs.blocks_of_width(*table.shape):
        signs = targets[rows].to_soft_signs()
        block = table[rows].toarray() if sp.issparse(table) else table[rows]
        if least > 0:
            signs[block <= least] = 0
        of_rows = 1.0 if weights is None else weights[rows, None]
        _add_to_bins(sums, block.astype(np.float64), signs, of_rows)
    return sums


def _add_to_bins(sums: Floats, block: Floats, signs: npt.NDArray[Any], weights: Any) -> None:
    n_bins = sums.shape[2]
    place = np.minimum((block * n_bins).astype(np.intp), n_bins - 1)
    flat = (np.arange(block.shape[1]) * n_bins + place).ravel()
    seen = (signs != 0) * weights
    positive = signs > 0 if signs.dtype.kind == "i" else np.where(signs == 0, 0.0, 0.5 + 0.5 * signs)
    for number, counted in enumerate((seen, seen * block, positive * weights)):
        found = np.bincount(flat, counted.ravel(), minlength=sums[number].size)
        sums[number] += found.reshape(sums[number].shape)
