"""Share rows out among parts of given sizes so that groups of rows are spread evenly.

This follows the iterative stratification of Sechidis, Tsoumakas and Vlahavas (2011): the
group with the fewest rows that wait goes first, and each of its rows goes to a part that has not
got its share of the group.  Three points differ from algorithm 1.  Sizes are kept exactly: a part that
is full gets no more rows.  Among parts that have not got their share of the group, what they
have of all groups of the row decides, before rows and chance do; in the paper it is what they have of the
one group.  And of the rows of a group those in many groups come first, while there is a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from labelweave._loops.stratification import spread_rows

__all__ = ["PartSizes", "even_sizes", "make_generator", "row_parts", "stated_sizes"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PartSizes:
    """How many rows each part gets, and its share of every group.

    Parameters
    ----------
    rows : ndarray of int64, shape (parts,)
        The rows of each part.
    extras : int
        So many parts get one row more.
    shares : ndarray of int64, shape (parts,)
        Groups are shared out in proportion to these.
    """

    rows: Array
    extras: int
    shares: Array


def even_sizes(n_rows: int, parts: int) -> PartSizes:
    """Make parts of one size, or of two sizes that differ by one row.

    Parameters
    ----------
    n_rows : int
        All rows.
    parts : int
        How many parts.

    Returns
    -------
    PartSizes
        The sizes.
    """
    return PartSizes(np.full(parts, n_rows // parts), n_rows % parts, np.ones(parts, np.int64))


def stated_sizes(rows: Sequence[int]) -> PartSizes:
    """Make parts of the given sizes, which get shares in proportion.

    Parameters
    ----------
    rows : sequence of int
        The rows of each part.

    Returns
    -------
    PartSizes
        The sizes.
    """
    sizes = np.array(rows, np.int64)
    return PartSizes(sizes, 0, sizes)


def row_parts(columns: sp.csr_array, sizes: PartSizes, generator: np.random.Generator | None) -> Array:
    """Give every row a part.

    Parameters
    ----------
    columns : csr_array of shape (n, groups)
        Which rows are in each group.
    sizes : PartSizes
        The sizes of the parts, of n rows together.
    generator : Generator or None
        Puts rows and groups in random order and settles ties; with None the order is
        that of the columns and the first part wins.

    Returns
    -------
    ndarray of int64, shape (n,)
        The parts of the rows.
    """
    n_rows, n_groups = columns.shape
    order, draws = np.arange(n_rows), np.zeros(n_rows, np.int64)
    if generator is not None:
        order, groups = generator.permutation(n_rows), generator.permutation(n_groups)
        columns, draws = columns[:, groups], generator.integers(2**31, size=n_rows)
    order = order[np.argsort(-np.diff(columns.indptr)[order], kind="stable")]
    by_row = columns[order]
    by_group = sp.csc_array(by_row)
    tables = (by_row.indptr, by_row.indices, by_group.indptr, by_group.indices)
    wide = (table.astype(np.int64, copy=False) for table in tables)
    parts = np.empty(n_rows, np.int64)
    parts[order] = spread_rows(*wide, sizes.rows, sizes.extras, sizes.shares, draws)
    return parts


def make_generator(random_state: Any) -> np.random.Generator:
    """Make a generator from what scikit-learn calls ``random_state``.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        What fixes chance.

    Returns
    -------
    Generator
        The generator.
    """
    return np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
