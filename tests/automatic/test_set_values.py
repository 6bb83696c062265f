"""Scores of label sets are those of the metrics, and their standard errors those of redrawn rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import f1_score, jaccard_score

from labelweave import LabelMatrix, metrics
from labelweave.decisions.automatic.label_sets import value_of_sets

NAMES = ("micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard", "subset_accuracy")


def a_case(n=200, missing=0.0, seed=0):
    random = np.random.default_rng(seed)
    truth = (random.random((n, 5)) < [0.1, 0.3, 0.5, 0.2, 0.4]).astype(float)
    sets = np.where(random.random((n, 5)) < 0.25, 1 - truth, truth).astype(np.int8)
    truth[random.random((n, 5)) < missing] = np.nan
    return truth, sets, random.integers(1, 4, n).astype(float)


def of_scikit_learn(name, truth, sets, weights):
    found = {
        "hamming_loss": lambda: metrics.hamming_loss(truth, sets, sample_weight=weights),
        "subset_accuracy": lambda: metrics.subset_accuracy(truth, sets, sample_weight=weights),
        "jaccard": lambda: jaccard_score(
            truth, sets, average="samples", sample_weight=weights, zero_division=1.0
        ),
    }
    average = {"micro_f1": "micro", "macro_f1": "macro", "example_f1": "samples"}.get(name)
    return found.get(
        name, lambda: f1_score(truth, sets, average=average, sample_weight=weights, zero_division=0)
    )()


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_metrics(name):
    truth, sets, weights = a_case()
    for w in (None, weights):
        found = value_of_sets(LabelMatrix.from_any(truth), sets, name, w)[0]
        assert_allclose(found, of_scikit_learn(name, truth, sets, w), rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 3])
def test_the_accuracy_of_classes_that_are_probabilities_is_expected(columns):
    random = np.random.default_rng(1)
    shares = random.dirichlet(np.ones(max(2, columns)), 40)[:, :columns]
    shares[:4] = np.nan  # rows with unknown class
    sets, weights = np.zeros(shares.shape, bool), random.uniform(0.5, 2.0, 40)
    chosen = random.integers(0, max(2, columns), 40)
    if columns == 1:
        sets[:, 0], hits = chosen == 1, np.where(chosen == 1, shares[:, 0], 1 - shares[:, 0])
    else:
        sets[np.arange(40), chosen], hits = True, shares[np.arange(40), chosen]
    found = value_of_sets(LabelMatrix.from_probabilities(shares), sets, "accuracy", weights)
    assert_allclose(found[0], np.average(hits[4:], weights=weights[4:]), rtol=1e-12)
    assert found[1] > 0


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_observed_counts_for_nothing(name):
    truth, sets, weights = a_case(missing=0.3)
    other = np.where(np.isnan(truth), 1 - sets, sets)
    labels = LabelMatrix.from_any(truth)
    assert value_of_sets(labels, sets, name, weights) == value_of_sets(labels, other, name, weights)


@pytest.mark.parametrize("name", NAMES)
def test_the_error_is_that_of_rows_drawn_anew(name):
    truth, sets, _ = a_case(seed=1)
    labels, random = LabelMatrix.from_any(truth), np.random.default_rng(2)
    values = []
    for _ in range(300):
        counts = np.bincount(random.integers(len(sets), size=len(sets)), minlength=len(sets))
        kept = np.flatnonzero(counts)
        values.append(value_of_sets(labels[kept], sets[kept], name, counts[kept].astype(float))[0])
    error = value_of_sets(labels, sets, name)[1]
    assert_allclose(error, np.std(values, ddof=1), rtol=0.12)


def test_many_rows_are_measured_in_parts(monkeypatch):
    truth, sets, weights = a_case(n=50)
    labels = LabelMatrix.from_any(truth)
    whole = [value_of_sets(labels, sets, name, weights) for name in NAMES]
    monkeypatch.setattr("labelweave.decisions.automatic.label_sets._ENTRIES_AT_ONCE", 35)
    assert_allclose([value_of_sets(labels, sets, name, weights) for name in NAMES], whole, rtol=1e-12)


def test_nothing_predicted_and_nothing_there():
    labels, none = LabelMatrix.from_any(np.zeros((3, 2))), np.zeros((3, 2))
    assert [value_of_sets(labels, none, name) for name in ("micro_f1", "macro_f1")] == [(0.0, 0.0)] * 2
    assert np.isnan(value_of_sets(labels[:1], none[:1], "micro_f1")[1])
