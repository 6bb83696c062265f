"""Sparse arrays from users: damaged ones are refused with their place, valid ones become plain CSR."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.foundation.arrays import check_sparse, checked_csr, from_gaps, to_gaps
from refused import refusals

TABLE = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 5]])

test_what_makes_no_sense_is_refused = refusals(__file__)


def test_a_sound_array_is_not_copied():
    made = sp.csr_array(TABLE)
    checked = checked_csr(made, "X")
    assert np.shares_memory(checked.data, made.data)
    assert np.shares_memory(checked.indices, made.indices)


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_every_format_becomes_csr(name):
    checked = checked_csr(sp.csr_array(TABLE).asformat(name), "X")
    assert isinstance(checked, sp.csr_array)
    assert (checked.toarray() == TABLE).all()


def test_what_says_that_it_is_in_order_is_not_believed():
    made = sp.csr_array(TABLE)
    made.indices, made.data = np.array([2, 0, 1, 2, 0]), np.array([2.0, 1, 3, 5, 4])
    made.has_sorted_indices = made.has_canonical_format = True
    checked = checked_csr(made, "X")
    assert not checked.has_sorted_indices
    assert (checked.toarray() == TABLE).all()


def test_what_is_not_sparse_is_left_alone():
    check_sparse(TABLE, "X")
    check_sparse([1, 2], "y")


@pytest.mark.parametrize(
    ("n_columns", "density", "kind"),
    [(40, 0.5, np.uint8), (9000, 1e-3, np.uint16), (200_000, 1e-5, np.uint16)],
)
def test_gaps_lead_to_the_same_entries(n_columns, density, kind):
    table = sp.random_array((30, n_columns), density=density, rng=np.random.default_rng(0), format="csr")
    table.data[:] = np.arange(1, 1 + table.nnz)
    indptr, gaps, values = to_gaps(table.indptr, table.indices, table.data.astype(np.int16))
    assert gaps.dtype == kind
    assert gaps.min() > 0
    found = sp.csr_array((values, from_gaps(indptr, gaps), indptr), shape=table.shape)
    assert found.has_canonical_format
    np.testing.assert_array_equal((found - table).data, 0)


def test_no_entries_have_no_gaps():
    indptr, gaps, values = to_gaps(np.zeros(4, np.int64), np.empty(0, np.uint16), np.empty(0, np.int16))
    assert (indptr == 0).all()
    assert len(gaps) == len(values) == len(from_gaps(indptr, gaps)) == 0


@pytest.mark.parametrize("column", [254, 255, 256, 509, 510, 511])
def test_gaps_at_the_limit_of_their_type(column):
    indices = np.array([0, column, *range(column + 1, column + 2000)])
    indptr, gaps, values = to_gaps(np.array([0, len(indices)]), indices, np.ones(len(indices), np.int16))
    assert gaps.dtype == np.uint8
    np.testing.assert_array_equal(from_gaps(indptr, gaps)[values != 0], indices)
