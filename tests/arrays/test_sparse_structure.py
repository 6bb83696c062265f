"""Sparse arrays from users: damaged ones are refused with their place, valid ones become plain CSR."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import MaxMarginClassifier
from labelweave.foundation.arrays import check_sparse, checked_csr, from_gaps, to_gaps

TABLE = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 5]])


def csr(indices=(0, 2, 1, 0, 2), indptr=(0, 2, 2, 3, 5), values=(1.0, 2, 3, 4, 5), kind=sp.csr_array):
    made = kind(TABLE)
    made.indices, made.indptr, made.data = np.array(indices), np.array(indptr), np.array(values)
    return made


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


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (csr(indices=(0, 2, 7, 0, 2)), "row 2 has an entry at column 7, but there are 3 columns"),
        (csr(indices=(0, 2, 1, 0, -1)), "row 3 has an entry at column -1, but there are 3 columns"),
        (csr(indices=(0, 2, 1, 2**40, 2)), "row 3 has an entry at column 1099511627776"),
        (csr(indptr=(0, 4, 2, 3, 5)), "indptr goes down at row 1"),
        (csr(indptr=(1, 2, 2, 3, 5)), "indptr must begin with 0"),
        (csr(indptr=(0, 2, 2, 3, 9)), "indptr ends at 9, but there are 5 indices"),
        (csr(indptr=(0, 2, 3, 5)), "indptr, indices and data have 4, 5 and 5 entries for 4 rows"),
        (csr(values=(1.0, 2)), "indptr, indices and data have 5, 5 and 2 entries"),
        (csr(indices=(0.0, 2.0, 1.0, 0.0, 2.0)), "an index array has type float64"),
        (csr(values=(1j, 2, 3, 4, 5)), "values of type complex128"),
    ],
)
def test_damaged_csr_is_refused_by_place(made, found):
    with pytest.raises(ValueError, match=found):
        checked_csr(made, "X")
    with pytest.raises(ValueError, match=found):
        check_sparse(made, "X")
    with pytest.raises(ValueError, match=found):
        MaxMarginClassifier().fit(made, [0, 1, 0, 1])


def test_damaged_columns_and_lists_are_refused_by_place():
    columns = sp.csc_array(TABLE)
    columns.indices[2] = 9
    with pytest.raises(ValueError, match="column 1 has an entry at row 9, but there are 4 rows"):
        checked_csr(columns, "Y")
    listed = sp.coo_array(TABLE)
    listed.coords = (listed.coords[0], listed.coords[1] - 1)
    with pytest.raises(ValueError, match="entry 0 is at column -1, but there are 3 columns"):
        checked_csr(listed, "Y")


def test_what_says_that_it_is_in_order_is_not_believed():
    made = csr(indices=(2, 0, 1, 2, 0), values=(2.0, 1, 3, 5, 4))
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
