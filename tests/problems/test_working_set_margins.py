import numpy as np
import pytest

from labelweave.features.gram.sources import PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems.kernel_row_margins import MarginBox, Resources, WorkingSetMargins
from labelweave.solvers import Status, WorkingSetAscent

_N, _L = 25, 4


def _problem(budget=1e6, covariance=None):
    random = np.random.default_rng(0)
    X = random.normal(size=(_N, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    Y = np.where(random.random((_N, _L)) < 0.2, np.nan, random.random((_N, _L)) < 0.4)
    weights, margins = random.uniform(0.5, 2, _N), random.uniform(0.5, 2, (2, _L))
    box = MarginBox.make(LabelMatrix.from_any(Y), weights, margins)
    factor = random.normal(size=(_L, 2))
    R = covariance or LabelCovariance.dense(factor @ factor.T + 0.2 * np.eye(_L))
    problem = WorkingSetMargins(box, PrecomputedSource(K), 1.0, R, Resources(Workers(), np.float32, budget))
    return K + 1.0, R.to_dense(), problem


def test_it_gives_rows_and_columns_as_the_solver_wants_them():
    K, R, problem = _problem()
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
    K, R, problem = _problem()
    random = np.random.default_rng(1)
    beta, scores = problem.start(random.normal(size=(_N, _L)))
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


@pytest.mark.parametrize("covariance", [None, LabelCovariance.identity(_L)])
def test_room_for_two_rows_is_enough(covariance):
    betas = []
    for budget in (1e6, 4 * _N * 8):
        *_, problem = _problem(budget, covariance)
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
        _problem(4 * _N * 8 - 1)
