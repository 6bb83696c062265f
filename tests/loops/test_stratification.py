"""The distribution of rows equals that of the slow reference."""

import itertools

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelweave.foundation.loops.stratification import pair_codes, spread_rows
from reference.stratification_twin import twin_parts

TABLES = hnp.arrays(
    np.int64, st.tuples(st.integers(0, 18), st.integers(0, 6)), elements=st.sampled_from([0, 0, 1])
)


@st.composite
def sharings(draw):
    table = draw(TABLES)
    n_parts = draw(st.integers(1, 4))
    if draw(st.booleans()):
        return (
            table,
            np.full(n_parts, len(table) // n_parts),
            len(table) % n_parts,
            np.ones(n_parts, np.int64),
        )
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), min_size=n_parts - 1, max_size=n_parts - 1)))
    sizes = np.diff([0, *cuts, len(table)])
    return table, sizes, 0, sizes


@settings(max_examples=200)
@given(sharings(), st.integers(0, 5))
def test_parts_are_those_of_the_twin(sharing, seed):
    table, sizes, extras, shares = sharing
    draws = (
        np.random.default_rng(seed).integers(2**31, size=len(table)) if seed else np.zeros(len(table), int)
    )
    by_row, by_group = sp.csr_array(table), sp.csc_array(table)
    parts = spread_rows(by_row, by_group, sizes, extras, shares, draws)
    np.testing.assert_array_equal(parts, twin_parts(table, sizes, extras, shares, draws))
    assert (np.bincount(parts, minlength=len(sizes)) - sizes).sum() == extras


@given(TABLES)
def test_pairs_are_all_pairs_of_every_row(table):
    csr = sp.csr_array(table)
    pairs = [list(itertools.combinations(np.flatnonzero(row), 2)) for row in table]
    starts = np.cumsum([0, *map(len, pairs)])
    codes = np.empty(starts[-1], np.int64)
    pair_codes(csr.indptr.astype(np.int64), csr.indices.astype(np.int64), table.shape[1], starts, codes)
    expected = [first * table.shape[1] + second for row in pairs for first, second in row]
    np.testing.assert_array_equal(codes, expected)
