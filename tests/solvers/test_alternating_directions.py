"""Alternating directions: the optimum of the slow reference, and a certificate wherever a run ends."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn import draw_labels
from labelweave import LabelCovariance, LabelMatrix, MaxMarginClassifier
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.problems import MarginBox, Resources, feature_margins, kernel_margins
from labelweave.solvers import AlternatingDirections, Status
from labelweave.solvers.alternating_directions import _balanced, _Point
from reference import gram_twins

FORMS = ["cholesky", "eigenvalues", "incomplete_cholesky", "features"]
COVARIANCES = {
    "identity": None,
    "dense": 0.5 * np.eye(3) + 0.5,
    "of rank 1": np.ones((3, 3)),
    "negative": np.array([[1.0, -0.6, 0], [-0.6, 1, 0.3], [0, 0.3, 2]]),
}
CASES = [(form, name) for form in FORMS for name in COVARIANCES if form != "cholesky" or name == "identity"]


class Problem:
    def __init__(
        self, form, covariance="identity", *,
        n=18, C=0.5, seed=0, dtype=np.float64, gamma=0.5, separable=False,
    ):  # fmt: skip
        random = np.random.default_rng(seed)
        X = random.normal(size=(n, 3))
        matrix = COVARIANCES[covariance]
        self.R = np.eye(3) if matrix is None else matrix
        R = LabelCovariance.identity(3) if matrix is None else LabelCovariance.dense(matrix)
        Y = X > 0 if separable else random.random((n, 3)) < 0.5
        Y = np.where(random.random((n, 3)) < 0.15, np.nan, Y)
        weights, margins = 2 * C * random.uniform(0.5, 1.5, n), random.uniform(0.5, 2, (2, 3))
        self.box = MarginBox.make(LabelMatrix.from_any(Y), weights, margins)
        features, workers = FeatureMatrix(X), Workers()
        factorization = "auto" if form == "features" else form
        resources = Resources(workers, dtype, 1e9, factorization, 0)
        if form == "features":
            self.K = X @ X.T + 1
            self.margins = feature_margins(self.box, features, 1.0, R, resources)
        else:
            kernel = RBFKernel(gamma)
            self.K = kernel.block(features, features) + 1
            self.margins = kernel_margins(self.box, KernelSource(kernel, features), 1.0, R, resources)

    def solve(self, tol=1e-8, max_iter=20_000, start=None, on_check=None):
        solver = AlternatingDirections(tol, max_iter)
        if start is not None:
            start = solver.start(self.margins, replace(start, rounds=0, trace=()))
        check = None if on_check is None else lambda record, state: on_check(record)
        self.result, state = solver.solve(self.margins, start, check)
        return self.result, state

    def optimum(self):
        box = self.box
        return gram_twins.optimum(self.K, self.R, box.targets, box.lower, box.upper)

    def certificate(self):
        """The objectives at the stored variables, explicitly."""
        kept, box = self.result.answer, self.box
        assert (kept.boxed >= box.lower).all()
        assert (kept.boxed <= box.upper).all()
        return (
            gram_twins.primal(kept.kept, self.K, self.R, box.targets, box.lower, box.upper),
            gram_twins.dual(kept.boxed, self.K, self.R, box.targets),
        )


def _is_certified(problem, result, rel=1e-9):
    primal, dual = problem.certificate()
    assert primal == pytest.approx(result.trace[-1].primal, rel=rel)
    assert dual == pytest.approx(result.trace[-1].dual, rel=rel, abs=rel)
    assert result.gap == pytest.approx((primal - dual) / primal, rel=1e-3, abs=2 * rel)


@pytest.mark.parametrize(("form", "covariance"), CASES)
@pytest.mark.parametrize("C", [0.01, 0.5, 20.0])
def test_the_optimum_is_that_of_the_slow_twin(form, covariance, C):
    problem = Problem(form, covariance, C=C)
    result, _ = problem.solve()
    assert result.status is Status.CONVERGED
    _is_certified(problem, result)  # by weak duality a proof of its own ...
    if C < 1:  # ... where the twin does not get as far
        value, _ = problem.optimum()
        assert result.trace[-1].primal == pytest.approx(value, rel=3e-8)
        assert result.trace[-1].dual == pytest.approx(value, rel=3e-8)


@pytest.mark.parametrize(("form", "covariance"), CASES)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1), rounds=st.integers(1, 60))
def test_a_run_of_any_length_leaves_a_certificate(form, covariance, seed, rounds):
    problem = Problem(form, covariance, seed=seed)
    result, _ = problem.solve(tol=1e-14, max_iter=rounds)
    assert result.n_iter <= rounds
    _is_certified(problem, result)
    assert result.trace[-1].primal >= result.trace[-1].dual - 1e-9


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rounds", [0, 1, 4, 5, 6, 11])
def test_an_interruption_at_any_round_leaves_a_certificate(form, rounds, monkeypatch):
    problem = Problem(form)
    solve, calls = problem.margins.solves.solve, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > rounds:
            raise KeyboardInterrupt
        return solve(*arguments)

    problem.margins.solves.solve = interrupted
    result, _ = problem.solve(tol=1e-16)
    assert result.status is Status.INTERRUPTED
    _is_certified(problem, result)


@pytest.mark.parametrize(("form", "covariance"), CASES)
def test_the_best_gap_never_grows_from_check_to_check(form, covariance):
    result, _ = Problem(form, covariance, C=5.0).solve()
    gaps = np.minimum.accumulate([record.gap for record in result.trace])
    assert result.gap <= gaps[0]
    assert result.gap == gaps[-1]
    assert (np.diff([record.iteration for record in result.trace]) >= 0).all()
    assert (np.diff([record.time for record in result.trace]) >= 0).all()


@pytest.mark.parametrize(("form", "covariance"), CASES)
def test_a_warm_start_goes_on_where_another_run_stopped(form, covariance):
    first, state = Problem(form, covariance, C=2.0).solve(tol=1e-4)
    problem = Problem(form, covariance, C=2.0)
    second, _ = problem.solve(start=state)
    cold, _ = Problem(form, covariance, C=2.0).solve()
    assert second.status is Status.CONVERGED
    assert second.trace[-1].primal == pytest.approx(cold.trace[-1].primal, rel=3e-8)
    assert second.n_iter <= cold.n_iter
    assert first.status is Status.CONVERGED
    again, _ = Problem(form, covariance, C=2.0).solve(tol=1e-3, start=state)
    assert again.n_iter <= (10 if form != "incomplete_cholesky" else 40)


def test_a_state_at_the_optimum_is_left_there():
    problem = Problem("cholesky")
    _, state = problem.solve(tol=1e-12)
    result, _ = problem.solve(tol=1e-9, start=state)
    assert result.n_iter <= 6
    _is_certified(problem, result)


@pytest.mark.parametrize("form", FORMS)
def test_rounding_in_single_precision_is_said_and_certified(form):
    problem = Problem(form, dtype=np.float32)
    result, _ = problem.solve(tol=1e-13, max_iter=300)
    assert result.status in (Status.STALLED, Status.ITERATION_LIMIT)
    assert result.gap < 1e-4
    _is_certified(problem, result, rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_single_precision_reaches_the_default_tolerance(form):
    problem = Problem(form, dtype=np.float32)
    result, _ = problem.solve(tol=1e-4)
    assert result.status is Status.CONVERGED
    _is_certified(problem, result, rel=1e-5)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("rest", [0.0, 1e-8, 1e-2, 1.0, 1e4])
def test_a_wrong_rest_is_put_right(covariance, rest):
    problem = Problem("incomplete_cholesky", covariance)
    problem.margins.solves.first_rest = rest
    tol = 1e-6 if rest > 100 else 1e-8  # a rest that is too large makes steps short, never wrong
    result, _ = problem.solve(tol=tol, max_iter=20_000 if rest <= 100 else 200)
    value, _ = problem.optimum()
    _is_certified(problem, result)
    if rest <= 100:
        assert result.status is Status.CONVERGED
        assert result.trace[-1].primal == pytest.approx(value, rel=3e-8)


@pytest.mark.parametrize("form", FORMS)
def test_a_bad_penalty_to_begin_with_is_balanced(form):
    for penalty in (1e-4, 1e4):
        problem = Problem(form)
        start = replace(AlternatingDirections(1e-3, 1).start(problem.margins), penalty=penalty)
        result, _ = problem.solve(tol=1e-3, start=start)
        assert result.status is Status.CONVERGED
        assert result.n_iter < 300


@pytest.mark.parametrize("form", FORMS)
def test_nothing_to_do_is_done_at_once(form):
    problem = Problem(form, C=1e-300)
    result, _ = problem.solve(tol=1e-3)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-3


@pytest.mark.parametrize("form", ["cholesky", "eigenvalues", "incomplete_cholesky"])
@pytest.mark.parametrize("gamma", [1e-14, 1e8])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_kernels_that_are_constant_or_the_identity(form, gamma, C):
    problem = Problem(form, gamma=gamma, C=C)
    result, _ = problem.solve(tol=1e-3, max_iter=1000)
    assert result.status is Status.CONVERGED
    _is_certified(problem, result, rel=1e-8)


def test_rows_outside_the_support_get_no_coefficient():
    problem = Problem("cholesky", n=60, C=10.0, separable=True)
    result, _ = problem.solve(tol=1e-6)
    kept = result.answer
    outside = ~kept.boxed.any(axis=1)
    assert outside.any()
    assert not kept.kept[outside].any()
    _is_certified(problem, result)


def test_momentum_goes_beyond_the_last_point():
    last, before = _Point(*np.array([[3.0], [5.0], [7.0]])), _Point(*np.array([[1.0], [1.0], [1.0]]))
    assert [part[0] for part in last.beyond(before, 0.5)] == [4.0, 7.0, 10.0]
    assert last.beyond(before, 0) is last


def test_multipliers_are_taken_over_near_the_optimum_alone():
    problem = Problem("eigenvalues", "dense")
    result, _ = problem.solve(tol=1e-9)
    solver, margins = AlternatingDirections(1e-9, 100), problem.margins
    near = solver.start_at(margins, result.answer.boxed)
    (scores,) = margins.scores(result.answer.boxed)
    np.testing.assert_allclose(near.shift, (margins.targets - scores) / near.penalty, atol=1e-12)
    assert near.shift.any()
    assert not solver.start_at(margins, np.zeros_like(scores)).shift.any()


@pytest.mark.parametrize("residuals", [(1e-9, 1.0), (1.0, 1e-9)])
def test_balancing_keeps_to_the_smallest_penalty(residuals):
    margins = Problem("incomplete_cholesky").margins
    state = AlternatingDirections(1e-3, 100).start(margins)
    for penalty in (0.5, 3.0):
        solves = SimpleNamespace(penalty_changes_are_cheap=True, smallest_penalty=0.4)
        given = replace(
            state, rounds=5, residuals=residuals, penalty=penalty, shift=np.ones_like(state.shift)
        )
        after = _balanced(SimpleNamespace(solves=solves), given)
        expected = 10 * penalty if residuals[0] == 1 else max(penalty / 10, 0.4)
        assert after.penalty == pytest.approx(expected)
        np.testing.assert_allclose(after.shift * after.penalty, penalty)


@pytest.mark.parametrize("cost", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("shape", [(30, 5), (60, 3), (300, 20)])
def test_small_problems_of_any_cost_end_in_time(shape, cost):
    X, Y = draw_labels(*shape, 3, size=10, noise=20, above=0)
    assert MaxMarginClassifier(C=cost).fit(X, Y).converged_  # warnings are errors


@pytest.mark.parametrize("shape", [(1200, 1300), (3000, 40)])
@pytest.mark.parametrize("offset", [10.0, 1000.0])
def test_features_far_from_zero_are_fitted_as_exactly(shape, offset):
    X, Y = draw_labels(*shape, 2, noise=3, above=0)
    model = MaxMarginClassifier().fit(X + offset, Y)  # warnings are errors
    scores = (X + offset) @ model.coef_.T + model.intercept_
    losses = np.maximum(0, 1 - np.where(Y > 0, 1, -1) * scores).sum()
    primal = losses + ((model.coef_**2).sum() + (model.intercept_**2).sum()) / 2
    assert (primal - model.trace_[-1].dual) / primal < 1.1e-3
