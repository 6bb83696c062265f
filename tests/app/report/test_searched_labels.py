"""Large tables from models that search for labels: what the report and ``evaluate`` say of the best alone."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix, LabelTreeClassifier, MaxMarginClassifier
from labelweave.app.report import reported_rows, yardstick
from labelweave.app.report.label_numbers import label_numbers
from labelweave.app.report.measured import measure
from labelweave.app.report.reported_rows import Outcomes, read_rows
from labelweave.app.report.weak_labels import weak_labels
from labelweave.app.report.yardstick import baseline_metrics, intervals
from labelweave.datasets import make_text_like
from labelweave.metrics.known_labels import known_labels

DATA = make_text_like(260, 300, 90)
WHOLE = {"auc_label", "auc_example", "ranking_loss", "coverage_error", "label_ranking_average_precision"}
MODELS = {
    "tree": LabelTreeClassifier(leaf_size=10, branching=4),
    "trees": LabelTreeClassifier(leaf_size=10, branching=4, n_trees=2, beam=100),
    "max-margin": MaxMarginClassifier(prune="certified"),
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
    truth = LabelMatrix.from_any([[1, 1, 0], [0, np.nan, 1]], ["a", "b", "c"])
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
