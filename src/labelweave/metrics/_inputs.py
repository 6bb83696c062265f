"""What the metrics are given, checked once: targets, predictions, scores, weights and k.

Every reader returns one type, so that metrics tell nothing apart but dense scores from sparse ones.
"""

from __future__ import annotations

from collections.abc import Sized
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import checked_csr, numbers_of, panels
from labelweave.foundation.frames import column_labels
from labelweave.labels import LabelMatrix
from labelweave.labels.tags import tag_rows, tags_of_either

# dense or CSR; mypy sees scipy's types as Any
Scores: TypeAlias = Any

# entries worked on at a time: the temporaries of a block stay under about 100 MB
BLOCK_ENTRIES = 2**20
_WITHOUT_GAPS = 2.0**53  # whole numbers below it are floating-point numbers


def read_targets(Y_true: Any, Y_pred: Any = None, *, keeps_doubts: bool = False) -> LabelMatrix:
    """Read the true labels and refuse those in which nothing was observed.

    Y_pred: where both are lists of tags, the labels are the tags of either.
    keeps_doubts: whether the metric counts entries by their probabilities; else it has the likelier ones.
    """
    targets = LabelMatrix.from_any(Y_true, tags_of_either(Y_true, Y_pred))
    if not row_observed_counts(targets).any():
        raise ValueError(
            f"Y_true of shape {targets.shape} has no observed entry, so there is nothing to score; "
            "give at least one entry that is 0/1 or -1/1."
        )
    return targets if keeps_doubts else targets.likelier()


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
            f"Y_pred at row {row}, label {label} is NaN or unobserved. A prediction must be 0/1 or -1/1; "
            "only Y_true may have missing entries."
        )
    return predictions.positives


def _names_of_tags(targets: LabelMatrix) -> list[str]:
    if targets.names is None:
        raise ValueError(
            "It is lists of tags but the labels of Y_true have no names; give Y_true as lists of tags, a "
            "frame or a LabelMatrix with names, or Y_pred as a table."
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
    """Read one weight a row, by default ones; all are divided by one power of two.

    The largest is from 1 to 2 then, so that no sum or product is infinite or 0; ratios keep their bits.
    """
    weights = read_raw_weights(sample_weight, targets)
    return np.asarray(np.ldexp(weights, 1 - np.frexp(weights.max(initial=0))[1]))


def read_raw_weights(sample_weight: Any | None, targets: Sized) -> Floats:
    if sample_weight is None:
        return np.ones(len(targets))
    weights: Floats = numbers_of(sample_weight, "sample_weight").astype(np.float64)
    if weights.shape != (len(targets),):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but Y_true has {len(targets)} rows; "
            "give one weight a row."
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight at row {row} is {weights[row]}; weights must be finite and not negative."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row; at least one weight must be positive.")
    return weights


def check_k(k: Any, targets: LabelMatrix) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= targets.n_labels:
        raise ValueError(
            f"k is {k!r} but there are {targets.n_labels} labels; "
            "k must be a whole number from 1 to the number of labels."
        )
    return int(k)


def row_observed_counts(targets: LabelMatrix) -> npt.NDArray[np.int64]:
    if targets.observed is None:
        return np.full(len(targets), targets.n_labels, np.int64)
    return np.asarray(np.diff(targets.observed.indptr), np.int64)


def stored_rows(matrix: sp.csr_array) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def signs_at(targets: LabelMatrix, rows: npt.NDArray[np.int64], labels: Array) -> npt.NDArray[np.int8]:
    """Look up +1, -1 or, for what is unobserved, 0 at the given places."""
    known = targets.positives if targets.observed is None else targets.observed
    absent = np.int8(-1 if targets.observed is None else 0)
    if known.nnz == 0:
        return np.full(len(rows), absent)
    known_keys = stored_rows(known) * targets.n_labels + known.indices
    keys = rows * targets.n_labels + labels
    place = np.minimum(np.searchsorted(known_keys, keys), known.nnz - 1)
    return np.where(known_keys[place] == keys, known.data[place], absent).astype(np.int8)


def row_blocks(scores: Scores) -> list[slice]:
    """Cut the rows of a table into blocks of about ``BLOCK_ENTRIES`` entries."""
    n_rows, n_columns = scores.shape
    per_row = scores.nnz // max(n_rows, 1) if sp.issparse(scores) else n_columns
    return blocks_of_width(n_rows, per_row)


def blocks_of_width(n_rows: int, width: int) -> list[slice]:
    """Cut rows into blocks of about ``BLOCK_ENTRIES`` entries, a width of them a row."""
    return panels(n_rows, max(1, BLOCK_ENTRIES // max(1, width)))


def mean_of_defined(values: Floats, weights: Floats | None = None) -> float:
    """Average what is not NaN; NaN when nothing with a positive weight is left."""
    weights = np.ones(len(values)) if weights is None else weights
    defined = ~np.isnan(values)
    total = weights[defined].sum()
    return float(values[defined] @ weights[defined] / total) if total > 0 else float("nan")


def _as_floating(table: Array) -> npt.NDArray[np.floating[Any]]:
    if table.dtype.kind == "f":
        return table
    if table.dtype.kind not in "iubO":
        raise ValueError(f"scores have type {table.dtype}; scores must be real numbers.")
    try:
        floating = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"scores have entries that are not numbers ({error}); scores must be real."
        ) from None
    if table.dtype.kind in "iu" and np.abs(floating).max(initial=0.0) >= _WITHOUT_GAPS:
        raise ValueError(
            "scores have whole numbers from 2^53 on, where floating-point numbers have gaps and would make "
            "ties; give smaller ones, such as ranks."
        )
    return floating


def _refuse_nan(rows: Array, labels: Array) -> None:
    if len(rows):
        raise ValueError(
            f"scores at row {rows[0]}, label {labels[0]} is NaN. Scores must be numbers; "
            "use -inf, or a sparse matrix, for a label that is not offered."
        )


def _check_shape(given: str, shape: tuple[int, ...], targets: LabelMatrix) -> None:
    if tuple(shape) != targets.shape:
        raise ValueError(
            f"{given} has shape {tuple(shape)} but Y_true has shape {targets.shape}; "
            "both must be (rows, labels)."
        )


def _check_names(given: str, columns: Any | None, targets: LabelMatrix) -> None:
    """Refuse frames that name the same labels in another order."""
    if columns is None or targets.names is None or len(columns) != targets.n_labels:
        return
    names = np.asarray([str(column) for column in columns])
    differ = np.flatnonzero(names != targets.names)
    # frames that share no name have different naming habits, not another order
    if differ.size and np.isin(names, targets.names).any():
        label = int(differ[0])
        raise ValueError(
            f"{given} has label {str(names[label])!r} in column {label} where Y_true has "
            f"{str(targets.names[label])!r}; give both with the same labels in the same order."
        )
