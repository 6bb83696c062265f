"""What single forms of a kernel matrix promise; what all promise is in tests/contracts/test_grams.py."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import CallableKernel, FeatureMatrix, Kernel, LinearKernel, RBFKernel
from labelweave.features.gram import (
    FeatureGram,
    SparseFeatureGram,
    StoredGram,
    StreamedGram,
    choose_gram,
    sources,
)
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers

X = np.random.default_rng(0).normal(size=(300, 4))


class _Counting(Kernel):
    """A kernel that notes the sizes of the blocks asked for."""

    def __init__(self, sizes):
        self.sizes = sizes

    def _block(self, rows, columns):
        self.sizes.append((len(rows), len(columns), rows.data.dtype))
        return RBFKernel(0.3).block(rows, columns)

    def _diagonal(self, rows):
        return np.ones(len(rows))


def test_a_stored_matrix_is_computed_in_double_precision_and_rounded_once():
    features = FeatureMatrix(X.astype(np.float32))
    gram = StoredGram.from_source(KernelSource(RBFKernel(0.3), features), 1.0, np.float32, Workers())
    exact = RBFKernel(0.3).block(features.astype(np.float64), features.astype(np.float64)) + 1.0
    np.testing.assert_array_equal(gram.table, exact.astype(np.float32))
    np.testing.assert_array_equal(gram.table, gram.table.T)


def test_a_stored_matrix_computes_each_pair_of_panels_once(monkeypatch):
    monkeypatch.setattr("labelweave.features.gram.stored._BUILD_PANEL", 100)
    sizes = []
    StoredGram.from_source(KernelSource(_Counting(sizes), FeatureMatrix(X)), 0.0, np.float64, Workers())
    assert len(sizes) == 6


@pytest.mark.parametrize("panel_bytes", [1e5, 4e5, 64e6])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_streamed_matrix_keeps_its_blocks_within_its_budget(panel_bytes, threads):
    sizes = []
    source = KernelSource(_Counting(sizes), FeatureMatrix(X))
    with Workers(threads).running() as workers:
        gram = StreamedGram(source, 1.0, np.float64, workers, panel_bytes)
        gram.product(np.ones((300, 2)))
        gram.columns(np.arange(20))
    assert max(rows * columns for rows, columns, _ in sizes) * 2 * 8 * threads <= max(
        panel_bytes, 2 * 8 * threads * 64**2
    )


def test_a_streamed_product_is_computed_in_the_type_of_the_vectors():
    sizes = []
    gram = StreamedGram(KernelSource(_Counting(sizes), FeatureMatrix(X)), 1.0, np.float32, Workers())
    gram.product(np.ones((300, 1)))
    assert {kind for *_, kind in sizes} == {np.dtype(np.float64)}
    sizes.clear()
    gram.product(np.ones((300, 1), np.float32))
    gram.columns(np.array([0]))
    assert {kind for *_, kind in sizes} == {np.dtype(np.float32)}


def test_blocks_of_a_given_matrix_are_copies():
    matrix = X @ X.T
    before = matrix.copy()
    source = PrecomputedSource(matrix)
    for which in (slice(0, 5), np.arange(5)):
        source.block(which, which, np.float64)[:] = 0
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_between_some_rows_are_a_copy_in_double_precision(dtype):
    gram = StoredGram((X @ X.T).astype(dtype), Workers())
    rows = np.array([5, 2, 5])
    entries = gram.block(rows)
    assert entries.dtype == np.float64
    np.testing.assert_array_equal(entries, gram.table[np.ix_(rows, rows)])
    entries[:] = 0
    assert gram.table[5, 5] > 0


def test_features_and_their_kernel_give_the_same_matrix():
    features = FeatureMatrix(X)
    stored = StoredGram.from_source(KernelSource(LinearKernel(), features), 1.0, np.float64, Workers())
    narrow = FeatureGram(features, 1.0, np.float64, Workers())
    vectors = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_allclose(narrow.product(vectors), stored.product(vectors), atol=1e-10)
    np.testing.assert_array_equal(X, features.data)


MANY_ROWS = np.random.default_rng(0).normal(size=(700, 3))
K = RBFKernel(0.3).block(FeatureMatrix(MANY_ROWS), FeatureMatrix(MANY_ROWS))


class _Own(Kernel):
    def _block(self, rows, columns):
        return rows.data @ columns.data.T

    def _diagonal(self, rows):
        return np.ones(len(rows))


def test_kernels_of_the_library_are_known():
    assert sources.is_known_semidefinite(RBFKernel(0.3) * 2.0 + LinearKernel())
    assert not sources.is_known_semidefinite(CallableKernel(np.dot))
    assert not sources.is_known_semidefinite(RBFKernel(0.3) + CallableKernel(np.dot))
    assert not sources.is_known_semidefinite((RBFKernel(0.3) + LinearKernel() * _Own()) * 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_kernel_matrix_passes_as_it_is(dtype, scale):
    matrix = (K * scale).astype(dtype)
    before = matrix.copy()
    assert sources.checked_kernel_matrix(matrix) is matrix
    sources.check_positive_semidefinite(sources.PrecomputedSource(matrix), 0)
    np.testing.assert_array_equal(matrix, before)


def test_rounding_in_single_precision_passes():
    noise = 1e-7 * np.random.default_rng(0).normal(size=K.shape)
    sources.checked_kernel_matrix(K + noise)
    sources.check_positive_semidefinite(sources.PrecomputedSource(K + noise), 0)


@pytest.mark.parametrize(("i", "j"), [(0, 699), (600, 3), (699, 698)])
def test_an_asymmetric_entry_is_named(i, j):
    spoiled = K.copy()
    spoiled[i, j] += 0.5
    with pytest.raises(ValueError, match="not symmetric") as error:
        sources.checked_kernel_matrix(spoiled)
    assert f"({i}, {j})" in str(error.value)
    assert f"({j}, {i})" in str(error.value)
    assert f"{spoiled[i, j]:g}" in str(error.value)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (0, 2)])
def test_a_matrix_that_is_not_square_is_refused(shape):
    with pytest.raises(ValueError, match="square"):
        sources.checked_kernel_matrix(np.ones(shape))


def test_negative_eigenvalues_are_found():
    with pytest.raises(ValueError, match=r"not positive semi-definite.*smallest eigenvalue is -"):
        sources.check_positive_semidefinite(sources.PrecomputedSource(K - 0.1 * np.eye(700)), 0)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        sources.check_positive_semidefinite(sources.PrecomputedSource(-np.ones((1, 1))), 0)


def test_a_function_that_is_not_symmetric_is_found():
    source = sources.KernelSource(CallableKernel(lambda a, b: a[:, :1] - b[:, 0]), FeatureMatrix(MANY_ROWS))
    with pytest.raises(ValueError, match="The kernel is not symmetric"):
        sources.check_positive_semidefinite(source, 0)


def test_zeros_pass():
    sources.checked_kernel_matrix(np.zeros((4, 4)))
    sources.check_positive_semidefinite(sources.PrecomputedSource(np.zeros((4, 4))), 0)


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
        ValueError, match=r"memory_budget is 0.1 MB, too small .* 400 rows; pass at least 0.3 MB"
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
