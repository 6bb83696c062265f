"""The sources of covariances: frames with label names, class signatures, and label matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, LabelsByLabels
from labelweave.foundation.arrays import checked_csr, numbers_of
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_tables import frame_names, shown_name

_LARGEST_WRITTEN_OUT = 20_000  # labels; an L x L matrix of these takes 3.2 GB
_LARGEST_SCALE = 1e150
_COLUMNS_AT_ONCE = 1024
_CELLS_AT_ONCE = 4_000_000  # also bounds the rows, so that single precision counts exactly
_DENSE_SHARE = 0.1  # share of stored entries above which products of dense rows are faster
_ROUNDING = 1e-12


def check_writable(n_labels: int, what: str) -> None:
    """Raise ValueError for a matrix over more than 20,000 labels; the message starts with ``what``."""
    if n_labels > _LARGEST_WRITTEN_OUT:
        raise ValueError(
            f"{what} needs a matrix over {n_labels} x {n_labels} labels, above the limit of "
            f"{_LARGEST_WRITTEN_OUT}; use LabelCovariance.low_rank(factor)."
        )


def check_scale(scale: Any) -> None:
    is_real = isinstance(scale, Real)
    if not is_real or not 0.0 <= scale < _LARGEST_SCALE:
        raise ValueError(
            f"The scale of a label covariance is {scale!r}; it must be >= 0 and below {_LARGEST_SCALE:g}."
        )


def check_amount(amount: Any) -> None:
    is_real = isinstance(amount, Real) and not isinstance(amount, bool)
    if not is_real or not 0.0 <= amount <= 1.0:
        raise ValueError(f"amount is {amount!r}; it must be between 0 and 1.")


def matrix_and_names(matrix: Any) -> tuple[Array, list[str] | None]:
    """Return a square matrix, with rows in the order of a frame's columns, and the column names."""
    table, columns = numbers_of(matrix, "The label covariance").astype(np.float64), frame_names(matrix)
    rows = _row_names(matrix)
    if columns is None or rows is None or rows == columns or table.shape[0] != table.shape[1]:
        return table, columns
    if sorted(rows) != sorted(columns):
        stranger = next(iter(Counter(rows) - Counter(columns)))
        why = "twice" if stranger in columns else "but no such column"
        raise ValueError(
            f"The label covariance has a row named {stranger!r} {why}; rows and columns must have the same "
            "names, or rows be numbered from 0."
        )
    place = {name: number for number, name in enumerate(rows)}
    return table[[place[name] for name in columns]], columns


def _row_names(table: Any) -> list[str] | None:
    """Return the names in the index of a frame or series; None if there is none or it is 0, 1, ..."""
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    names = [str(name) for name in index]
    return None if names == [str(number) for number in range(len(names))] else names


def signature_factor(signatures: Any, class_prior: Any) -> tuple[Array, Any]:
    """Return a column ``sqrt(p(c)) y_c`` for every class of positive weight, and the label names."""
    table, names = _numbers(signatures)
    classes = _row_names(signatures)
    _refuse_first(~np.isin(table, (-1, 0, 1)), table, classes, names)
    if (table == 0).any():
        _refuse_first(table == -1, table, classes, names, "while other entries are 0")
    signs = np.where(table > 0, 1.0, -1.0)
    prior = _checked_prior(class_prior, classes, len(signs))
    met = prior > 0
    return np.ascontiguousarray(signs[met].T) * np.sqrt(prior[met]), names


def _numbers(signatures: Any) -> tuple[Array, Any]:
    if isinstance(signatures, LabelMatrix):
        return signatures.to_dense(), signatures.names
    if sp.issparse(signatures):
        signatures = checked_csr(signatures, "The table of signatures").toarray()
    table = numbers_of(signatures, "The table of signatures").astype(np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(
            f"signatures has shape {table.shape}; it must have shape (classes, labels), at least (1, 1)."
        )
    return table, frame_names(signatures)


def _refuse_first(bad: Array, table: Array, classes: Any, names: Any, also: str = "") -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"The signature of class {shown_name(classes, row)} at label {shown_name(names, column)} is "
            f"{table[row, column]:g}{also and f' {also}'}; signatures must be all 0/1 or all -1/1."
        )


def _checked_prior(class_prior: Any, classes: list[str] | None, n_classes: int) -> Array:
    if class_prior is None:
        return np.full(n_classes, 1.0 / n_classes)
    names = [shown_name(classes, number) for number in range(n_classes)]
    prior = checked_class_weights(in_class_order(class_prior, classes, n_classes), names)
    prior = prior / prior.max()  # so that the sum of huge weights is finite
    return np.asarray(prior / prior.sum())


def checked_class_weights(weights: Any, names: Sequence[str]) -> Array:
    """Check weights, one per class: finite, >= 0 and not all 0; a ValueError names the invalid ones."""
    found = numbers_of(weights, "class_prior").astype(np.float64)
    if found.shape != (len(names),):
        raise ValueError(f"class_prior has shape {found.shape}; pass one number per class ({len(names)}).")
    bad = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if len(bad):
        raise ValueError(f"class_prior of class {names[bad[0]]} is {found[bad[0]]}; it must be >= 0.")
    if not found.any():
        raise ValueError("class_prior is 0 for every class; at least one must be positive.")
    return found


def in_class_order(class_prior: Any, classes: list[str] | None, n_classes: int) -> Any:
    """Reorder weights that have the names or numbers of classes to the order of the classes."""
    if isinstance(class_prior, Mapping):
        weights = {str(name): weight for name, weight in class_prior.items()}
    elif (named := _row_names(class_prior)) is not None:
        weights = dict(zip(named, np.asarray(class_prior), strict=True))
    else:
        return class_prior
    wanted = [str(number) for number in range(n_classes)] if classes is None else classes
    strangers = sorted(set(weights) ^ set(wanted))
    if strangers:
        holder, other = ("class_prior", "signatures")[:: 1 if strangers[0] in weights else -1]
        raise ValueError(
            f"The class {strangers[0]!r} is in {holder} but not in {other}; use the same classes, or an "
            "array in the order of signatures."
        )
    return [weights[name] for name in wanted]


def mean_outer_product(labels: LabelMatrix) -> LabelsByLabels:
    """Average ``y_i y_i^T`` over rows; with missing entries, each pair over the rows that have both.

    The result is positive semi-definite, with ones on the diagonal.
    """
    _check_size(labels)
    return _over_shared_rows(labels) if labels.has_missing else _over_all_rows(labels)


def _check_size(labels: LabelMatrix) -> None:
    if 0 in labels.shape:
        raise ValueError(
            f"Y has shape {labels.shape}; a covariance from labels needs at least one row and one label."
        )
    check_writable(labels.n_labels, "A covariance from labels")


def shrunk_correlations(labels: LabelMatrix, prior_count: float) -> LabelsByLabels:
    """Compute label correlations, shrunk for rare labels: ``D S D + I - D^2`` with the correlations S.

    ``D^2 = n / (n + prior_count)``, n (L,) the count of the rarer of a label's two values.  A constant label
    correlates with none.  The result is positive semi-definite, with ones on the diagonal.
    """
    if not 0 <= prior_count < np.inf:
        raise ValueError(f"prior_count is {prior_count}; it must be >= 0.")
    _check_size(labels)
    positives, observed = labels.positive_counts(), labels.observed_counts()
    if labels.has_missing:
        signs: Any = labels.observed
        shared = _gram(abs(signs))
        moments, means = (
            np.divide(_gram(signs, other), shared, out=np.zeros_like(shared), where=shared > 0)
            for other in (signs, abs(signs))
        )
    else:
        moments = _over_all_rows(labels)
        means = np.broadcast_to((2.0 * positives / len(labels) - 1.0)[:, None], moments.shape)
    deviations = np.sqrt(np.maximum(1.0 - means**2, 0.0))
    scales = deviations * deviations.T
    known = scales > _ROUNDING
    found = np.divide(moments - means * means.T, scales, out=np.zeros_like(moments), where=known)
    np.fill_diagonal(found, 1.0)
    rarer = np.minimum(positives, observed - positives)
    trust = np.sqrt(rarer / np.maximum(rarer + float(prior_count), _ROUNDING))
    found = (_made_semidefinite(found) if labels.has_missing else found) * np.outer(trust, trust)
    np.fill_diagonal(found, 1.0)
    return found


def _over_all_rows(labels: LabelMatrix) -> Array:
    """Compute sums of ``(2 p - 1)(2 q - 1) = 4 p q - 2 p - 2 q + 1`` for the 0/1 entries p and q."""
    moments = _gram(labels.positives)
    twice = 2.0 * labels.positive_counts()
    moments *= 4.0
    moments -= twice
    moments -= twice[:, None]
    moments += len(labels)
    moments /= len(labels)
    return moments


def _over_shared_rows(labels: LabelMatrix) -> Array:
    signs: Any = labels.observed
    shared = _gram(abs(signs))
    moments = _gram(signs)
    np.divide(moments, shared, out=moments, where=shared > 0)
    np.fill_diagonal(moments, 1.0)
    return _made_semidefinite(moments)


def _gram(table: Any, other: Any = None) -> Array:
    """Multiply the transpose of a table of small integers with the table, or another one, exactly."""
    other = table if other is None else other
    n_rows, n_labels = table.shape
    product = np.zeros((n_labels, n_labels))
    if table.nnz > _DENSE_SHARE * n_rows * n_labels:
        step = max(1, _CELLS_AT_ONCE // n_labels)
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            left, right = (part[rows].toarray().astype(np.float32) for part in (table, other))
            product += left.T @ right
        return product
    table, other = (sp.csr_array(part, dtype=np.float64) for part in (table, other))
    by_label = sp.csc_array(table)
    for start in range(0, n_labels, _COLUMNS_AT_ONCE):
        some = slice(start, start + _COLUMNS_AT_ONCE)
        product[some] = (by_label[:, some].T @ other).toarray()
    return product


def _made_semidefinite(moments: Array) -> Array:
    """Clip negative eigenvalues to 0, then scale to unit variances, which keeps the others >= 0."""
    values, vectors = np.linalg.eigh(moments)
    if values[0] >= -_ROUNDING * len(values):
        return moments
    kept = vectors[:, values > 0] * np.sqrt(values[values > 0])
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)  # clipping only increases a variance of 1
    nearest = kept @ kept.T
    np.fill_diagonal(nearest, 1.0)
    return np.asarray((nearest + nearest.T) / 2)
