"""Which form of a kernel matrix is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.gram import FeatureGram, SparseFeatureGram, StoredGram, StreamedGram, choose_gram
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers


def _dense(n, d):
    return FeatureMatrix(np.random.default_rng(0).normal(size=(n, d)))


def _sparse(n, d, entries):
    """Make features with about that many entries a row."""
    return FeatureMatrix(sp.random_array((n, d), density=entries / d, format="csr", rng=0))


def _chosen(features, *, explicit=True, columns=50, budget=1e9, **options):
    source = KernelSource(LinearKernel() if explicit else RBFKernel(0.3), features)
    return choose_gram(source, features if explicit else None, columns, budget, Workers(), **options)


def _kind(*arguments, **options):
    return type(_chosen(*arguments, **options))


def test_few_dense_features_stay_features():
    assert _kind(_dense(400, 20)) is FeatureGram


def test_many_dense_features_make_a_matrix():
    assert _kind(_dense(100, 300)) is StoredGram


@pytest.mark.parametrize("columns", [1, 16, 100, 1000])
def test_sparse_features_stay_features_where_rows_are_many(columns):
    assert _kind(_sparse(3000, 20_000, 20), columns=columns) is SparseFeatureGram


@pytest.mark.parametrize("columns", [1, 16, 100, 1000])
def test_sparse_features_make_a_matrix_where_rows_are_few(columns):
    assert _kind(_sparse(400, 20_000, 100), columns=columns) is StoredGram


def test_few_sparse_features_with_many_entries_are_dense_ones():
    assert _kind(_sparse(500, 20, 15)) is FeatureGram


def test_a_dense_array_that_is_mostly_zeros_is_sparse():
    features = FeatureMatrix(_sparse(2000, 300, 5).data.toarray())
    assert _kind(features) is SparseFeatureGram


def test_a_matrix_that_does_not_fit_is_computed_anew_or_stays_features():
    assert _kind(_sparse(400, 20_000, 100), budget=1.1e6) is StreamedGram
    assert _kind(_sparse(400, 20_000, 10), budget=1.1e6) in (SparseFeatureGram, StreamedGram)
    assert _kind(_dense(400, 250), budget=1.2e6) is FeatureGram


@pytest.mark.parametrize(("budget", "kind"), [(1e9, StoredGram), (1e6, StreamedGram)])
def test_other_kernels_are_kept_if_they_fit(budget, kind):
    assert _kind(_dense(400, 2), explicit=False, budget=budget) is kind


def test_single_precision_takes_half_the_memory():
    options = {"explicit": False, "budget": 1e6}
    assert _kind(_dense(400, 2), **options) is StreamedGram
    assert _kind(_dense(400, 2), **options, dtype=np.float32) is StoredGram


def test_a_budget_too_small_for_anything_is_refused():
    with pytest.raises(
        ValueError, match=r"memory_budget is 0.1 MB, too small .* 400 rows; give at least 0.3 MB"
    ):
        _chosen(_dense(400, 2), explicit=False, budget=1e5)


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("budget", [1e9, 4e5])
@pytest.mark.parametrize("features", [_dense(300, 10), _dense(300, 400), _sparse(300, 500, 5)])
def test_whatever_is_chosen_is_the_matrix(features, budget, explicit):
    gram = _chosen(features, explicit=explicit, budget=budget, constant=2.0)
    kernel, vectors = LinearKernel() if explicit else RBFKernel(0.3), np.ones((300, 2))
    np.testing.assert_allclose(
        gram.product(vectors), (kernel.block(features, features) + 2.0) @ vectors, atol=1e-9
    )
