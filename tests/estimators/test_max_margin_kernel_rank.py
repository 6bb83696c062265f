"""Max-margin models whose kernel matrix a factor of few columns stands for."""

import numpy as np
import pytest

import labelweave as lw
from labelweave import MaxMarginClassifier
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram import incomplete_cholesky
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers


def table(n=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    Y = (np.sin(2 * X[:, :3]) + 0.3 * random.normal(size=(n, 3)) > 0.2).astype(float)
    Y[::7, 1] = np.nan
    return X, Y


@pytest.mark.parametrize("solver", ["auto", "coordinate_ascent", "block_ascent"])
def test_as_many_columns_as_rows_are_the_kernel(solver):
    X, Y = table()
    whole = MaxMarginClassifier(kernel="rbf", tol=1e-7).fit(X, Y)
    model = MaxMarginClassifier(kernel="rbf", kernel_rank=150, solver=solver, tol=1e-7).fit(X, Y)
    new = np.random.default_rng(1).normal(size=(20, 4))
    np.testing.assert_allclose(model.decision_function(new), whole.decision_function(new), atol=2e-3)
    assert model.trace_[-1].primal == pytest.approx(whole.trace_[-1].primal, rel=1e-6)


def test_few_columns_are_the_linear_model_of_a_factor(tmp_path):
    X, Y = table()
    kernel = RBFKernel(0.4)
    model = MaxMarginClassifier(kernel=kernel, kernel_rank=20, tol=1e-6, threshold="macro_f1").fit(X, Y)
    assert model.support_vectors_.shape == (20, 4)
    found = incomplete_cholesky(KernelSource(kernel, FeatureMatrix(X)), 20, Workers(), _seed())
    np.testing.assert_array_equal(found.active_rows, model.support_)
    linear = MaxMarginClassifier(tol=1e-6, threshold="macro_f1").fit(found.factor, Y)
    np.testing.assert_allclose(model.thresholds_, linear.thresholds_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(found.factor), atol=1e-6)
    model.save(tmp_path / "m.lw")
    np.testing.assert_array_equal(lw.load(tmp_path / "m.lw").predict(X), model.predict(X))


def _seed():
    return int(np.random.RandomState(0).randint(2**31 - 1))


def test_a_given_matrix_learned_parameters_and_more_rows():
    X, Y = table(60)
    kernel = RBFKernel(0.4)
    K = kernel.block(FeatureMatrix(X), FeatureMatrix(X))
    given = {"kernel_rank": 15, "tol": 1e-5}
    model = MaxMarginClassifier(kernel="precomputed", **given).fit(K, Y)
    same = MaxMarginClassifier(kernel=kernel, **given).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(K), same.decision_function(X), atol=1e-6)
    more = MaxMarginClassifier(kernel=kernel, **given).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    np.testing.assert_allclose(more.decision_function(X), same.decision_function(X), atol=0.02)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kernel": ["rbf", "laplacian"]}, "kernel_rank takes one kernel"),
        ({"kernel": "rbf", "label_mean": np.ones((3, 4))}, "label_mean is of weights of features"),
        ({"kernel": "rbf", "prune": "small"}, "prune is of weights of features"),
        ({"kernel": "rbf", "kernel_rank": 0}, "kernel_rank"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        MaxMarginClassifier(**{"kernel_rank": 5, **settings}).fit(*table(30))
