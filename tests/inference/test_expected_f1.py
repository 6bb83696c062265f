"""Sets of the greatest expected F1 score against sums over all true sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.inference import expected_f1_sizes
from labelweave.inference.thresholds.top_k import _LEFT_OUT, _told_apart
from reference import threshold_twin as twin

PROBABILITIES = st.lists(st.sampled_from([0.0, 0.01, 0.2, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=5)


@given(probabilities=PROBABILITIES, empty=st.sampled_from([0.0, 1.0]))
@settings(max_examples=60)
def test_no_set_at_all_is_better(probabilities, empty):
    found = expected_f1_sizes([probabilities], empty_value=empty)
    order = np.argsort(-np.array(probabilities), kind="stable")
    own = twin.expected_f1(probabilities, order[: found.sizes[0]].tolist(), empty)
    assert found.values[0] == pytest.approx(own, abs=1e-8)
    for size in range(len(probabilities) + 1):
        for labels in itertools.combinations(range(len(probabilities)), size):
            assert twin.expected_f1(probabilities, labels, empty) <= own + 1e-8


def test_many_labels_that_hardly_matter():
    probabilities = np.concatenate([[0.9, 0.8, 0.3], np.full(3000, 1e-5)])
    few = expected_f1_sizes([probabilities[:3]])
    many = expected_f1_sizes([probabilities])
    assert many.sizes.tolist() == few.sizes.tolist() == [2]
    assert 0 < few.values[0] - many.values[0] < 0.01


def test_rows_do_not_depend_on_each_other():
    table = np.random.default_rng(0).random((20, 9)) ** 3
    together = expected_f1_sizes(table)
    for row, line in enumerate(table):
        alone = expected_f1_sizes(line[None])
        assert (alone.sizes[0], alone.values[0]) == (together.sizes[row], together.values[row])


def test_labels_that_hardly_matter_are_left_out_row_by_row():
    table = np.random.default_rng(0).random((6, 40)) ** np.array([[1], [3], [9], [30], [90], [400]])
    ranked, used, rest = _told_apart(table)
    for row, line in enumerate(-np.sort(-table, axis=1)):
        least = next(k for k in range(1, 41) if line[k:].sum() <= _LEFT_OUT or k == 40)
        assert used[row] == least
        assert rest[row] == pytest.approx(line[least:].sum(), abs=1e-15)
        np.testing.assert_array_equal(ranked[row, :least], line[:least])


def test_what_is_no_probability_is_refused():
    with pytest.raises(ValueError, match=r"The probability at row 1, label 0 is 1\.5; probabilities"):
        expected_f1_sizes([[0.5], [1.5]])
