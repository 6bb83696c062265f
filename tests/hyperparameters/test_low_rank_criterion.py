"""Cross-validation on kernel matrices of low rank: value and gradient belong to the matrix that is used."""

import numpy as np
import pytest

from labelweave import KernelLogisticClassifier
from labelweave.features import FeatureMatrix, LinearKernel, PolynomialKernel, RBFKernel
from labelweave.features.gram import LowRankGram, StoredGram
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.problems.hyperparameters.cross_validation import CrossValidationLikelihood
from reference.cross_validation_twin import TIGHT, Problem, family, slope_along

ACTIVE = np.array([3, 0, 11, 7, 15])
KERNELS = {
    "rbf": RBFKernel(0.3),
    "polynomial": PolynomialKernel(2, 0.4, 0.5),
    "sum": 0.5 * RBFKernel(0.4) + LinearKernel(),
}


@pytest.fixture(scope="module", autouse=True)
def workers():
    workers = Workers(1)
    with workers.running():
        yield workers


def _criterion(problem, priors, workers, active=ACTIVE):
    features = FeatureMatrix(problem.X)
    exact = problem.criterion(priors, workers=workers)

    def make(kernel):
        return LowRankGram.at_rows(KernelSource(kernel, features), active, workers)

    data = exact.data.__class__(**{**vars(exact.data), "make_gram": make})
    return CrossValidationLikelihood(priors, data, workers, TIGHT)


def _dense(kernel, X):
    """Write out Nyström's matrix with the true diagonal."""
    features = FeatureMatrix(X)
    K = kernel.block(features, features)
    across = K[:, ACTIVE]
    low = across @ np.linalg.solve(K[np.ix_(ACTIVE, ACTIVE)], across.T)
    np.fill_diagonal(low, K.diagonal())
    return low


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_matrix_is_nystroms_with_the_true_diagonal(kernel, workers):
    problem = Problem.drawn(is_softmax=True)
    source = KernelSource(KERNELS[kernel], FeatureMatrix(problem.X))
    gram = LowRankGram.at_rows(source, ACTIVE, workers)
    np.testing.assert_allclose(
        gram.product(np.eye(len(problem.X))), _dense(KERNELS[kernel], problem.X), atol=1e-5
    )


@pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "logistic"])
@pytest.mark.parametrize("name", ["shared", "class", "level", "loadings"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_is_that_of_the_value(kernel, name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax)
    priors = family(name, KERNELS[kernel])
    criterion = _criterion(problem, priors, workers)
    direction = np.random.default_rng(0).normal(size=len(priors.start))
    direction /= np.linalg.norm(direction)
    expected = slope_along(criterion, priors.start, direction)
    assert criterion(priors.start).gradient @ direction == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("gamma", 10.0 ** np.arange(-3, 4))
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_the_gradient_over_scales(gamma, scale, workers):
    problem = Problem.drawn(is_softmax=True, n=16)
    priors = family("shared", RBFKernel(0.3 * gamma), 3.0 * scale)
    criterion = _criterion(problem, priors, workers)
    for direction in np.eye(2):
        expected = slope_along(criterion, priors.start, direction)
        found = criterion(priors.start).gradient @ direction
        # at wide kernels the matrix of the active rows is all but singular
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_all_rows_active_is_the_exact_criterion(workers):
    problem = Problem.drawn(is_softmax=True)
    priors = family("class", RBFKernel(0.3))
    low = _criterion(problem, priors, workers, np.arange(len(problem.X)))(priors.start)
    exact = problem.criterion(priors, workers=workers)(priors.start)
    assert low.value == pytest.approx(exact.value, rel=1e-6)
    np.testing.assert_allclose(low.gradient, exact.gradient, atol=1e-5)


def test_a_learned_model_of_low_rank_makes_no_exact_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    exact = KernelLogisticClassifier(max_learning_iter=20).fit(X, y)

    def refuse(*arguments, **options):
        raise AssertionError("an exact kernel matrix was made")

    monkeypatch.setattr(StoredGram, "from_source", refuse)
    model = KernelLogisticClassifier(kernel_rank=60, max_learning_iter=20).fit(X, y)
    assert model.cross_validation_loss_ == pytest.approx(exact.cross_validation_loss_, rel=0.05)
    assert model.score(X, y) > 0.85
