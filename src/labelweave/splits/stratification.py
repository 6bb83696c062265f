"""Distribute rows over parts of given sizes so that groups of rows are spread evenly.

This follows the iterative stratification of Sechidis, Tsoumakas and Vlahavas (2011): the group with the
fewest remaining rows goes first, and each of its rows goes to a part that lacks rows of the group.
Three points differ from algorithm 1.  Sizes are kept exactly.  Among parts that lack rows of the group, the
one that lacks most over all groups of the row is chosen, before row counts and chance.  And within a group,
rows in many groups come first, while there is a choice.

A label is spread by the rarer of its observed values, positive or negative; one with unobserved entries by
both, separately.  In the second order every pair of labels that occurs in a row is one more group
(Szymański and Kajdanowicz, "A network perspective on stratification of multi-label data", 2017).
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.frames import is_frame
from labelweave.foundation.sklearn_compat import _validate_shuffle_split
from labelweave.labels import LabelMatrix
from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.tags import tag_rows


def row_parts(
    columns: sp.csr_array, sizes: Array, extras: int, shares: Array, generator: np.random.Generator | None
) -> PerRow:
    """Assign every row to a part.

    columns (n, groups): which rows are in each group.
    sizes (parts,): rows per part; ``extras`` parts get one more.
    shares (parts,): every group is distributed in proportion to these.
    generator: shuffles rows and groups, and breaks ties.
    """
    from labelweave.foundation.loops.stratification import spread_rows

    n_rows, n_groups = columns.shape
    order, draws = np.arange(n_rows), np.zeros(n_rows, np.int64)
    if generator is not None:
        order, groups = generator.permutation(n_rows), generator.permutation(n_groups)
        columns, draws = columns[:, groups], generator.integers(2**31, size=n_rows)
    order = order[np.argsort(-np.diff(columns.indptr)[order], kind="stable")]
    by_row = columns[order]
    parts, by_group = np.empty(n_rows, np.int64), sp.csc_array(by_row)
    parts[order] = spread_rows(by_row, by_group, sizes, extras, shares, draws)
    return parts


def make_generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, Integral) and not 0 <= int(random_state) < 2**32:
        raise ValueError(f"random_state is {random_state}; pass an integer from 0 to {2**32 - 1}.")
    return np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))


def read_columns(Y: Any, n_rows: int, order: int) -> sp.csr_array:
    """Read targets of shape (n, L) or (n,), and mark the groups of rows to spread: (n, groups).

    Raises ValueError if there are no targets, they cannot be read, or they have another number of rows.
    """
    if Y is None:
        raise ValueError(
            "There is no Y to stratify by; pass the labels, or split with KFold or ShuffleSplit."
        )
    if not (isinstance(Y, LabelMatrix) or sp.issparse(Y)):
        Y = LabelMatrix.from_any(Y) if is_frame(Y) or tag_rows(Y) is not None else _as_array(Y)
    table = Y
    if len(table.shape) and table.shape[0] != n_rows:
        raise ValueError(f"There are {n_rows} rows to split but Y has {table.shape[0]}; they must agree.")
    if len(table.shape) == 1:
        return _class_columns(table)
    return spread_columns(LabelMatrix.from_any(table).most_likely(), order)


def _as_array(Y: Any) -> Array:
    try:
        return np.asarray(Y)
    except ValueError:
        raise ValueError(
            "The rows of Y have different lengths; pass one row of 0/1 per row with one column per label, or "
            "lists of tags: text, or sets of numbers."
        ) from None


def _class_columns(classes: Array) -> sp.csr_array:
    """Mark the rows of every class; a row without an observed class has none."""
    if classes.dtype.kind == "O":
        observed = np.array([not is_missing(entry) for entry in classes], dtype=bool)
        classes = classes.astype(str)
    else:
        observed = ~np.isnan(classes) if classes.dtype.kind == "f" else np.ones(len(classes), bool)
    rows = np.flatnonzero(observed)
    names, codes = np.unique(classes[rows], return_inverse=True)
    marks = np.ones(len(rows), np.int8)
    return sp.csr_array((marks, (rows, codes)), shape=(len(classes), len(names)))


def spread_columns(labels: LabelMatrix, order: int = 1) -> sp.csr_array:
    """Mark the groups of rows to spread, (n, groups): labels and, in the second order, pairs of labels."""
    positive, observed = labels.positive_counts(), labels.observed_counts()
    has_gaps = observed < len(labels)
    is_frequent = 2 * positive > observed
    blocks = [labels.positives]
    if has_gaps.any() or is_frequent.any():
        rare = labels.positives[:, np.flatnonzero(has_gaps | ~is_frequent)]
        blocks = [rare, _negatives(labels, np.flatnonzero(has_gaps | is_frequent))]
    if order == 2:
        blocks.append(_pairs(labels.positives))
    return blocks[0] if len(blocks) == 1 else sp.hstack(blocks, format="csr")


def _negatives(labels: LabelMatrix, chosen: Array) -> sp.csr_array:
    if labels.observed is None:  # most entries of these labels are positive: this is no larger
        return sp.csr_array(1 - labels.positives[:, chosen].toarray())
    signs = labels.observed[:, chosen]
    negatives = sp.csr_array((signs.data == -1, signs.indices, signs.indptr), shape=signs.shape)
    negatives.eliminate_zeros()
    return negatives.astype(np.int8)


def _pairs(positives: sp.csr_array) -> sp.csr_array:
    """Mark the rows of each pair of labels that occurs in a row."""
    from labelweave.foundation.loops.stratification import pair_codes

    counts = np.diff(positives.indptr).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts * (counts - 1) // 2)])
    codes = np.empty(indptr[-1], np.int64)
    wide = (part.astype(np.int64) for part in (positives.indptr, positives.indices))
    pair_codes(*wide, positives.shape[1], indptr, codes)
    pairs, columns = np.unique(codes, return_inverse=True)
    marks = np.ones(len(codes), np.int8)
    return sp.csr_array((marks, columns, indptr), shape=(positives.shape[0], len(pairs)))


def train_and_test_rows(
    n_rows: int, train_size: float | None, test_size: float | None, default: float
) -> tuple[int, int]:
    """Return the numbers of training and test rows by scikit-learn's rules; raise for impossible sizes.

    default: the fraction of test rows if no size is given.
    """
    sizes: dict[str, Any] = {"train_size": train_size, "test_size": test_size}
    for name, size in sizes.items():
        if isinstance(size, (list, tuple, set, dict, range, bytes)) or np.ndim(size):
            raise ValueError(f"{name} is a {type(size).__name__}; pass one number.")
    try:
        train, test = _validate_shuffle_split(n_rows, test_size, train_size, default)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{' '.join(str(error).split()).rstrip('.')}; pass a fraction between 0 and 1 or a number of "
            f"rows from 1 to below {n_rows}."
        ) from None
    return train, test


def checked_count(n_splits: Any) -> int:
    if isinstance(n_splits, bool) or not isinstance(n_splits, Integral) or int(n_splits) < 1:
        raise ValueError(f"n_splits is {n_splits!r}; pass an integer of 1 or more.")
    return int(n_splits)


def check_order(order: Any) -> None:
    if isinstance(order, bool) or not isinstance(order, Integral) or order not in (1, 2):
        raise ValueError(f"order is {order!r}; pass 1 to stratify by labels, or 2 by pairs of labels too.")
