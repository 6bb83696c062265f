"""Folds of a cross-validation, stratified by labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from labelweave.array_types import Array
from labelweave.sklearn_compat import _num_samples
from labelweave.splits.arguments import check_order, checked_count
from labelweave.splits.row_parts import even_sizes, make_generator, row_parts
from labelweave.splits.spread_columns import read_columns

__all__ = ["IterativeStratifiedKFold"]


class IterativeStratifiedKFold(BaseCrossValidator):  # type: ignore[misc]
    """Folds in which every label is about as frequent as in all rows.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1) shares out the rows of the
    rarest label first.  Sizes of folds differ by one row at most. An unobserved entry counts for nothing: of
    a label that has some, the positives and the observed negatives are spread, each on their own.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, at least 2.
    shuffle : bool, default=False
        Whether to visit rows in a random order and leave ties to chance.
    random_state : int, RandomState instance or None, default=None
        Fixes chance; only with ``shuffle=True``.
    order : {1, 2}, default=1
        With 2 every pair of labels that rows have in common is spread as well,
        at some cost for single labels (Szymański and Kajdanowicz 2017).

    See Also
    --------
    IterativeStratifiedShuffleSplit : Repeated splits into training and test rows.

    Notes
    -----
    Time and memory are of the order of the positive entries (and the observed ones of labels with gaps) plus
    labels times folds; Y is not densified.  A label with fewer positives than folds has at most one in each
    fold, as far as rows that share rare labels allow. Rows without a positive label fill the folds up.  One
    class a row, instead of labels, is spread class by class.

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
        if not isinstance(shuffle, bool | np.bool_):
            raise ValueError(f"shuffle is {shuffle!r}; it is True or False.")
        if random_state is not None and not shuffle:
            raise ValueError(
                f"random_state={random_state!r} has no use with shuffle=False; set shuffle=True."
            )
        check_order(order)
        self.n_splits: int = checked_count(n_splits, 2)
        self.shuffle: bool = shuffle
        self.random_state: Any = random_state
        self.order: int = order

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give the rows of every fold.

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
                f"n_splits is {self.n_splits} but there are {n_rows} rows; give at most {n_rows}."
            )
        columns = read_columns(y, n_rows, self.order)
        generator = make_generator(self.random_state) if self.shuffle else None
        folds = row_parts(columns, even_sizes(n_rows, self.n_splits), generator)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Tell the number of folds.

        Parameters
        ----------
        X : object, default=None
            Not used.
        y : object, default=None
            Not used.
        groups : object, default=None
            Not used.

        Returns
        -------
        int
            The number of folds.
        """
        return self.n_splits
