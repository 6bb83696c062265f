"""Metrics of the top k against a plain sort, scikit-learn's gain, and the Repository's formula."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import ndcg_score

from labelweave import LabelMatrix, metrics
from labelweave.metrics import _inputs


@st.composite
def rankings(draw, missing=True):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 7)))
    Y_true = draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0])))
    scores = draw(hnp.arrays(float, shape, elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0])))
    if missing:
        mask = draw(hnp.arrays(bool, shape))
        mask[0, draw(st.integers(0, shape[1] - 1))] = False
        Y_true[mask] = np.nan
    return Y_true, scores, draw(st.integers(1, shape[1]))


def as_sparse(scores):
    """Store what is offered, explicit zeros among it, in no particular order."""
    rows, labels = np.nonzero(scores > -np.inf)
    rows, labels = rows[::-1], labels[::-1]
    indptr = np.searchsorted(np.sort(rows), np.arange(len(scores) + 1))
    order = np.argsort(rows, kind="stable")
    values = scores[rows, labels][order]
    return sp.csr_array((values, labels[order], indptr), shape=scores.shape)


def slow_top(y, scores, k):
    """The best k observed labels of one row that are offered."""
    labels = [j for j in range(len(y)) if not np.isnan(y[j]) and scores[j] > -np.inf]
    return sorted(labels, key=lambda j: (-scores[j], j))[:k]


def slow_precision(Y_true, scores, k):
    values = []
    for y, row in zip(Y_true, scores, strict=True):
        n_observed = int((~np.isnan(y)).sum())
        if n_observed:
            values.append(sum(y[j] for j in slow_top(y, row, k)) / min(k, n_observed))
    return np.mean(values)


def slow_ndcg(Y_true, scores, k):
    values = []
    for y, row in zip(Y_true, scores, strict=True):
        if np.isnan(y).all():
            continue
        gain = sum(y[j] / math.log2(i + 2) for i, j in enumerate(slow_top(y, row, k)))
        best = sum(1 / math.log2(i + 2) for i in range(min(k, int(np.nansum(y)))))
        values.append(gain / best if best else 0.0)
    return np.mean(values)


def slow_propensity_scored(Y_true, scores, propensity, k):
    gain = best = 0.0
    for y, row in zip(Y_true, scores, strict=True):
        gain += sum(y[j] / propensity[j] for j in slow_top(y, row, k))
        best += sum(sorted((1 / propensity[j] for j in np.flatnonzero(y == 1)), reverse=True)[:k])
    return gain / best if best else np.nan


@settings(max_examples=200)
@given(case=rankings())
def test_equals_the_plain_sort_dense_and_sparse(case):
    Y_true, scores, k = case
    propensity = np.linspace(0.2, 1, Y_true.shape[1])
    for given_scores in (scores, as_sparse(scores)):
        precision = metrics.precision_at_k(Y_true, given_scores, k)
        assert precision == pytest.approx(slow_precision(Y_true, scores, k))
        assert metrics.ndcg_at_k(Y_true, given_scores, k) == pytest.approx(slow_ndcg(Y_true, scores, k))
        assert metrics.propensity_scored_precision_at_k(Y_true, given_scores, propensity, k) == pytest.approx(
            slow_propensity_scored(Y_true, scores, propensity, k), nan_ok=True
        )


@given(case=rankings(missing=False))
def test_discounted_gain_equals_scikit_learn(case):
    Y_true, scores, k = case
    # scikit-learn averages over ties; a strict ranking that breaks them by index is comparable
    scores = np.maximum(scores, -2)
    strict = scores - 1e-3 * np.arange(scores.shape[1])
    weights = np.arange(1.0, len(scores) + 1)
    expected = ndcg_score(Y_true, strict, k=k, sample_weight=weights)
    assert metrics.ndcg_at_k(Y_true, scores, k, sample_weight=weights) == pytest.approx(expected)


def test_ties_go_to_the_lower_label_index():
    scores = np.zeros((1, 4))
    assert metrics.precision_at_k([[1, 1, 0, 0]], scores, 2) == 1
    assert metrics.precision_at_k([[0, 0, 1, 1]], scores, 2) == 0


def test_unobserved_labels_leave_the_ranking():
    scores = [[5.0, 4.0, 3.0, 2.0]]
    assert metrics.precision_at_k([[np.nan, 1, 1, 0]], scores, 2) == 1
    assert metrics.precision_at_k([[np.nan, 1, np.nan, np.nan]], scores, 2) == 1


def test_places_without_an_offered_label_are_misses():
    scores = sp.csr_array(([0.0], ([0], [1])), shape=(1, 4))
    assert metrics.precision_at_k([[1, 1, 1, 1]], scores, 4) == 0.25


def test_repeated_entries_of_sparse_scores_are_added_up_in_a_copy():
    scores = sp.csr_array(([1.0, 1.5, 1.0], [0, 1, 0], [0, 3]), shape=(1, 2))
    assert metrics.precision_at_k([[1, 0]], scores, 1) == 1
    assert metrics.average_auc([[1, 0]], scores, "example") == 1
    assert scores.nnz == 3


def test_many_blocks_give_the_same_as_one(monkeypatch):
    generator = np.random.default_rng(0)
    Y_true = generator.choice([0.0, 1.0, np.nan], size=(50, 9))
    scores = generator.integers(0, 4, size=(50, 9)).astype(np.float32)
    calls = [
        lambda s: metrics.precision_at_k(Y_true, s, 3),
        lambda s: metrics.average_auc(Y_true, s),
        lambda s: metrics.ranking_loss(Y_true, s),
    ]
    expected = [call(scores) for call in calls]
    monkeypatch.setattr(_inputs, "BLOCK_ENTRIES", 20)
    for given_scores in (scores, sp.csr_array(scores + 1)):
        assert [call(given_scores) for call in calls] == pytest.approx(expected)


def test_propensities_follow_the_formula():
    Y_train = np.array([[1, 0, np.nan], [1, 0, 1], [0, 0, 1], [1, 0, 0], [np.nan] * 3])
    C = (math.log(4) - 1) * 2.5**0.55
    expected = [1 / (1 + C * math.exp(-0.55 * math.log(count + 1.5))) for count in (3, 0, 2)]
    np.testing.assert_allclose(metrics.propensities(Y_train), expected)
    np.testing.assert_array_equal(metrics.propensities([[1, 0]]), [1, 1])


def test_perfect_ranking_has_propensity_scored_precision_one():
    Y_true = sp.csr_array(np.random.default_rng(1).random((40, 30)) < 0.2)
    propensity = metrics.propensities(Y_true)
    scores = Y_true.toarray() / propensity
    assert metrics.propensity_scored_precision_at_k(Y_true, scores, propensity, 3) == pytest.approx(1)


def test_keys_beyond_32_bits_are_looked_up():
    shape = (70_000, 70_000)
    diagonal = sp.csr_array((np.ones(70_000), (np.arange(70_000), np.arange(70_000))), shape=shape)
    Y_true = LabelMatrix(diagonal)
    assert metrics.precision_at_k(Y_true, diagonal, 1) == 1
    assert metrics.average_auc(Y_true, diagonal, "example") == 1


def test_the_smallest_propensities_are_ratios_too():
    found = metrics.propensity_scored_precision_at_k([[1, 0], [0, 1]], [[1, 0], [1, 0]], [1e-310, 0.5], 1)
    assert found == pytest.approx(1.0)


def test_propensities_are_matched_by_name():
    Y = pd.DataFrame([[1, 0, 1], [0, 1, 1]], columns=["a", "b", "c"])
    scores, propensity = [[3, 2, 1], [1, 3, 2]], pd.Series({"c": 0.9, "a": 0.1, "b": 0.5})
    expected = metrics.propensity_scored_precision_at_k(Y, scores, [0.1, 0.5, 0.9], 1)
    assert metrics.propensity_scored_precision_at_k(Y, scores, propensity, 1) == expected
    with pytest.raises(ValueError, match="propensity has 'd', which is not a label"):
        metrics.propensity_scored_precision_at_k(Y, scores, propensity.rename({"a": "d"}), 1)
