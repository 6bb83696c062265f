"""Validation of metric inputs: targets, predictions, scores, weights and k.

Every reader returns one type, so that metrics only distinguish dense from sparse scores.
"""

from __future__ import annotations

from collections.abc import Sized
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import checked_csr, numbers_of, panels, read_row_weights
from labelweave.foundation.frames import column_labels
from labelweave.labels import LabelMatrix
from labelweave.labels.tags import tag_rows, tags_of_either

# dense or CSR; mypy sees scipy's types as Any
Scores: TypeAlias = Any

# entries per block, which keeps the temporaries of a block under about 100 MB
BLOCK_ENTRIES = 2**20
LARGEST = np.finfo(np.float64).max
_WITHOUT_GAPS = 2.0**53  # integers below it are exact in float64


def read_targets(Y_true: Any, Y_pred: Any = None, *, is_soft: bool = False) -> LabelMatrix:
    """Read the true labels; raise if no entry is observed.

    Y_pred: if both are lists of tags, the labels are the union of their tags.
    is_soft: whether to keep probabilities; otherwise entries take the more probable value.
    """
    targets = LabelMatrix.from_any(Y_true, tags_of_either(Y_true, Y_pred))
    if not row_observed_counts(targets).any():
        raise ValueError(
            f"Y_true of shape {targets.shape} has no observed entry, so there is nothing to score; "
            "pass at least one entry that is 0/1 or -1/1."
        )
    return targets if is_soft else targets.most_likely()


def read_predictions(Y_pred: Any, targets: LabelMatrix) -> sp.csr_array:
    try:
        names = None if tag_rows(Y_pred) is None else _names_of_tags(targets)
        predictions = LabelMatrix.from_any(Y_pred, names)
    except ValueError as error:
        raise ValueError(f"Y_pred cannot be read. {error}") from None
    _check_shape("Y_pred", predictions.shape, targets)
    _check_names("Y_pred", predictions.names, targets)
    if predictions.has_missing:
        row = int(np.argmax(row_observed_counts(predictions) < predictions.n_labels))
        label = int(np.argmin(np.abs(predictions[row].to_signs()[0])))
        raise ValueError(
            f"Y_pred at row {row}, label {label} is NaN or unobserved; only Y_true may have missing entries. "
            "Pass 0/1 or -1/1 for every prediction."
        )
    return predictions.positives


def _names_of_tags(targets: LabelMatrix) -> list[str]:
    if targets.names is None:
        raise ValueError(
            "It is lists of tags but Y_true has no label names; pass Y_true as lists of tags, a "
            "DataFrame or a LabelMatrix with names, or Y_pred as a table."
        )
    return list(targets.names.tolist())


def read_scores(scores: Any, targets: LabelMatrix) -> Scores:
    """Read scores as a dense floating array or as a canonical CSR array without stored -inf."""
    _check_names("scores", column_labels(scores), targets)
    if sp.issparse(scores):
        return _read_sparse_scores(scores, targets)
    table = _as_floating(numbers_of(scores, "scores"))
    _check_shape("scores", table.shape, targets)
    _refuse_nan(*np.nonzero(np.isnan(table)))
    return table


def _read_sparse_scores(scores: Any, targets: LabelMatrix) -> sp.csr_array:
    csr = checked_csr(scores, "scores")
    _check_shape("scores", csr.shape, targets)
    csr = sp.csr_array((_as_floating(csr.data), csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    rows, is_nan = stored_rows(csr), np.isnan(csr.data)
    _refuse_nan(rows[is_nan], csr.indices[is_nan])
    offered = csr.data > -np.inf
    if offered.all():
        return csr
    return sp.csr_array((csr.data[offered], (rows[offered], csr.indices[offered])), shape=csr.shape)


def read_weights(sample_weight: Any | None, targets: Sized) -> Floats:
    """Read one weight per row, by default ones; all are divided by one power of two.

    The largest is then from 1 to 2, so that no sum or product overflows or underflows; ratios stay exact.
    """
    weights = read_row_weights(sample_weight, len(targets), most=LARGEST)
    return np.asarray(np.ldexp(weights, 1 - np.frexp(weights.max(initial=0))[1]))


def check_k(k: Any, targets: LabelMatrix) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= targets.n_labels:
        raise ValueError(
            f"k is {k!r} but there are {targets.n_labels} labels; "
            "pass an integer from 1 to the number of labels."
        )
    return int(k)


def row_observed_counts(targets: LabelMatrix) -> npt.NDArray[np.int64]:
    if targets.observed is None:
        return np.full(len(targets), targets.n_labels, np.int64)
    return np.asarray(np.diff(targets.observed.indptr), np.int64)


def stored_rows(matrix: sp.csr_array) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def signs_at(targets: LabelMatrix, rows: npt.NDArray[np.int64], labels: Array) -> npt.NDArray[np.int8]:
    """Return +1, -1 or, for unobserved entries, 0 at the given positions."""
    known = targets.positives if targets.observed is None else targets.observed
    absent = np.int8(-1 if targets.observed is None else 0)
    if known.nnz == 0:
        return np.full(len(rows), absent)
    known_keys = stored_rows(known) * targets.n_labels + known.indices
    keys = rows * targets.n_labels + labels
    place = np.minimum(np.searchsorted(known_keys, keys), known.nnz - 1)
    return np.where(known_keys[place] == keys, known.data[place], absent).astype(np.int8)


def row_blocks(scores: Scores) -> list[slice]:
    """Split the rows of a table into blocks of about ``BLOCK_ENTRIES`` entries."""
    n_rows, n_columns = scores.shape
    per_row = scores.nnz // max(n_rows, 1) if sp.issparse(scores) else n_columns
    return blocks_of_width(n_rows, per_row)


def blocks_of_width(n_rows: int, width: int) -> list[slice]:
    """Split rows of the given width into blocks of about ``BLOCK_ENTRIES`` entries."""
    return panels(n_rows, max(1, BLOCK_ENTRIES // max(1, width)))


def mean_of_defined(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean of the values that are not NaN; NaN if none with a positive weight is left."""
    weights = np.ones(len(values)) if weights is None else weights
    defined = ~np.isnan(values)
    total = weights[defined].sum()
    return float(values[defined] @ weights[defined] / total) if total > 0 else float("nan")


def _as_floating(table: Array) -> npt.NDArray[np.floating[Any]]:
    if table.dtype.kind == "f":
        return table
    if table.dtype.kind not in "iubO":
        raise ValueError(f"scores have type {table.dtype}; pass real numbers.")
    try:
        floating = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores have entries that are not numbers ({error}); pass real numbers.") from None
    if table.dtype.kind in "iu" and np.abs(floating).max(initial=0.0) >= _WITHOUT_GAPS:
        raise ValueError(
            "scores have integers of 2^53 or more, which float64 cannot represent exactly, so distinct "
            "scores would become ties; pass smaller ones, such as ranks."
        )
    return floating


def _refuse_nan(rows: Array, labels: Array) -> None:
    if len(rows):
        raise ValueError(
            f"scores at row {rows[0]}, label {labels[0]} is NaN; pass numbers, and "
            "-inf, or a sparse matrix, for labels without a score."
        )


def _check_shape(given: str, shape: tuple[int, ...], targets: LabelMatrix) -> None:
    if tuple(shape) != targets.shape:
        raise ValueError(
            f"{given} has shape {tuple(shape)} but Y_true has shape {targets.shape}; "
            "pass both as (rows, labels)."
        )


def _check_names(given: str, columns: Any | None, targets: LabelMatrix) -> None:
    """Raise if a DataFrame has the same labels in another order."""
    if columns is None or targets.names is None or len(columns) != targets.n_labels:
        return
    names = np.asarray([str(column) for column in columns])
    differ = np.flatnonzero(names != targets.names)
    # DataFrames that share no name use different naming, not another order
    if differ.size and np.isin(names, targets.names).any():
        label = int(differ[0])
        raise ValueError(
            f"{given} has label {str(names[label])!r} in column {label} where Y_true has "
            f"{str(targets.names[label])!r}; pass both with the same labels in the same order."
        )
