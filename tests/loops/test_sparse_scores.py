import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.estimators import sparse_scorer
from labelweave.estimators.sparse_scorer import SparseScorer
from labelweave.features import FeatureMatrix


def _scorer(n_labels=11, d=7, seed=0):
    random = np.random.default_rng(seed)
    table = random.integers(-9, 9, (n_labels, d)) * (random.random((n_labels, d)) < 0.4)
    turned = sp.csc_array(table.astype(np.int16))
    scales = random.uniform(0.1, 2, n_labels)
    parts = turned.indptr.astype(np.int64), turned.indices.astype(np.uint16), turned.data
    scorer = SparseScorer.of_labels(random.normal(size=n_labels), *parts, scales)
    return scorer, table * scales[:, None]


@pytest.mark.parametrize(("at_once", "full_share"), [(4, 0.25), (4, 1.0), (2**15, 0.25), (2**15, 1.0)])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_scores_and_best_labels_are_those_of_dense_weights(at_once, full_share, is_sparse, monkeypatch):
    monkeypatch.setattr(sparse_scorer, "_FULL_SHARE", full_share)
    monkeypatch.setattr(sparse_scorer, "_LABELS_AT_ONCE", at_once)
    scorer, weights = _scorer()
    X = np.random.default_rng(1).normal(size=(300, 7)) * (np.random.default_rng(2).random((300, 7)) < 0.5)
    features = FeatureMatrix(sp.csr_array(X) if is_sparse else X)
    scores = scorer.scores(features)
    np.testing.assert_allclose(scores, X @ weights.T + scorer.intercept_, atol=1e-12)
    np.testing.assert_allclose(scorer.coef_.toarray(), weights)
    for k in (1, 3, 11):
        best, found = scorer.top(features, k)
        np.testing.assert_array_equal(best, np.argsort(-scores, axis=1, kind="stable")[:, :k])
        np.testing.assert_array_equal(found, np.take_along_axis(scores, best, axis=1))


def test_ties_go_to_the_lower_number_in_all_parts(monkeypatch):
    monkeypatch.setattr(sparse_scorer, "_LABELS_AT_ONCE", 2)
    parts = np.zeros(3, np.int64), np.empty(0, np.uint16), np.empty(0, np.int16), np.ones(5)
    best, scores = SparseScorer(np.array([1.0, 2, 2, 1, 2]), *parts).top(FeatureMatrix(np.eye(2)), 4)
    np.testing.assert_array_equal(best, [[1, 2, 4, 0]] * 2)
    np.testing.assert_array_equal(scores, [[2.0, 2, 2, 1]] * 2)


def test_places_of_weights_may_pass_31_bits(monkeypatch):
    # the weights of one feature stand at places beyond 2^31 of arrays that exist only as views of one number
    monkeypatch.setattr(sparse_scorer, "_FULL_SHARE", np.inf)
    n, far = 3, 2**31 + 5
    indptr = np.array([0, far, far + n], np.int64)
    gaps = np.lib.stride_tricks.as_strided(np.full(1, 1, np.uint8), (far + n,), (0,))
    values = np.lib.stride_tricks.as_strided(np.full(1, 4, np.int16), (far + n,), (0,))
    scorer = SparseScorer(np.ones(n), indptr, gaps, values, np.ones(n))
    row = FeatureMatrix(sp.csr_array(np.array([[0, 0.5]])))
    np.testing.assert_array_equal(scorer.scores(row), [[3.0, 3, 3]])
