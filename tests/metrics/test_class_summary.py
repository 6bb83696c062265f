"""The table of metrics of one class per row: its values are those of the single functions."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from labelweave import Taxonomy, metrics
from labelweave.postprocessing import least_expected_loss, most_probable

CLASSES = np.array(["poodle", "boxer", "cat", "oak", "elm"])
TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle", "boxer"], "cat": None}, "plant": ["oak", "elm"]})


@pytest.fixture
def case():
    generator = np.random.default_rng(4)
    table = generator.dirichlet(np.full(5, 0.4), size=60)
    truths = np.array([generator.choice(CLASSES, p=row) for row in table], dtype=object)
    truths[::9] = None
    return truths, table, generator.random(60)


def test_values_are_those_of_the_single_metrics(case):
    truths, table, weights = case
    seen = np.array([truth is not None for truth in truths])
    predicted = CLASSES[most_probable(table)]
    accuracy = accuracy_score(truths[seen].astype(str), predicted[seen], sample_weight=weights[seen])
    flat = {
        "accuracy": accuracy,
        "mean_reciprocal_rank": metrics.mean_reciprocal_rank(truths, table, CLASSES, sample_weight=weights),
        "log_loss": metrics.log_loss(truths, table, CLASSES, sample_weight=weights),
    }
    by_tree = {
        "taxonomic_loss": metrics.taxonomic_loss(truths, predicted, TREE, sample_weight=weights),
        "parent_accuracy": metrics.parent_accuracy(truths, predicted, TREE, sample_weight=weights),
    }
    assert metrics.class_summary(truths, table, CLASSES, sample_weight=weights) == pytest.approx(flat)
    summary = metrics.class_summary(truths, table, CLASSES, taxonomy=TREE, sample_weight=weights)
    assert summary == pytest.approx(flat | by_tree)
    assert all(type(value) is float for value in summary.values())


def test_given_predictions_replace_the_most_probable(case):
    truths, table, _ = case
    predicted = CLASSES[least_expected_loss(table, TREE.distances(CLASSES))]
    summary = metrics.class_summary(truths, table, CLASSES, taxonomy=TREE, y_pred=predicted)
    standard = metrics.class_summary(truths, table, CLASSES, taxonomy=TREE)
    assert summary["taxonomic_loss"] == metrics.taxonomic_loss(truths, predicted, TREE)
    always_oak = metrics.class_summary(truths, table, CLASSES, y_pred=["oak"] * len(truths))
    assert always_oak["accuracy"] == pytest.approx(np.mean(truths[truths != None] == "oak"))  # noqa: E711
    assert summary["log_loss"] == standard["log_loss"]


def test_inner_nodes_are_omitted_of_what_needs_a_class(case):
    truths, table, _ = case
    partial = truths.copy()
    partial[[1, 2, 3]] = ["dog", "animal", "plant"]
    without = partial.copy()
    without[[1, 2, 3]] = None
    summary = metrics.class_summary(partial, table, CLASSES, taxonomy=TREE)
    exact = metrics.class_summary(without, table, CLASSES, taxonomy=TREE)
    assert summary["accuracy"] == exact["accuracy"]
    assert summary["mean_reciprocal_rank"] == exact["mean_reciprocal_rank"]
    assert summary["log_loss"] == metrics.log_loss(partial, table, CLASSES, taxonomy=TREE)
    predicted = CLASSES[most_probable(table)]
    assert summary["taxonomic_loss"] == metrics.taxonomic_loss(partial, predicted, TREE)
    only_inner = metrics.class_summary(["animal"], table[:1], CLASSES, taxonomy=TREE)
    assert np.isnan(
        [only_inner[name] for name in ("accuracy", "mean_reciprocal_rank", "parent_accuracy")]
    ).all()
    assert only_inner["log_loss"] > 0


def test_column_numbers_and_a_tree_of_numbers():
    tree = Taxonomy.from_nested({"even": [0, 2], "odd": [1, 3]})
    summary = metrics.class_summary([0, 3], np.eye(4)[[2, 3]], taxonomy=tree)
    assert summary["accuracy"] == 0.5
    assert summary["taxonomic_loss"] == 0.5
    assert summary["parent_accuracy"] == 1.0
