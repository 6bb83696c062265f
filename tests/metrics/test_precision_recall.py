import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score as theirs

from labelweave import metrics
from labelweave.labels import LabelMatrix


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


def test_labels_without_positives_are_left_out_of_means():
    Y, scores = [[1, 0, np.nan], [0, 0, 0]], [[2.0, 1.0, 3.0], [1.0, 2.0, 0.0]]
    assert metrics.average_precision_score(Y, scores, "macro") == 1.0
    assert np.isnan(metrics.average_precision_score(Y, scores, None)).tolist() == [False, True, True]
    assert np.isnan(metrics.average_precision_score([[0, 0]], [[1.0, 2.0]], "macro"))
    assert np.isnan(metrics.average_precision_score([[0, 0]], [[1.0, 2.0]]))


def test_by_hand():
    # from the top: hit, miss, hit, hit
    found = metrics.average_precision_score([[1, 0], [1, 1]], [[0.9, 0.8], [0.7, 0.1]])
    assert found == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)


def test_an_average_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="average"):
        metrics.average_precision_score([[1]], [[1.0]], "mean")


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
