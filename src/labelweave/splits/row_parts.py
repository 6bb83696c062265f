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
import scipy.sparse as sp
from sklearn.utils import check_random_state

from labelweave._loops.stratification import spread_rows
from labelweave.array_types import Array, PerRow

__all__ = ["PartSizes", "even_sizes", "make_generator", "row_parts", "stated_sizes"]


@dataclass(frozen=True)
class PartSizes:
    """How many rows each part gets, and its share of every group.

    rows (parts,): the rows of each part.
    extras: so many parts get one row more.
    shares (parts,): groups are shared out in proportion to these.
    """

    rows: Array
    extras: int
    shares: Array


def even_sizes(n_rows: int, parts: int) -> PartSizes:
    """Make parts of one size, or of two sizes that differ by one row."""
    return PartSizes(np.full(parts, n_rows // parts), n_rows % parts, np.ones(parts, np.int64))


def stated_sizes(rows: Sequence[int]) -> PartSizes:
    """Make parts of the given sizes, which get shares in proportion.

    rows: the rows of each part.
    """
    sizes = np.array(rows, np.int64)
    return PartSizes(sizes, 0, sizes)


def row_parts(columns: sp.csr_array, sizes: PartSizes, generator: np.random.Generator | None) -> PerRow:
    """Give every row a part.

    columns (n, groups): which rows are in each group.
    sizes: the sizes of the parts, of n rows together.
    generator: puts rows and groups in random order and settles ties; with None the order is that of the
        columns and the first part wins.
    Returns the parts of the rows.
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
    """Make a generator from what scikit-learn calls ``random_state``."""
    return np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
