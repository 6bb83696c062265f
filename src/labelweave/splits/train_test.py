"""One split of arrays into training and test rows, stratified by labels."""

from __future__ import annotations

from typing import Any

from sklearn.utils import indexable

from labelweave.labels import LabelMatrix
from labelweave.sklearn_compat import _safe_indexing
from labelweave.splits.iterative_shuffle import IterativeStratifiedShuffleSplit
from labelweave.splits.part_sizes import train_and_test_rows

__all__ = ["stratified_train_test_split"]

_TEST_SHARE = 0.25


def stratified_train_test_split(
    *arrays: Any,
    test_size: float | None = None,
    train_size: float | None = None,
    random_state: Any = None,
    stratify: Any = None,
    order: int = 1,
) -> list[Any]:
    """Split arrays into training and test rows in which every label is about equally frequent.

    It is called like scikit-learn's ``train_test_split``, and keeps kinds: a
    LabelMatrix, a frame or a sparse matrix gives two of its kind.

    Parameters
    ----------
    *arrays : LabelMatrix, DataFrame, sparse matrix, array-like or list of n rows
        What to split.
    test_size : float, int or None, default=None
        A share of all rows, rounded up, or a number of rows; None for the rows that
        are not for training, or a quarter if no size is given.
    train_size : float, int or None, default=None
        A share of all rows, rounded down, or a number of rows; None for the rows that are not for testing.
    random_state : int, RandomState instance or None, default=None
        Fixes chance.
    stratify : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L) or (n,), default=None
        Labels to stratify by, or one class a row; None for the last of the arrays.
    order : {1, 2}, default=1
        With 2 pairs of labels are spread as well.

    Returns
    -------
    list
        Training and test rows of the first array, of the second, and so on.

    Raises
    ------
    ValueError
        If there is nothing to split, the arrays differ in length, the sizes are
        impossible, or the labels cannot be read.

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
        raise ValueError("There is nothing to split; give at least one array, the labels last.")
    tables = indexable(*arrays)
    labels = tables[-1] if stratify is None else stratify
    train, test = train_and_test_rows(_length(tables[0]), train_size, test_size, _TEST_SHARE)
    splitter = IterativeStratifiedShuffleSplit(
        1, test_size=test, train_size=train, random_state=random_state, order=order
    )
    parts = next(splitter.split(tables[0], labels))
    return [_rows(table, part) for table in tables for part in parts]


def _length(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def _rows(table: Any, rows: Any) -> Any:
    return table[rows] if isinstance(table, LabelMatrix) else _safe_indexing(table, rows)
