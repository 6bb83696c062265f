"""Repeated splits into training and test rows, stratified by labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseShuffleSplit

from labelweave.array_types import Array
from labelweave.sklearn_compat import _num_samples
from labelweave.splits.arguments import check_order, checked_count
from labelweave.splits.part_sizes import train_and_test_rows
from labelweave.splits.row_parts import make_generator, row_parts, stated_sizes
from labelweave.splits.spread_columns import read_columns

__all__ = ["IterativeStratifiedShuffleSplit"]


class IterativeStratifiedShuffleSplit(BaseShuffleSplit):  # type: ignore[misc]
    """Random training and test rows in which every label is about as frequent as in all rows.

    The splits are those of :class:`IterativeStratifiedKFold` with two parts of different sizes (and a
    third one of rows that are left out, if the sizes leave any).  The sizes are kept exactly.

    Parameters
    ----------
    n_splits : int, default=10
        How many splits.
    test_size : float, int or None, default=None
        A share of all rows, rounded up, or a number of rows; None for the rows that
        are not for training, or a tenth if no size is given.
    train_size : float, int or None, default=None
        A share of all rows, rounded down, or a number of rows; None for the rows that are not for testing.
    random_state : int, RandomState instance or None, default=None
        Fixes chance.
    order : {1, 2}, default=1
        With 2 pairs of labels are spread as well.

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
            checked_count(n_splits, 1), test_size=test_size, train_size=train_size, random_state=random_state
        )
        self.order: int = order

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give the training and test rows of every split.

        Parameters
        ----------
        X : array-like of n rows
            Only its number of rows is used.
        y : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L) or (n,)
            Labels to stratify by, or one class a row; NaN where unobserved.
        groups : object, default=None
            Not used.

        Yields
        ------
        train : ndarray of int
            Training rows in random order.
        test : ndarray of int
            Test rows in random order.

        Raises
        ------
        ValueError
            If the sizes are impossible, or y cannot be read.
        """
        n_rows = _num_samples(X)
        train, test = train_and_test_rows(n_rows, self.train_size, self.test_size, self._default_test_size)
        columns = read_columns(y, n_rows, self.order)
        sizes = stated_sizes([train, test, n_rows - train - test])
        generator = make_generator(self.random_state)
        for _ in range(self.n_splits):
            parts = row_parts(columns, sizes, generator)
            train_rows, test_rows = (generator.permutation(np.flatnonzero(parts == part)) for part in (0, 1))
            yield train_rows, test_rows
