"""Folds, shuffled splits and one split of arrays, stratified by labels; validation of given splits.

Rows are distributed over parts of given sizes so that groups of rows are spread evenly. This follows the
iterative stratification of Sechidis, Tsoumakas and Vlahavas (2011): the group with the fewest remaining rows
goes first, and each of its rows goes to a part that lacks rows of the group. Three points differ from
algorithm 1. Sizes are kept exactly. Among parts that lack rows of the group, the one that lacks most over all
groups of the row is chosen, before row counts and chance. And within a group, rows in many groups come first,
while there is a choice.

A label is spread by the rarer of its observed values, positive or negative; one with unobserved entries by
both, separately. In the second order every pair of labels that occurs in a row is one more group (Szymański
and Kajdanowicz, "A network perspective on stratification of multi-label data", 2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import BaseShuffleSplit, GroupKFold, KFold
from sklearn.utils import check_random_state, indexable

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import check_sparse
from labelweave.foundation.frames import is_frame
from labelweave.foundation.sklearn_compat import _num_samples, _safe_indexing, _validate_shuffle_split
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
            raise ValueError(f"{name} is of type {type(size).__name__}; pass one number.")
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


_TEST_SHARE = 0.25


class IterativeStratifiedKFold(KFold):  # type: ignore[misc]
    """K-fold cross-validator that keeps the frequency of every label about equal across folds.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1) distributes the rows of the
    rarest label first.  Fold sizes differ by at most one row.  Unobserved entries are ignored.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, at least 2.
    shuffle : bool, default=False
        Whether to visit rows in random order and break ties at random.
    random_state : int, RandomState instance or None, default=None
        Seed of the random order; only with ``shuffle=True``.
    order : {1, 2}, default=1
        With 2 every pair of labels that occurs in a row is stratified too, at some cost for single labels
        (Szymański and Kajdanowicz 2017).

    See Also
    --------
    IterativeStratifiedShuffleSplit : Repeated splits into training and test rows.

    Notes
    -----
    Time and memory grow with the positive entries (and the observed ones of labels with missing entries)
    plus labels times folds.  Rows without a positive label fill up the folds.  For one class per row, each
    class is stratified.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.splits import IterativeStratifiedKFold
    >>> Y = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    >>> for train, test in IterativeStratifiedKFold(2).split(Y, Y):
    ...     print(test, Y[test].sum(axis=0))
    [0 1 2 3] [2 2]
    [4 5 6 7] [2 2]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None, order: int = 1
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        check_order(order)
        self.order: int = order

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Return the training and test rows of every fold.

        Parameters
        ----------
        X : array-like of n rows
            Only its number of rows is used.
        y : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L) or (n,)
            Labels to stratify by, or one class per row; NaN where unobserved.
        groups : object, default=None
            Not used.

        Yields
        ------
        train : ndarray of int
            Rows outside the fold, ascending.
        test : ndarray of int
            Rows of the fold, ascending.

        Raises
        ------
        ValueError
            If there are fewer rows than folds, or y cannot be read.
        """
        n_rows = _num_samples(X)
        if self.n_splits > n_rows:
            raise ValueError(
                f"n_splits is {self.n_splits} but there are {n_rows} rows; pass at most {n_rows}."
            )
        columns = read_columns(y, n_rows, self.order)
        generator = make_generator(self.random_state) if self.shuffle else None
        parts = self.n_splits
        sizes, shares = np.full(parts, n_rows // parts), np.ones(parts, np.int64)
        folds = row_parts(columns, sizes, n_rows % parts, shares, generator)
        for fold in range(parts):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


class IterativeStratifiedShuffleSplit(BaseShuffleSplit):  # type: ignore[misc]
    """Random training and test rows with about the same frequency of every label as in all rows.

    The splits are those of :class:`IterativeStratifiedKFold` with parts of different, exact sizes.

    Parameters
    ----------
    n_splits : int, default=10
        The number of splits.
    test_size : float, int or None, default=None
        A fraction of all rows, rounded up, or a number; None for the rest, or a tenth without any size.
    train_size : float, int or None, default=None
        A fraction of all rows, rounded down, or a number of rows; None for the rest.
    random_state : int, RandomState instance or None, default=None
        Seed of the random order.
    order : {1, 2}, default=1
        See :class:`IterativeStratifiedKFold`.

    See Also
    --------
    stratified_train_test_split : One split, applied to arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.splits import IterativeStratifiedShuffleSplit
    >>> Y = np.repeat([[1, 0], [1, 1], [0, 1], [0, 0]], 5, axis=0)
    >>> splitter = IterativeStratifiedShuffleSplit(2, test_size=0.4, random_state=0)
    >>> for train, test in splitter.split(Y, Y):
    ...     print(len(train), len(test), Y[test].sum(axis=0))
    12 8 [4 4]
    12 8 [4 4]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = None,
        train_size: float | None = None,
        random_state: Any = None,
        order: int = 1,
    ) -> None:
        check_order(order)
        super().__init__(
            checked_count(n_splits), test_size=test_size, train_size=train_size, random_state=random_state
        )
        self.order: int = order

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Return the training and test rows of every split; see :meth:`IterativeStratifiedKFold.split`.

        Yields
        ------
        train : ndarray of int
            Training rows in random order.
        test : ndarray of int
            Test rows in random order.
        """
        n_rows = _num_samples(X)
        train, test = train_and_test_rows(n_rows, self.train_size, self.test_size, self._default_test_size)
        columns = read_columns(y, n_rows, self.order)
        sizes = np.array([train, test, n_rows - train - test], np.int64)
        generator = make_generator(self.random_state)
        for _ in range(self.n_splits):
            parts = row_parts(columns, sizes, 0, sizes, generator)
            train_rows, test_rows = (generator.permutation(np.flatnonzero(parts == part)) for part in (0, 1))
            yield train_rows, test_rows


def stratified_train_test_split(
    *arrays: Any,
    test_size: float | None = None,
    train_size: float | None = None,
    random_state: Any = None,
    stratify: Any = None,
    order: int = 1,
) -> list[Any]:
    """Split arrays into training and test rows with about the same frequency of every label.

    Like scikit-learn's ``train_test_split``; the parts of a LabelMatrix, a DataFrame or a sparse matrix keep
    its type.  For sizes (by default a quarter for testing), random_state and order see
    :class:`IterativeStratifiedShuffleSplit`.

    Parameters
    ----------
    *arrays : LabelMatrix, DataFrame, sparse matrix, array-like or list of n rows
        Arrays to split.
    stratify : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L) or (n,), default=None
        Labels to stratify by, or one class per row; None for the last array.

    Returns
    -------
    list
        Training and test rows of the first array, of the second, and so on.

    Raises
    ------
    ValueError
        If arrays are missing or differ in length, sizes are impossible, or labels cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.splits import stratified_train_test_split
    >>> X = np.arange(20).reshape(20, 1)
    >>> Y = np.repeat([[1, 0], [1, 1], [0, 1], [0, 0]], 5, axis=0)
    >>> X_train, X_test, Y_train, Y_test = stratified_train_test_split(X, Y, test_size=0.4, random_state=0)
    >>> Y_train.sum(axis=0), Y_test.sum(axis=0)
    (array([6, 6]), array([4, 4]))
    """
    if not arrays:
        raise ValueError("There is nothing to split; pass at least one array, the labels last.")
    for place, array in enumerate(arrays):
        check_sparse(array, f"Array {place}")
    tables = indexable(*arrays)
    labels = tables[-1] if stratify is None else stratify
    train, test = train_and_test_rows(_num_samples(tables[0]), train_size, test_size, _TEST_SHARE)
    splitter = IterativeStratifiedShuffleSplit(
        1, test_size=test, train_size=train, random_state=random_state, order=order
    )
    parts = next(splitter.split(tables[0], labels))
    return [take_rows(table, rows) for table in tables for rows in parts]


Rows = npt.NDArray[np.intp]


def take_rows(table: Any, rows: Any) -> Any:
    """Select rows of any table, keeping its type."""
    return table[rows] if isinstance(table, LabelMatrix) else _safe_indexing(table, rows)


def folds_of(labels: LabelMatrix, parts: int, seed: int, groups: Array | None = None) -> Array:
    """Return the fold of every row, (n,), stratified by labels.

    groups (n,): numbers from 0; rows of a group stay in one fold.  Folds then have about as many rows, and
        labels are not stratified: future groups are not either, so stratified estimates would be optimistic.
    """
    folds = np.empty(len(labels), np.intp)
    if groups is None:
        splits = IterativeStratifiedKFold(parts, shuffle=True, random_state=seed).split(folds, labels)
    else:
        order = np.random.default_rng(seed).permutation(groups.max() + 1)  # of groups of one size
        splits = GroupKFold(parts).split(folds, groups=order[groups])
    for number, (_, held) in enumerate(splits):
        folds[held] = number
    return folds


def splits_by(cv: Any, X: Any, y: Any, groups: Any = None) -> list[tuple[Rows, Rows]]:
    """Return the rows of both parts of every split of a splitter, or of the given splits.

    cv: what scikit-learn accepts as ``cv``, except an integer.
    y: the targets; other libraries' splitters get the positive entries of a LabelMatrix.
    groups (n,): for splitters that use them.
    """
    own = isinstance(cv, IterativeStratifiedKFold | IterativeStratifiedShuffleSplit)
    if isinstance(y, LabelMatrix) and not own:
        y = y.positives
    is_splitter = hasattr(cv, "split") and not isinstance(cv, (str, bytes))
    given = (X, y) if groups is None else (X, y, groups)
    return read_splits(cv.split(*given) if is_splitter else cv, _num_samples(X))


def read_splits(splits: Iterable[Any], n_rows: int) -> list[tuple[Rows, Rows]]:
    """Return the rows of both parts of every split, passed as row numbers or as masks over all rows."""
    if isinstance(splits, (str, bytes)) or getattr(splits, "ndim", 1) == 0:
        raise ValueError(f"cv is {shown(splits)}; pass pairs of training rows and held-out rows.")
    found = [_parts(split, n_rows, number) for number, split in enumerate(splits)]
    if not found:
        raise ValueError("cv has no folds; pass at least one pair of training rows and held-out rows.")
    return found


def _parts(split: Any, n_rows: int, number: int) -> tuple[Rows, Rows]:
    try:
        train, held = split
    except (ValueError, TypeError):
        raise ValueError(
            f"Fold {number} of cv is not a pair; pass pairs of training rows and held-out rows."
        ) from None
    train, held = _row_numbers(train, n_rows, number), _row_numbers(held, n_rows, number)
    if not len(train) or not len(held):
        counts = f"{len(train)} training rows and {len(held)} held-out rows"
        raise ValueError(f"Fold {number} of cv has {counts}; pass at least one of each.")
    return train, held


def _row_numbers(part: Any, n_rows: int, number: int) -> Rows:
    """Return the row numbers of a part, which is a list of numbers or a mask."""
    try:
        rows = np.asarray(part if len(part) else np.empty(0, np.intp))
        if rows.ndim == 1:
            return np.asarray(np.arange(n_rows)[rows])
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"Fold {number} of cv has invalid rows ({error}); pass rows of X.") from None
    raise ValueError(
        f"Fold {number} of cv has rows of shape {rows.shape}; pass one list of row numbers, or a mask over "
        "all rows."
    )
