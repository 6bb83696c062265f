"""Single forms of kernel matrices and their cache; see tests/contracts/test_grams.py for all."""

from collections import OrderedDict

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

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
from labelweave.features.kernels.kernel import part_of_others
from labelweave.foundation.arrays import Workers
from labelweave.problems.kernel_row_margins import CachedRows

X = np.random.default_rng(0).normal(size=(300, 4))


class _Counting(Kernel):
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
    own, function = _Own(), CallableKernel(np.dot)
    assert part_of_others(RBFKernel(0.3) * 2.0 + LinearKernel()) is None
    assert part_of_others(function) is function
    assert part_of_others(RBFKernel(0.3) + function) is function
    assert part_of_others((RBFKernel(0.3) + LinearKernel() * own) * 2.0) is own


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


def test_zeros_pass():
    sources.checked_kernel_matrix(np.zeros((4, 4)))
    sources.check_positive_semidefinite(sources.PrecomputedSource(np.zeros((4, 4))), 0)


def _dense(n, d):
    return FeatureMatrix(np.random.default_rng(0).normal(size=(n, d)))


def _sparse(n, d, entries):
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


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("budget", [1e9, 4e5])
@pytest.mark.parametrize("features", [_dense(300, 10), _dense(300, 400), _sparse(300, 500, 5)])
def test_whatever_is_chosen_is_the_matrix(features, budget, explicit):
    gram = _chosen(features, explicit=explicit, budget=budget, constant=2.0)
    kernel, vectors = LinearKernel() if explicit else RBFKernel(0.3), np.ones((300, 2))
    np.testing.assert_allclose(
        gram.product(vectors), (kernel.block(features, features) + 2.0) @ vectors, atol=1e-9
    )


_N = 12
_ROW = 8 * _N


class _Counted(PrecomputedSource):
    def __init__(self, matrix):
        super().__init__(matrix)
        self.asked = []

    def block(self, rows, columns, dtype):
        self.asked.append(list(rows))
        return super().block(rows, columns, dtype)


def _matrix(n=_N):
    root = np.random.default_rng(0).normal(size=(n, 4))
    return root @ root.T


def _cache(n_slots, block_rows=3, constant=0.5, dtype=np.float64):
    source = _Counted(_matrix())
    row_bytes = _N * np.dtype(dtype).itemsize
    return source, CachedRows(source, constant, (n_slots + block_rows) * row_bytes, dtype, block_rows)


@settings(max_examples=60)
@given(st.integers(3, _N), st.lists(st.lists(st.integers(0, _N - 1), min_size=1, max_size=3), max_size=30))
def test_rows_are_right_whatever_was_asked_before(n_slots, blocks):
    source, cache = _cache(n_slots)
    for block in blocks:
        found = cache.rows(np.array(block))
        np.testing.assert_array_equal(found, source.matrix[block] + 0.5)
        assert cache.is_held[block].all()
        assert cache.is_held.sum() <= n_slots
    assert cache.misses == sum(map(len, source.asked))
    assert cache.hits + cache.misses == sum(map(len, blocks))


@settings(max_examples=60)
@given(st.integers(2, 6), st.lists(st.integers(0, _N - 1), max_size=40))
def test_the_row_used_longest_ago_gives_way(n_slots, indices):
    source, cache = _cache(n_slots, block_rows=2)
    held, misses = OrderedDict(), []
    for index in indices:
        np.testing.assert_array_equal(cache.row(index), source.matrix[index] + 0.5)
        if index not in held:
            misses.append([index])
            if len(held) == n_slots:
                held.popitem(last=False)
        held[index] = None
        held.move_to_end(index)
    assert source.asked == misses
    assert set(np.flatnonzero(cache.is_held)) == set(held)


def test_missing_rows_are_computed_together():
    source, cache = _cache(6)
    cache.rows(np.array([4, 2]))
    cache.rows(np.array([2, 9, 7]))
    assert source.asked == [[2, 4], [7, 9]]
    assert (cache.hits, cache.misses) == (1, 4)


def test_two_rows_stay_valid_beside_each_other():
    source, cache = _cache(2, block_rows=2)
    for first, second in ((0, 1), (2, 3), (1, 4)):
        rows = cache.row(first), cache.row(second)
        np.testing.assert_array_equal(rows, source.matrix[[first, second]] + 0.5)


def test_a_matrix_that_fits_is_computed_once():
    _, cache = _cache(1000)
    assert cache.n_slots == _N
    for _ in range(3):
        for row in range(_N):
            cache.row(row)
    assert cache.misses == _N


def test_what_is_kept_of_rows_that_gave_way_does_not_grow():
    source, cache = _cache(3)
    for number in range(200):
        cache.row(number % _N)
    assert len(cache._batches) <= 2 * cache.n_slots
    again = CachedRows(source, 0.5, 6 * _ROW, np.float64, 3)
    again.refill(cache.content())
    np.testing.assert_array_equal(again.is_held, cache.is_held)
    for row in np.flatnonzero(cache.is_held):
        np.testing.assert_array_equal(again.row(row), cache.row(row))


def test_an_interrupted_computation_leaves_no_wrong_row():
    source, cache = _cache(3)
    cache.rows(np.array([0, 1, 2]))
    block = source.block

    def interrupted(rows, columns, dtype):
        raise KeyboardInterrupt

    source.block = interrupted
    with pytest.raises(KeyboardInterrupt):
        cache.rows(np.array([5, 6]))
    source.block = block
    for row in (0, 1, 2, 5, 6):
        np.testing.assert_array_equal(cache.row(row), source.matrix[row] + 0.5)


def test_a_small_budget_is_refused_with_the_smallest_that_works():
    source = PrecomputedSource(np.broadcast_to(1.0, (5000, 5000)))
    with pytest.raises(ValueError, match=r"memory_budget is 1 MB.* 128 rows .* at least 5\.12 MB"):
        CachedRows(source, 0.0, 1e6, np.float32, 128)
    assert CachedRows(source, 0.0, 5.12e6, np.float32, 128).n_slots == 128


def test_one_row_needs_no_more_than_its_own_slots():
    assert CachedRows(PrecomputedSource(np.ones((1, 1))), 0.0, 16, np.float64, 2).row(0) == [1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(dtype):
    source = KernelSource(
        RBFKernel(gamma=0.1), FeatureMatrix(np.random.default_rng(1).normal(size=(4200, 3)))
    )
    wanted, found = np.array([5, 4000, 77]), []
    for n_threads in (1, 3):
        with Workers(n_threads).running() as workers:
            cache = CachedRows(source, 1.0, 1e6, dtype, 3, workers)
            found.append(cache.rows(wanted))
    assert found[0].dtype == dtype
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(
        found[0], source.block(wanted, slice(0, 4200), np.float64) + 1, rtol=1e-5
    )  # fmt: skip
