from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram.cache import CachedRows
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers

_N = 12
_ROW = 8 * _N


class _Counted(PrecomputedSource):
    """A source that notes which rows it was asked for."""

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
