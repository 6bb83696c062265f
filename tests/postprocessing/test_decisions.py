"""Decisions from class probabilities, against loops over rows and classes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelweave.labels import Taxonomy, class_probabilities
from labelweave.postprocessing import (
    best_parent,
    expected_f1_sizes,
    least_expected_loss,
    most_probable,
    rejected,
)
from labelweave.postprocessing.thresholds.top_k import _LEFT_OUT, _told_apart
from reference import threshold_twin as twin
from refused import refusals

_TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle", "boxer"], "cat": None}, "plant": ["oak", "elm"]})
_CLASSES = ["poodle", "boxer", "cat", "oak", "elm"]

test_what_makes_no_sense_is_refused = refusals(__file__)


@st.composite
def tables(draw, most_rows=6):
    """Probabilities in eighths, so that sums are exact and ties are common."""
    n_rows, n_classes = draw(st.integers(0, most_rows)), draw(st.integers(1, 6))
    cuts = draw(hnp.arrays(int, (n_rows, n_classes - 1), elements=st.integers(0, 8)))
    bounds = np.column_stack([np.zeros(n_rows, int), np.sort(cuts, axis=1), np.full(n_rows, 8)])
    return np.diff(bounds, axis=1) / 8


def slow_least_loss(row, losses):
    expected = [sum(p * losses[c][d] for c, p in enumerate(row)) for d in range(len(losses[0]))]
    return expected.index(min(expected))


def slow_best_parent(row, parents):
    groups = {}
    for c, parent in enumerate(parents):
        groups.setdefault(("own", c) if parent is None else parent, []).append(c)
    best = max(groups.values(), key=lambda members: sum(row[c] for c in members))
    return max(best, key=lambda c: row[c])


def slow_rejected(rows, fraction):
    order = sorted(range(len(rows)), key=lambda i: (max(rows[i]), i))
    return [i in order[: round(fraction * len(rows))] for i in range(len(rows))]


@given(table=tables())
def test_the_most_probable_class_is_the_first_of_the_largest(table):
    assert most_probable(table).tolist() == [list(row).index(max(row)) for row in table]


@given(table=tables(), data=st.data())
def test_least_expected_loss_equals_loops(table, data):
    shape = (table.shape[1], data.draw(st.integers(1, 5)))
    losses = data.draw(hnp.arrays(float, shape, elements=st.integers(-4, 4)))
    assert least_expected_loss(table, losses).tolist() == [slow_least_loss(row, losses) for row in table]


@given(table=tables())
def test_with_equal_losses_it_is_the_most_probable_class(table):
    zero_one = 1.0 - np.eye(table.shape[1])
    np.testing.assert_array_equal(least_expected_loss(table, zero_one), most_probable(table))


@given(table=tables(), data=st.data())
def test_best_parent_equals_loops(table, data):
    n_classes = table.shape[1]
    parents = data.draw(st.lists(st.sampled_from([None, "a", "b"]), min_size=n_classes, max_size=n_classes))
    assert best_parent(table, parents).tolist() == [slow_best_parent(row, parents) for row in table]


@given(table=tables(), fraction=st.floats(0, 1))
def test_a_fraction_of_the_least_certain_rows_is_rejected(table, fraction):
    assert rejected(table, fraction=fraction).tolist() == slow_rejected(table.tolist(), fraction)


@given(table=tables(), confidence=st.sampled_from([0.0, 0.25, 0.5, 0.625, 1.0]))
def test_rows_below_the_confidence_are_rejected(table, confidence):
    assert rejected(table, confidence=confidence).tolist() == [max(row) < confidence for row in table]


def test_decisions_on_a_taxonomy_differ_and_each_is_best_in_its_own_score():
    generator = np.random.default_rng(0)
    table = generator.dirichlet(np.full(5, 0.5), size=400)
    distances = _TREE.distances(_CLASSES)
    parents = _TREE.parents_of(_CLASSES)
    choices = {
        "class": most_probable(table),
        "tree": least_expected_loss(table, distances),
        "parent": best_parent(table, parents),
    }
    rows = np.arange(len(table))
    expected_loss = {name: (table @ distances)[rows, chosen].mean() for name, chosen in choices.items()}
    siblings = np.array([[a == b for b in parents] for a in parents], float)
    expected_parent = {name: (table @ siblings)[rows, chosen].mean() for name, chosen in choices.items()}
    assert min(expected_loss, key=expected_loss.get) == "tree"
    assert max(expected_parent, key=expected_parent.get) == "parent"
    assert len({tuple(chosen) for chosen in choices.values()}) == 3


def test_rounding_does_not_choose_among_equal_losses():
    distances = _TREE.distances(_CLASSES)
    # poodle and boxer are equally good for every row; sums in another order differ in the last bits
    generator = np.random.default_rng(1)
    table = generator.dirichlet(np.ones(5), size=500)
    table[:, 1] = table[:, 0]
    table /= table.sum(axis=1, keepdims=True)
    assert not (least_expected_loss(table, distances) == 1).any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_blocks_and_floating_types_give_the_same(monkeypatch, dtype):
    table = np.random.default_rng(2).dirichlet(np.ones(5), size=101).astype(dtype)
    parents = _TREE.parents_of(_CLASSES)
    results = []
    for entries in (7, 2**20):
        monkeypatch.setattr(class_probabilities, "_BLOCK_ENTRIES", entries)
        results.append(
            [
                most_probable(table),
                least_expected_loss(table, _TREE.distances(_CLASSES)),
                best_parent(table, parents),
                rejected(table, fraction=0.3),
            ]
        )
    for small, large in zip(*results, strict=True):
        np.testing.assert_array_equal(small, large)
        assert len(small) == 101


@settings(max_examples=20)
@given(n_rows=st.integers(0, 200), percent=st.integers(0, 100))
def test_the_number_of_rejected_rows_is_the_nearest_one(n_rows, percent):
    table = np.full((n_rows, 2), 0.5)
    assert abs(rejected(table, fraction=percent / 100).sum() - n_rows * percent / 100) <= 0.5 + 1e-9


def test_frames_and_whole_numbers_are_read():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0.2, 0.8], [1.0, 0.0]], columns=["a", "b"])
    assert most_probable(frame).tolist() == [1, 0]
    assert most_probable([[0, 1], [True, False]]).tolist() == [1, 0]
    assert best_parent(frame, pd.Series(["x", np.nan], dtype=object)).tolist() == [1, 0]


def test_the_row_of_a_later_block_is_named(monkeypatch):
    monkeypatch.setattr(class_probabilities, "_BLOCK_ENTRIES", 4)
    with pytest.raises(ValueError, match="row 5 sum to 2"):
        most_probable(np.vstack([np.full((5, 2), 0.5), np.ones((1, 2))]))


def test_losses_and_parents_are_matched_by_name():
    table = pd.DataFrame([[0.3, 0.31, 0.39], [0.1, 0.1, 0.8]], columns=["a", "b", "c"])
    losses = pd.DataFrame([[0, 1, 2], [1, 0, 2], [2, 2, 0]], index=["a", "b", "c"])
    assert least_expected_loss(table, losses.loc[["c", "a", "b"]]).tolist() == [1, 2]
    parents = pd.Series({"c": "dogs", "b": "cats", "a": "cats"})
    assert best_parent(table, parents).tolist() == [1, 2]
    with pytest.raises(ValueError, match="parent_of_class has 'd', which is not a class"):
        best_parent(table, parents.rename({"a": "d"}))
    assert best_parent(table.to_numpy(), parents[["a", "b", "c"]]).tolist() == [1, 2]


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


def test_labels_that_hardly_matter_are_omitted_row_by_row():
    table = np.random.default_rng(0).random((6, 40)) ** np.array([[1], [3], [9], [30], [90], [400]])
    ranked, used, rest = _told_apart(table)
    for row, line in enumerate(-np.sort(-table, axis=1)):
        least = next(k for k in range(1, 41) if line[k:].sum() <= _LEFT_OUT or k == 40)
        assert used[row] == least
        assert rest[row] == pytest.approx(line[least:].sum(), abs=1e-15)
        np.testing.assert_array_equal(ranked[row, :least], line[:least])
