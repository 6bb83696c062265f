"""Margin duals with one row of the kernel matrix at a time: blocks of rows, and pairs of entries."""

import numpy as np
import pytest

from labelweave.features.gram.sources import PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems.kernel_row_margins import BlockMargins, MarginBox, Resources, WorkingSetMargins
from labelweave.solvers import Status, WorkingSetAscent

_N, _L = 60, 20
_FACTOR = np.random.default_rng(3).normal(size=(_L, 2))
COVARIANCES = {
    "independent": LabelCovariance.identity(_L),
    "dense": LabelCovariance.dense(_FACTOR @ _FACTOR.T + np.eye(_L)),
    "low rank": LabelCovariance.low_rank(_FACTOR),
}


def _problem(kind, dtype=np.float64, budget=1e6):
    random = np.random.default_rng(0)
    X = random.normal(size=(_N, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    Y = np.where(random.random((_N, _L)) < 0.2, np.nan, random.random((_N, _L)) < 0.4)
    box = MarginBox.make(LabelMatrix.from_any(Y), random.uniform(0.5, 2, _N), np.ones((2, _L)))
    resources = Resources(Workers(), dtype, budget)
    return K + 1.0, BlockMargins(box, PrecomputedSource(K), 1.0, COVARIANCES[kind], resources)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_a_visit_moves_its_rows_and_all_scores(kind):
    K, problem = _problem(kind)
    beta, scores = problem.start()
    shares, duals = np.empty(_N), []
    for rows in (np.arange(0, _N, 7), np.array([3]), np.arange(_N)[::-1]):
        before = beta.copy()
        problem.ascend(beta, scores, rows)
        np.testing.assert_allclose(scores, K @ beta @ COVARIANCES[kind].to_dense(), atol=1e-9)
        held = np.setdiff1d(np.arange(_N), rows)
        np.testing.assert_array_equal(beta[held], before[held])
        assert (beta[rows] != before[rows]).any()
        primal, dual = problem.measure(beta, scores, shares)
        duals.append(dual)
        np.testing.assert_allclose(shares.sum(), primal - dual, rtol=1e-9)
    assert (np.diff(duals) > 0).all()


@pytest.mark.parametrize("kind", COVARIANCES)
def test_a_certificate_is_in_double_precision(kind):
    K, problem = _problem(kind, np.float32)
    beta, scores = problem.start()
    problem.ascend(beta, scores, np.arange(20))
    scores += 1
    found = problem.settled(beta)
    primal, dual = problem.measure(found.boxed, found.boxed_scores, np.empty(_N))
    expected = K @ found.boxed @ COVARIANCES[kind].to_dense()
    np.testing.assert_allclose(found.boxed_scores, expected, atol=1e-10)
    assert found.kept is found.boxed
    assert (found.lower <= found.boxed).all()
    assert (found.boxed <= found.upper).all()
    np.testing.assert_allclose(dual, (found.boxed * (found.targets - expected / 2)).sum(), rtol=1e-12)
    short = found.targets - expected
    losses = np.maximum(found.upper * short, found.lower * short).sum()
    np.testing.assert_allclose(primal, (found.boxed * expected).sum() / 2 + losses, rtol=1e-12)


def test_a_start_is_put_between_the_bounds():
    _, plain = _problem("dense")
    beta, scores = plain.start()
    plain.ascend(beta, scores, np.arange(_N))
    warm, warm_scores = plain.start(np.where(plain.targets == 0, 5.0, beta))
    np.testing.assert_array_equal(warm, beta)
    np.testing.assert_allclose(warm_scores, scores, atol=1e-9)


def test_a_small_budget_makes_blocks_small_and_a_smaller_one_is_refused():
    row = _N * 8
    assert _problem("dense", budget=1e6)[1].rows_at_hand() is None
    _, problem = _problem("dense", budget=16 * row)
    assert (problem.block_rows, problem.rows.n_slots) == (8, 8)
    problem.ascend(*problem.start(), np.array([4, 40]))
    np.testing.assert_array_equal(problem.rows_at_hand(), [4, 40])
    with pytest.raises(ValueError, match="memory_budget"):
        _problem("dense", budget=16 * row - 1)


_FEW, _FOUR = 25, 4


def _of_pairs(budget=1e6, covariance=None):
    random = np.random.default_rng(0)
    X = random.normal(size=(_FEW, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    Y = np.where(random.random((_FEW, _FOUR)) < 0.2, np.nan, random.random((_FEW, _FOUR)) < 0.4)
    weights, margins = random.uniform(0.5, 2, _FEW), random.uniform(0.5, 2, (2, _FOUR))
    box = MarginBox.make(LabelMatrix.from_any(Y), weights, margins)
    factor = random.normal(size=(_FOUR, 2))
    R = covariance or LabelCovariance.dense(factor @ factor.T + 0.2 * np.eye(_FOUR))
    problem = WorkingSetMargins(box, PrecomputedSource(K), 1.0, R, Resources(Workers(), np.float32, budget))
    return K + 1.0, R.to_dense(), problem


def test_it_gives_rows_and_columns_as_the_solver_wants_them():
    K, R, problem = _of_pairs()
    row, column = problem.kernel_row(3), problem.covariance_column(2)
    np.testing.assert_array_equal(row, K[3])
    np.testing.assert_array_equal(column, R[:, 2])
    np.testing.assert_array_equal(problem.kernel_diagonal, np.diag(K))
    for array in (row, column):
        assert array.flags.c_contiguous
        assert array.dtype == np.float64
    for array in (problem.targets, problem.lower, problem.upper, *problem.start()):
        assert array.flags.f_contiguous
        assert array.dtype == np.float64


def test_objectives_are_those_of_the_formulas():
    K, R, problem = _of_pairs()
    random = np.random.default_rng(1)
    beta, scores = problem.start(random.normal(size=(_FEW, _FOUR)))
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    primal, dual = problem.measure(beta, scores)
    np.testing.assert_allclose(scores, K @ beta @ R, atol=1e-12)
    quadratic = (beta * scores).sum() / 2
    short = problem.targets - scores
    losses = (problem.upper * np.maximum(short, 0) + problem.lower * np.minimum(short, 0)).sum()
    np.testing.assert_allclose(
        [primal, dual], [quadratic + losses, (beta * problem.targets).sum() - quadratic]
    )
    np.testing.assert_array_equal(problem.settled(beta).kept_scores, scores)


@pytest.mark.parametrize("covariance", [None, LabelCovariance.identity(_FOUR)])
def test_room_for_two_rows_is_enough(covariance):
    betas = []
    for budget in (1e6, 4 * _FEW * 8):
        *_, problem = _of_pairs(budget, covariance)
        result, state = WorkingSetAscent(1e-8, 5000).solve(problem)
        assert result.status is Status.CONVERGED
        found = result.answer
        np.testing.assert_array_equal(found.kept, state.beta)
        np.testing.assert_array_equal(found.boxed_scores, state.scores)
        assert (state.beta[problem.targets == 0] == 0).all()
        betas.append(state.beta)
    np.testing.assert_array_equal(*betas)
    assert problem.rows.n_slots == 2
    assert problem.rows.misses > problem.rows.n_rows


def test_less_room_is_refused():
    with pytest.raises(ValueError, match="memory_budget"):
        _of_pairs(4 * _FEW * 8 - 1)
