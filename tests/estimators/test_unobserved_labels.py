"""Labels without observed values in a training part: folds are scored without them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
import small_models
from labelweave import metrics

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.c_[X[:, :3] > 0, np.full(60, np.nan)].astype(float)
FEW = Y.copy()
FEW[[0, 1], 3] = 1, 0  # both in the first fold of three
SCORED = (
    "margins, features later", "logistic, fixed", "low rank, linear logistic", "low rank", "graph, none",
    "tree of one node", "ridge of labels", "tuned",
)  # fmt: skip


@pytest.mark.parametrize("name", [*SCORED, "pipeline"])
def test_a_fold_that_hides_a_label_is_scored_by_the_others(name):
    pipeline = make_pipeline(StandardScaler(), lw.MaxMarginClassifier())
    model = pipeline if name == "pipeline" else small_models.model(name)
    scoring = {n: metrics.get_scorer(n) for n in ("micro_f1", "macro_f1", "average_auc")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.UnobservedLabelWarning)
        found = cross_validate(model, X, FEW, scoring=scoring, cv=KFold(3), error_score="raise")
        without = cross_validate(model, X, Y, scoring=scoring, cv=KFold(3), error_score="raise")
    for metric in scoring:
        assert np.isfinite(found[f"test_{metric}"]).all()
        assert found[f"test_{metric}"][0] == without[f"test_{metric}"][0]


def test_searches_choose():
    with pytest.warns(lw.UnobservedLabelWarning, match="Label 3 has no observed entry in Y"):
        search = GridSearchCV(
            lw.MaxMarginClassifier(), {"C": [1e-4, 10]}, scoring=metrics.get_scorer("micro_f1"), cv=KFold(3)
        ).fit(X, FEW)
    assert search.best_params_ == {"C": 10}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with pytest.warns(lw.UnobservedLabelWarning):
        compared = lw.compare(lw.MaxMarginClassifier(), X, FEW, cv=KFold(3))
    assert "nan" not in str(compared).lower()


def test_rows_that_come_later_may_tell_of_it():
    with pytest.warns(lw.UnobservedLabelWarning):
        model = lw.MaxMarginClassifier(warm_start=True).fit(X, Y)
    assert model.unobserved_labels_.tolist() == [3]
    assert model.partial_fit(X, FEW).unobserved_labels_.tolist() == []


@pytest.mark.parametrize(
    "model",
    [
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier()),
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), scope="global"),
    ],
)
def test_a_chosen_threshold_does_not_predict_it_for_every_row(model):
    rare = np.c_[X[:, :3] > 0.8, Y[:, 3]].astype(float)
    with pytest.warns(lw.UnobservedLabelWarning):
        predicted = clone(model).fit(X, rare).predict(X)
    assert predicted[:, :3].any(axis=0).all()
    assert not predicted[:, 3].any()


def test_a_related_label_speaks_for_it():
    related = np.eye(4)
    related[0, 3] = related[3, 0] = 0.9
    for model in (
        lw.MaxMarginClassifier(label_covariance=related),
        lw.KernelLogisticClassifier("linear", label_covariance=related, hyperparameters="fixed"),
        lw.LowRankClassifier(4, label_covariance=related, loss="log_loss"),
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier(label_covariance=related)),
    ):
        fitted = model.fit(X, Y)  # without a warning, since there is a prior
        scores = fitted.decision_function(X)
        assert np.corrcoef(scores[:, 0], scores[:, 3])[0, 1] > 0.99
        assert fitted.unobserved_labels_.tolist() == [3]


def test_a_tree_of_labels_leaves_it_out():
    with pytest.warns(lw.UnobservedLabelWarning):
        model = lw.LabelGraphClassifier("chow-liu", alpha=1e-3).fit(X, Y)
    assert not model.decision_function(X)[:, 3].any()
    assert model.label_graph_.n_cliques == 2


def test_a_mean_speaks_for_it():
    mean = np.vstack([np.zeros((3, 4)), np.eye(4)[:1]])
    for model in (
        lw.MaxMarginClassifier(label_mean=mean),
        lw.KernelLogisticClassifier(label_mean=mean, hyperparameters="fixed"),
        lw.LowRankClassifier(3, label_mean=mean, threshold=0.0),
        lw.LowRankClassifier(3, "log_loss", kernel="rbf", label_mean=mean, threshold=0.0),
    ):
        scores = model.fit(X, Y).decision_function(X)
        np.testing.assert_allclose(scores[:, 3], X[:, 0], atol=1e-9)


def test_signatures_speak_for_an_attribute_where_they_couple():
    signatures = np.array([[0, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1]])
    coupled = lw.ZeroShotClassifier(None, signatures, couple_attributes=True, temperature=1.0).fit(X, Y)
    assert coupled.estimator_.unobserved_labels_.tolist() == [3]
    with pytest.warns(lw.UnobservedLabelWarning) as told:
        lw.ZeroShotClassifier(None, signatures, temperature=1.0).fit(X, Y)
    assert len(told) == 1
