"""Sums and dot products of table rows: widths, types, and nothing read or written beyond the end."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from labelweave.features.sparse_products import read_only
from labelweave.foundation.loops import sparse_products
from labelweave.foundation.loops.sparse_products import WIDTH
from reference import margin_twins

WIDTHS = [1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 191, 192, 200, 256, 257]
WIDTHS += [383, 384, 401]


def _problem(number, index, width, room=0):
    random = np.random.default_rng(width)
    counts = [*range(10), 0, 3, 17]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = random.integers(0, 7, indptr[-1]).astype(index)
    values, left = random.normal(size=indptr[-1]), random.normal(size=(len(counts), width))
    table = np.full((7, width + room), np.nan)
    table[:, :width] = random.normal(size=(7, width))
    return indptr, indices, values.astype(number), left.astype(number), table.astype(number)


def _ends(indptr):
    return indptr[:-1], indptr[1:]


def _multiply(*arguments):
    *arrays, products, far, adds = arguments
    sparse_products.multiply_table(*read_only(*arrays), products, far, adds)  # as the library calls it


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("room", "far"), [(0, False), (5, True)])
def test_widths_of_every_kind_agree_with_numpy(number, index, room, far):
    tolerance = {"rtol": 2e-4, "atol": 2e-4} if number == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for width in WIDTHS:
        indptr, indices, values, left, table = _problem(number, index, width, room)
        rows = np.repeat(np.arange(len(left)), np.diff(indptr))
        expected = np.zeros(left.shape)
        np.add.at(expected, rows, values[:, None].astype(np.float64) * table[indices, :width])
        memory = np.full(left.size + 2, 7, number)  # its ends must stay
        products = memory[1:-1].reshape(left.shape)
        _multiply(indptr[:-1], indptr[1:], indices, values, table, products, far, False)
        np.testing.assert_allclose(products, expected, **tolerance)
        dots = np.full(len(indices) + 2, 7, number)
        sparse_products.sample_dots(indptr, indices, left, table, dots[1:-1], far)
        np.testing.assert_allclose(dots[1:-1], (left[rows] * table[indices, :width]).sum(axis=1), **tolerance)
        assert memory[0] == memory[-1] == dots[0] == dots[-1] == 7


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_a_part_of_the_rows_is_computed_as_in_the_whole(number):
    indptr, indices, values, left, table = _problem(number, np.int32, 50)
    whole, part = np.empty_like(left), np.empty_like(left[4:9])
    _multiply(*_ends(indptr), indices, values, table, whole, True, False)
    _multiply(*_ends(indptr[4:10]), indices, values, table, part, False, False)
    np.testing.assert_array_equal(part, whole[4:9])
    dots, some = np.zeros_like(values), np.zeros_like(values)
    sparse_products.sample_dots(indptr, indices, left, table, dots, True)
    sparse_products.sample_dots(indptr[4:10], indices, left[4:9], table, some, False)
    entries = slice(indptr[4], indptr[9])
    np.testing.assert_array_equal(some[entries], dots[entries])
    assert not some[: entries.start].any()
    assert not some[entries.stop :].any()


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("width", [3, 40, 90, 257, 400])
def test_parts_of_the_rows_add_up(number, width):
    indptr, indices, values, left, table = _problem(number, np.int32, width)
    whole, products = np.empty_like(left), np.full_like(left, 7)
    starts, stops = _ends(indptr)
    middle = (starts + stops) // 2
    _multiply(starts, stops, indices, values, table, whole, False, False)
    _multiply(starts, middle, indices, values, table, products, False, False)
    sparse_products.multiply_table(middle, stops, indices, values, table, products, False, True)
    np.testing.assert_allclose(products, whole, rtol=1e-4, atol=1e-5)


def test_rows_are_cut_where_their_indices_pass_a_multiple():
    indptr, indices = np.array([0, 4, 4, 6]), np.array([0, 1, 2, 5, 4, 5])
    cuts = np.empty((4, 3), np.int64)
    assert sparse_products.cut_rows(indptr, indices, 2, cuts)
    np.testing.assert_array_equal(cuts, [[0, 4, 4], [2, 4, 4], [3, 4, 4], [4, 4, 6]])
    assert not sparse_products.cut_rows(indptr, indices[::-1].copy(), 2, cuts)


@njit
def _sum_columns(table, indices, values, sums):
    sparse_products.sum_columns(table, indices, values, 0, 2, sums, 0, 0, 1, True, False)


@njit
def _entry_dots(left, table, indices, dots):
    sparse_products.entry_dots(left, table, indices, 0, 2, dots, True)


def test_mixed_types_are_refused():
    narrow, table, indices = np.zeros(2, np.float32), np.zeros((3, 16)), np.zeros(2, np.int32)
    with pytest.raises(TypingError):
        _sum_columns(table, indices, narrow, np.zeros(16))
    with pytest.raises(TypingError):
        _sum_columns(table[:, ::2], indices, np.zeros(2), np.zeros(16))
    with pytest.raises(TypingError):
        _entry_dots(np.zeros(16), table, indices, narrow)


@njit
def _add_rows(weights, indices, values, start, stop, total):
    sparse_products.add_rows(weights, indices, values, start, stop, total)


@njit
def _add_to_rows(weights, indices, values, start, stop, change):
    sparse_products.add_to_rows(weights, indices, values, start, stop, change)


PAIRS = [(_add_rows, margin_twins.add_rows), (_add_to_rows, margin_twins.add_to_rows)]


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("pair", PAIRS, ids=["add_rows", "add_to_rows"])
def test_rows_of_every_length_agree_with_numpy(pair, index, number):
    fast, slow = pair
    random = np.random.default_rng(0)
    weights = random.normal(size=(7, WIDTH)).astype(number)
    vector = random.normal(size=WIDTH).astype(number)
    expected_weights, expected_vector = weights.copy(), vector.copy()
    for length in [*range(10), 3, 0, 17]:  # the same arrays again and again, repeated features among them
        indices = random.integers(0, 7, length + 2).astype(index)
        values = random.normal(size=length + 2).astype(number)
        fast(weights, indices, values, 1, 1 + length, vector)
        slow(expected_weights, indices, values, 1, 1 + length, expected_vector)
        tolerance = 2e-5 if number == np.float32 else 1e-12
        np.testing.assert_allclose(weights, expected_weights, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(vector, expected_vector, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("fast", [_add_rows, _add_to_rows])
@pytest.mark.parametrize("odd_one", [0, 2, 5])
def test_mixed_types_beside_wide_rows_are_refused(fast, odd_one):
    arguments = [np.zeros((3, WIDTH)), np.zeros(2, np.int32), np.zeros(2), 0, 2, np.zeros(WIDTH)]
    arguments[odd_one] = arguments[odd_one].astype(np.float32)
    with pytest.raises(TypingError):
        fast(*arguments)


def test_strided_vectors_beside_wide_rows_are_refused():
    with pytest.raises(TypingError):
        _add_rows(np.zeros((3, WIDTH)), np.zeros(2, np.int32), np.zeros(2), 0, 2, np.zeros(2 * WIDTH)[::2])
