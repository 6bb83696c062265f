"""What dot products of sparse features promise beyond tests/contracts/test_grams.py."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix
from labelweave.features.gram import SparseFeatureGram
from labelweave.features.gram.stored import TILE, from_tiles, to_tiles
from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.arrays import Workers


def _text(n=300, d=2000, seed=0):
    """Make rows of words with few frequent ones; every fifth row is empty, most words are not used."""
    random = np.random.default_rng(seed)
    words = np.minimum(random.zipf(1.5, size=(n, 20)) - 1, d - 1)
    X = sp.csr_array((random.normal(size=20 * n), words.ravel(), np.arange(0, 20 * n + 1, 20)), (n, d))
    X.sum_duplicates()
    return sp.csr_array(sp.diags_array((np.arange(n) % 5 > 0).astype(float)) @ X)


@pytest.mark.parametrize("constant", [0.0, 2.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [0, 1, 3, 4, 15, 16, 17, 128, 129, 300])
def test_products_of_any_width(width, dtype, constant):
    X = _text()
    vectors = np.random.default_rng(1).normal(size=(300, width)).astype(dtype)
    product = SparseFeatureGram(FeatureMatrix(X), constant, dtype, Workers()).product(vectors)
    assert product.dtype == dtype
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(product, (X @ X.T).toarray() @ vectors + constant * vectors.sum(0), **close)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_vectors_in_any_order_in_memory(order):
    X, wide = _text(), np.random.default_rng(1).normal(size=(600, 40))
    vectors = wide[::2, ::2] if order == "strided" else np.array(wide[:300, :20], order=order)
    before = vectors.copy()
    product = SparseFeatureGram(FeatureMatrix(X), 0.0, np.float64, Workers()).product(vectors)
    np.testing.assert_allclose(product, (X @ X.T) @ before, atol=1e-11)
    np.testing.assert_array_equal(vectors, before)


def test_the_same_bits_for_any_number_of_threads():
    features = FeatureMatrix(_text(3000))
    vectors = np.random.default_rng(1).normal(size=(3000, 150))
    products = []
    for threads in (1, 2, 3):
        with Workers(threads).running() as workers:
            products.append(SparseFeatureGram(features, 1.0, np.float64, workers).product(vectors))
    for other in products[1:]:
        np.testing.assert_array_equal(products[0], other)


def test_a_column_of_a_product_does_not_depend_on_the_others():
    gram = SparseFeatureGram(FeatureMatrix(_text()), 0.0, np.float64, Workers())
    vectors = np.random.default_rng(1).normal(size=(300, 40))
    np.testing.assert_array_equal(gram.product(vectors)[:, :5], gram.product(vectors[:, :5]))


def test_entries_that_are_stored_but_zero_do_not_matter():
    X = _text()
    with_zeros = X.copy()
    with_zeros.data[::3] = 0
    without = with_zeros.copy()
    without.eliminate_zeros()
    one, other = (
        SparseFeatureGram(FeatureMatrix(data), 1.0, np.float64, Workers()) for data in (with_zeros, without)
    )
    vectors = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_array_equal(one.product(vectors), other.product(vectors))
    np.testing.assert_allclose(one.diagonal(), other.diagonal(), rtol=1e-12)
    assert (with_zeros.data[::3] == 0).all()
    assert with_zeros.nnz == X.nnz


@pytest.mark.parametrize("shape", [(1, 5), (4, 0), (4, 5)])
def test_features_that_are_all_zero(shape):
    gram = SparseFeatureGram(FeatureMatrix(sp.csr_array(shape)), 1.0, np.float64, Workers())
    np.testing.assert_array_equal(gram.product(np.ones((shape[0], 2))), np.full((shape[0], 2), shape[0]))
    np.testing.assert_array_equal(gram.diagonal(), np.ones(shape[0]))


def test_unused_features_take_no_memory():
    X = sp.csr_array((np.ones(3), np.array([0, 10**6, 10**9]), np.array([0, 1, 3])), shape=(2, 10**9 + 1))
    gram = SparseFeatureGram(FeatureMatrix(X), 0.0, np.float64, Workers())
    assert gram.ordered.shape == (2, 3)
    np.testing.assert_array_equal(gram.product(np.eye(2)), [[1, 0], [0, 2]])


def _random_csr(shape, density, seed):
    return sp.random_array(shape, density=density, format="csr", rng=seed)


@settings(max_examples=40)
@given(
    n_rows=st.sampled_from([1, 2, 7, 8, 9, 300]),
    n_columns=st.sampled_from([1, 5, 40]),
    density=st.sampled_from([0.0, 0.05, 0.6, 1.0]),
    single=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_with_a_tile_are_scipys(n_rows, n_columns, density, single, seed):
    csr, dtype = _random_csr((n_rows, n_columns), density, seed), np.float32 if single else np.float64
    tile = np.random.default_rng(seed).normal(size=(n_columns, TILE)).astype(dtype)
    product = np.full((n_rows, TILE), np.nan, dtype)
    table = SparseProducts(csr, dtype, Workers())
    table.matmul(tile, product)
    close = {"rtol": 1e-4, "atol": 1e-4} if single else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(product, csr @ tile, **close)
    few = table.csr_of(table.values) @ tile[:, :3]
    assert few.dtype == dtype
    np.testing.assert_allclose(few, product[:, :3], **close)


def test_wide_indices_serve_too():
    csr = _random_csr((30, 20), 0.3, 0)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    tile, product = np.ones((20, TILE)), np.empty((30, TILE))
    SparseProducts(csr, np.float64, Workers()).matmul(tile, product)
    np.testing.assert_allclose(product[:, 0], csr.sum(axis=1))


@pytest.mark.parametrize("width", [1, 15, 16, 17, 32, 40])
@pytest.mark.parametrize("n_rows", [1, 255, 256, 600])
def test_columns_come_back_from_tiles(width, n_rows):
    wide = np.random.default_rng(0).normal(size=(n_rows, width + 3))
    columns, back = wide[:, 2:-1], np.empty((n_rows, width))
    tiles = np.full((-(-width // TILE), n_rows, TILE), np.nan)
    with Workers(2).running() as workers:
        to_tiles(columns, tiles, workers)
        from_tiles(tiles, back, workers)
    np.testing.assert_array_equal(back, columns)
    flat = tiles.transpose(1, 0, 2).reshape(n_rows, -1)
    assert (flat[:, width:] == 0).all()
