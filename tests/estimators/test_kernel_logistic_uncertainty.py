"""Uncertainty of KernelLogisticClassifier: Gaussian processes, files, decisions and refusals."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from labelweave import HyperparameterSearch, KernelLogisticClassifier, load

TREE = {"x": ["a", "b"], "y": ["c", "d"]}
WIDTH = 1.3
NEW = 2 * np.random.default_rng(9).normal(size=(30, 5))


def data(n=80, n_classes=2):
    X, codes = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        class_sep=0.7, random_state=0,
    )  # fmt: skip
    return X, np.array(list("abcd"))[codes]


def labels(X):
    return (X @ np.random.default_rng(2).normal(size=(5, 3)) > 0.3).astype(int)


def sure(kernel="rbf", **options):
    options = {"uncertainty": "laplace", "hyperparameters": "fixed", "gamma": 0.5 / WIDTH**2} | options
    return KernelLogisticClassifier(kernel, **options)


def evidence(**more):
    return HyperparameterSearch(criterion="marginal_likelihood", **more)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1000.0])
def test_two_classes_are_scikit_learns_gaussian_process(scale):
    X, y = data()
    kernel = ConstantKernel(scale) * RBF(WIDTH)
    peer = GaussianProcessClassifier(kernel, optimizer=None, max_iter_predict=1000).fit(X, y)
    model = sure(scale=scale, intercept_variance=0, tol=1e-13).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        peer.log_marginal_likelihood_value_, abs=1e-5
    )
    means, ours = model.latent_mean_and_variance(NEW)
    theirs, variances = peer.latent_mean_and_variance(NEW)
    np.testing.assert_allclose(means, theirs, atol=1e-4)
    np.testing.assert_allclose(ours, variances, atol=1e-3 * scale)
    # scikit-learn approximates the averages by five error functions
    np.testing.assert_allclose(model.predict_proba(NEW), peer.predict_proba(NEW), atol=1e-3)
    np.testing.assert_array_equal(model.predict(NEW), peer.predict(NEW))


def test_the_search_finds_scikit_learns_optimum():
    X, y = data()
    peer = GaussianProcessClassifier(ConstantKernel(10) * RBF(WIDTH, (1e-2, 1e3))).fit(X, y)
    model = sure(scale=10, intercept_variance=0, tol=1e-10, hyperparameters=evidence()).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        peer.log_marginal_likelihood_value_, abs=1e-3
    )
    assert np.log(model.hyperparameters_["scale"]) == pytest.approx(peer.kernel_.theta[0], abs=0.05)
    assert model.cross_validation_loss_ * len(X) == pytest.approx(
        -model.log_marginal_likelihood_value_, rel=1e-3
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"taxonomy": TREE}, {"label_covariance": 2, "hyperparameters": evidence(max_learning_iter=3)},
     {"kernel_rank": 20}, {"hyperparameters": HyperparameterSearch(max_learning_iter=1, tie="class")},
     {"kernel": "linear"}],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["classes", "labels", "two"])
def test_shapes_decisions_and_files(options, kind, tmp_path):
    X, y = data(n_classes=2 if kind == "two" else 4)
    if kind == "labels":
        y = labels(X)
        options = {name: value for name, value in options.items() if name != "taxonomy"}
    model = sure(**options).fit(X, y)
    means, variances = model.latent_mean_and_variance(NEW)
    scores = model.decision_function(NEW)
    assert variances.shape == means.shape == scores.shape
    assert (variances > 0).all()
    probabilities = model.predict_proba(NEW)
    if kind == "labels":
        np.testing.assert_array_equal(model.predict(NEW), probabilities > model.thresholds_)
    else:
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.predict(NEW), model.classes_[probabilities.argmax(axis=1)])
    model.save(tmp_path / "model.lw")
    loaded = load(tmp_path / "model.lw")
    np.testing.assert_array_equal(loaded.latent_mean_and_variance(NEW), (means, variances))
    np.testing.assert_array_equal(loaded.predict_proba(NEW), probabilities)
    plain = model.set_params(uncertainty=None).fit(X, y)
    assert not hasattr(plain, "posterior_")
    assert not hasattr(plain, "log_marginal_likelihood_value_")
    np.testing.assert_allclose(plain.decision_function(NEW), means, atol=1e-6)
    plain.save(tmp_path / "plain.lw")
    assert (tmp_path / "plain.lw").stat().st_size < (tmp_path / "model.lw").stat().st_size


def test_far_from_the_rows_the_model_says_that_it_does_not_know():
    X, y = data(n_classes=4)
    model = sure(scale=5.0, intercept_variance=0.5).fit(X, y)
    _, variances = model.latent_mean_and_variance(NEW + 100)
    assert (variances <= 5.5).all()
    assert (variances > 5.0).all()
    plain = sure(scale=5.0, uncertainty=None).fit(X, y)
    assert (model.predict_proba(NEW).max(axis=1) <= plain.predict_proba(NEW).max(axis=1) + 0.01).all()


def test_more_rows_leave_less_variance():
    X, y = data(n=160)
    few, all_rows = sure().fit(X[:80], y[:80]), sure().fit(X, y)
    less = all_rows.latent_mean_and_variance(NEW)[1]
    assert (less <= few.latent_mean_and_variance(NEW)[1] + 1e-9).mean() > 0.8


def test_inducing_points_of_all_rows_are_exact():
    X, y = data(n_classes=4)
    whole, low = sure().fit(X, y), sure(kernel_rank=len(X)).fit(X, y)
    np.testing.assert_allclose(low.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-3)
    few = sure(kernel_rank=20).fit(X, y)
    assert few.posterior_.factors[0].shape == (4 * 20 + 4,) * 2
    assert few.log_marginal_likelihood_value_ == pytest.approx(whole.log_marginal_likelihood_value_, rel=0.2)


def test_labels_of_a_model_are_those_of_its_own_models():
    X, _ = data()
    together = sure(tol=1e-12).fit(X, labels(X))
    means, variances = together.latent_mean_and_variance(NEW)
    for label, column in enumerate(labels(X).T):
        alone = sure(tol=1e-12).fit(X, column).latent_mean_and_variance(NEW)
        np.testing.assert_allclose((means[:, label], variances[:, label]), alone, atol=1e-5)


def test_two_classes_in_a_tree_have_the_variance_of_their_difference():
    X, y = data()
    tree = sure(taxonomy=["a", "b"], scale=1.0, tol=1e-10).fit(X, y)
    flat = sure(scale=2.0, intercept_variance=2.0, tol=1e-10).fit(X, y)
    ours, theirs = (model.latent_mean_and_variance(NEW) for model in (tree, flat))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
