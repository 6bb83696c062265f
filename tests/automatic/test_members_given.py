"""Members of users' own on their own: what they are fitted to, and what their answers are read as."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from labelweave import MaxMarginClassifier, TunedThresholdClassifier
from labelweave.decisions.automatic.given import _fitted, _taken_off, estimator_fit, responses
from labelweave.decisions.automatic.table import TrainingTable
from labelweave.features import FeatureMatrix

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(30, 2))


def _table(targets, weights=None):
    weights = np.ones(30) if weights is None else weights
    return TrainingTable(FeatureMatrix(X), targets, weights, np.arange(30) % 3, n_trees=3, pivots=5, seed=7)


def _answer(found, **fitted):
    return SimpleNamespace(predict_proba=lambda data: found, **fitted)


def test_clones_get_seeds_and_weights_where_they_take_them():
    targets, weights = (X > 0).astype(float), RANDOM.uniform(0.5, 2.0, 30)
    given = DecisionTreeClassifier(max_depth=2)
    found = _fitted(given, _table(targets, weights))
    assert found.random_state == 7
    assert given.random_state is None
    assert found.tree_.weighted_n_node_samples[0] == pytest.approx(weights.sum())
    assert _fitted(DecisionTreeClassifier(random_state=3), _table(targets)).random_state == 3
    with pytest.raises(ValueError, match="The member KNeighborsClassifier takes no sample_weight"):
        _fitted(KNeighborsClassifier(), _table(targets, weights))
    assert _fitted(KNeighborsClassifier(), _table(targets)).n_samples_fit_ == 30


def test_one_label_is_a_column_to_models_of_labels_and_a_list_to_others():
    targets = (X[:, [0]] > 0).astype(float)
    assert list(_fitted(LogisticRegression(), _table(targets)).classes_) == [0, 1]
    assert list(_fitted(MaxMarginClassifier(), _table(targets)).classes_) == [0]
    targets[0] = np.nan
    assert _fitted(MaxMarginClassifier(), _table(targets)).coef_.shape == (1, 2)


def test_decision_values_of_all_fits_are_on_one_scale():
    Y = (X > 0.5).astype(int)
    plain = MaxMarginClassifier(tol=1e-10).fit(X, Y)
    tuned = MaxMarginClassifier(threshold="f1", tol=1e-10).fit(X, Y)
    scores = responses(plain, "decision_function", X, 2)
    assert (tuned.decision_function(X) != scores).all()
    for one in (tuned, TunedThresholdClassifier(plain, cv="prefit").fit(X, Y),
                TunedThresholdClassifier(tuned, cv="prefit", scope="top_k").fit(X, Y)):  # fmt: skip
        found = responses(one, "decision_function", X, 2) + _taken_off(one, "decision_function")
        np.testing.assert_allclose(found, scores, atol=1e-4)
    scorer, _ = estimator_fit(_table(Y.astype(float)), [MaxMarginClassifier(threshold="f1", tol=1e-10)], 0)
    np.testing.assert_allclose(scorer.scores(FeatureMatrix(X)), scores, atol=1e-4)


def test_answers_in_all_forms_are_one_column_a_label():
    Y = (X > 0).astype(int)
    several = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    expected = np.column_stack([part[:, 1] for part in several.predict_proba(X)])
    np.testing.assert_array_equal(responses(several, "predict_proba", X, 2), expected)
    whole = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    np.testing.assert_allclose(responses(whole, "predict_proba", X, 2), expected)
    one = LogisticRegression().fit(X, Y[:, 0])
    np.testing.assert_array_equal(responses(one, "predict_proba", X, 1), one.predict_proba(X)[:, [1]])
    np.testing.assert_array_equal(responses(one, "decision_function", X, 1)[:, 0], one.decision_function(X))
    stored = _answer(sp.csr_array(np.eye(2)))
    np.testing.assert_array_equal(responses(stored, "predict_proba", X, 2), np.eye(2))
    constant = _answer([np.ones((30, 1)), np.ones((30, 1))], classes_=[np.array([0]), np.array([1])])
    np.testing.assert_array_equal(responses(constant, "predict_proba", X, 2), np.tile([0.0, 1.0], (30, 1)))


@pytest.mark.parametrize("found", [np.ones((30, 3)), np.full((30, 2), np.nan)])
def test_answers_that_are_not_one_number_a_label_are_refused(found):
    with pytest.raises(ValueError, match=r"SimpleNamespace.predict_proba gave an array of shape \(30, \d\)"):
        responses(_answer(found), "predict_proba", X, 2)
