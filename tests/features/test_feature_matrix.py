import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelweave.features import FeatureMatrix
from refused import refusals

_TABLES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
    elements=st.sampled_from([0.0, 1.0, -2.5, 1e-3]),
)

test_what_makes_no_sense_is_refused = refusals(__file__)


@given(_TABLES)
def test_dense_and_sparse_rows_say_the_same(table):
    dense, sparse = FeatureMatrix(table), FeatureMatrix(sp.csr_array(table))
    assert sparse.is_sparse
    assert not dense.is_sparse
    for features in (dense, sparse):
        assert features.shape == table.shape
        indptr, indices, values = features.sparse_rows(np.float32)
        assert (indptr.dtype, indices.dtype, values.dtype) == (np.int64, np.int32, np.float32)
        again = sp.csr_array((values, indices, indptr), shape=table.shape).toarray()
        np.testing.assert_array_equal(again, table.astype(np.float32))
        np.testing.assert_allclose(features.squared_norms(), (table**2).sum(axis=1))
        weights = np.ones((table.shape[1], 2))
        np.testing.assert_allclose(features.matmul(weights), table @ weights)
        np.testing.assert_array_equal(
            features.rows(slice(1, None)).squared_norms(), features.squared_norms()[1:]
        )


@pytest.mark.parametrize("kind", [np.int8, np.int64, bool, np.float16, np.float32, ">f8"])
def test_any_type_of_number_becomes_float(kind):
    table = np.array([[0, 1, 0], [1, 0, 1]])
    for given_as in (table.astype(kind), np.asfortranarray(table.astype(kind)), table.astype(kind).tolist()):
        features = FeatureMatrix(given_as)
        assert features.data.dtype in (np.float32, np.float64)
        assert features.data.flags.c_contiguous
        np.testing.assert_array_equal(features.data, table)
    if kind not in (np.float16, ">f8"):  # types that sparse matrices do not have
        np.testing.assert_array_equal(FeatureMatrix(sp.csr_array(table.astype(kind))).data.toarray(), table)


def test_single_precision_rows_have_norms_in_double():
    table = np.full((1, 3), 1e30, np.float32)
    for features in (FeatureMatrix(table), FeatureMatrix(sp.csr_array(table))):
        np.testing.assert_allclose(features.squared_norms(), 3e60, rtol=1e-6)


def test_wide_indices_and_repeated_entries_are_put_in_order():
    csr = sp.csr_array((np.array([1.0, 2, 3, 0]), [2, 0, 2, 1], [0, 4]), shape=(1, 3))
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    indptr, indices, values = FeatureMatrix(csr).sparse_rows(np.float64)
    assert indices.dtype == np.int32
    np.testing.assert_array_equal(sp.csr_array((values, indices, indptr), (1, 3)).toarray(), [[2, 0, 4]])
    np.testing.assert_allclose(FeatureMatrix(csr).squared_norms(), 20)
    assert csr.nnz == 4  # the caller's array is unchanged


def test_opposite_infinities_do_not_cancel():
    assert FeatureMatrix([[1e308, 1e308]]).shape == (1, 2)  # a sum that overflows must not become infinity


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_tables(shape):
    for features in (FeatureMatrix(np.zeros(shape)), FeatureMatrix(sp.csr_array(shape))):
        assert features.shape == shape
        assert len(features) == shape[0]
        assert len(features.sparse_rows(np.float32)[0]) == shape[0] + 1
        np.testing.assert_array_equal(features.squared_norms(), np.zeros(shape[0]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_features_beyond_the_range_are_named(kind):
    table = np.array([[1.0, 2.0, 0.0], [3.0, -1e300, 1.0]])
    with pytest.raises(
        ValueError, match=r"contains -1e\+300 at row 1, column 1; pass features up to 1e\+100 in size"
    ):
        FeatureMatrix(kind(table), largest=1e100)
    assert FeatureMatrix(kind(table)).shape == (2, 3)
    assert FeatureMatrix(kind(np.float32([[3e38, 3e38]])), largest=1e100).shape == (1, 2)


def test_what_is_made_of_rows_of_a_model_is_made_once_and_of_others_every_time():
    for rows, times in (FeatureMatrix(np.eye(2)), 2), (FeatureMatrix.of_model(np.eye(2)), 1):
        made = []
        for _ in range(2):
            assert rows.once("made", lambda made=made: made.append(1) or len(made)) == len(made)
        assert len(made) == times
