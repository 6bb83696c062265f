"""Estimators of scikit-learn and of labelweave as members: in a model, and how their scores are read."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import labelweave as lw
from labelweave.decisions.automatic.given import _fitted, _taken_off, estimator_fit, named_members, responses
from labelweave.decisions.automatic.table import TrainingTable
from labelweave.features import FeatureMatrix
from labelweave.model_files import ModelFileError

GIVEN = [
    RandomForestClassifier(20, min_samples_leaf=5),
    OneVsRestClassifier(LogisticRegression()),
    OneVsRestClassifier(LinearSVC()),
    ClassifierChain(LogisticRegression()),
    MultiOutputClassifier(LogisticRegression()),
    KNeighborsClassifier(9),
    lw.MaxMarginClassifier(),
]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(160, 5))
    Y = (X[:, :3] + 0.7 * random.normal(size=(160, 3)) > [0, 0.8, -0.5]).astype(int)
    return X[:120], Y[:120], X[120:], Y[120:]


def auto(*members):
    return lw.AutoLabelClassifier(time_budget=1e-3, members=list(members))


@pytest.mark.parametrize("estimator", GIVEN, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_an_estimator_is_a_member(data, estimator, form):
    X, Y, X_test, Y_test = data
    model = auto("linear", estimator).fit(form(X), Y)
    assert [member["name"] for member in model.members_] == ["linear", type(estimator).__name__]
    assert model.members_[1]["oof_loss"] < 0.9
    assert model.oof_loss_ <= model.members_[0]["oof_loss"] + 1e-9
    assert model.predict_proba(form(X_test)).shape == Y_test.shape


def test_scores_are_those_of_clones_fitted_to_other_folds(data):
    X, Y, X_test, _ = data
    estimator = OneVsRestClassifier(LogisticRegression())
    model = auto(estimator).fit(X, Y)
    scaled = model._read_features(X, reset=False)
    whole = clone(estimator).fit(scaled.data, Y)
    test = model._read_features(X_test, reset=False)
    scorer = model.scorer_
    odds = logit(np.clip(whole.predict_proba(test.data), 1e-3, 0.999))
    plain = odds * scorer.slopes[0] + scorer.intercept_
    coupled = 0.0 if scorer.coupling is None else expit(plain) @ scorer.coupling + scorer.shift
    assert_allclose(scorer.scores(test), plain + coupled, atol=1e-12)
    assert not hasattr(estimator, "estimators_")


def test_forests_without_a_seed_give_the_same_bits(data):
    X, Y, X_test, _ = data
    one, other = (auto(RandomForestClassifier(10)).fit(X, Y).predict_proba(X_test) for _ in range(2))
    assert_array_equal(one, other)


def test_a_label_that_a_fold_lacks_and_a_single_label(data):
    X, Y, X_test, _ = data
    rare = np.column_stack([Y, np.zeros(len(Y), int)])
    rare[3, 3] = 1
    for member in (RandomForestClassifier(10), KNeighborsClassifier()):
        assert np.isfinite(auto("linear", member).fit(X, rare).predict_proba(X_test)).all()
        assert auto(member).fit(X, Y[:, :1]).predict(X_test).shape == (len(X_test), 1)
        assert len(auto(member).fit(X, Y[:, 0]).predict(X_test)) == len(X_test)


def test_own_models_are_saved_and_others_refused_by_name(data, tmp_path, reloaded):
    X, Y, X_test, _ = data
    model = auto("linear", lw.MaxMarginClassifier(C=0.5)).fit(X, Y)
    again = reloaded(model)
    assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    assert again.members == ["linear", "MaxMarginClassifier"]
    with pytest.raises(ValueError, match="its member KNeighborsClassifier cannot be stored"):
        auto(KNeighborsClassifier()).fit(X, Y).save(tmp_path / "other.lw")


@pytest.mark.parametrize("decider", [lw.TunedThresholdClassifier, lw.CalibratedLabelClassifier])
def test_deciders_around_own_models_are_own_models(data, decider, tmp_path, reloaded):
    X, Y, X_test, _ = data
    partly = Y.astype(float)
    partly[::7, 0] = np.nan
    model = auto("linear", decider(lw.MaxMarginClassifier())).fit(X, partly)
    assert_array_equal(reloaded(model).predict_proba(X_test), model.predict_proba(X_test))
    with pytest.raises(ValueError, match=f"{decider.__name__} does not support missing labels"):
        auto(decider(LinearSVC())).fit(X, partly)
    other = auto(decider(KNeighborsClassifier())).fit(X, Y)
    with pytest.raises(TypeError, match=f"{decider.__name__} around a KNeighborsClassifier cannot be stored"):
        other.save(tmp_path / "other.lw")


def test_files_whose_member_is_of_other_labels_are_refused(data):
    X, Y, _, _ = data
    state = auto(lw.MaxMarginClassifier()).fit(X, Y).to_state()
    scorer = state["fitted"]["scorer_"]
    other = replace(scorer.members[0], estimator=lw.MaxMarginClassifier().fit(X, Y[:, :2]))
    state["fitted"]["scorer_"] = replace(scorer, members=(other,))
    with pytest.raises(ModelFileError):
        lw.AutoLabelClassifier.from_state(state)


def test_missing_labels_and_weights(data):
    X, Y, X_test, _ = data
    partly, weights = Y.astype(float), np.linspace(0.5, 2.0, len(Y))
    partly[::7, 0] = np.nan
    own = auto("linear", lw.MaxMarginClassifier()).fit(X, partly, weights)
    assert np.isfinite(own.predict_proba(X_test)).all()
    auto(RandomForestClassifier(5)).fit(X, Y, weights)


class Mute(BaseEstimator):
    def fit(self, X, y):
        return self


class OfOneLabel(Mute):
    def predict_proba(self, X):
        return np.full((len(X), 1), 0.5)


def test_what_is_no_multi_label_estimator_is_refused(data):
    X, Y = data[:2]
    with pytest.raises(ValueError, match="Mute has neither predict_proba nor decision_function"):
        auto(Mute()).fit(X, Y)
    with pytest.raises(ValueError, match=r"OfOneLabel returns scores of shape \(24, 1\) for 3 labels"):
        auto(OfOneLabel()).fit(X, Y)
    two = named_members(["rbf", KNeighborsClassifier(), KNeighborsClassifier(3)])
    assert list(two) == ["rbf", "KNeighborsClassifier", "KNeighborsClassifier 2"]


@pytest.mark.parametrize("observed", [0, 1, 2])
def test_a_label_that_few_sparse_rows_show_is_named_once_or_not_at_all(observed):
    data = lw.datasets.make_text_like(60, 40, 4, labels_per_row=1.5, words_per_row=9)
    targets = data.Y.positives.toarray().astype(float)
    targets[observed:, 0] = np.nan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = lw.AutoLabelClassifier(time_budget=1e-3, members=["max-margin", "rbf"]).fit(data.X, targets)
    assert [one.category for one in said] == [lw.UnobservedLabelWarning] * (observed == 0)
    assert np.isfinite(model.predict_proba(data.X)).all()


def test_rows_without_a_feature_are_no_reason_for_warnings():
    targets = np.random.default_rng(0).integers(0, 2, (20, 2))
    model = lw.AutoLabelClassifier(time_budget=1e-3, members=["max-margin"]).fit(
        sp.csr_array((20, 9)), targets
    )
    assert np.isfinite(model.predict_proba(sp.csr_array((2, 9)))).all()


RANDOM = np.random.default_rng(0)
FEW = RANDOM.normal(size=(30, 2))


def _table(targets, weights=None):
    weights = np.ones(30) if weights is None else weights
    return TrainingTable(FeatureMatrix(FEW), targets, weights, np.arange(30) % 3, n_trees=3, pivots=5, seed=7)


def _answer(found, **fitted):
    return SimpleNamespace(predict_proba=lambda data: found, **fitted)


def test_clones_get_seeds_and_weights_where_they_take_them():
    targets, weights = (FEW > 0).astype(float), RANDOM.uniform(0.5, 2.0, 30)
    given = DecisionTreeClassifier(max_depth=2)
    found = _fitted(given, _table(targets, weights))
    assert found.random_state == 7
    assert given.random_state is None
    assert found.tree_.weighted_n_node_samples[0] == pytest.approx(weights.sum())
    assert _fitted(DecisionTreeClassifier(random_state=3), _table(targets)).random_state == 3
    with pytest.raises(ValueError, match="The member KNeighborsClassifier does not support sample_weight"):
        _fitted(KNeighborsClassifier(), _table(targets, weights))
    assert _fitted(KNeighborsClassifier(), _table(targets)).n_samples_fit_ == 30


def test_one_label_is_a_column_to_models_of_labels_and_a_list_to_others():
    targets = (FEW[:, [0]] > 0).astype(float)
    assert list(_fitted(LogisticRegression(), _table(targets)).classes_) == [0, 1]
    assert list(_fitted(lw.MaxMarginClassifier(), _table(targets)).classes_) == [0]
    targets[0] = np.nan
    assert _fitted(lw.MaxMarginClassifier(), _table(targets)).coef_.shape == (1, 2)


def test_decision_values_of_all_fits_are_on_one_scale():
    Y = (FEW > 0.5).astype(int)
    plain = lw.MaxMarginClassifier(tol=1e-10).fit(FEW, Y)
    tuned = lw.MaxMarginClassifier(threshold=-0.2, tol=1e-10).fit(FEW, Y)
    scores = responses(plain, "decision_function", FEW, 2)
    assert (tuned.decision_function(FEW) != scores).all()
    for one in (tuned, lw.TunedThresholdClassifier(plain, cv="prefit").fit(FEW, Y),
                lw.TunedThresholdClassifier(tuned, cv="prefit", scope="top_k").fit(FEW, Y)):  # fmt: skip
        found = responses(one, "decision_function", FEW, 2) + _taken_off(one, "decision_function")
        np.testing.assert_allclose(found, scores, atol=1e-4)
    scorer, _ = estimator_fit(_table(Y.astype(float)), [lw.MaxMarginClassifier(threshold=-0.2, tol=1e-10)], 0)
    np.testing.assert_allclose(scorer.scores(FeatureMatrix(FEW)), scores, atol=1e-4)


def test_answers_in_all_forms_are_one_column_a_label():
    Y = (FEW > 0).astype(int)
    several = MultiOutputClassifier(LogisticRegression()).fit(FEW, Y)
    expected = np.column_stack([part[:, 1] for part in several.predict_proba(FEW)])
    np.testing.assert_array_equal(responses(several, "predict_proba", FEW, 2), expected)
    whole = OneVsRestClassifier(LogisticRegression()).fit(FEW, Y)
    np.testing.assert_allclose(responses(whole, "predict_proba", FEW, 2), expected)
    one = LogisticRegression().fit(FEW, Y[:, 0])
    np.testing.assert_array_equal(responses(one, "predict_proba", FEW, 1), one.predict_proba(FEW)[:, [1]])
    np.testing.assert_array_equal(
        responses(one, "decision_function", FEW, 1)[:, 0], one.decision_function(FEW)
    )
    stored = _answer(sp.csr_array(np.eye(2)))
    np.testing.assert_array_equal(responses(stored, "predict_proba", FEW, 2), np.eye(2))
    constant = _answer([np.ones((30, 1)), np.ones((30, 1))], classes_=[np.array([0]), np.array([1])])
    np.testing.assert_array_equal(responses(constant, "predict_proba", FEW, 2), np.tile([0.0, 1.0], (30, 1)))
