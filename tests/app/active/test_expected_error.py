import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logit
from scipy.stats import norm

from labelweave.app.active.expected_error import ExpectedError, micro_f1_cut

CUT = 0.3


def problem(seed, n=12, n_labels=3, rank=4):
    rng = np.random.default_rng(seed)
    factor = np.column_stack([rng.normal(size=(n, rank)), np.ones(n)])
    return factor, rng.uniform(0.05, 0.95, (n, n_labels)), rng.random((n, n_labels)) < 0.3


def covariance_of(factor, p, known):
    """Compute the covariance of all rows' scores: the prior's, conditioned on the known entries."""
    prior = factor @ factor.T
    h = p[known] * (1 - p[known])
    across = prior[:, known]
    return prior - across @ np.linalg.solve(prior[np.ix_(known, known)] + np.diag(1 / h), across.T)


def slow_gains(factor, p, known, state):
    found = np.full(p.shape, -np.inf)
    for label in range(p.shape[1]):
        covariance = covariance_of(factor, p[:, label], known[:, label])
        for row in np.flatnonzero(~known[:, label]):
            total = covariance[row, row] + state.noise[row, label]
            found[row, label] = (state.weights[:, label] * covariance[row] ** 2).sum() / total
    return found


@pytest.mark.parametrize("seed", range(3))
def test_gains_are_those_of_the_covariance_written_out(seed):
    factor, p, known = problem(seed)
    state = ExpectedError(factor, p, known, CUT)
    np.testing.assert_allclose(state.all_gains(), slow_gains(factor, p, known, state), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_chosen_entry_counts_as_known(seed):
    """Gains after some choices equal those with these entries known, with the noise of their answers."""
    factor, p, known = problem(seed)
    state = ExpectedError(factor, p, known, CUT)
    chosen = state.choose(5, np.ones(p.shape))
    values, variances = state.values, state.variances
    for label in range(p.shape[1]):
        covariance = covariance_of(factor, p[:, label], known[:, label])
        for one in chosen:
            if one.label == label:
                column = covariance[:, one.row].copy()
                covariance -= np.outer(column, column) / (column[one.row] + state.noise[one.row, label])
        np.testing.assert_allclose(variances[:, label], covariance.diagonal(), rtol=1e-8)
        np.testing.assert_allclose(
            values[:, label], covariance**2 @ state.weights[:, label], rtol=1e-6, atol=1e-9
        )
    assert all(state.known[one.row, one.label] for one in chosen)


def test_the_weight_is_what_a_variance_costs_by_its_derivative():
    """d/dv of the expected error at a threshold is half the normal density there."""
    mean, level = 0.4, -0.3

    def error(v):
        wrong = lambda f: abs(f - level) * norm.pdf(f, mean, np.sqrt(v)) * (f < level)  # noqa: E731
        return quad(wrong, -20, level)[0]

    for v in (0.3, 1.0, 4.0):
        for step in (1e-3, 1e-2):
            slope = (error(v + step) - error(v - step)) / (2 * step)
            assert slope == pytest.approx(0.5 * norm.pdf(level, mean, np.sqrt(v)), rel=2e-3)
    factor, p, known = problem(0)
    state = ExpectedError(factor, p, known, CUT)
    density = norm.pdf(logit(CUT), logit(p), np.sqrt(state.variances)) * np.sqrt(2 * np.pi)
    np.testing.assert_allclose(state.weights, np.where(known, 0.0, density), rtol=1e-10)


def test_an_answer_tells_of_a_twin_label_as_of_its_own():
    factor, p, known = problem(1, n_labels=2)
    p[:, 1], known[:, 1] = p[:, 0], known[:, 0]
    apart = ExpectedError(factor, p, known, CUT)
    twins = ExpectedError(factor, p, known, CUT, np.ones((2, 2)))
    before = twins.variances.copy()
    twins.choose(1, np.ones(p.shape))
    fallen = before - twins.variances
    np.testing.assert_allclose(fallen[:, 0], fallen[:, 1], rtol=0.2)
    apart.choose(1, np.ones(p.shape))
    assert ((before - apart.variances).max(axis=0) == 0).sum() == 1


def test_the_cut_is_that_of_the_best_expected_counts():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, (20, 3))
    f1 = {cut: 2 * p[p >= cut].sum() / (p.sum() + (p >= cut).sum()) for cut in p.ravel()}
    assert micro_f1_cut(p) == max(f1, key=f1.get)
    assert micro_f1_cut(np.zeros((3, 2))) == 0.5
    assert micro_f1_cut(np.empty((0, 2))) == 0.5
