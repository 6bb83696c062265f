"""KernelLogisticClassifier with several terms: lists of kernels, groups of classes, weighted covariances."""

import warnings

import numpy as np
import pytest
from attacks.small_fits import grouped
from sklearn.model_selection import KFold

import labelweave as lw
from labelweave import HyperparameterSearch, KernelLogisticClassifier, LabelCovariance, MaxMarginClassifier
from labelweave.features import LinearKernel, RBFKernel

_RNG = np.random.default_rng(3)
X = _RNG.normal(size=(60, 3))
_F = _RNG.normal(size=(4, 2))
Y = (np.sin(2 * X[:, :2]) @ _F.T + 0.4 * _RNG.normal(size=(60, 4)) > 0).astype(float)
Y[::9, 1] = np.nan
CLASSES = np.array(list("abcd"))[np.argmax(np.nan_to_num(Y) + 0.1 * _RNG.random(Y.shape), axis=1)]
SHARED = 0.5 * np.eye(4) + 0.5 * np.ones((4, 4))
TREE = {"x": ["a", "b"], "y": ["c", "d"]}
SHORT = {"cv": 3, "max_learning_iter": 12}
QUICK = HyperparameterSearch(**SHORT)


def kept(*arguments, tie=None, **parameters):
    search = "fixed" if tie is None else HyperparameterSearch(cv=3, max_learning_iter=1, tie=tie)
    given = {"gamma": 0.4, "hyperparameters": search, "tol": 1e-12, **parameters}
    return KernelLogisticClassifier(*arguments, **given).fit(X, Y).decision_function(X)


def learned(y=Y, **parameters):
    return grouped(KernelLogisticClassifier, **{"gamma": 0.4, **SHORT, **parameters}).fit(X, y)


@pytest.mark.parametrize("covariance", [None, SHARED, LabelCovariance.low_rank(_F, 0.1)], ids=str)
def test_a_list_of_kernels_is_their_sum(covariance):
    of_both = None if covariance is None else [covariance] * 2
    found = kept([RBFKernel(0.3), LinearKernel()], scale=6.0, label_covariance=of_both)
    part = 0.5 / np.mean(np.sum(X**2, axis=1))  # each has half of the variance
    whole = kept(0.5 * RBFKernel(0.3) + part * LinearKernel(), scale=6.0, label_covariance=covariance)
    np.testing.assert_allclose(found, whole, atol=1e-5)


@pytest.mark.parametrize("tie", ["class", "scale", [0, 0, 1, 1], ("shared", [0, 1, 0, 1])], ids=str)
def test_functions_of_labels_that_are_alike_make_the_given_covariance(tie):
    np.testing.assert_allclose(
        kept(label_covariance=SHARED, tie=tie), kept(label_covariance=SHARED), atol=1e-5
    )


def test_weights_that_are_kept_are_those_of_the_sum():
    weighted = LabelCovariance.weighted([np.eye(4), SHARED], [0.3, 0.9])
    np.testing.assert_allclose(
        kept(label_covariance=weighted), kept(label_covariance=weighted.fixed), atol=1e-6
    )


@pytest.mark.parametrize("tie", [[0, 0, 1, 1], {"d": "v", "c": "v", "a": "u", "b": "u"}], ids=str)
def test_groups_of_classes_are_those_of_a_tree(tie):
    groups = learned(CLASSES, taxonomy=TREE, label_covariance="identity", tie=tie)
    subtree = learned(CLASSES, taxonomy=TREE, label_covariance="identity", tie="subtree")
    np.testing.assert_array_equal(
        list(groups.hyperparameters_.values()), list(subtree.hyperparameters_.values())
    )
    np.testing.assert_array_equal(groups.predict_proba(X), subtree.predict_proba(X))


def test_nodes_of_a_tree_have_groups_by_name():
    nodes = lw.Taxonomy.from_any(TREE).nodes
    model = learned(CLASSES, taxonomy=TREE, tie={node: len(node) + (node in "xy") for node in nodes})
    assert [name for name in model.hyperparameters_ if name.startswith("scale")] == ["scale[1]", "scale[2]"]


def test_a_tie_with_an_independent_covariance_is_one_without():
    given = learned(tie="class", label_covariance=np.eye(4))
    plain = learned(tie="class")
    np.testing.assert_allclose(given.predict_proba(X), plain.predict_proba(X), atol=1e-6)


MODELS = {
    "weighted": {"label_covariance": LabelCovariance.weighted({"own": np.eye(4), "shared": SHARED})},
    "factors": {"label_covariance": 2, "tie": "class"},
    "factors of two groups": {"label_covariance": "learn", "tie": [0, 0, 1, 1]},
    "factors of two kernels": {"kernel": ["rbf", "linear"], "label_covariance": [1, 2]},
    "scales of labels": {"label_covariance": SHARED, "tie": "scale"},
    "shapes of labels": {"label_covariance": SHARED, "tie": ("shared", [0, 0, 1, 1])},
    "kernels": {"kernel": ["rbf", LinearKernel(), "poly"], "tie": "scale"},
    "low rank": {"kernel": ["rbf", "laplacian"], "label_covariance": [2, None], "kernel_rank": 20},
}


@pytest.mark.parametrize("name", MODELS)
def test_learning_lowers_the_loss_and_the_file_keeps_the_model(name, tmp_path):
    model = learned(**MODELS[name])
    losses = [record.value for record in model.learning_trace_]
    assert model.cross_validation_loss_ < losses[0]
    assert len(model.hyperparameters_) == len(set(model.hyperparameters_))
    model.save(tmp_path / "m.lw")
    again = lw.load(tmp_path / "m.lw")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.hyperparameters_ == model.hyperparameters_


def test_factors_have_widths_of_their_own():
    names = list(learned(**MODELS["factors"]).hyperparameters_)
    assert names[:2] == ["gamma[0]", "gamma[1]"]
    assert "scale[own]" in learned(**MODELS["weighted"]).hyperparameters_


def test_max_margin_takes_the_weights_of_its_surrogate():
    weighted = MODELS["weighted"]["label_covariance"]
    surrogate = learned(label_covariance=weighted, scale=2.0, tol=1e-3, kernel="rbf")
    model = MaxMarginClassifier(
        kernel="rbf", gamma=0.4, hyperparameters=QUICK, label_covariance=weighted
    ).fit(X, Y)
    expected = surrogate.prior_.terms[0].covariance.correlations()
    np.testing.assert_allclose(model.label_covariance_.correlations(), expected, atol=1e-6)


def test_a_rank_beyond_the_rows_is_all_rows():
    model = KernelLogisticClassifier(kernel_rank=90, hyperparameters="fixed").fit(X, CLASSES)
    assert len(model.support_) <= 60


def test_nothing_to_learn_on_is_no_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelLogisticClassifier(taxonomy=TREE).fit(X[:12], ["x"] * 11 + ["c"])
    assert model.learning_status_ == "fixed"
    model = grouped(KernelLogisticClassifier, taxonomy=TREE, cv=KFold(2)).fit(X[:12], ["x", "y"] * 6)
    assert model.learning_status_ != "stalled"


def test_a_covariance_of_unknown_names_is_by_position():
    covariance = LabelCovariance.dense(SHARED, list("pqrs"))
    model = KernelLogisticClassifier(label_covariance=covariance, hyperparameters="fixed").fit(X, CLASSES)
    assert model.classes_.tolist() == list("abcd")
