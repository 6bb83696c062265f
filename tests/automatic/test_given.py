"""Estimators of scikit-learn and of labelweave as members, mixed with the names."""

import warnings
from dataclasses import replace

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

from labelweave import (
    AutoLabelClassifier,
    CalibratedLabelClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    UnobservedLabelWarning,
    datasets,
    load,
)
from labelweave.decisions.automatic.given import named_members
from labelweave.model_files import ModelFileError

GIVEN = [
    RandomForestClassifier(20, min_samples_leaf=5),
    OneVsRestClassifier(LogisticRegression()),
    OneVsRestClassifier(LinearSVC()),
    ClassifierChain(LogisticRegression()),
    MultiOutputClassifier(LogisticRegression()),
    KNeighborsClassifier(9),
    MaxMarginClassifier(),
]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(160, 5))
    Y = (X[:, :3] + 0.7 * random.normal(size=(160, 3)) > [0, 0.8, -0.5]).astype(int)
    return X[:120], Y[:120], X[120:], Y[120:]


def auto(*members):
    return AutoLabelClassifier(time_budget=1e-3, members=list(members))


@pytest.mark.parametrize("estimator", GIVEN, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_an_estimator_is_a_member(data, estimator, form):
    X, Y, X_test, Y_test = data
    model = auto("linear", estimator).fit(form(X), Y)
    assert [member["name"] for member in model.members_] == ["linear", type(estimator).__name__]
    assert model.members_[1]["left_out_loss"] < 0.9
    assert model.left_out_loss_ <= model.members_[0]["left_out_loss"] + 1e-9
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


def test_own_models_are_saved_and_others_refused_by_name(data, tmp_path):
    X, Y, X_test, _ = data
    model = auto("linear", MaxMarginClassifier(C=0.5)).fit(X, Y)
    model.save(tmp_path / "model.lw")
    again = load(tmp_path / "model.lw")
    assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    assert again.members == ["linear", "MaxMarginClassifier"]
    with pytest.raises(ValueError, match="its member KNeighborsClassifier can be kept in no model file"):
        auto(KNeighborsClassifier()).fit(X, Y).save(tmp_path / "other.lw")


@pytest.mark.parametrize("decider", [TunedThresholdClassifier, CalibratedLabelClassifier])
def test_deciders_around_own_models_are_own_models(data, decider, tmp_path):
    X, Y, X_test, _ = data
    partly = Y.astype(float)
    partly[::7, 0] = np.nan
    model = auto("linear", decider(MaxMarginClassifier())).fit(X, partly)
    model.save(tmp_path / "model.lw")
    assert_array_equal(load(tmp_path / "model.lw").predict_proba(X_test), model.predict_proba(X_test))
    with pytest.raises(ValueError, match=f"{decider.__name__} takes no missing labels"):
        auto(decider(LinearSVC())).fit(X, partly)
    other = auto(decider(KNeighborsClassifier())).fit(X, Y)
    with pytest.raises(TypeError, match=f"A {decider.__name__} around a KNeighborsClassifier cannot be kept"):
        other.save(tmp_path / "other.lw")


def test_files_whose_member_is_of_other_labels_are_refused(data):
    X, Y, _, _ = data
    state = auto(MaxMarginClassifier()).fit(X, Y).to_state()
    scorer = state["fitted"]["scorer_"]
    other = replace(scorer.members[0], estimator=MaxMarginClassifier().fit(X, Y[:, :2]))
    state["fitted"]["scorer_"] = replace(scorer, members=(other,))
    with pytest.raises(ModelFileError):
        AutoLabelClassifier.from_state(state)


def test_missing_labels_and_weights(data):
    X, Y, X_test, _ = data
    partly, weights = Y.astype(float), np.linspace(0.5, 2.0, len(Y))
    partly[::7, 0] = np.nan
    own = auto("linear", MaxMarginClassifier()).fit(X, partly, weights)
    assert np.isfinite(own.predict_proba(X_test)).all()
    with pytest.raises(ValueError, match="RandomForestClassifier takes no missing labels"):
        auto(RandomForestClassifier(5)).fit(X, partly)
    auto(RandomForestClassifier(5)).fit(X, Y, weights)
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        auto(KNeighborsClassifier()).fit(X, Y, weights)


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
    with pytest.raises(ValueError, match=r"OfOneLabel.predict_proba gave an array of shape \(24, 1\)"):
        auto(OfOneLabel()).fit(X, Y)
    for members in ([], ["rbf", "rbf"], ["svm"], [RandomForestClassifier], [None], [3]):
        with pytest.raises(ValueError, match="give 'auto', or a list of distinct names"):
            named_members(members)
    two = named_members(["rbf", KNeighborsClassifier(), KNeighborsClassifier(3)])
    assert list(two) == ["rbf", "KNeighborsClassifier", "KNeighborsClassifier 2"]


@pytest.mark.parametrize("observed", [0, 1, 2])
def test_a_label_that_few_sparse_rows_show_is_named_once_or_not_at_all(observed):
    data = datasets.make_text_like(60, 40, 4, labels_per_row=1.5, words_per_row=9)
    targets = data.Y.positives.toarray().astype(float)
    targets[observed:, 0] = np.nan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = AutoLabelClassifier(time_budget=1e-3, members=["max-margin", "rbf"]).fit(data.X, targets)
    assert [one.category for one in said] == [UnobservedLabelWarning] * (observed == 0)
    assert np.isfinite(model.predict_proba(data.X)).all()


def test_rows_without_a_feature_are_no_reason_for_warnings():
    targets = np.random.default_rng(0).integers(0, 2, (20, 2))
    model = AutoLabelClassifier(time_budget=1e-3, members=["max-margin"]).fit(sp.csr_array((20, 9)), targets)
    assert np.isfinite(model.predict_proba(sp.csr_array((2, 9)))).all()
