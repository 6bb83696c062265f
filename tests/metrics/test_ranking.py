"""Metrics of whole rankings, areas under curves, and average precision: scikit-learn's values, and loops."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sklearn_metrics
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score as theirs

from labelweave import LabelMatrix, metrics

LEVELS = [-np.inf, -1.0, 0.0, 0.5, 2.0]


@st.composite
def rankings(draw, missing=False, levels=LEVELS):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 7)))
    Y_true = draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0])))
    scores = draw(hnp.arrays(float, shape, elements=st.sampled_from(levels)))
    if missing:
        mask = draw(hnp.arrays(bool, shape))
        mask[0, draw(st.integers(0, shape[1] - 1))] = False
        Y_true[mask] = np.nan
    return Y_true, scores


def as_sparse(scores):
    rows, labels = np.nonzero(scores > -np.inf)
    return sp.coo_array((scores[rows, labels], (rows, labels)), shape=scores.shape)


def slow_area(y, scores):
    """All pairs of one line of observed entries."""
    pairs = [(a, b) for a in scores[y == 1] for b in scores[y == 0]]
    return np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]) if pairs else np.nan


def slow_loss(y, scores):
    pairs = [(a, b) for a in scores[y == 1] for b in scores[y == 0]]
    return np.mean([a <= b for a, b in pairs]) if pairs else 0.0


def slow_coverage(y, scores):
    return max(((scores >= a).sum() for a in scores[y == 1]), default=0)


def slow_average_precision(y, scores):
    precisions = [(scores[y == 1] >= a).sum() / (scores >= a).sum() for a in scores[y == 1]]
    return np.mean(precisions) if precisions else 1.0


def slow_mean(statistic, Y_true, scores, weights):
    """Each row with only its observed labels; rows with an undefined statistic are omitted."""
    values, kept = [], []
    for y, row, weight in zip(Y_true, scores, weights, strict=True):
        seen = ~np.isnan(y)
        value = statistic(y[seen], row[seen]) if seen.any() else np.nan
        if not np.isnan(value):
            values.append(value)
            kept.append(weight)
    return np.average(values, weights=kept) if values else np.nan


ROW_METRICS = [
    (metrics.ranking_loss, sklearn_metrics.label_ranking_loss, slow_loss),
    (metrics.coverage_error, sklearn_metrics.coverage_error, slow_coverage),
    (
        metrics.label_ranking_average_precision,
        sklearn_metrics.label_ranking_average_precision_score,
        slow_average_precision,
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "slow"), ROW_METRICS)
@given(case=rankings(levels=LEVELS[1:]), weighted=st.booleans())
def test_equals_scikit_learn_with_ties(ours, theirs, slow, case, weighted):
    Y_true, scores = case
    weights = np.arange(1.0, len(scores) + 1) if weighted else None
    expected = theirs(Y_true, scores, sample_weight=weights)
    assert ours(Y_true, scores, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs", "slow"), ROW_METRICS)
@given(case=rankings(missing=True))
def test_missing_entries_and_sparse_scores(ours, theirs, slow, case):
    Y_true, scores = case
    weights = np.arange(1.0, len(scores) + 1)
    expected = slow_mean(slow, Y_true, scores, weights)
    for given_scores in (scores, as_sparse(scores)):
        assert ours(Y_true, given_scores, sample_weight=weights) == pytest.approx(expected)


@given(case=rankings(levels=LEVELS[1:]))
def test_area_equals_scikit_learn(case):
    Y_true, scores = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        areas = sklearn_metrics.roc_auc_score(Y_true, scores, average=None)
    defined = areas[~np.isnan(areas)]
    expected = defined.mean() if len(defined) else np.nan
    assert metrics.average_auc(Y_true, scores) == pytest.approx(expected, nan_ok=True)


@settings(max_examples=200)
@given(case=rankings(missing=True))
def test_area_skips_missing_entries_and_reads_sparse_scores(case):
    Y_true, scores = case
    for average, Y_lines, score_lines in (("example", Y_true, scores), ("label", Y_true.T, scores.T)):
        expected = slow_mean(slow_area, Y_lines, score_lines, np.ones(len(Y_lines)))
        for given_scores in (scores, as_sparse(scores)):
            area = metrics.average_auc(Y_true, given_scores, average)
            assert area == pytest.approx(expected, nan_ok=True)


def test_area_of_many_rows_equals_scikit_learn():
    generator = np.random.default_rng(0)
    Y_true = generator.random((3000, 20)) < 0.1
    scores = np.round(Y_true + generator.normal(size=Y_true.shape), 1)
    for dtype in (np.float64, np.float32):
        area = metrics.average_auc(LabelMatrix.from_any(Y_true), scores.astype(dtype))
        assert area == pytest.approx(sklearn_metrics.roc_auc_score(Y_true, scores, average="macro"))


def test_whole_number_scores_and_lists_are_read():
    assert metrics.average_auc([[1, 0, 0]], [[3, 2, 1]], "example") == 1
    assert metrics.ranking_loss([[1, 0, 0]], sp.csr_matrix([[1, 2, 3]])) == 1


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_whole_numbers_that_would_be_tied_are_refused(make):
    assert metrics.ranking_loss([[1, 0]], make([[2**53 - 1, 2**53 - 2]])) == 0
    with pytest.raises(ValueError, match=r"integers of 2\^53 or more"):
        metrics.ranking_loss([[1, 0]], make([[2**53 + 1, 2**53]]))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 999),
    share=st.sampled_from([0.0, 0.4]),
    are_ties=st.booleans(),
    weighted=st.booleans(),
)
def test_areas_are_those_of_scikit_learn_on_observed_entries(seed, share, are_ties, weighted):
    rng = np.random.default_rng(seed)
    Y = (rng.random((12, 5)) < 0.4).astype(float)
    Y[0], Y[1] = 1, 0
    scores = rng.integers(0, 4, Y.shape) / 4 if are_ties else rng.normal(size=Y.shape)
    Y[2:][rng.random((10, 5)) < share] = np.nan
    weights = rng.uniform(0.5, 2, 12) if weighted else None
    spread = np.ones(Y.shape) if weights is None else np.repeat(weights[:, None], 5, axis=1)
    seen = ~np.isnan(Y)
    found = metrics.average_precision_score(Y, scores, sample_weight=weights)
    assert found == pytest.approx(theirs(Y[seen], scores[seen], sample_weight=spread[seen]))
    each = metrics.average_precision_score(Y, scores, None, sample_weight=weights)
    expected = [
        theirs(y[s], z[s], sample_weight=w[s])
        for y, z, w, s in zip(Y.T, scores.T, spread.T, seen.T, strict=True)
    ]
    np.testing.assert_allclose(each, expected)
    mean = metrics.average_precision_score(Y, scores, "macro", sample_weight=weights)
    assert mean == pytest.approx(np.mean(expected))
    counts = np.nansum(Y * spread, axis=0)
    mean = metrics.average_precision_score(Y, scores, "weighted", sample_weight=weights)
    assert mean == pytest.approx(np.average(expected, weights=counts))


def test_labels_without_positives_are_omitted_of_means():
    Y, scores = [[1, 0, np.nan], [0, 0, 0]], [[2.0, 1.0, 3.0], [1.0, 2.0, 0.0]]
    assert metrics.average_precision_score(Y, scores, "macro") == 1.0
    assert np.isnan(metrics.average_precision_score(Y, scores, None)).tolist() == [False, True, True]
    assert np.isnan(metrics.average_precision_score([[0, 0]], [[1.0, 2.0]], "macro"))
    assert np.isnan(metrics.average_precision_score([[0, 0]], [[1.0, 2.0]]))


def test_by_hand():
    # from the top: hit, miss, hit, hit
    found = metrics.average_precision_score([[1, 0], [1, 1]], [[0.9, 0.8], [0.7, 0.1]])
    assert found == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)


def test_hierarchical_precision_and_recall_are_those_of_closed_sets():
    from labelweave.labels import Taxonomy

    tree = Taxonomy.from_nested({"a": ["b", "c"]})
    Y = tree.with_ancestors(LabelMatrix.from_any([[0, 1, 0], [0, 0, 1]], tree.nodes))
    predicted = tree.with_ancestors(LabelMatrix.from_any([[0, 0, 1], [1, 0, 0]], tree.nodes))
    assert metrics.precision_score(Y, predicted.positives, average="micro") == pytest.approx(2 / 3)
    assert metrics.recall_score(Y, predicted.positives, average="micro") == pytest.approx(2 / 4)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("average", ["micro", "weighted", None])
def test_sparse_scores_are_not_written_out(monkeypatch, missing, average):
    rng = np.random.default_rng(1)
    Y = np.where(rng.random((30, 8)) < missing, np.nan, rng.random((30, 8)) < 0.4)
    scores = np.where(rng.random(Y.shape) < 0.4, rng.integers(-2, 3, Y.shape) / 2, -np.inf)
    rows, labels = np.nonzero(scores > -np.inf)
    stored = sp.csr_array((scores[rows, labels], (rows, labels)), shape=scores.shape)
    weights, truth = rng.uniform(0.5, 2, 30), LabelMatrix.from_any(Y)
    expected = metrics.average_precision_score(Y, scores, average, sample_weight=weights)
    monkeypatch.setattr(LabelMatrix, "to_signs", None)
    found = metrics.average_precision_score(truth, stored, average, sample_weight=weights)
    np.testing.assert_allclose(found, expected)
