"""What the metrics are given, checked once: targets, predictions, scores, weights and k.

Every reader returns one type, so that the metrics hold no case distinctions
but dense scores against sparse ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

# dense or CSR; mypy sees scipy's types as Any
Scores: TypeAlias = Any

# entries worked on at a time: the temporaries of a block stay under about 100 MB
BLOCK_ENTRIES = 2**20


def read_targets(Y_true: Any) -> LabelMatrix:
    """Read the true labels and refuse those in which nothing was observed."""
    targets = LabelMatrix.from_any(Y_true)
    if not row_observed_counts(targets).any():
        raise ValueError(
            f"Y_true of shape {targets.shape} has no observed entry, so there is nothing to score; "
            "give at least one entry that is 0/1 or -1/1."
        )
    return targets


def read_predictions(Y_pred: Any, targets: LabelMatrix) -> sp.csr_array:
    """Read predicted label sets as a CSR array of int8 ones."""
    try:
        predictions = LabelMatrix.from_any(Y_pred)
    except ValueError as error:
        raise ValueError(f"Y_pred cannot be read. {error}") from None
    _check_shape("Y_pred", predictions.shape, targets)
    _check_names("Y_pred", predictions.names, targets)
    if predictions.has_missing:
        row = int(np.flatnonzero(row_observed_counts(predictions) < predictions.n_labels)[0])
        label = int(np.flatnonzero(predictions[row].to_signs()[0] == 0)[0])
        raise ValueError(
            f"Y_pred at row {row}, label {label} is NaN or unobserved. A prediction must be 0/1 or -1/1; "
            "only Y_true may have missing entries."
        )
    return predictions.positives


def read_scores(scores: Any, targets: LabelMatrix) -> Scores:
    """Read scores as a dense floating array or as a canonical CSR array without stored -inf."""
    _check_names("scores", getattr(scores, "columns", None), targets)
    if sp.issparse(scores):
        return _read_sparse_scores(scores, targets)
    table = _as_floating(np.asarray(scores))
    _check_shape("scores", table.shape, targets)
    if np.isnan(table).any():
        row, label = np.argwhere(np.isnan(table))[0]
        _refuse_nan_score(int(row), int(label))
    return table


def read_weights(sample_weight: Any | None, targets: Sized) -> npt.NDArray[np.float64]:
    """Read one weight a row, by default ones."""
    if sample_weight is None:
        return np.ones(len(targets))
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (len(targets),):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but Y_true has {len(targets)} rows; "
            "give one weight a row."
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"sample_weight at row {row} is {weights[row]}; weights must be finite and not negative."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row; at least one weight must be positive.")
    return weights


def check_k(k: Any, targets: LabelMatrix) -> int:
    """Refuse a k that is not a whole number from 1 to the number of labels."""
    whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool)
    if not whole or not 1 <= k <= targets.n_labels:
        raise ValueError(
            f"k is {k!r} but there are {targets.n_labels} labels; "
            "k must be a whole number from 1 to the number of labels."
        )
    return int(k)


def row_observed_counts(targets: LabelMatrix) -> npt.NDArray[np.int64]:
    """Count the observed entries of every row."""
    if targets.observed is None:
        return np.full(len(targets), targets.n_labels, np.int64)
    counts: npt.NDArray[np.int64] = np.diff(targets.observed.indptr).astype(np.int64)
    return counts


def stored_rows(matrix: sp.csr_array) -> npt.NDArray[np.int64]:
    """Write out the row of every stored entry of a CSR array."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def signs_at(
    targets: LabelMatrix, rows: npt.NDArray[np.int64], labels: npt.NDArray[Any]
) -> npt.NDArray[np.int8]:
    """Look up +1, -1 or, for what is unobserved, 0 at the given places."""
    known = targets.positives if targets.observed is None else targets.observed
    absent = np.int8(-1 if targets.observed is None else 0)
    if known.nnz == 0:
        return np.full(len(rows), absent)
    known_keys = stored_rows(known) * targets.n_labels + known.indices
    keys = rows * targets.n_labels + labels
    place = np.minimum(np.searchsorted(known_keys, keys), known.nnz - 1)
    return np.where(known_keys[place] == keys, known.data[place], absent).astype(np.int8)


def row_blocks(scores: Scores) -> Iterator[slice]:
    """Cut the rows of a score matrix into blocks of about ``BLOCK_ENTRIES`` entries."""
    n_rows, n_columns = scores.shape
    per_row = scores.nnz // max(n_rows, 1) if sp.issparse(scores) else n_columns
    step = max(1, BLOCK_ENTRIES // max(1, per_row))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def mean_of_defined(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """Average what is not NaN; NaN when nothing with a positive weight is left."""
    defined = ~np.isnan(values)
    total = weights[defined].sum()
    return float(values[defined] @ weights[defined] / total) if total > 0 else float("nan")


def _read_sparse_scores(scores: Any, targets: LabelMatrix) -> sp.csr_array:
    csr = sp.csr_array(scores)
    _check_shape("scores", csr.shape, targets)
    csr = sp.csr_array((_as_floating(csr.data), csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if np.isnan(csr.data).any():
        position = int(np.flatnonzero(np.isnan(csr.data))[0])
        _refuse_nan_score(int(stored_rows(csr)[position]), int(csr.indices[position]))
    offered = csr.data > -np.inf
    return csr if offered.all() else keep_stored(csr, offered)


def keep_stored(matrix: sp.csr_array, kept: npt.NDArray[np.bool_]) -> sp.csr_array:
    """Keep some of the stored entries of a CSR array, explicit zeros among them."""
    counts = np.bincount(stored_rows(matrix)[kept], minlength=matrix.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)


def _as_floating(table: npt.NDArray[Any]) -> npt.NDArray[np.floating[Any]]:
    if table.dtype.kind == "f":
        return table
    if table.dtype.kind not in "iubO":
        raise ValueError(f"scores have type {table.dtype}; scores must be real numbers.")
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"scores have entries that are not numbers ({error}); scores must be real."
        ) from None


def _refuse_nan_score(row: int, label: int) -> None:
    raise ValueError(
        f"scores at row {row}, label {label} is NaN. Scores must be numbers; "
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
