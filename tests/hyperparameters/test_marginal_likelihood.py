"""The log marginal likelihood against dense matrices, its gradient against finite differences."""

from dataclasses import replace

import numpy as np
import pytest

from labelweave.features import FeatureMatrix
from labelweave.features.gram import LowRankGram
from labelweave.features.gram.sources import KernelSource
from labelweave.features.kernels import PolynomialKernel, RBFKernel
from labelweave.foundation.arrays import Workers
from labelweave.problems.hyperparameters.cross_validation import MarginalLikelihood
from labelweave.problems.hyperparameters.priors import FeatureWidths, LearnedIntercepts
from reference.cross_validation_twin import FAMILIES, TIGHT, Problem, family, slope_along
from reference.laplace_twin import evidence, inducing_prior

ACTIVE = np.arange(0, 20, 3)
SCALES = [1e-3, 1.0, 1e3]


def criterion(problem, priors, active=None, settings=TIGHT):
    data = replace(problem.criterion(priors).data, held_out=np.zeros((len(problem.X), 1), bool))
    if active is not None:
        features = FeatureMatrix(problem.X)
        data = replace(
            data,
            make_gram=lambda kernel: LowRankGram.at_rows(KernelSource(kernel, features), active, Workers()),
        )
    return MarginalLikelihood(priors, data, Workers(), settings)


def check(made, theta, priors, problem, active):
    direction = np.random.default_rng(0).normal(size=len(theta))
    direction /= np.linalg.norm(direction)
    found = made(theta)
    K = inducing_prior(priors.prior(theta), problem.X, active, len(problem.X))
    expected = evidence(problem.twin(problem.weights), K, problem.signs.shape)
    assert found.value == pytest.approx(expected / problem.weights.sum(), abs=1e-6)
    slope = slope_along(made, theta, direction)
    # the small multiple of the identity among active rows is not differentiated
    tolerance = (1e-6 if active is None else 1e-5) * np.linalg.norm(found.gradient) + 1e-9
    assert found.gradient @ direction == pytest.approx(slope, abs=tolerance)


@pytest.mark.parametrize("is_softmax", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("active", [None, ACTIVE])
def test_values_and_gradients(is_softmax, name, scale, active):
    problem, priors = (
        Problem.drawn(is_softmax=is_softmax),
        LearnedIntercepts(family(name, RBFKernel(0.3), scale)),
    )
    theta = priors.start + 0.3 * np.random.default_rng(1).normal(size=len(priors.start))
    check(criterion(problem, priors, active), theta, priors, problem, active)


@pytest.mark.parametrize("active", [None, ACTIVE])
@pytest.mark.parametrize(
    "priors",
    [
        FeatureWidths(family("shared", RBFKernel(0.3)), "xyz"),
        family("given", PolynomialKernel(2, 0.3, 1.5)),  # whose diagonal has derivatives
        family("class", PolynomialKernel(2, 0.3, 1.5)),
    ],
)
def test_gradients_of_other_kernels(priors, active):
    problem = Problem.drawn(is_softmax=True)
    check(criterion(problem, priors, active), priors.start, priors, problem, active)


def test_inexact_fits_are_corrected():
    """The value has an error of the order of the fits' gap, not of its square root."""
    problem, priors = Problem.drawn(is_softmax=True), family("shared", RBFKernel(0.3), 30.0)
    exact = criterion(problem, priors)(priors.start).value
    loose = criterion(problem, priors, settings=replace(TIGHT, tol=1e-4))(priors.start)
    assert loose.gap > 1e-8
    assert abs(loose.value - exact) < 1e-4 * exact
