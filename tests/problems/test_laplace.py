"""The posterior of the scores against dense matrices, and its limits."""

from dataclasses import replace

import numpy as np
import pytest

from labelweave.features import FeatureMatrix
from labelweave.features.gram import LowRankGram
from labelweave.features.gram.sources import KernelSource
from labelweave.features.kernels import RBFKernel
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.arrays import Workers
from labelweave.problems.coupled_gram import PriorTerm, ScorePrior
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.laplace import LaplaceFactors
from labelweave.solvers.newton import NewtonConjugateGradient
from reference.cross_validation_twin import CLASSES, FAMILIES, Problem, family
from reference.laplace_twin import covariances, inducing_prior
from reference.newton_twins import block_diagonal, prior

L = len(CLASSES)
NEW = np.random.default_rng(5).normal(size=(4, 3))
ACTIVE = np.arange(0, 20, 3)


def fitted(problem, score_prior, active=None, **options):
    """Fit a problem of the reference to the last digits; return its factors and the scores."""
    features, workers = FeatureMatrix(problem.X), Workers()
    ties = score_prior.ties_labels or problem.is_softmax
    criterion = problem.criterion(family("shared", RBFKernel(1.0)))

    def make_gram(kernel):
        if active is None:
            return criterion.data.make_gram(kernel)
        return LowRankGram.at_rows(KernelSource(kernel, features), active, workers)

    gram = score_prior.operator([make_gram(t.kernel) for t in score_prior.terms], workers, ties_labels=ties)
    loss = problem.loss(problem.weights[:, None], ties=ties)
    likelihood = KernelLikelihood(gram, loss, 0, 0)
    result, state = NewtonConjugateGradient(1e-14, 100, 2000).solve(likelihood)
    assert result.converged
    return LaplaceFactors(likelihood, score_prior, state.scores, **options), state.scores


@pytest.mark.parametrize("is_softmax", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("active", [None, ACTIVE])
def test_covariances_and_determinants_are_those_of_dense_matrices(is_softmax, name, scale, active):
    problem = Problem.drawn(is_softmax=is_softmax)
    score_prior = family(name, RBFKernel(0.3), scale).prior(family(name, RBFKernel(0.3), scale).start)
    factors, scores = fitted(problem, score_prior, active)
    rows = np.vstack([problem.X, NEW])
    n, whole = len(problem.X), inducing_prior(score_prior, rows, active, len(problem.X))
    curvature = problem.twin(problem.weights).curvature(scores.reshape(n, L))
    W, K = block_diagonal(curvature), whole[: n * L, : n * L]
    assert np.isclose(factors.log_determinant, np.linalg.slogdet(np.eye(n * L) + W @ K)[1], rtol=1e-7)
    expected = covariances(whole, W)
    posterior = factors.posterior(FeatureMatrix(problem.X))
    assert posterior.is_whole()
    found = posterior.covariances(FeatureMatrix(NEW))
    _, ours = factors.pulled()
    for which, part in ((expected[n:], found), (expected[:n], ours)):
        if part.shape[1] == 1:
            np.testing.assert_allclose(part[:, 0], which, atol=1e-6 * scale)
        else:
            np.testing.assert_allclose(part[:, :, 0, 0], np.einsum("ncc->nc", which), atol=1e-6 * scale)


@pytest.mark.parametrize("active", [None, ACTIVE])
def test_far_from_the_rows_the_variance_is_the_priors(active):
    problem, score_prior = Problem.drawn(is_softmax=False), family("given", RBFKernel(0.3), 3.0, 0.0).prior
    score_prior = score_prior(family("given", RBFKernel(0.3), 3.0, 0.0).start)
    posterior = fitted(problem, score_prior, active)[0].posterior(FeatureMatrix(problem.X))
    found = posterior.covariances(FeatureMatrix(NEW + 100.0))
    np.testing.assert_allclose(found[:, 0], [score_prior.terms[0].covariance.to_dense()] * 4, atol=1e-12)


def test_rows_of_great_weight_leave_no_variance_and_rows_of_none_all_of_it():
    problem = Problem.drawn(is_softmax=False)
    signs = np.where(problem.signs == 0, 1, problem.signs)
    score_prior = family("shared", RBFKernel(3.0), 3.0).prior(family("shared", RBFKernel(3.0), 3.0).start)
    for weight, share in ((1e8, 0.0), (0.0, 1.0)):
        weights = np.full(len(problem.X), weight)
        made = replace(problem, weights=weights, signs=np.where(signs > 0, 0.2, -0.2))
        posterior = fitted(made, score_prior)[0].posterior(FeatureMatrix(problem.X))
        found = posterior.covariances(FeatureMatrix(problem.X))[:, :, 0, 0]
        np.testing.assert_allclose(found, share * (3.0 + 0.7), atol=1e-5)


def test_terms_of_several_kernels_and_a_kernel_of_low_rank():
    problem = Problem.drawn(is_softmax=True)
    score_prior = family("class", RBFKernel(0.3)).prior(family("class", RBFKernel(0.3)).start)
    kept = score_prior.terms[:3] + tuple(
        PriorTerm(RBFKernel(1e-12), term.covariance) for term in score_prior.terms[3:]
    )
    factors, _ = fitted(problem, ScorePrior(kept, 0.0))
    assert len(factors.factors[0]) < 3 * len(problem.X) + 4


def test_a_small_budget_is_refused_before_anything_is_factorized():
    problem = Problem.drawn(is_softmax=True)
    score_prior = family("shared", RBFKernel(0.3)).prior(family("shared", RBFKernel(0.3)).start)
    with pytest.raises(ParameterError, match=r"need 0\.176 MB, but memory_budget is"):
        fitted(problem, score_prior, budget=1e4)


def test_the_prior_of_all_rows_as_inducing_points_is_exact():
    X = np.vstack([Problem.drawn(is_softmax=True).X, NEW])
    score_prior = family("given", RBFKernel(0.3)).prior(family("given", RBFKernel(0.3)).start)
    K = RBFKernel(0.3).block(FeatureMatrix(X), FeatureMatrix(X))
    (term,) = score_prior.terms
    exact = prior([K], [term.covariance.to_dense()], score_prior.intercept_variance)
    np.testing.assert_allclose(
        inducing_prior(score_prior, X, np.arange(20), 20)[:100, :100], exact[:100, :100], atol=1e-6
    )
