"""Products of a sparse matrix with tables, and dot products of its rows, against NumPy's."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, sparse_products
from labelweave.features.gram import SparseFeatureGram
from labelweave.features.gram.stored import TILE, from_tiles, to_tiles
from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.arrays import Workers

CLOSE = {np.float32: {"rtol": 1e-4, "atol": 1e-4}, np.float64: {"rtol": 1e-12, "atol": 1e-12}}


def _random(m, p, k, density, dtype, seed=0):
    random = np.random.default_rng(seed)
    csr = sp.random_array((m, p), density=density, format="csr", rng=seed).astype(dtype)
    return csr, random.normal(size=(m, k)).astype(dtype), random.normal(size=(p, k)).astype(dtype)


def _fallen(csr):
    """Reverse the order of the entries of every row."""
    places = np.concatenate(
        [np.arange(low, high)[::-1] for low, high in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)]
    )
    return sp.csr_array((csr.data[places], csr.indices[places], csr.indptr), shape=csr.shape)


def _rows_and_columns(csr):
    coo = csr.tocoo()
    return coo.row, coo.col


@settings(max_examples=120)
@given(
    m=st.sampled_from([0, 1, 2, 9, 60]),
    p=st.sampled_from([1, 2, 7, 50]),
    k=st.integers(1, 70) | st.sampled_from([128, 131, 200, 257]),
    density=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_product_is_that_of_dense_matrices(m, p, k, density, dtype, seed):
    csr, left, right = _random(m, p, k, density, dtype, seed)
    products, dense = SparseProducts(csr, dtype, Workers()), csr.toarray()
    rows, columns = _rows_and_columns(csr)
    pairs = [
        (products.matmul(right), dense @ right),
        (products.adjoint(left), dense.T @ left),
        (products.sampled(left, right), (left @ right.T)[rows, columns]),
    ]
    for fast, slow in pairs:
        assert fast.dtype == dtype
        np.testing.assert_allclose(fast, slow, **CLOSE[dtype])
    assert products.shape == (m, p)
    assert products.nnz == csr.nnz


@settings(max_examples=60)
@given(
    m=st.integers(1, 40),
    p=st.integers(1, 40),
    density=st.sampled_from([0.0, 0.1, 0.7]),
    dtype=st.sampled_from([np.float32, np.float64]),
    turn_first=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_new_values_and_transposes_go_together(m, p, density, dtype, turn_first, seed):
    csr, left, right = _random(m, p, 3, density, dtype, seed)
    products = SparseProducts(csr, dtype, Workers())
    if turn_first:
        np.testing.assert_allclose(products.adjoint(left), csr.T @ left, **CLOSE[dtype])
    values = products.sampled(left, right)
    other = products.with_values(values)
    expected = sp.csr_array((values, csr.indices, csr.indptr), shape=csr.shape)
    np.testing.assert_allclose(other.adjoint(left), expected.T @ left, **CLOSE[dtype])
    turned = products.transposed
    assert turned.transposed is products
    assert products.transposed is turned
    again = turned.with_values(turned.sampled(right, left))
    np.testing.assert_array_equal(again.values, other.transposed.values)
    np.testing.assert_array_equal(again.transposed.values, values)
    np.testing.assert_allclose(again.transposed.matmul(right), expected @ right, **CLOSE[dtype])
    assert again.transposed.transposed is again


def test_the_adjoint_is_the_adjoint():
    csr, left, right = _random(200, 90, 37, 0.1, np.float64)
    products = SparseProducts(csr, np.float64, Workers())
    np.testing.assert_allclose((products.matmul(right) * left).sum(), (right * products.adjoint(left)).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 16, 50, 131])
def test_bits_do_not_depend_on_threads(dtype, k):
    csr, left, right = _random(2_000, 300, k, 0.05, dtype)
    results = []
    for n_threads in (1, 2, 3):
        with Workers(n_threads).running() as workers:
            products = SparseProducts(csr, dtype, workers)
            results.append((products.matmul(right), products.adjoint(left), products.sampled(left, right)))
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("order", ["reversed", "fortran", "strided", "one entry behind a line"])
def test_tables_may_lie_in_memory_in_any_way(order):
    csr, left, right = _random(100, 30, 20, 0.9, np.float64)
    memory = np.empty(right.size + 1)[1:].reshape(right.shape)
    memory[:] = right
    table = {
        "reversed": np.ascontiguousarray(right[::-1])[::-1],
        "fortran": np.asfortranarray(right),
        "strided": np.repeat(right, 2, axis=1)[:, ::2],
        "one entry behind a line": memory,
    }[order]
    products = SparseProducts(csr, np.float64, Workers())
    np.testing.assert_array_equal(products.matmul(table), products.matmul(right))
    np.testing.assert_array_equal(products.sampled(left, table), products.sampled(left, right))
    np.testing.assert_array_equal(
        products.sampled(np.asfortranarray(left), right), products.sampled(left, right)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("near", [0, 2_000, 8_000, 20_000])
@pytest.mark.parametrize("in_order", [True, False])
def test_tables_too_large_for_the_caches_give_the_same(near, in_order, dtype, monkeypatch):
    csr, left, right = _random(60, 40, 150, 0.5, dtype)
    products, dense = SparseProducts(csr if in_order else _fallen(csr), dtype, Workers()), csr.toarray()
    monkeypatch.setattr(sparse_products, "_NEAR", near)
    monkeypatch.setattr(sparse_products, "_BLOCKS", (near // 2, near))
    monkeypatch.setattr(sparse_products, "_FEWEST", (4, 1))
    np.testing.assert_allclose(products.matmul(right), dense @ right, **CLOSE[dtype])
    np.testing.assert_allclose(products.adjoint(left), dense.T @ left, **CLOSE[dtype])
    rows = np.repeat(np.arange(60), np.diff(products.indptr))
    expected = (left @ right.T)[rows, products.indices]
    np.testing.assert_allclose(products.sampled(left, right), expected, **CLOSE[dtype])


def test_blocks_leave_rows_without_entries_zero_and_bits_to_no_thread(monkeypatch):
    csr, left, _ = _random(2_000, 300, 20, 0.05, np.float32)
    csr = sp.csr_array(csr * (np.arange(300) % 3 > 0))
    csr.eliminate_zeros()
    whole = SparseProducts(csr, np.float32, Workers()).adjoint(left)
    monkeypatch.setattr(sparse_products, "_BLOCKS", (8_000, 16_000))
    monkeypatch.setattr(sparse_products, "_FEWEST", (1, 1))
    results = []
    for n_threads in (1, 2):
        with Workers(n_threads).running() as workers:
            out = np.full((300, 20), np.nan, np.float32)
            results.append(SparseProducts(csr, np.float32, workers).adjoint(left, out))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], whole, rtol=1e-3, atol=1e-4)
    assert not results[0][::3].any()


def test_products_go_where_they_are_asked_to():
    csr, left, right = _random(60, 40, 7, 0.5, np.float64)
    products, out = SparseProducts(csr, np.float64, Workers()), np.empty((60, 7))
    assert products.matmul(right, out) is out
    np.testing.assert_array_equal(out, products.matmul(right))
    np.testing.assert_array_equal(products.adjoint(left, np.empty((40, 7))), products.adjoint(left))
    for wrong in (np.empty((60, 8)), np.empty((60, 7), np.float32), np.empty((7, 60)).T):
        with pytest.raises(ValueError, match="goes to a contiguous array"):
            products.matmul(right, wrong)


def test_rows_without_entries_become_zero():
    csr = sp.csr_array((np.ones(2), np.array([1, 3]), np.array([0, 0, 2, 2, 2])), shape=(4, 5))
    products = SparseProducts(csr, np.float32, Workers())
    expected = np.zeros((4, 3), np.float32)
    expected[1] = 2
    np.testing.assert_array_equal(products.matmul(np.ones((5, 3), np.float32)), expected)


def test_entries_stored_twice_or_out_of_order_add_up():
    csr = sp.csr_array((np.arange(1.0, 6.0), np.array([2, 0, 2, 1, 1]), np.array([0, 3, 5])), shape=(2, 3))
    products, random = SparseProducts(csr, np.float64, Workers()), np.random.default_rng(0)
    left, right = random.normal(size=(2, 4)), random.normal(size=(3, 4))
    np.testing.assert_allclose(products.matmul(right), csr.toarray() @ right)
    np.testing.assert_allclose(products.adjoint(left), csr.toarray().T @ left)
    rows = np.array([0, 0, 0, 1, 1])
    np.testing.assert_allclose(products.sampled(left, right), (left[rows] * right[csr.indices]).sum(axis=1))


def test_wide_indices_serve_too():
    csr, left, right = _random(30, 20, 5, 0.3, np.float64)
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    narrow, products = SparseProducts(csr, np.float64, Workers()), SparseProducts(wide, np.float64, Workers())
    np.testing.assert_array_equal(products.matmul(right), narrow.matmul(right))
    np.testing.assert_array_equal(products.adjoint(left), narrow.adjoint(left))


def test_values_that_are_not_finite_stay_in_their_columns():
    csr, _, right = _random(20, 10, 18, 0.5, np.float64)
    right[0, 17] = np.inf
    product = SparseProducts(csr, np.float64, Workers()).matmul(right)
    assert np.isfinite(product[:, :17]).all()


def test_a_matrix_and_its_transpose_leave_memory_with_their_last_user():
    csr, left, _ = _random(20, 10, 3, 0.5, np.float64)
    products = SparseProducts(csr, np.float64, Workers())
    gc.disable()
    try:
        other = products.with_values(np.ones(csr.nnz))
        other.adjoint(left)
        watched = weakref.ref(other), weakref.ref(other.transposed)
        del other
        assert [reference() for reference in watched] == [None, None]
    finally:
        gc.enable()


def test_products_that_were_turned_can_be_sent():
    csr, left, _ = _random(20, 15, 3, 0.3, np.float64)
    products = SparseProducts(csr, np.float64, Workers())
    expected = products.transposed.matmul(left)
    for one in (products, products.transposed.transposed):
        assert np.array_equal(pickle.loads(pickle.dumps(one)).transposed.matmul(left), expected)
    turned = pickle.loads(pickle.dumps(products.transposed))
    assert np.array_equal(turned.matmul(left), expected)


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


def test_wide_indices_of_features_serve_too():
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
