"""Tables: updates in place, inner products by row and by column, memory at a cache line."""

import numpy as np
import pytest

from labelweave.foundation.arrays import Workers, aligned_empty
from labelweave.foundation.arrays.tables import add_multiple, column_inner, multiply_and_add, row_inner


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0, 16), (7, 3), (1000, 16)])
def test_an_aligned_array_is_an_array_that_starts_at_a_cache_line(shape, dtype):
    for _ in range(5):
        made = aligned_empty(shape, dtype)
        assert made.shape == shape
        assert made.dtype == dtype
        assert made.ctypes.data % 64 == 0 or made.size == 0
        assert made.flags.c_contiguous
        assert made.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1, 1), (1, 5), (7, 1)])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_tables_are_updated_in_place(dtype, shape, n_threads, monkeypatch):
    monkeypatch.setattr("labelweave.foundation.arrays.tables._AT_ONCE", 10)
    random = np.random.default_rng(0)
    target, vector = (random.normal(size=(7, 5)).astype(dtype) for _ in range(2))
    rate = random.normal(size=shape)
    added, multiplied = target.copy(), target.copy()
    with Workers(n_threads).running() as workers:
        add_multiple(added, rate, vector, workers)
        multiply_and_add(multiplied, rate, vector, workers)
    np.testing.assert_allclose(added, target + rate * vector, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(multiplied, rate * target + vector, rtol=1e-4, atol=1e-5)


def test_tables_may_lie_in_memory_in_any_way_and_be_read_only():
    target, vector = np.zeros((4, 3), order="F"), np.ones((3, 4)).T
    vector.setflags(write=False)
    add_multiple(target, 2.0, vector, Workers())
    assert (target == 2).all()


def _tables(n_rows, width, kinds):
    random = np.random.default_rng(0)
    return [random.normal(size=(n_rows, width)).astype(kind) for kind in kinds]


@pytest.mark.parametrize(
    "kinds", [(np.float32, np.float32), (np.float64, np.float64), (np.float32, np.float64)]
)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 40), (3_000, 250), (300_000, 1), (4, 0)])
def test_sums_are_those_of_double_precision(shape, kinds):
    left, right = _tables(*shape, kinds)
    expected = left.astype(np.float64) * right.astype(np.float64)
    columns, rows = column_inner(left, right, Workers()), row_inner(left, right, Workers())
    assert columns.dtype == rows.dtype == np.float64
    np.testing.assert_allclose(columns, expected.sum(axis=0), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(rows, expected.sum(axis=1), rtol=1e-10, atol=1e-10)


def test_bits_do_not_depend_on_threads():
    left, right = _tables(9_000, 100, (np.float32, np.float32))
    with Workers(3).running() as many:
        np.testing.assert_array_equal(column_inner(left, right, many), column_inner(left, right, Workers()))
        np.testing.assert_array_equal(row_inner(left, right, many), row_inner(left, right, Workers()))


def test_strided_tables_serve_and_not_a_number_stays():
    left, right = _tables(50, 6, (np.float64, np.float64))
    left[7, 2] = np.nan
    expected = left[::2, 1:4] * right[::2, 1:4]
    np.testing.assert_allclose(column_inner(left[::2, 1:4], right[::2, 1:4], Workers()), expected.sum(axis=0))
    rows = row_inner(left[1::2], right[1::2], Workers())
    assert np.flatnonzero(np.isnan(rows)).tolist() == [3]
