"""CSR arrays from their parts, with 32-bit indices where sufficient, and targets with missing entries.

SciPy keeps the index type of its input; LIBLINEAR and other compiled code reject 64-bit indices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

MOST_NUMBER = 10**9  # upper bound of labels that are numbers
_NUMBER = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)
MOST_ENTRIES = 2 * 10**8  # that a file may require beyond those that it stores


def csr_from_counts(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], counts: Any, n_columns: int
) -> sp.csr_array:
    """Make a CSR array from the entries of its rows, in order, and the number of entries per row."""
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    is_small = max(len(data), len(counts), n_columns) <= np.iinfo(np.int32).max
    width = np.int32 if is_small else np.int64
    parts = (data, indices.astype(width, copy=False), ends.astype(width))
    return sp.csr_array(parts, shape=(len(counts), n_columns))


def ones_from_counts(indices: npt.NDArray[Any], counts: Any, n_columns: int) -> sp.csr_array:
    """Make a CSR array of ones from the columns of its rows and the number of entries per row."""
    return csr_from_counts(np.ones(len(indices), np.int8), indices, counts, n_columns)


def numbered_targets(
    numbers: npt.NDArray[Any], counts: Any, label_names: Iterable[Any] | None = None
) -> LabelMatrix:
    """Make targets from the label numbers of all rows and the counts per row; numbers are names.

    label_names: labels that come first, even if they do not occur; others that occur follow.
    """
    found, places = np.unique(numbers, return_inverse=True)
    words = list(map(str, found.tolist()))
    first = () if label_names is None else map(str, label_names)
    place = {name: column for column, name in enumerate(dict.fromkeys(chain(first, words)))}
    columns = np.array([place[word] for word in words], np.int64)[places]
    positives = ones_from_counts(columns, counts, len(place))
    positives.sort_indices()
    return LabelMatrix(positives, names=list(place))


def numbered_columns(Y: LabelMatrix) -> sp.csr_array:
    """Return the positives with each label in the column of its number; all labels have numbers as names."""
    numbers = label_numbers(Y.names)
    if numbers is None or not len(numbers):
        return Y.positives
    positives = Y.positives
    parts = (positives.data, numbers[positives.indices].astype(np.int32), positives.indptr)
    wide = sp.csr_array(parts, shape=(len(Y), int(numbers.max()) + 1))
    wide.sort_indices()
    return wide


def label_numbers(names: Iterable[Any] | None) -> npt.NDArray[np.int64] | None:
    """Parse the names of labels as numbers; None if any is no valid number."""
    words = [] if names is None else list(map(str, names))
    are_numbers = all(map(_NUMBER.fullmatch, words)) and max(map(int, words), default=0) < MOST_NUMBER
    return np.array(words, np.int64) if names is not None and are_numbers else None


def with_narrow_indices(matrix: Any) -> sp.csr_array:
    """Convert a sparse matrix to CSR with sorted indices, 32-bit where the sizes allow."""
    csr = sp.csr_array(matrix)
    csr.sort_indices()
    return csr_from_counts(csr.data, csr.indices, np.diff(csr.indptr), csr.shape[1])


def joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate the parts and release them, so that only one copy stays in memory."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def row_of(matrix: sp.csr_array, row: int) -> tuple[list[int], list[Any]]:
    """Return the columns and the entries that a row of a CSR array stores."""
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[span].tolist(), matrix.data[span].tolist()


def with_missing_entries(
    positives: sp.csr_array, missing: tuple[npt.NDArray[Any], npt.NDArray[Any]], names: Sequence[str]
) -> LabelMatrix:
    """Make targets whose listed entries are unobserved; the mask stores all other ``n L`` entries."""
    if not len(missing[0]):
        return LabelMatrix(positives, None, names)
    refuse_large_mask(*positives.shape)
    observed = np.ones(positives.shape, bool)
    observed[missing] = False
    return LabelMatrix(positives, sp.csr_array(observed), names)


def refuse_large_mask(n_rows: int, n_labels: int) -> None:
    if n_rows * n_labels > MOST_ENTRIES:
        raise ValueError(
            f"{n_rows} rows of {n_labels} labels have unobserved entries, so the others must be listed one "
            f"by one; pass at most {MOST_ENTRIES:,} entries."
        )


def rows_of_labels(rows: Sequence[Sequence[int] | None], names: Sequence[str]) -> LabelMatrix:
    """Make targets from the sorted labels of each row; None is an entirely unobserved row."""
    labels = np.array([label for row in rows for label in row or ()], np.int64)
    counts = np.array([len(row or ()) for row in rows], np.int64)
    return targets_of_rows(labels, counts, np.array([row is None for row in rows]), names)


def targets_of_rows(
    labels: npt.NDArray[Any],
    counts: npt.NDArray[Any],
    is_missing: npt.NDArray[np.bool_],
    names: Sequence[str],
) -> LabelMatrix:
    """Make targets from the sorted labels of all rows, the counts per row, and the unobserved rows.

    With unobserved rows, the mask stores every entry of the others.
    """
    n_labels = len(names)
    positives = ones_from_counts(labels, counts, n_labels)
    if not is_missing.any():
        return LabelMatrix(positives, None, names)
    refuse_large_mask(len(counts), n_labels)
    columns = np.tile(np.arange(n_labels, dtype=np.int32), int((~is_missing).sum()))
    observed = ones_from_counts(columns, np.where(is_missing, 0, n_labels), n_labels)
    return LabelMatrix(positives, observed, names)
