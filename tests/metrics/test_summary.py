"""The table of metrics: its keys, and that its values are those of the single functions."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import metrics
from refused import refusals

SET_KEYS = {"hamming_loss", "subset_accuracy", "micro_f1", "macro_f1", "example_f1"}

test_what_makes_no_sense_is_refused = refusals(__file__)


@pytest.fixture
def case():
    generator = np.random.default_rng(3)
    Y_true = generator.choice([0.0, 1.0, np.nan], p=[0.6, 0.3, 0.1], size=(30, 6))
    return Y_true, generator.normal(size=Y_true.shape)


def test_predictions_alone_give_the_set_metrics(case):
    Y_true, scores = case
    table = metrics.score_table(Y_true, Y_pred=scores > 1)
    assert set(table) == SET_KEYS
    assert table["example_f1"] == metrics.f1_score(Y_true, scores > 1, average="example")


def test_scores_give_every_metric(case):
    Y_true, scores = case
    expected = {
        "hamming_loss": metrics.hamming_loss(Y_true, scores > 0),
        "subset_accuracy": metrics.subset_accuracy(Y_true, scores > 0),
        "micro_f1": metrics.f1_score(Y_true, scores > 0, average="micro"),
        "macro_f1": metrics.f1_score(Y_true, scores > 0, average="macro"),
        "example_f1": metrics.f1_score(Y_true, scores > 0, average="example"),
        "auc_label": metrics.average_auc(Y_true, scores, "label"),
        "auc_example": metrics.average_auc(Y_true, scores, "example"),
        "ranking_loss": metrics.ranking_loss(Y_true, scores),
        "coverage_error": metrics.coverage_error(Y_true, scores),
        "label_ranking_average_precision": metrics.label_ranking_average_precision(Y_true, scores),
    }
    for k in (1, 3, 5):
        expected[f"precision@{k}"] = metrics.precision_at_k(Y_true, scores, k)
        expected[f"ndcg@{k}"] = metrics.ndcg_at_k(Y_true, scores, k)
    table = metrics.score_table(Y_true, scores)
    assert table == pytest.approx(expected)
    assert all(type(value) is float for value in table.values())
    assert metrics.score_table(Y_true, sp.csr_array(scores)) == pytest.approx(expected)


def test_given_predictions_replace_positive_scores(case):
    Y_true, scores = case
    table = metrics.score_table(Y_true, scores, Y_pred=np.ones(scores.shape))
    assert table["hamming_loss"] == metrics.hamming_loss(Y_true, np.ones(scores.shape))


def test_k_above_the_number_of_labels_is_omitted():
    table = metrics.score_table([[1, 0], [0, 1]], [[2.0, 1.0], [2.0, 1.0]])
    assert [key for key in table if "@" in key] == ["precision@1", "ndcg@1"]
    assert not any("@" in key for key in metrics.score_table([[1, 0]], [[2.0, 1.0]], k=()))


def test_undefined_metrics_are_nan():
    table = metrics.score_table([[1, 1]], [[2.0, 1.0]])
    assert np.isnan(table["auc_label"])
    assert np.isnan(table["auc_example"])
    assert table["hamming_loss"] == 0
