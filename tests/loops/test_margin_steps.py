import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import TypingError

from labelweave.foundation.loops import margin_steps
from labelweave.foundation.loops.coordinate_ascent import in_runs, rows_above
from labelweave.foundation.loops.sparse_products import WIDTH
from reference import margin_twins


@njit
def _box_step(scores, signs, margins, beta, upper, inverse_norms, change, free, squared):
    return margin_steps.box_step(scores, signs, margins, beta, upper, inverse_norms, change, free, squared)


@njit
def _add_entry_sums(scores, signs, margins, beta, upper, sums, squared):
    margin_steps.add_entry_sums(scores, signs, margins, beta, upper, sums, squared)


def _entry(seed, number):
    random = np.random.default_rng(seed)
    signs = random.integers(-1, 2, WIDTH).astype(np.int8)
    upper = number(random.uniform(0.1, 3))
    share = random.choice([0, 0.3, 1], WIDTH)
    return (
        random.normal(size=WIDTH).astype(number), signs, random.uniform(0, 2, (2, WIDTH)).astype(number),
        (signs * upper * share).astype(number), upper, random.uniform(0.1, 5, WIDTH).astype(number),
    )  # fmt: skip


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.sampled_from([None, True]))
def test_box_step_is_its_slow_twin(seed, number, squared):
    entry, tolerance = _entry(seed, number), 1e-5 if number == np.float32 else 1e-12
    change, free, slow_change, slow_free = (np.ones(WIDTH, number) for _ in range(4))
    totals = _box_step(*entry, change, free, squared)
    slow_totals = margin_twins.box_step(*entry, slow_change, slow_free, squared)
    np.testing.assert_allclose(totals, slow_totals, rtol=10 * tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(change, slow_change, rtol=tolerance, atol=tolerance)
    if number == np.float64:  # whether a variable ends at its bound depends on the last bit
        np.testing.assert_allclose(free, slow_free, rtol=tolerance)
    assert totals[0] >= -1e-6
    assert totals[1] >= -1e-5


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.sampled_from([None, True]))
def test_entry_sums_are_their_slow_twin(seed, number, squared):
    scores, signs, margins, beta, upper, _ = _entry(seed, number)
    sums, slow_sums = np.ones((3, WIDTH)), np.ones((3, WIDTH))
    _add_entry_sums(scores, signs, margins, beta, upper, sums, squared)
    margin_twins.add_entry_sums(scores, signs, margins, beta, upper, slow_sums, squared)
    tolerance = 1e-5 if number == np.float32 else 1e-12
    np.testing.assert_allclose(sums, slow_sums, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("place", "kind"), [(0, np.float32), (3, np.float32), (1, np.int64), (1, np.float64)]
)
def test_wrong_types_are_refused(place, kind):
    arguments = [*_entry(0, np.float64), np.zeros(WIDTH), np.zeros(WIDTH)]
    arguments[place] = arguments[place].astype(kind)
    with pytest.raises(TypingError):
        _box_step(*arguments, None)
    with pytest.raises(TypingError):
        _add_entry_sums(*arguments[:5], np.zeros((3, WIDTH)), None)


@given(st.integers(0, 70), st.integers(1, 20), st.randoms(use_true_random=False))
def test_runs_keep_every_row_once_and_neighbors_together(n, length, random):
    rows = np.sort(np.array(random.sample(range(1000), n), dtype=np.int64))
    runs = np.array(random.sample(range(-(-n // length)), -(-n // length)), dtype=np.int64)
    expected = [row for run in runs for row in rows[run * length : (run + 1) * length]]
    np.testing.assert_array_equal(in_runs(rows, runs, length), expected)


@given(st.lists(st.floats(0, 2, width=32), max_size=40), st.floats(0, 2, width=32))
def test_rows_above_are_numpys(gains, threshold):
    gains = np.array(gains, np.float32)
    np.testing.assert_array_equal(rows_above(gains, threshold), np.flatnonzero(gains > threshold))
