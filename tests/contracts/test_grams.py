"""Requirements of every form of a kernel matrix.  A new form needs one more entry in ``FORMS``."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.gram import (
    FeatureGram,
    LowRankGram,
    SparseFeatureGram,
    StoredGram,
    StreamedGram,
    incomplete_cholesky,
)
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers


def _streamed(bytes_of_panels):
    def make(kernel, features, constant, dtype, workers):
        return StreamedGram(KernelSource(kernel, features), constant, dtype, workers, bytes_of_panels)

    return make


def _stored(kernel, features, constant, dtype, workers):
    return StoredGram.from_source(KernelSource(kernel, features), constant, dtype, workers)


def _precomputed(store):
    def make(kernel, features, constant, dtype, workers):
        source = PrecomputedSource(kernel.block(features, features))
        if store:
            return StoredGram.from_source(source, constant, dtype, workers)
        return StreamedGram(source, constant, dtype, workers, 1e3)

    return make


def _feature(kernel, features, constant, dtype, workers):
    return FeatureGram(features, constant, dtype, workers)


def _sparse_feature(kernel, features, constant, dtype, workers):
    return SparseFeatureGram(features, constant, dtype, workers)


def _full_rank(kernel, features, constant, dtype, workers):
    incomplete = incomplete_cholesky(KernelSource(kernel, features), len(features), workers)
    return LowRankGram(incomplete, constant, dtype, workers)


FORMS = {
    "stored": (_stored, RBFKernel(0.3)),
    "streamed, one panel": (_streamed(64e6), RBFKernel(0.3)),
    "streamed, small panels": (_streamed(1e6), RBFKernel(0.3)),
    "streamed, tiny panels": (_streamed(1.0), RBFKernel(0.3)),
    "precomputed, stored": (_precomputed(True), RBFKernel(0.3)),
    "precomputed, streamed": (_precomputed(False), RBFKernel(0.3)),
    "features": (_feature, LinearKernel()),
    "sparse features": (_sparse_feature, LinearKernel()),
    "full rank": (_full_rank, RBFKernel(0.3)),
}


def _features(n, d=4, *, sparse=False, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    X = (random.normal(size=(n, d)) * (random.random((n, d)) < 0.7)).astype(dtype)
    return FeatureMatrix(sp.csr_array(X) if sparse else X)


def _gram(form, features, constant=1.0, dtype=np.float64, workers=None):
    make, kernel = FORMS[form]
    return make(kernel, features, constant, dtype, workers or Workers())


def _dense(form, features, constant):
    data = features.astype(np.float64)
    return FORMS[form][1].block(data, data) + constant


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(
    n=st.sampled_from([1, 2, 63, 64, 65, 129, 200]),
    width=st.integers(1, 3),
    sparse=st.booleans(),
    constant=st.sampled_from([0.0, 1.0]),
    single=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_columns_and_diagonal_are_the_dense_matrixs(form, n, width, sparse, constant, single, seed):
    dtype = np.float32 if single else np.float64
    close = {"rtol": 1e-4, "atol": 1e-3} if single else {"rtol": 1e-10, "atol": 1e-10}
    features = _features(n, sparse=sparse, seed=seed)
    gram, dense = _gram(form, features, constant, dtype), _dense(form, features, constant)
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n, width))
    which = random.choice(n, min(n, 3), replace=False)
    product = gram.product(vectors.astype(dtype))
    assert product.dtype == dtype
    np.testing.assert_allclose(product, dense @ vectors, **close)
    columns = gram.columns(which)
    assert columns.dtype == dtype
    np.testing.assert_allclose(columns, dense[:, which], **close)
    diagonal = gram.diagonal()
    assert diagonal.dtype == np.float64
    np.testing.assert_allclose(diagonal, dense.diagonal(), **close)
    assert gram.n_rows == n
    assert gram.dtype == dtype


@pytest.mark.parametrize("form", FORMS)
def test_a_product_of_double_precision_is_summed_in_double_precision(form):
    features = _features(300)
    gram, dense = _gram(form, features, 1.0, np.float32), _dense(form, features, 1.0)
    vectors = np.random.default_rng(0).normal(size=(300, 2))
    product = gram.product(vectors)
    assert product.dtype == np.float64
    # entries may be stored in single precision, but sums must not be computed in it
    bound = np.abs(dense) @ np.abs(vectors) * np.finfo(np.float32).eps
    assert (np.abs(product - dense @ vectors) <= bound).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_symmetric(form, dtype):
    gram = _gram(form, _features(150), 1.0, dtype)
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 150, 1)).astype(dtype)
    one, other = (left * gram.product(right)).sum(), (right * gram.product(left)).sum()
    np.testing.assert_allclose(one, other, rtol=1e-3 if dtype == np.float32 else 1e-11, atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(form, dtype):
    features, vectors = _features(1300), np.random.default_rng(0).normal(size=(1300, 2)).astype(dtype)
    results = []
    for threads in (1, 2, 3):
        with Workers(threads).running() as workers:
            gram = _gram(form, features, 1.0, dtype, workers)
            results.append((gram.product(vectors), gram.columns(np.array([3, 1200])), gram.diagonal()))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_are_not_changed(form, sparse, dtype):
    features, vectors = _features(130, sparse=sparse, dtype=dtype), np.ones((130, 2), dtype)
    before = features.data.copy()
    gram = _gram(form, features, 1.0, dtype)
    gram.product(vectors)
    first = gram.columns(np.array([0, 5]))
    first += 1  # the caller's own
    np.testing.assert_array_equal(gram.columns(np.array([0, 5])) + 1, first)
    assert (vectors == 1).all()
    assert abs(features.data - before).max() == 0


@pytest.mark.parametrize("form", FORMS)
def test_double_columns_for_repeated_and_no_indices(form):
    features = _features(70)
    gram, dense = _gram(form, features), _dense(form, features, 1.0)
    np.testing.assert_allclose(gram.columns(np.array([3, 3, 0])), dense[:, [3, 3, 0]], atol=1e-12)
    assert gram.columns(np.array([], int)).shape == (70, 0)
    assert gram.product(np.empty((70, 0))).shape == (70, 0)
