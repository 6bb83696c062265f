"""Several cross-validations as one criterion."""

from dataclasses import replace

import numpy as np
import pytest

from labelweave.features import RBFKernel
from labelweave.foundation.arrays import Workers
from labelweave.problems.hyperparameters.cross_validation import InnerSettings, MeanCriterion
from labelweave.problems.hyperparameters.search import SearchSettings, learn
from reference.cross_validation_twin import FAMILIES, TIGHT, Problem, family, slope_along

KINDS = pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "logistic"])


@pytest.fixture(scope="module", autouse=True)
def workers():
    workers = Workers(1)
    with workers.running():
        yield workers


def drawn_parts(priors, workers, *, is_softmax=True, settings=TIGHT, sizes=(12, 20, 15)):
    """Draw cross-validations of rows and weights of their own; logistic labels have some missing."""
    problems = [Problem.drawn(is_softmax=is_softmax, n=n, seed=seed) for seed, n in enumerate(sizes)]
    return [problem.criterion(priors, settings, workers=workers) for problem in problems]


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", FAMILIES)
def test_value_and_gradient(name, is_softmax, workers):
    priors = family(name, RBFKernel(0.3))
    parts = drawn_parts(priors, workers, is_softmax=is_softmax)
    criterion = MeanCriterion(parts)
    theta = priors.start + np.random.default_rng(1).normal(0.0, 0.3, len(priors.start))
    found, apart = criterion(theta), [part(theta) for part in parts]
    masses = [part.mass for part in parts]
    assert found.value == pytest.approx(np.average([one.value for one in apart], weights=masses))
    expected = np.average([one.gradient for one in apart], axis=0, weights=masses)
    np.testing.assert_allclose(found.gradient, expected, atol=1e-9)
    direction = np.random.default_rng(2).normal(size=len(theta))
    direction /= np.linalg.norm(direction)
    slope = slope_along(criterion, theta, direction)
    assert found.gradient @ direction == pytest.approx(slope, rel=1e-6, abs=1e-9)


@KINDS
def test_one_part_is_the_criterion_itself(is_softmax, workers):
    priors = family("level", RBFKernel(0.3))
    (part,), (same,) = (drawn_parts(priors, workers, is_softmax=is_softmax, sizes=(20,)) for _ in range(2))
    mean, alone = MeanCriterion([part])(priors.start), same(priors.start)
    assert mean._replace(gradient=0, time=0) == alone._replace(gradient=0, time=0)
    np.testing.assert_array_equal(mean.gradient, alone.gradient)


def test_the_mean_of_equal_parts_is_each_of_them(workers):
    priors = family("class", RBFKernel(0.3))
    parts = [*drawn_parts(priors, workers, sizes=(20,)), *drawn_parts(priors, workers, sizes=(20,))]
    mean, alone = MeanCriterion(parts)(priors.start), parts[0](priors.start)
    assert mean.value == pytest.approx(alone.value)
    np.testing.assert_allclose(mean.gradient, alone.gradient, atol=1e-9)


def test_costs_add_up(workers):
    priors = family("class", RBFKernel(0.3))
    parts, same = drawn_parts(priors, workers), drawn_parts(priors, workers)
    mean, apart = MeanCriterion(parts)(priors.start), [part(priors.start) for part in same]
    assert mean.products == sum(one.products for one in apart)
    assert mean.gap == max(one.gap for one in apart)
    assert mean.time > 0


@pytest.mark.parametrize("position", range(3))
def test_one_failure_is_a_failure(position, workers):
    priors = family("shared", RBFKernel(0.3))
    parts = drawn_parts(priors, workers)
    parts[position].settings = InnerSettings(max_iter=1)
    criterion = MeanCriterion(parts)
    found = criterion(priors.start)
    assert not found.converged
    assert np.isnan(found.value)
    assert np.isnan(found.gradient).all()
    assert criterion.inner_states[position] is None
    with pytest.raises(ValueError, match="did not converge at the first hyper-parameters"):
        learn(criterion, priors.start, priors.bounds)


def test_states_serve_another_family(workers):
    tied, apart = family("shared", RBFKernel(0.3)), family("class", RBFKernel(0.3))
    first = MeanCriterion(drawn_parts(tied, workers, settings=InnerSettings()))
    warm, cold = (MeanCriterion(drawn_parts(apart, workers, settings=InnerSettings())) for _ in range(2))
    assert warm.family is apart
    assert warm.inner_states == (None,) * 3
    first(tied.start)
    warm.start_from(first.inner_states)
    found, expected = warm(apart.start), cold(apart.start)
    assert found.products < expected.products
    assert found.value == pytest.approx(expected.value, rel=1e-5)


def test_the_search_lowers_the_mean(workers):
    priors = family("class", RBFKernel(0.3))
    criterion = MeanCriterion(drawn_parts(priors, workers, settings=InnerSettings()))
    found = learn(criterion, priors.start, priors.bounds, SearchSettings(max_iter=10))
    assert found.value < criterion(priors.start).value
    assert found.value == pytest.approx(criterion(found.theta).value, rel=1e-4)


def test_parts_count_by_their_weights(workers):
    priors = family("shared", RBFKernel(0.3))
    light, heavy = (Problem.drawn(is_softmax=True, seed=seed) for seed in (0, 1))
    heavy = replace(heavy, weights=heavy.weights * 1e7)
    parts = [problem.criterion(priors, InnerSettings(), workers=workers) for problem in (light, heavy)]
    theta = priors.start - np.log([1e7, 1.0])  # as many times the prior's precision
    assert MeanCriterion(parts)(theta).value == pytest.approx(parts[1](theta).value, rel=1e-6)
