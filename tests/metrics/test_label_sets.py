"""Set metrics: scikit-learn's values if all is observed, a plain count otherwise."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sklearn_metrics

from labelweave import LabelMatrix, metrics

SCORES = {
    "precision": (metrics.precision_score, sklearn_metrics.precision_score),
    "recall": (metrics.recall_score, sklearn_metrics.recall_score),
    "f1": (metrics.f1_score, sklearn_metrics.f1_score),
}


@st.composite
def label_sets(draw, missing=False):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 6)))
    Y_true = draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0])))
    Y_pred = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))
    if missing:
        mask = draw(hnp.arrays(bool, shape))
        mask[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] = False
        Y_true[mask] = np.nan
    weights = draw(hnp.arrays(float, shape[0], elements=st.floats(0.25, 4)))
    return Y_true, Y_pred, weights


def slow_score(name, y, p, weights, zero_division):
    """One line of entries, observed ones only."""
    seen = ~np.isnan(y)
    y, p, weights = y[seen], p[seen], weights[seen]
    if len(y) == 0:
        return np.nan
    hit = sum(w for a, b, w in zip(y, p, weights, strict=True) if a == 1 and b == 1)
    predicted = sum(w for b, w in zip(p, weights, strict=True) if b == 1)
    positive = sum(w for a, w in zip(y, weights, strict=True) if a == 1)
    top, bottom = {
        "precision": (hit, predicted),
        "recall": (hit, positive),
        "f1": (2 * hit, predicted + positive),
    }[name]
    return top / bottom if bottom else zero_division


def slow_mean(values, weights):
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if not np.isnan(v)]
    return sum(v * w for v, w in pairs) / sum(w for _, w in pairs) if pairs else np.nan


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("average", ["micro", "macro", "samples", None])
@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
@settings(max_examples=25)
@given(case=label_sets(), weighted=st.booleans())
def test_equals_scikit_learn(name, average, zero_division, case, weighted):
    Y_true, Y_pred, weights = case
    ours, theirs = SCORES[name]
    options = {"average": average, "zero_division": zero_division}
    options["sample_weight"] = weights if weighted else None
    np.testing.assert_allclose(
        ours(Y_true, Y_pred, **options), theirs(Y_true, Y_pred, **options), rtol=1e-12, atol=1e-12
    )


@given(case=label_sets(), weighted=st.booleans())
def test_losses_equal_scikit_learn(case, weighted):
    Y_true, Y_pred, weights = case
    weights = weights if weighted else None
    for ours, theirs in (
        (metrics.hamming_loss, sklearn_metrics.hamming_loss),
        (metrics.subset_accuracy, sklearn_metrics.accuracy_score),
    ):
        expected = theirs(Y_true, Y_pred, sample_weight=weights)
        assert ours(Y_true, Y_pred, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=50)
@given(case=label_sets(missing=True), zero_division=st.sampled_from([0.0, 1.0, np.nan]))
def test_missing_entries_are_in_no_count(name, case, zero_division):
    Y_true, Y_pred, weights = case
    n, n_labels = Y_true.shape
    score = SCORES[name][0]
    spread = np.broadcast_to(weights[:, None], Y_true.shape)
    ones = np.ones(n_labels)
    rows = [slow_score(name, Y_true[i], Y_pred[i], ones, zero_division) for i in range(n)]
    labels = [slow_score(name, Y_true[:, j], Y_pred[:, j], weights, zero_division) for j in range(n_labels)]
    expected = {
        "micro": slow_score(name, Y_true.ravel(), Y_pred.ravel(), spread.ravel(), zero_division),
        "macro": slow_mean(labels, ones),
        "example": slow_mean(rows, weights),
        None: labels,
    }
    for average, value in expected.items():
        options = {"average": average, "zero_division": zero_division, "sample_weight": weights}
        np.testing.assert_allclose(score(Y_true, Y_pred, **options), value, rtol=1e-12)


@given(case=label_sets(missing=True))
def test_losses_skip_missing_entries(case):
    Y_true, Y_pred, weights = case
    wrong = total = 0.0
    correct, kept = [], []
    for y, p, weight in zip(Y_true, Y_pred, weights, strict=True):
        seen = ~np.isnan(y)
        wrong += weight * (y[seen] != p[seen]).sum()
        total += weight * seen.sum()
        if seen.any():
            correct.append(float((y[seen] == p[seen]).all()))
            kept.append(weight)
    assert metrics.hamming_loss(Y_true, Y_pred, sample_weight=weights) == pytest.approx(wrong / total)
    expected = np.average(correct, weights=kept)
    assert metrics.subset_accuracy(Y_true, Y_pred, sample_weight=weights) == pytest.approx(expected)


@settings(max_examples=25)
@given(case=label_sets(missing=True))
def test_every_container_gives_the_same(case):
    Y_true, Y_pred, _ = case
    expected = metrics.f1_score(Y_true, Y_pred, average="macro")
    signs = np.where(np.isnan(Y_true), np.nan, 2 * Y_true - 1)
    for target in (LabelMatrix.from_any(Y_true), pd.DataFrame(Y_true), signs):
        for predicted in (sp.csr_array(Y_pred), sp.csc_matrix(Y_pred), pd.DataFrame(Y_pred), 2 * Y_pred - 1):
            assert metrics.f1_score(target, predicted, average="macro") == expected


def test_stored_zeros_of_a_sparse_prediction_are_negative():
    Y_pred = sp.csr_array(([1, 0], ([0, 0], [0, 1])), shape=(1, 3))
    assert metrics.hamming_loss([[1, 0, 0]], Y_pred) == 0
