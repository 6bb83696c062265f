"""Reciprocal ranks and error-reject curves, against loops over rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import accuracy_score, label_ranking_average_precision_score

from labelweave import metrics
from labelweave.labels import class_probabilities
from labelweave.postprocessing import most_probable, rejected

NAMES = ["ant", "bee", "cow", "dog"]


@st.composite
def cases(draw):
    """Names of true classes, some unobserved, probabilities with ties, and weights."""
    n_rows = draw(st.integers(1, 8))
    cuts = np.sort(draw(hnp.arrays(int, (n_rows, 3), elements=st.integers(0, 8))), axis=1)
    table = np.diff(np.column_stack([np.zeros(n_rows, int), cuts, np.full(n_rows, 8)]), axis=1) / 8
    truths = draw(st.lists(st.sampled_from([*NAMES, None]), min_size=n_rows, max_size=n_rows))
    truths[0] = truths[0] or "ant"
    weights = draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n_rows, max_size=n_rows))
    weights[0] = 1.0
    return truths, table, weights


def counted(truths, table, weights):
    rows = zip(truths, table.tolist(), weights, strict=True)
    return [(NAMES.index(truth), row, weight) for truth, row, weight in rows if truth and weight]


def slow_reciprocal_rank(truths, table, weights):
    rows = counted(truths, table, weights)
    total = sum(weight / sum(p >= row[truth] for p in row) for truth, row, weight in rows)
    return total / sum(weight for *_, weight in rows)


def slow_curve(truths, table, weights):
    rows = counted(truths, table, weights)
    whole = sum(weight for *_, weight in rows)
    points = []
    for level in sorted({max(row) for _, row, _ in rows}):
        kept = [(truth, row, weight) for truth, row, weight in rows if max(row) >= level]
        weight_kept = sum(weight for *_, weight in kept)
        wrong = sum(weight for truth, row, weight in kept if row.index(max(row)) != truth)
        points.append((1 - weight_kept / whole, wrong / weight_kept))
    return np.array(points).T


@given(case=cases())
def test_reciprocal_rank_equals_loops(case):
    truths, table, weights = case
    value = metrics.mean_reciprocal_rank(truths, table, NAMES, sample_weight=weights)
    assert value == pytest.approx(slow_reciprocal_rank(*case))


@given(case=cases())
def test_curve_equals_loops(case):
    truths, table, weights = case
    curve = metrics.error_reject_curve(truths, table, NAMES, sample_weight=weights)
    np.testing.assert_allclose(curve, slow_curve(*case), atol=1e-12)


@given(case=cases())
def test_reciprocal_rank_is_scikit_learns_ranking_precision_of_one_label(case):
    truths, table, weights = case
    rows = counted(truths, table, weights)
    truth, given_table = np.eye(4)[[t for t, *_ in rows]], np.array([row for _, row, _ in rows])
    expected = label_ranking_average_precision_score(
        truth, given_table, sample_weight=[weight for *_, weight in rows]
    )
    assert metrics.mean_reciprocal_rank(truths, table, NAMES, sample_weight=weights) == pytest.approx(
        expected
    )


def test_curve_begins_at_the_error_and_follows_the_reject_option():
    generator = np.random.default_rng(0)
    table = generator.dirichlet(np.ones(4), size=300)
    truths = np.array([generator.choice(4, p=row) for row in table])
    fractions, errors = metrics.error_reject_curve(truths, table)
    predicted = most_probable(table)
    assert fractions[0] == 0
    assert errors[0] == pytest.approx(1 - accuracy_score(truths, predicted))
    assert len(fractions) == 300
    for place in (1, 60, 150, 299):
        undecided = rejected(table, fraction=fractions[place])
        assert undecided.mean() == pytest.approx(fractions[place])
        assert errors[place] == pytest.approx(1 - accuracy_score(truths[~undecided], predicted[~undecided]))
    assert (np.diff(fractions) > 0).all()


def test_results_do_not_depend_on_blocks(monkeypatch):
    generator = np.random.default_rng(1)
    table = generator.dirichlet(np.ones(4), size=50)
    truths = np.array(NAMES, object)[generator.integers(0, 4, 50)]
    truths[::7] = None
    whole = (
        metrics.error_reject_curve(truths, table, NAMES),
        metrics.mean_reciprocal_rank(truths, table, NAMES),
    )
    monkeypatch.setattr(class_probabilities, "_BLOCK_ENTRIES", 12)
    np.testing.assert_array_equal(metrics.error_reject_curve(truths, table, NAMES), whole[0])
    assert metrics.mean_reciprocal_rank(truths, table, NAMES) == whole[1]


@pytest.mark.parametrize(
    ("truths", "classes"),
    [
        ([0, 1, np.nan, 1], None),
        (np.array([0, 1, 0, 1]), None),
        (["a", "b", float("nan"), "b"], ["a", "b"]),
        (np.array(["a", "b", None, "b"], dtype=object), np.array(["a", "b"])),
        ([3.0, 5.0, np.nan, 5.0], [3, 5]),
        ([3.0, 5.0, np.nan, 5.0], ["3", "5"]),
        (np.array([3, 5, 3, 5]), np.array(["3", "5"])),
        (["3", "5", None, "5"], np.array([3, 5])),
        ([False, True, None, True], [False, True]),
    ],
)
def test_classes_in_any_form(truths, classes):
    table = [[0.9, 0.1], [0.7, 0.3], [0.9, 0.1], [0.2, 0.8]]
    known = [truth is not None and truth == truth for truth in truths]
    expected = np.mean(np.array([1, 0.5, 1, 1])[known])
    assert metrics.mean_reciprocal_rank(truths, table, classes) == pytest.approx(expected)


def test_frames_and_series():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([[0.9, 0.1], [0.7, 0.3]], columns=["a", "b"])
    for truths in (
        pd.Series(["a", "b"]),
        pd.Series(["a", pd.NA], dtype="string"),
        pd.Series(pd.Categorical(["a", None], categories=["b", "a"])),
    ):
        expected = 0.75 if truths.notna().all() else 1.0
        assert metrics.mean_reciprocal_rank(truths, table) == expected
        assert metrics.mean_reciprocal_rank(truths, table, ["a", "b"]) == expected
    with pytest.raises(ValueError, match="class 'a' in column 0 where classes has 'b'"):
        metrics.mean_reciprocal_rank(truths, table, ["b", "a"])
