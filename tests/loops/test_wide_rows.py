import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from labelweave._loops import wide_rows
from labelweave._loops.wide_rows import WIDTH
from reference import margin_twins


@njit
def _add_rows(weights, indices, values, start, stop, total):
    wide_rows.add_rows(weights, indices, values, start, stop, total)


@njit
def _add_to_rows(weights, indices, values, start, stop, change):
    wide_rows.add_to_rows(weights, indices, values, start, stop, change)


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
def test_mixed_types_are_refused(fast, odd_one):
    arguments = [np.zeros((3, WIDTH)), np.zeros(2, np.int32), np.zeros(2), 0, 2, np.zeros(WIDTH)]
    arguments[odd_one] = arguments[odd_one].astype(np.float32)
    with pytest.raises(TypingError):
        fast(*arguments)


def test_strided_arrays_are_refused():
    with pytest.raises(TypingError):
        _add_rows(np.zeros((3, WIDTH)), np.zeros(2, np.int32), np.zeros(2), 0, 2, np.zeros(2 * WIDTH)[::2])
