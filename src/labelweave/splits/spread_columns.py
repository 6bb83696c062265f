"""What a stratified split spreads over its parts: columns that mark groups of rows.

A label is spread by the fewer of its observed entries, the positive or the negative
ones; as parts have fixed sizes, the others are then spread too.  That does not follow where
entries are unobserved, so a label with such gaps is spread by its positives and by its
observed negatives, each on their own.  An unobserved entry is in neither group.

In the second order every pair of labels that rows have in common is one more group
(Szymański and Kajdanowicz, "A network perspective on stratification of multi-label data", 2017).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave._loops.stratification import pair_codes
from labelweave.array_types import Array
from labelweave.labels import LabelMatrix

__all__ = ["read_columns", "spread_columns"]


def read_columns(Y: Any, n_rows: int, order: int) -> sp.csr_array:
    """Read targets and find the groups to spread.

    Y (n, L): labels, or one class a row; None or NaN where unobserved.
    n_rows: the rows that there are to split.
    order: whether to spread labels or also pairs of labels.
    Returns (n, groups): ones where a row is in a group.
    Raises ValueError if there are no targets, they cannot be read, or their number of rows is another.
    """
    if Y is None:
        raise ValueError(
            "There is no Y to stratify by; give the labels, or split with KFold or ShuffleSplit."
        )
    table = Y if isinstance(Y, LabelMatrix) or sp.issparse(Y) or hasattr(Y, "columns") else _as_array(Y)
    if len(table.shape) and table.shape[0] != n_rows:
        raise ValueError(f"There are {n_rows} rows to split but Y has {table.shape[0]}; they must agree.")
    if len(table.shape) == 1:
        return _class_columns(table)
    return spread_columns(LabelMatrix.from_any(table), order)


def _as_array(Y: Any) -> Array:
    try:
        return np.asarray(Y)
    except ValueError:
        raise ValueError(
            "The rows of Y have different lengths. Y has one row of 0/1 a row and one column a label; "
            "MultiLabelBinarizer of scikit-learn makes it from lists of labels."
        ) from None


def _class_columns(classes: Array) -> sp.csr_array:
    """Mark the rows of every class; a row whose class is not observed has none."""
    if classes.dtype.kind == "O":
        observed = np.array([not (entry is None or _is_nan(entry)) for entry in classes], dtype=bool)
        classes = classes.astype(str)
    else:
        observed = ~np.isnan(classes) if classes.dtype.kind == "f" else np.ones(len(classes), bool)
    rows = np.flatnonzero(observed)
    names, codes = np.unique(classes[rows], return_inverse=True)
    marks = np.ones(len(rows), np.int8)
    return sp.csr_array((marks, (rows, codes)), shape=(len(classes), len(names)))


def _is_nan(entry: Any) -> bool:
    return isinstance(entry, Real) and math.isnan(entry)


def spread_columns(labels: LabelMatrix, order: int = 1) -> sp.csr_array:
    """Find the groups of rows to spread.

    order: whether to spread labels or also pairs of labels.
    Returns (n, groups): ones where a row is in a group, indices sorted.
    Shapes: labels (n, L).
    """
    positive, observed = labels.positive_counts(), labels.observed_counts()
    has_gaps = observed < len(labels)
    is_frequent = 2 * positive > observed
    blocks = []
    if has_gaps.any() or is_frequent.any():
        blocks.append(labels.positives[:, np.flatnonzero(has_gaps | ~is_frequent)])
        blocks.append(_negatives(labels, np.flatnonzero(has_gaps | is_frequent)))
    else:
        blocks.append(labels.positives)
    if order == 2:
        blocks.append(_pairs(labels.positives))
    return blocks[0] if len(blocks) == 1 else sp.hstack(blocks, format="csr")


def _negatives(labels: LabelMatrix, chosen: Array) -> sp.csr_array:
    """Mark the observed negatives of some labels."""
    if labels.observed is None:  # most entries of these labels are positive: this is no larger
        return sp.csr_array(1 - labels.positives[:, chosen].toarray())
    signs = labels.observed[:, chosen]
    negatives = sp.csr_array((signs.data == -1, signs.indices, signs.indptr), shape=signs.shape)
    negatives.eliminate_zeros()
    return negatives.astype(np.int8)


def _pairs(positives: sp.csr_array) -> sp.csr_array:
    """Mark which rows have each pair of labels, among pairs that rows have."""
    counts = np.diff(positives.indptr).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts * (counts - 1) // 2)])
    codes = np.empty(indptr[-1], np.int64)
    wide = (part.astype(np.int64) for part in (positives.indptr, positives.indices))
    pair_codes(*wide, positives.shape[1], indptr, codes)
    pairs, columns = np.unique(codes, return_inverse=True)
    marks = np.ones(len(codes), np.int8)
    return sp.csr_array((marks, columns, indptr), shape=(positives.shape[0], len(pairs)))
