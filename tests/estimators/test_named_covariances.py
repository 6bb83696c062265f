"""What is given a label goes by the names of labels, where it has them: a covariance, costs, weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import labelweave
from labelweave import (
    KernelLogisticClassifier,
    LabelCovariance,
    LabelGraphClassifier,
    LabelMean,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
)

NAMES = ["sun", "rain", "snow"]
MODELS = {
    "max-margin": MaxMarginClassifier(tol=1e-8),
    "max-margin, RBF": MaxMarginClassifier(kernel="rbf", tol=1e-8),
    "low rank": LowRankClassifier(3, tol=1e-12, max_iter=2000),
    "kernel logistic": KernelLogisticClassifier(hyperparameters="fixed", tol=1e-8),
}


def test_some_names_of_y_among_others_are_refused():
    X, Y = np.eye(3), pd.DataFrame(np.eye(3, dtype=int), columns=NAMES)
    R = LabelCovariance.dense(np.eye(3), label_names=["snow", "sun", "fog"])
    mean = LabelMean(np.eye(3), label_names=R.label_names)
    for what, given in (("label_covariance", R), ("label_mean", mean)):
        for model in (MaxMarginClassifier(), KernelLogisticClassifier(hyperparameters="fixed")):
            with pytest.raises(
                ValueError,
                match=f"{what} has 'fog', .* not the label 'rain', while other names",
            ):
                model.set_params(**{what: given}).fit(X, Y)
    numbered = Y.set_axis([1, 2, 3], axis=1)
    assert MaxMarginClassifier(label_covariance=pd.DataFrame(np.eye(3))).fit(X, numbered).label_covariance_
    other = LabelCovariance.dense(np.eye(3), label_names=list("abc"))
    assert MaxMarginClassifier(label_covariance=other).fit(X, Y).label_covariance_


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["dense", "low rank"])
def test_labels_are_matched_by_name(name, kind):
    random = np.random.default_rng(0)
    X, root = random.normal(size=(40, 4)), np.array([[1.0, 0, 0], [0.9, 0.3, 0], [-0.5, 0.2, 0.4]])
    Y = pd.DataFrame((X[:, :3] + random.normal(size=(40, 3)) > 0).astype(int), columns=NAMES)

    def fitted(order):
        names = [NAMES[label] for label in order]
        if kind == "dense":
            R = LabelCovariance.dense(
                (root @ root.T + 0.1 * np.eye(3))[np.ix_(order, order)], label_names=names
            )
        else:
            R = LabelCovariance.low_rank(root[order], 0.1, label_names=names)
        return MODELS[name].set_params(label_covariance=R).fit(X, Y).decision_function(X)

    np.testing.assert_allclose(fitted([2, 0, 1]), fitted([0, 1, 2]), atol=1e-4)


def _drawn():
    random = np.random.default_rng(1)
    X = random.normal(size=(40, 4))
    Y = pd.DataFrame((X[:, :3] + random.normal(size=(40, 3)) > 0).astype(int), columns=NAMES)
    return random, X, Y


BY_LABEL = {
    "max-margin": MaxMarginClassifier(),
    "low rank": LowRankClassifier(3),
    "kernel logistic": KernelLogisticClassifier(hyperparameters="fixed"),
    "label graph": LabelGraphClassifier(graph="none"),
    "label tree": LabelTreeClassifier(),
}


@pytest.mark.parametrize("name", BY_LABEL)
def test_costs_rates_and_weights_of_labels_go_by_name(name):
    random, X, Y = _drawn()
    costs = pd.Series([1.0, 5.0, 0.2], NAMES)
    entries = pd.DataFrame(random.uniform(0.5, 2.0, Y.shape), columns=NAMES)
    rates, order = pd.Series([0.0, 0.1, 0.2], NAMES), ["snow", "sun", "rain"]

    def scores(costs, rates, entries):
        model = clone(BY_LABEL[name])
        if hasattr(model, "false_negative_cost"):
            model.set_params(false_negative_cost=costs, false_positive_cost=costs)
        model.set_params(flip_rates=(rates, rates))
        return model.fit(X, Y, entry_weight=entries).decision_function(X)

    expected = scores(costs.to_numpy(), rates.to_numpy(), entries.to_numpy())
    np.testing.assert_array_equal(scores(costs[order], rates[order], entries[order]), expected)
    with pytest.raises(ValueError, match=r"entry_weight has 'fog', .* not the label 'rain'"):
        scores(costs, rates, entries.rename(columns={"rain": "fog"}))


def test_series_that_name_no_label_go_by_place():
    _, X, Y = _drawn()
    costs = np.array([1.0, 5.0, 0.2])
    model = MaxMarginClassifier(false_negative_cost=costs)
    expected = model.fit(X, Y).coef_
    for index in (range(3), list("abc")):
        model.set_params(false_negative_cost=pd.Series(costs, index))
        np.testing.assert_array_equal(model.fit(X, Y).coef_, expected)


def test_weights_of_labels_go_by_the_names_in_their_index():
    random, X, Y = _drawn()
    mean = pd.DataFrame(random.normal(size=(3, 4)), NAMES)
    model = MaxMarginClassifier(label_mean=mean.iloc[[2, 0, 1]])
    expected = MaxMarginClassifier(label_mean=mean.to_numpy()).fit(X, Y).coef_
    np.testing.assert_array_equal(model.fit(X, Y).coef_, expected)


def test_label_vectors_of_a_tree_go_by_the_names_in_their_index():
    _, X, Y = _drawn()
    vectors = pd.DataFrame([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], NAMES)
    model = LabelTreeClassifier(branching=2, leaf_size=1)
    expected = model.set_params(tree=vectors.to_numpy()).fit(X, Y).decision_function(X)
    found = model.set_params(tree=vectors.iloc[[2, 0, 1]]).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["max-margin", "label graph"])
def test_a_model_file_keeps_costs_by_label_in_the_order_of_the_labels(name, tmp_path):
    _, X, Y = _drawn()
    costs = pd.Series([1.0, 5.0, 0.2], ["rain", "snow", "sun"])
    model = clone(BY_LABEL[name]).set_params(false_negative_cost=costs, flip_rates=(costs / 10, 0.0))
    labelweave.save(model.fit(X, Y), tmp_path / "model")
    again = labelweave.load(tmp_path / "model")
    np.testing.assert_array_equal(again.false_negative_cost, costs[NAMES])
    np.testing.assert_array_equal(again.fit(X, Y).decision_function(X), model.decision_function(X))
