import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelweave.foundation.loops.coordinate_ascent import in_runs, rows_above


@given(st.integers(0, 70), st.integers(1, 20), st.randoms(use_true_random=False))
def test_runs_keep_every_row_once_and_neighbours_together(n, length, random):
    rows = np.sort(np.array(random.sample(range(1000), n), dtype=np.int64))
    runs = np.array(random.sample(range(-(-n // length)), -(-n // length)), dtype=np.int64)
    expected = [row for run in runs for row in rows[run * length : (run + 1) * length]]
    np.testing.assert_array_equal(in_runs(rows, runs, length), expected)


@given(st.lists(st.floats(0, 2, width=32), max_size=40), st.floats(0, 2, width=32))
def test_rows_above_are_numpys(gains, threshold):
    gains = np.array(gains, np.float32)
    np.testing.assert_array_equal(rows_above(gains, threshold), np.flatnonzero(gains > threshold))
