"""Counts, confusions, reasons and structure of reports, also for models that search for labels."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score

import labelweave as lw
from labelweave.app.report import reported_rows, yardstick
from labelweave.app.report.label_numbers import LabelStructure, label_numbers, weakest_labels
from labelweave.app.report.measured import measure
from labelweave.app.report.pictures import correlation_picture, frequency_picture
from labelweave.app.report.reported_rows import Outcomes, read_rows
from labelweave.app.report.weak_labels import chief_confusions, companions, weak_labels
from labelweave.app.report.yardstick import baseline_metrics, intervals
from labelweave.datasets import make_text_like
from labelweave.metrics.known_labels import known_labels


def drawn(seed, n_rows=40, n_labels=5, missing=0.3):
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_rows, n_labels)) < rng.uniform(0.05, 0.6, n_labels)).astype(float)
    truth[rng.random(truth.shape) < missing] = np.nan
    scores = rng.normal(size=truth.shape).round(1) + np.nan_to_num(truth)
    labels = lw.LabelMatrix.from_any(truth, [f"l{k}" for k in range(n_labels)])
    predicted = sp.csr_array((scores > 0.5).astype(np.int8))
    return truth, Outcomes(labels, predicted, scores, np.arange(n_rows), np.arange(n_labels))


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_numbers_are_those_of_scikit_learn_on_observed_entries(seed):
    truth, outcomes = drawn(seed)
    found = label_numbers(outcomes)
    for label in range(5):
        seen = ~np.isnan(truth[:, label])
        true, predicted = truth[seen, label], outcomes.predicted.toarray()[seen, label]
        expected = precision_recall_fscore_support(true, predicted, average="binary", zero_division=np.nan)
        np.testing.assert_allclose(
            [found.precision[label], found.recall[label], found.f1[label]],
            [*expected[:2], expected[2] if true.any() or predicted.any() else np.nan],
        )
        assert (found.positive[label], found.observed[label]) == (true.sum(), seen.sum())
        assert found.missed[label] == ((true == 1) & (predicted == 0)).sum()
        assert found.wrong[label] == ((true == 0) & (predicted == 1)).sum()
        if 0 < true.sum() < len(true):
            assert found.auc[label] == pytest.approx(roc_auc_score(true, outcomes.scores[seen, label]))
        else:
            assert np.isnan(found.auc[label])


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_confusions_are_those_of_a_slow_twin(seed):
    truth, outcomes = drawn(seed)
    predicted = outcomes.predicted.toarray()
    chief, beside = chief_confusions(outcomes), companions(outcomes, [0, 3])
    for label in range(5):
        instead, there = Counter(), Counter()
        for row in range(len(truth)):
            if truth[row, label] == 1 and not predicted[row, label]:
                instead.update(f"l{k}" for k in range(5) if truth[row, k] == 0 and predicted[row, k])
            if truth[row, label] == 0 and predicted[row, label]:
                there.update(f"l{k}" for k in range(5) if truth[row, k] == 1)
        if chief[label] is None:
            assert not instead
        else:
            assert instead[chief[label].name] == chief[label].n_rows == max(instead.values())
        if label in (0, 3):
            part = beside[[0, 3].index(label)]
            assert dict(part.instead) == dict(instead)
            assert dict(part.there) == dict(there)


def test_probabilities_of_labels_are_weighed():
    truth = lw.LabelMatrix.from_probabilities([[0.8, 0.3], [0.6, 0.0], [0.2, 1.0]], ["a", "b"])
    predicted = sp.csr_array([[0, 1], [0, 1], [1, 0]], dtype=np.int8)
    outcomes = Outcomes(truth, predicted, predicted.toarray() - 0.5, np.arange(3), np.arange(2))
    a, b = companions(outcomes, [0, 1])
    ((name, count),) = a.instead
    assert (name, count) == ("b", pytest.approx(0.8 * 0.7 + 0.6))
    assert dict(b.instead) == {"a": pytest.approx(0.8)}
    assert dict(b.there) == {"a": pytest.approx(0.7 * 0.8 + 0.6)}
    assert chief_confusions(outcomes) == [*a.instead, *b.instead]
    assert outcomes.expected_missed.sum(axis=0) == pytest.approx(label_numbers(outcomes).missed)
    assert outcomes.expected_wrong.sum(axis=0) == pytest.approx(label_numbers(outcomes).wrong)
    picture = frequency_picture(replace(label_numbers(outcomes), positive=np.array([0.2, 30.5])), ["a", "b"])
    assert [word for _, word in picture.x_ticks] == ["1", "10"]
    low = frequency_picture(replace(label_numbers(outcomes), positive=np.array([0.2, 0.7])), ["a", "b"])
    assert low.x_ticks == []


def test_the_weakest_come_first_and_frequent_ones_before_rare_ones():
    truth = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0]])
    predicted = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    labels = lw.LabelMatrix.from_any(truth, list("abcd"))
    outcomes = Outcomes(
        labels, sp.csr_array(predicted), predicted - 0.5, np.arange(4), np.arange(4), "score", np.zeros(4)
    )
    numbers = label_numbers(outcomes)
    assert weakest_labels(numbers, 10) == [0, 1]  # c has no row here, d is right
    assert weakest_labels(numbers, 1) == [0]
    first, second = weak_labels(outcomes, numbers, [0, 1], False)
    assert first.reasons[1] == "It is never predicted: its highest score is −0.50; it is predicted above 0."
    assert second.reasons[0].startswith("Only 1 row has it here")
    assert second.companions.instead == [("c", 1)]


def test_a_threshold_is_blamed_where_scores_rank_well():
    true = np.repeat([1, 0], [20, 80])
    scores = np.where(true == 1, -1.0, -1.6)[:, None]  # positives on top, all below 0
    labels = lw.LabelMatrix.from_any(true[:, None], ["a"])
    outcomes = Outcomes(
        labels,
        sp.csr_array((100, 1), dtype=np.int8),
        scores,
        np.arange(100),
        np.array([0]),
        "score",
        np.zeros(1),
    )
    (found,) = weak_labels(outcomes, label_numbers(outcomes), [0], False)
    assert "Its scores rank rows well (AUC 1.00)" in found.reasons[-1]
    assert found.reasons[-1].endswith("with the threshold −1.30, not 0, its F1 here would be 1.00.")


def test_neighbors_are_those_of_the_weights(data):
    X, Y = data
    model = lw.LowRankClassifier(rank=3).fit(X, Y)
    weights = model.feature_factors_ @ model.label_factors_.T
    weights /= np.linalg.norm(weights, axis=0)
    cosines = weights.T @ weights
    for tie in LabelStructure(model).neighbors(2):
        assert tie.first == "tag 2"
        assert tie.value == pytest.approx(cosines[2, int(tie.second[4:])], abs=1e-6)
    np.fill_diagonal(cosines, -1)
    assert LabelStructure(model).neighbors(2)[0].value == pytest.approx(cosines[2].max(), abs=1e-6)


def test_ties_are_the_strongest_correlations(data):
    X, Y = data
    prior = lw.LabelCovariance.from_labels(Y).shrink(0.1)
    structure = LabelStructure(lw.MaxMarginClassifier(label_covariance=prior).fit(X, Y))
    ties, correlations = structure.ties(), prior.correlations()
    upper = correlations[np.triu_indices(7, 1)]
    assert ties[0].value == pytest.approx(upper.max())
    assert ties[-1].value == pytest.approx(upper.min())
    assert LabelStructure(lw.MaxMarginClassifier().fit(X, Y)).ties() == []


def test_pictures_of_many_labels(data):
    rng = np.random.default_rng(0)
    prior = lw.LabelCovariance.low_rank(rng.normal(size=(90, 4)), np.ones(90))
    picture = correlation_picture(prior.correlations(), [f"l{k}" for k in range(90)])
    assert len(picture.names) == 30
    assert picture.n_labels == 90
    assert all(abs(square.value) <= 1 for square in picture.squares)
    _, outcomes = drawn(0, 200, 90, 0.0)
    found = frequency_picture(label_numbers(outcomes), outcomes.names)
    assert len(found.points) == 90
    assert all(
        found.left <= point.x <= found.right and found.top <= point.y <= found.bottom
        for point in found.points
    )
    assert len(found.median) == 10
    assert frequency_picture(label_numbers(drawn(0, 20, 1)[1]), ["a"]) is None


DATA = make_text_like(260, 300, 90)
WHOLE = {"auc_label", "auc_example", "ranking_loss", "coverage_error", "label_ranking_average_precision"}
MODELS = {
    "tree": lw.LabelTreeClassifier(leaf_size=10, branching=4),
    "trees": lw.LabelTreeClassifier(leaf_size=10, branching=4, n_trees=2, beam=100),
    "max-margin": lw.MaxMarginClassifier(prune="certified"),
}


@pytest.fixture(params=MODELS, scope="module")
def fitted(request):
    return MODELS[request.param].fit(DATA.X[:200], DATA.Y[:200])


@pytest.fixture
def searching(monkeypatch):
    def begin():
        monkeypatch.setattr(reported_rows, "MOST_SCORES", 0)
        monkeypatch.setattr(reported_rows, "_FEW_LABELS", 0)

    return begin


def _measured(model, y=DATA.Y[200:]):
    rows = read_rows(model, DATA.X[200:], None)
    return measure(rows, y, "error", lambda words: None)


def test_what_a_search_tells_is_what_all_scores_tell(fitted, searching, monkeypatch):
    """Two blocks of rows, and labels that are partly unobserved."""
    table = DATA.Y[200:].to_dense()
    table[np.random.default_rng(0).random(table.shape) < 0.2] = np.nan
    whole = _measured(fitted, table)
    searching()
    found = _measured(fitted, table)
    assert set(whole.metrics) - set(found.metrics) == WHOLE
    assert found.metrics == pytest.approx({name: whole.metrics[name] for name in found.metrics}, nan_ok=True)
    assert "Only the 64 best labels of each row were scored;" in found.notes[-1]
    share = (found.outcomes.scores.toarray() != 0)[whole.outcomes.truth.positives.toarray() > 0].mean()
    assert f"they contain {share:.1%} of" in found.notes[-1]
    assert np.isnan(label_numbers(found.outcomes).auc).all()
    usual = baseline_metrics(whole, None)
    assert usual["precision@5"] == baseline_metrics(found, None)["precision@5"]
    monkeypatch.setattr(yardstick, "_DRAWS", 6)
    assert intervals(found)["micro_f1"] == pytest.approx(intervals(whole)["micro_f1"])


def test_labels_that_are_not_in_the_data_do_not_count(fitted, searching):
    names = fitted.label_names_
    part = DATA.Y[200:].select_labels(np.arange(0, 90, 2))
    table = known_labels(part.to_dense(), names[::2].tolist(), "error")[0]
    whole = _measured(fitted, table)
    searching()
    found = _measured(fitted, table)
    assert found.metrics == pytest.approx({name: whole.metrics[name] for name in found.metrics}, nan_ok=True)


def test_labels_that_no_search_finds_have_no_highest_score():
    truth = lw.LabelMatrix.from_any([[1, 1, 0], [0, np.nan, 1]], ["a", "b", "c"])
    scores = sp.csr_array([[-2.0, 0, -1], [-3, -0.5, 0]])
    outcomes = Outcomes(truth, sp.csr_array((2, 3), dtype=np.int8), scores, np.arange(2), np.arange(3))
    a, b, c = weak_labels(outcomes, label_numbers(outcomes), [0, 1, 2], False)
    assert "It is never predicted: its highest score is −2.00." in a.reasons
    assert "It is never predicted, and never among the 64 best labels of a row with known value." in b.reasons
    assert "It is never predicted: its highest score is −1.00." in c.reasons
    whole = replace(outcomes, scores=scores.toarray())
    assert "its highest score is 0." in weak_labels(whole, label_numbers(whole), [1], False)[0].reasons[1]


def test_the_page_shows_rows_and_labels(fitted, searching, report):
    searching()
    page = report(fitted, DATA.X[200:], DATA.Y[200:])
    assert "labels of each row were scored" in page.text
