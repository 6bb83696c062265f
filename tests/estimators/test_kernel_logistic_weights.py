"""Weights of entries, costs of mistakes, flat classes tied by a tree, and widths of features."""

from functools import partial

import numpy as np
import pytest

from drawn import draw_classes, draw_labels
from labelweave import KernelLogisticClassifier, load

TREE = {"x": ["a", "b"], "y": ["c", "d", "e"]}
FIXED = {"hyperparameters": "fixed", "tol": 1e-9}


_labels = partial(draw_labels, d=3, missing=0.1)


@pytest.mark.parametrize("binary", [False, True])
def test_costs_are_weights_of_the_entries_of_a_sign(binary):
    X, Y = _labels()
    y = np.where(np.nan_to_num(Y[:, 0]) > 0, "yes", "no") if binary else Y
    costs = {"false_negative_cost": 3.0, "false_positive_cost": 0.5}
    model = KernelLogisticClassifier(**FIXED, **costs).fit(X, y)
    plain = KernelLogisticClassifier(**FIXED).fit(X, y)
    assert (model.predict_proba(X)[:, -1] > plain.predict_proba(X)[:, -1]).mean() > 0.95
    if binary:
        weights = np.where(y == "yes", 3.0, 0.5)
        same = KernelLogisticClassifier(**FIXED).fit(X, y, sample_weight=weights)
    else:
        same = KernelLogisticClassifier(**FIXED).fit(X, Y, entry_weight=np.where(Y > 0, 3.0, 0.5))
    np.testing.assert_allclose(model.dual_coef_, same.dual_coef_, atol=1e-6)


def test_costs_are_used_while_hyper_parameters_are_learned():
    X, Y = _labels()
    model = KernelLogisticClassifier(max_learning_iter=6, false_negative_cost=[2, 1, 4, 1]).fit(X, Y)
    weights = np.where(Y > 0, [[2.0, 1.0, 4.0, 1.0]], 1.0)
    same = KernelLogisticClassifier(max_learning_iter=6).fit(X, Y, entry_weight=weights)
    assert model.hyperparameters_ == same.hyperparameters_
    assert (
        model.cross_validation_loss_
        != KernelLogisticClassifier(max_learning_iter=6).fit(X, Y).cross_validation_loss_
    )


def test_one_class_a_row_has_no_entries():
    X, y = np.random.default_rng(0).normal(size=(9, 2)), list("abc") * 3
    with pytest.raises(ValueError, match="entry_weight is for many labels a row"):
        KernelLogisticClassifier(**FIXED).fit(X, y, entry_weight=np.ones((9, 3)))
    with pytest.raises(ValueError, match="false_negative_cost and false_positive_cost are for many labels"):
        KernelLogisticClassifier(**FIXED, false_positive_cost=2.0).fit(X, y)
    with pytest.raises(ValueError, match="false_negative_cost has shape"):
        KernelLogisticClassifier(**FIXED, false_negative_cost=[1.0, 2.0]).fit(*_labels())


_classes = partial(draw_classes, n=80, d=3, n_classes=5)


def test_flat_classes_share_scales_by_subtree():
    """F2 of section 6.1 of the paper: a scale a subtree, and no function but the classes' own."""
    X, y = _classes()
    model = KernelLogisticClassifier(
        taxonomy=TREE, tree_prior=False, tie=("subtree", "shared"), max_learning_iter=15
    ).fit(X, y)
    assert list(model.hyperparameters_) == ["scale[x]", "scale[y]", "gamma"]
    (term,) = model.prior_.terms
    scales = [model.hyperparameters_[f"scale[{node}]"] for node in "xxyyy"]
    np.testing.assert_allclose(term.covariance.to_dense(), np.diag(scales))
    flat = KernelLogisticClassifier(taxonomy=TREE, tree_prior=False, **FIXED).fit(X, y)
    plain = KernelLogisticClassifier(**FIXED).fit(X, y)
    np.testing.assert_allclose(flat.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_a_flat_model_with_a_tree_knows_inner_nodes_and_costs_of_mistakes():
    X, y = _classes()
    y = np.where(np.arange(len(y)) % 7 == 0, np.where(np.isin(y, ["a", "b"]), "x", "y"), y)
    model = KernelLogisticClassifier(
        taxonomy=TREE, tree_prior=False, decision="least_expected_loss", **FIXED
    ).fit(X, y)
    assert list(model.classes_) == list("abcde")
    assert set(model.predict(X)) <= set("abcde")
    coupled = KernelLogisticClassifier(taxonomy=TREE, tree_prior=False, label_covariance=np.eye(5), **FIXED)
    np.testing.assert_allclose(coupled.fit(X, y).predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_levels_need_a_taxonomy():
    with pytest.raises(ValueError, match="needs a taxonomy"):
        KernelLogisticClassifier(tie="subtree", tree_prior=False).fit(*_classes())


def _few_that_matter(n, seed=0, features=8):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    return X, (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n) > 0).astype(int)


def test_features_that_do_not_matter_get_wide_kernels(tmp_path):
    X, y = _few_that_matter(250)
    wide = KernelLogisticClassifier(feature_widths=True, max_learning_iter=40).fit(X, y)
    one = KernelLogisticClassifier(max_learning_iter=40).fit(X, y)
    weights = np.array([wide.hyperparameters_[f"feature_weight[{f}]"] for f in range(8)])
    assert weights[:2].min() > weights[2:].max()
    assert np.median(weights[2:]) < 0.5
    X_test, y_test = _few_that_matter(600, seed=1)
    losses = [-np.log(m.predict_proba(X_test)[np.arange(600), y_test]).mean() for m in (wide, one)]
    assert losses[0] < 0.9 * losses[1]
    wide.save(tmp_path / "m.lw")
    np.testing.assert_array_equal(load(tmp_path / "m.lw").predict_proba(X), wide.predict_proba(X))


def test_few_rows_leave_the_shared_width_as_it_is():
    X, y = _few_that_matter(12)
    model = KernelLogisticClassifier(feature_widths=True, max_learning_iter=40).fit(X, y)
    weights = np.array([model.hyperparameters_[f"feature_weight[{f}]"] for f in range(8)])
    assert np.abs(np.log(weights)).max() < 1.5  # with 250 rows it is 2.8


def test_widths_need_an_rbf_kernel_and_a_search():
    X, y = _few_that_matter(20)
    with pytest.raises(ValueError, match="is for kernel='rbf'"):
        KernelLogisticClassifier("laplacian", feature_widths=True).fit(X, y)
    with pytest.raises(ValueError, match="feature_widths is to be learned"):
        KernelLogisticClassifier(feature_widths=True, hyperparameters="fixed").fit(X, y)
