"""Labels added to a fitted model score as if they had always been present, unobserved."""

import numpy as np
import pandas as pd
import pytest

import labelweave as lw
from labelweave.estimators.added_labels import related_weights

_RNG = np.random.default_rng(3)
X = _RNG.normal(size=(40, 4))
FULL = pd.DataFrame((X @ _RNG.normal(size=(4, 4)) > 0).astype(float), columns=list("abcd"))
FULL.loc[::7, "a"] = np.nan
FULL["d"] = np.nan
_ROOT = _RNG.normal(size=(4, 4))
R = lw.LabelCovariance.dense(_ROOT @ _ROOT.T + np.eye(4), list("abcd"))
MEAN = lw.LabelMean(_RNG.normal(size=(4, 4)), None, _RNG.normal(size=4), list("abcd"))
OLD = np.arange(3)

MODELS = {
    "margins": lambda **more: lw.MaxMarginClassifier(tol=1e-7, **more),
    "margins of a kernel": lambda **more: lw.MaxMarginClassifier(kernel="rbf", tol=1e-7, **more),
    "log_loss": lambda **more: lw.KernelLogisticClassifier(
        "linear", hyperparameters="fixed", tol=1e-9, **more
    ),
    "logistic of a kernel": lambda **more: lw.KernelLogisticClassifier(
        hyperparameters="fixed", tol=1e-9, **more
    ),
    "low rank": lambda **more: lw.LowRankClassifier(2, threshold=0.0, tol=1e-10, max_iter=1000, **more),
    "low rank of a kernel": lambda **more: lw.LowRankClassifier(
        3, "log_loss", kernel="rbf", penalty="ridge", tol=1e-10, max_iter=1000, **more
    ),
}


@pytest.mark.parametrize("with_mean", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_of_a_fit_with_the_label_unobserved(name, with_mean, reloaded):
    means = (MEAN, MEAN.columns(OLD)) if with_mean else (None, None)
    whole = MODELS[name](label_covariance=R, label_mean=means[0]).fit(X, FULL)
    part = MODELS[name](label_covariance=R.columns(OLD), label_mean=means[1]).fit(X, FULL[list("abc")])
    before = part.decision_function(X)
    assert part.add_labels(["d"], R, means[0]) is part
    np.testing.assert_array_equal(part.decision_function(X)[:, :3], before)
    np.testing.assert_allclose(part.decision_function(X)[:, 3], whole.decision_function(X)[:, 3], atol=2e-2)
    assert part.label_names_.tolist() == list("abcd")
    assert part.unobserved_labels_.tolist() == [3]
    assert list(part.predict(X).columns) == list("abcd")
    np.testing.assert_array_equal(reloaded(part).decision_function(X), part.decision_function(X))


@pytest.mark.parametrize("name", MODELS)
def test_a_mean_alone_tells_of_a_label(name):
    model = MODELS[name](label_mean=MEAN.columns(OLD)).fit(X, FULL[list("abc")])
    before = model.decision_function(X)
    model.add_labels(["d"], label_mean=MEAN)
    # processors may sum a product of four columns in another order than one of three
    np.testing.assert_allclose(model.decision_function(X)[:, :3], before, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(model.decision_function(X)[:, 3], MEAN.scores(X)[:, 3])
    again = model.fit(X, FULL)  # continues as a model of all labels
    np.testing.assert_allclose(again.decision_function(X)[:, 3], MEAN.scores(X)[:, 3], atol=1e-6)


def test_singular_covariances_have_weights_too():
    mix = related_weights(lw.LabelCovariance.dense(np.ones((3, 3))), 2)
    np.testing.assert_allclose(mix, [[0.5], [0.5]])


def test_labels_that_are_numbers_stay_numbers():
    numbered = FULL[list("abc")].set_axis([1, 2, 3], axis=1)
    model = lw.MaxMarginClassifier(label_covariance=R.columns(OLD)).fit(X, numbered)
    model.add_labels([4], R)
    assert list(model.predict(X).columns) == [1, 2, 3, 4]
    plain = lw.MaxMarginClassifier(label_covariance=R.columns(OLD)).fit(X, numbered.to_numpy())
    assert plain.add_labels([4], R).classes_.tolist() == [0, 1, 2, 4]
    assert plain.add_labels(["more"], np.eye(5)).classes_.tolist() == ["0", "1", "2", "4", "more"]
