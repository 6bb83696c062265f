"""A label covariance whose labels have names goes by these names, in every model that takes one."""

import numpy as np
import pandas as pd
import pytest

from labelweave import (
    KernelLogisticClassifier,
    LabelCovariance,
    LabelMean,
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
                ValueError, match=f"{what} has a label 'fog' .* none 'rain', while other names"
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
