"""Folds, shuffled splits and one split of arrays, stratified by labels; validation of given splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import BaseShuffleSplit, GroupKFold, KFold
from sklearn.utils import indexable

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import check_sparse
from labelweave.foundation.sklearn_compat import _num_samples, _safe_indexing
from labelweave.labels import LabelMatrix
from labelweave.splits.stratification import (
    check_order,
    checked_count,
    make_generator,
    read_columns,
    row_parts,
    train_and_test_rows,
)

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
    return [
        table[rows] if isinstance(table, LabelMatrix) else _safe_indexing(table, rows)
        for table in tables
        for rows in parts
    ]


Rows = npt.NDArray[np.intp]


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
