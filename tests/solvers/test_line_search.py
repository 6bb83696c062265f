"""The line search: lengths that lower the objective about as far as their direction does."""

import numpy as np
import pytest

from labelweave.features.gram import StoredGram
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.losses import SoftmaxLoss
from labelweave.solvers.newton import search_along
from labelweave.solvers.newton_system import NewtonPoint, NewtonSystem

N, C, FITS = 20, 3, 3
RNG = np.random.default_rng(0)
EVERY = np.arange(FITS)


def _system(scale, intercept_variance=0.1):
    factor = RNG.normal(size=(N, N))
    K = scale * factor @ factor.T / N
    terms = [GramTerm(StoredGram(K, Workers()), LabelCovariance.identity(C))]
    gram = CoupledGram(terms, intercept_variance, Workers(), is_separate=False)
    problem = KernelLikelihood(gram, SoftmaxLoss(RNG.integers(0, C, N), C, np.ones((N, FITS))), 0, 0)
    dual = 0.1 * RNG.normal(size=problem.shape)
    scores = problem.product(dual, EVERY)
    losses, residual, curvature = problem.evaluate(scores, EVERY)
    residual -= dual
    values = losses + np.einsum("ngc,ngc->g", dual, scores) / 2
    point = NewtonPoint(dual, scores, residual, problem.product(residual, EVERY), values)
    return NewtonSystem(problem, curvature, EVERY), point


def _objective(system, point, direction, along, lengths):
    """Give values and derivatives at some lengths, from the definition."""
    t = np.asarray(lengths)[:, None]
    dual, scores = point.dual + t * direction, point.scores + t * along
    losses, residual, _ = system.problem.evaluate(scores, EVERY)
    values = losses + np.einsum("ngc,ngc->g", dual, scores) / 2
    return values, -np.einsum("ngc,ngc->g", residual - dual, along)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3, 1e6])
def test_lengths_come_close_to_the_least_value(scale, factor):
    system, point = _system(scale)
    direction = factor * point.residual
    along = factor * point.image
    lengths = search_along(system, point, direction, along)
    values, slopes = _objective(system, point, direction, along, lengths)
    before = np.einsum("ngc,ngc->g", point.residual, along)
    assert (lengths > 0).all()
    assert (values < point.values).all()
    assert ((np.abs(slopes) <= 0.25 * before + 1e-9) | (lengths >= 16)).all()


def test_groups_have_lengths_of_their_own():
    system, point = _system(1.0)
    factors = np.array([1e-2, 1.0, 1e2])[:, None]
    lengths = search_along(system, point, factors * point.residual, factors * point.image)
    assert lengths[0] > lengths[1] > lengths[2] > 0


def test_directions_that_do_not_descend_have_no_length():
    system, point = _system(1.0)
    signs = np.array([1.0, -1.0, 0.0])[:, None]
    lengths = search_along(system, point, signs * point.residual, signs * point.image)
    assert lengths[0] > 0
    assert list(lengths[1:]) == [0.0, 0.0]


def test_whole_steps_are_kept_where_they_are_good():
    system, point = _system(1e-4, 0.0)  # the penalty rules, and the objective is all but quadratic
    assert list(search_along(system, point, point.residual, point.image)) == [1.0] * FITS


def test_directions_too_long_for_numbers_are_cut():
    system, point = _system(1.0)
    lengths = search_along(system, point, 1e8 * point.residual, 1e8 * point.image)
    values, _ = _objective(system, point, 1e8 * point.residual, 1e8 * point.image, lengths)
    assert (lengths > 0).all()
    assert (values < point.values).all()
