"""Products of a sparse matrix with tiles of columns, against SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features.gram.stored import TILE, from_tiles, to_tiles
from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.arrays import Workers


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
