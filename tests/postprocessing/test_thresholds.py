"""Chosen thresholds compared with all thresholds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelweave import LabelMatrix, metrics
from labelweave.postprocessing import choose_thresholds, choose_top_k, scores_above_top_k
from labelweave.postprocessing.labeled_scores import read_labeled_scores
from labelweave.postprocessing.thresholds import search
from labelweave.postprocessing.thresholds.choice import above_floor
from reference import threshold_twin as twin


@st.composite
def problems(draw, most_rows=5, most_labels=3):
    """Signs with unobserved entries, and scores with many ties."""
    shape = (draw(st.integers(1, most_rows)), draw(st.integers(1, most_labels)))
    signs = draw(hnp.arrays(np.int8, shape, elements=st.sampled_from([-1, -1, 1, 0])))
    scores = draw(hnp.arrays(float, shape, elements=st.integers(-3, 3).map(lambda s: s / 2)))
    return signs, scores


_NONE_OF_ONE = np.array([[1, -1], [1, -1], [-1, -1], [1, -1], [-1, -1]])


def as_targets(signs):
    return np.where(signs == 0, np.nan, (signs > 0).astype(float))


@pytest.mark.parametrize("name", ["micro_f1", "macro_f1", "hamming_loss"])
@given(problem=problems())
@settings(max_examples=40)
def test_thresholds_of_labels_are_the_best_of_all(name, problem):
    signs, scores = problem
    has_positive = (signs > 0).any(axis=0)
    signs = np.where(has_positive, signs, 0)  # labels without positive rows take the shared threshold
    choice = choose_thresholds(as_targets(signs), scores, name)
    assert choice.value == pytest.approx(twin.measure(name, signs, scores > choice.thresholds))
    if has_positive.any():
        assert choice.value == pytest.approx(twin.best_by_label(name, signs, scores))


@pytest.mark.parametrize("name", twin.MEASURES)
@given(problem=problems())
@example(problem=(_NONE_OF_ONE, np.array([[0.0, 4.0], [2.0, 5.0], [1.0, 2.0], [3.0, 4.0], [1.0, 1.0]])))
@settings(max_examples=40)
def test_thresholds_of_labels_are_never_worse_than_one_for_all(name, problem):
    signs, scores = problem
    own, shared = (
        choose_thresholds(as_targets(signs), scores, name, scope=scope).value for scope in ("label", "global")
    )
    assert own <= shared + 1e-9 if name == "hamming_loss" else own >= shared - 1e-9


@given(problem=problems(), seed=st.integers(0, 9))
@settings(max_examples=40)
def test_no_single_threshold_improves_the_example_f1_score(problem, seed):
    signs, scores = problem
    scores = scores + np.random.default_rng(seed).normal(size=scores.shape)
    choice = choose_thresholds(as_targets(signs), scores, "example_f1")
    assert choice.value == pytest.approx(twin.measure("example_f1", signs, scores > choice.thresholds))
    assert choice.value >= twin.best_shared("example_f1", signs, scores) - 1e-9
    for label in np.flatnonzero((signs > 0).any(axis=0)):
        for threshold in twin.column_thresholds(scores[:, label]):
            other = choice.thresholds.copy()
            other[label] = threshold
            assert twin.measure("example_f1", signs, scores > other) <= choice.value + 1e-5


def _best_of(columns, labels, name):
    average = name.split("_")[0]
    return max(metrics.f1_score(labels, predicted, average=average) for predicted in columns)


@pytest.mark.parametrize("name", ["micro_f1", "macro_f1", "example_f1"])
def test_labels_by_probabilities_count_as_far_as_they_are_expected(name):
    random = np.random.default_rng(0)
    shares = np.where(random.random((60, 4)) < 0.1, np.nan, 0.45 * random.random((60, 4)))
    labels, scores = LabelMatrix.from_probabilities(shares), random.normal(size=shares.shape)
    top = choose_top_k(labels, scores, name)
    assert top.value == pytest.approx(
        _best_of((scores_above_top_k(scores, k) > 0 for k in range(1, 5)), labels, name)
    )
    alike = choose_thresholds(labels, scores, name, scope="global")
    assert alike.value == pytest.approx(_best_of((scores > cut for cut in scores.ravel()), labels, name))
    found = choose_thresholds(labels, scores, name)
    assert found.value == pytest.approx(_best_of([scores > found.thresholds], labels, name))
    others = (
        scores > np.where(np.arange(4) == label, cut, found.thresholds)
        for label in range(4) for cut in scores[:, label]
    )  # fmt: skip
    assert _best_of(others, labels, name) <= found.value + 1e-5


def test_labels_that_are_sorted_anew_get_the_same_thresholds(monkeypatch):
    random = np.random.default_rng(0)
    labels, scores = random.random((300, 7)) < 0.2, random.normal(size=(300, 7)).round(1)
    kept = choose_thresholds(labels, scores, "example_f1").thresholds
    monkeypatch.setattr(search, "_KEPT_ENTRIES", 0)
    np.testing.assert_array_equal(choose_thresholds(labels, scores, "example_f1").thresholds, kept)


@pytest.mark.parametrize("name", twin.MEASURES)
@given(problem=problems(most_labels=4))
@settings(max_examples=40)
def test_the_shared_threshold_is_the_best_of_all(name, problem):
    signs, scores = problem
    choice = choose_thresholds(as_targets(signs), scores, name, scope="global")
    assert len(set(choice.thresholds)) == 1
    assert choice.value == pytest.approx(twin.measure(name, signs, scores > choice.thresholds))
    if (signs > 0).any():
        assert choice.value == pytest.approx(twin.best_shared(name, signs, scores))


@pytest.mark.parametrize("name", twin.MEASURES)
@given(problem=problems(most_labels=4))
@settings(max_examples=40)
def test_top_k_is_the_best_of_all(name, problem):
    signs, scores = problem
    choice = choose_top_k(as_targets(signs), scores, name)
    assert choice.value == pytest.approx(twin.best_top_k(name, signs, scores))


@given(problem=problems(most_labels=6), data=st.data())
def test_shifted_scores_are_positive_for_the_k_best(problem, data):
    scores = problem[1]
    k = data.draw(st.integers(0, scores.shape[1]))
    shifted = scores_above_top_k(scores, k)
    np.testing.assert_array_equal(shifted > 0, twin.top_k(scores, k))
    assert np.isfinite(shifted).all()


@given(
    problem=problems(most_rows=12),
    target=st.sampled_from([0.3, 0.5, 0.8, 1.0]),
    measure=st.sampled_from(["precision", "recall"]),
)
@settings(max_examples=80)
def test_targets_are_reached_with_the_most_hits_or_the_fewest_predictions(problem, target, measure):
    signs, scores = problem
    choice = choose_thresholds(as_targets(signs), scores, measure, target=target)
    for label in np.flatnonzero((signs > 0).any(axis=0)):
        seen = signs[:, label] != 0
        positive, column = signs[seen, label] > 0, scores[seen, label]
        options = [column > t for t in twin.column_thresholds(column)]
        counts = [((one & positive).sum(), one.sum()) for one in options]
        chosen = column > choice.thresholds[label]
        if measure == "precision":
            best = max(hits for hits, size in counts if hits >= target * size)
            assert (chosen & positive).sum() == best
            assert best >= target * chosen.sum()
        else:
            assert chosen.sum() == min(size for hits, size in counts if hits >= target * positive.sum())


def test_targets_of_all_entries_together():
    rng = np.random.default_rng(0)
    labels = (rng.random((200, 5)) < 0.3).astype(int)
    scores = labels + rng.normal(size=labels.shape)
    for scope_choice in (
        choose_thresholds(labels, scores, "precision", scope="global", target=0.6),
        choose_thresholds(labels, scores, "recall", scope="global", target=0.6),
        choose_top_k(labels, scores, "recall", target=0.6),
    ):
        assert 0.6 <= scope_choice.value < 0.75


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(1)
    labels = (rng.random((40, 4)) < 0.3).astype(int)
    scores = labels + rng.normal(size=labels.shape)
    weights = rng.integers(0, 4, 40)
    rows = np.repeat(np.arange(40), weights)
    for name in twin.MEASURES:
        weighted = choose_thresholds(labels, scores, name, sample_weight=weights)
        repeated = choose_thresholds(labels[rows], scores[rows], name)
        assert weighted.value == pytest.approx(repeated.value)
        k = choose_top_k(labels, scores, name, sample_weight=weights)
        assert k.value == pytest.approx(choose_top_k(labels[rows], scores[rows], name).value)


def test_sparse_labels_and_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    labels = (rng.random((60, 7)) < 0.2).astype(int)
    scores = (labels + rng.normal(size=labels.shape)).astype(np.float32)
    whole = [choose_thresholds(labels, scores, name).thresholds for name in twin.MEASURES]
    monkeypatch.setattr("labelweave.postprocessing.labeled_scores.BLOCK_ENTRIES", 100)
    for name, expected in zip(twin.MEASURES, whole, strict=True):
        again = choose_thresholds(sp.csr_array(labels), scores, name).thresholds
        np.testing.assert_allclose(again, expected)


def test_a_label_that_no_row_has_takes_the_shared_threshold():
    labels = np.array([[1, 0], [0, 0], [1, 0]])
    scores = np.array([[2.0, 5.0], [1.0, 4.0], [3.0, 3.0]])
    by_label = choose_thresholds(labels, scores).thresholds
    shared = choose_thresholds(labels, scores, scope="global").thresholds
    assert by_label[1] == shared[1]
    np.testing.assert_array_equal(choose_thresholds(0 * labels, scores).thresholds, 5.0)


def test_values_are_those_of_the_metrics():
    rng = np.random.default_rng(3)
    labels = np.where(rng.random((50, 4)) < 0.2, np.nan, rng.random((50, 4)) < 0.3)
    scores = rng.normal(size=labels.shape) + (labels == 1)
    for name, expected in {
        "micro_f1": lambda p: metrics.f1_score(labels, p),
        "macro_f1": lambda p: metrics.f1_score(labels, p, average="macro"),
        "example_f1": lambda p: metrics.f1_score(labels, p, average="example"),
        "hamming_loss": lambda p: metrics.hamming_loss(labels, p),
    }.items():
        choice = choose_thresholds(labels, scores, name)
        assert choice.value == pytest.approx(expected((scores > choice.thresholds).astype(int)))


def test_adjacent_numbers_are_told_apart():
    scores = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    thresholds = choose_thresholds(np.array([[0], [1]]), scores).thresholds
    np.testing.assert_array_equal(scores > thresholds, [[False], [True]])


def _far_apart(n_rows):
    """Labels whose best thresholds are far from each other, and labels that share one."""
    rng = np.random.default_rng(0)
    labels = (rng.random((n_rows, 12)) < 0.1).astype(int)
    scores = 2.0 * labels + rng.normal(size=labels.shape)
    return labels, scores, scores + np.linspace(-9.0, 9.0, 12)


@pytest.mark.parametrize("name", ["micro_f1", "macro_f1", "example_f1", "hamming_loss"])
def test_the_strength_of_shrinkage_follows_the_rows(name):
    labels, alike, apart = _far_apart(400)
    assert choose_thresholds(labels, apart, name, shrinkage="auto").shrinkage == 0
    chosen = choose_thresholds(labels, alike, name, shrinkage="auto")
    assert chosen.shrinkage >= 50
    given = choose_thresholds(labels, alike, name, shrinkage=chosen.shrinkage)
    np.testing.assert_array_equal(given.thresholds, chosen.thresholds)


@pytest.mark.parametrize(
    ("n_rows", "n_labels", "share"), [(1, 3, 0.5), (9, 3, 0.5), (50, 1, 0.5), (50, 3, 0.0)]
)
def test_the_strength_of_shrinkage_is_the_usual_one_where_nothing_tells(n_rows, n_labels, share):
    rng = np.random.default_rng(0)
    labels = (rng.random((n_rows, n_labels)) < share).astype(int)
    assert choose_thresholds(labels, rng.normal(size=labels.shape), shrinkage="auto").shrinkage == 50


def test_the_strength_of_shrinkage_is_for_thresholds_of_labels():
    labels, scores, _ = _far_apart(60)
    shared = choose_thresholds(labels, scores, scope="global", shrinkage="auto")
    reached = choose_thresholds(labels, scores, "precision", target=0.5, shrinkage="auto")
    assert shared.shrinkage == reached.shrinkage == 0


def test_the_strength_of_shrinkage_is_found_on_some_of_many_labels(monkeypatch):
    labels, _, scores = _far_apart(400)
    monkeypatch.setattr("labelweave.postprocessing.thresholds.choice._MOST_ENTRIES", 400 * 4)
    gaps = np.where(np.random.default_rng(1).random(labels.shape) < 0.2, np.nan, labels)
    assert choose_thresholds(gaps, scores, shrinkage="auto").shrinkage == 0


@pytest.mark.parametrize("objective", ["micro_f1", "macro_f1", "example_f1"])
def test_a_floor_bounds_how_often_a_label_is_predicted(objective):
    generator = np.random.default_rng(0)
    labels = (generator.random((300, 20)) < np.linspace(0.01, 0.4, 20)).astype(float)
    labels[generator.random(labels.shape) < 0.1] = np.nan
    scores = generator.normal(size=labels.shape)  # that carry no information
    weights = generator.random(300) + 0.5
    free = choose_thresholds(labels, scores, objective, sample_weight=weights)
    table = read_labeled_scores(labels, scores, weights)
    bound = free._replace(thresholds=above_floor(table, free.thresholds, 2.0))
    observed = ~np.isnan(labels)
    counts, positives = weights @ ((scores > bound.thresholds) & observed), weights @ (labels == 1)
    assert (counts <= 2 * positives + weights.mean() + 1e-9).all()
    wild = weights @ ((scores > free.thresholds) & observed) > 2 * positives + weights.mean()
    assert wild.any() or objective != "macro_f1"
    np.testing.assert_array_equal(bound.thresholds[~wild], free.thresholds[~wild])
    assert (bound.thresholds[wild] > free.thresholds[wild]).all()
    # no lower threshold would do: the next row would be one too many
    one_more = np.array(
        [np.max(s[s <= t], initial=-9) for s, t in zip(scores.T, bound.thresholds, strict=True)]
    )
    more = weights @ ((scores >= one_more) & observed)
    seen = np.array([observed[scores[:, k] == one_more[k], k].all() for k in range(20)])
    assert (more[wild & seen] > (2 * positives + weights.mean())[wild & seen]).all()
