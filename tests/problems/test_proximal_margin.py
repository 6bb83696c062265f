import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from labelweave._loops.structured.proximal import group_multipliers
from labelweave.problems.structured_margin import GrowingMargin, RoundPenalty, pair_scores, violations
from labelweave.problems.structured_margin.margin_model import LABEL_SCALE
from labelweave.solvers import Status, TraceRecord
from labelweave.solvers.clique_generation import CliqueGeneration
from labelweave.solvers.passes import BlockFrankWolfe, ProximalDualAscent, ProximalState
from reference.structured_problems import TRIANGLE, margin_data, proximal, rows, structured


def _multipliers(norms, smoothness):
    multipliers = np.empty(len(norms))
    group_multipliers(np.square(norms), smoothness, multipliers)
    return multipliers


def _smoothed_penalty(norms, smoothness):
    return 0.5 * (norms**2).sum() / smoothness + 0.5 * norms.sum() ** 2


@settings(deadline=None, max_examples=60)
@given(
    norms=st.lists(st.floats(0, 5), min_size=1, max_size=6),
    smoothness=st.sampled_from([0.3, 1.0, 10.0, 400.0]),
)
def test_algorithm_3_is_the_proximal_step(norms, smoothness):
    norms = np.asarray(norms)

    def value(weights):  # of norms along z: the minimiser has its directions
        return _smoothed_penalty(weights, smoothness) - weights @ norms

    found = _multipliers(norms, smoothness) * norms
    best = minimize(
        value, np.full(len(norms), 0.1), jac=lambda w: w / smoothness + w.sum() - norms,
        bounds=[(0, None)] * len(norms), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    assert value(found) <= best.fun + 1e-9


def test_the_weights_are_the_gradient_of_the_conjugate():
    random = np.random.default_rng(0)
    z, groups, smoothness = random.normal(size=12), np.repeat([0, 1, 2], 4), 20.0

    def norms(flat):
        return np.sqrt(np.bincount(groups, flat**2))

    def conjugate(flat):
        weights = _multipliers(norms(flat), smoothness)[groups] * flat
        return weights @ flat - _smoothed_penalty(norms(weights), smoothness)

    weights = _multipliers(norms(z), smoothness)[groups] * z
    np.testing.assert_allclose(approx_fprime(z, conjugate, 1e-7), weights, atol=1e-4)


def _run(problem, tol=0.005, max_iter=200):
    return problem.solve(ProximalDualAscent(tol, max_iter, 0))


@pytest.mark.parametrize("penalty", [None, (0, 1, 1)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_objective_falls_and_bounds_hold(penalty, missing):
    X, Y = rows(1, missing=missing)
    penalties = [penalty and RoundPenalty(penalty) for _ in range(2)]
    problem = proximal(margin_data(X, Y), TRIANGLE, 0.05, penalties[0])
    begin = problem.evaluate()
    result = _run(problem)
    assert result.status is Status.SETTLED
    exact = structured(margin_data(X, Y), TRIANGLE, 0.05, penalties[1])
    exact.solve(BlockFrankWolfe(1e-5, 3000, 0))
    best = exact.evaluate()
    end = result.trace[-1]
    assert begin.dual == 0.0
    assert end.primal < 0.8 * begin.primal
    assert best.dual <= end.primal + 1e-9
    assert 0.0 < end.dual <= best.primal + 1e-9


@pytest.mark.parametrize("regularization", [1e-3, 0.05, 5.0])
def test_the_bound_is_that_of_the_best_share_of_the_dual_point(regularization):
    X, Y = rows(1)
    problem = proximal(margin_data(X, Y), TRIANGLE, regularization)
    for seed in range(3):
        problem.sweep(np.random.RandomState(seed).permutation(len(X)), 2.0)
    end = problem.evaluate()
    penalty = end.primal - problem.hinge_loss()[0]  # of z, a quadratic form of the dual variables
    shares = np.linspace(0, 1 / problem.totals.max(), 100_001)
    values = shares * problem.cost[0] - shares**2 * penalty
    assert end.dual == pytest.approx(values.max(), rel=1e-6)


def test_the_objective_of_a_pass_has_the_smoothed_penalty():
    X, Y = rows(1)
    problem = proximal(margin_data(X, Y), TRIANGLE, 0.05, RoundPenalty([0, 1, 1]))
    for seed in range(3):
        problem.sweep(np.random.RandomState(seed).permutation(len(X)), 2.0)
    lengths = np.sqrt(problem.round_squares)
    norms = _multipliers(lengths, problem.smoothness) * lengths
    labels = 0.5 * LABEL_SCALE * problem.squares()[0]
    found = problem.sweep(np.empty(0, np.int64), 2.0)  # no losses of rows
    assert found == pytest.approx(0.05 * (labels + _smoothed_penalty(norms, problem.smoothness)))


def test_rows_of_zeros_are_at_their_optimum():
    X, Y = rows(1)
    problem = proximal(margin_data(np.zeros_like(X), Y), TRIANGLE, 0.05)
    end = _run(problem).trace[-1]
    assert end.primal == pytest.approx(Y.shape[1])
    assert end.gap == pytest.approx(0.0, abs=1e-12)


def test_the_kept_weights_are_those_of_z():
    X, Y = rows(2)
    problem = proximal(margin_data(X, Y), TRIANGLE, 0.05, RoundPenalty([0, 1, 1]))
    for seed in range(3):
        problem.sweep(np.random.RandomState(seed).permutation(len(X)), 2.0)
    kept = problem.weights()
    problem.rebalance()
    np.testing.assert_allclose(problem.weights(), kept, atol=1e-9)
    norms = np.sqrt(problem.penalty.round_squares(problem.squares()[1]))
    np.testing.assert_allclose(
        problem.scales[5:], np.repeat(_multipliers(norms, problem.smoothness)[[0, 1, 1]], 4)
    )


def test_cliques_are_scored_by_the_steps_of_the_last_pass():
    X, Y = rows(3)
    problem = proximal(margin_data(X, Y), ((0, 1),), 0.05)
    problem.sweep(np.arange(len(X)), 2.0)
    # after one pass z is what the steps of that pass made
    squares = np.square(problem.sums[:, 5:]).sum()
    assert violations(problem.moments(), [(0, 1)])[0] == pytest.approx(squares)
    assert pair_scores(problem.moments())[0, 1] == pytest.approx(squares)
    np.testing.assert_allclose(problem.moments().label_sums(), problem.sums[:, :5], atol=1e-10)


def test_clique_generation_finds_the_tied_labels():
    X, Y = rows(4, n=200)
    data, passes = margin_data(X, Y), ProximalDualAscent(0.005, 200, 0)
    growing = GrowingMargin(
        5, lambda graph, penalty: proximal(data, graph.cliques, 0.02, penalty).problem, 1, 2
    )
    _, state = CliqueGeneration(passes, passes, 3, 0.0).solve(growing)
    assert {0, 1, 2} >= set(state.cliques[1][0])
    assert np.isnan(state.records[-1].dual)
    assert state.records[-1].primal < state.records[0].primal


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_run_that_is_stopped_at_any_check_and_goes_on_gives_the_same_bits(missing):
    def fresh():
        return proximal(
            margin_data(*rows(1, missing=missing)), TRIANGLE, 0.05, RoundPenalty([0, 1, 1])
        ).problem

    solver = ProximalDualAscent(1e-4, 60, 3)
    whole, end = solver.solve(fresh())
    for stop in range(len(whole.trace) - 1):
        _, state = solver.solve(fresh(), None, lambda _, state, stop=stop: len(state.trace) > stop)
        second, again = solver.solve(fresh(), ProximalState.from_plain(state.to_plain()))
        np.testing.assert_array_equal(
            [record._replace(time=0.0) for record in second.trace],
            [record._replace(time=0.0) for record in whole.trace],
        )
        np.testing.assert_array_equal(again.point.weights(), end.point.weights())


def test_damping_doubles_when_the_objective_rises():
    class Rising:
        n_rows = 5

        def __init__(self):
            self.dampings = []

        def first_point(self):
            return None

        def complete(self, point):
            return False

        def sweep(self, point, order, damping):
            self.dampings.append(damping)
            return float(len(self.dampings))

        def evaluate(self, point):
            return TraceRecord(primal=1.0, n_cliques=0)

    problem = Rising()
    result, _ = ProximalDualAscent(0.0, 6, 0).solve(problem)
    assert problem.dampings == [2.0, 2.0, 2.0, 4.0, 8.0, 16.0]
    assert result.status is Status.ITERATION_LIMIT
    assert result.trace[-1].iteration == 6


def test_an_interrupt_gives_the_weights_so_far():
    X, Y = rows(5)
    problem = proximal(margin_data(X, Y), TRIANGLE)
    sweep, calls = problem.problem.sweep, []

    def interrupted(point, order, damping):
        calls.append(damping)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return sweep(point, order, damping)

    problem.problem.sweep = interrupted
    result = _run(problem)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 2
    assert np.isfinite(result.trace[-1].primal)
