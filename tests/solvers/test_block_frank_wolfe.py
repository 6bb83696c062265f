from types import SimpleNamespace

import numpy as np
import pytest

from labelweave.problems.structured_margin import RoundPenalty
from labelweave.solvers import Status, TraceRecord
from labelweave.solvers.passes import BlockFrankWolfe
from reference.structured_problems import TRIANGLE, margin_data, rows, structured


def _problem(penalty=None):
    return structured(margin_data(*rows(0)), TRIANGLE, 0.01, penalty)


def _run(problem, tol=1e-4, max_passes=1000, on_check=None):
    solver = BlockFrankWolfe(tol, max_passes, 0)
    start = solver.start(problem.problem, problem.point)
    result, state = solver.solve(problem.problem, start, on_check and (lambda record, _: on_check(record)))
    problem.point = state.point
    return result


@pytest.mark.parametrize("rounds", [None, [0, 1, 2]])
def test_the_gap_meets_the_tolerance(rounds):
    problem = _problem(rounds and RoundPenalty(rounds))
    result = _run(problem)
    assert result.status is Status.CONVERGED
    assert result.converged
    assert result.gap <= 1e-4
    assert result.gap == pytest.approx(problem.evaluate().gap)
    primals = [record.primal for record in result.trace]
    duals = [record.dual for record in result.trace]
    assert max(duals) <= min(primals) + 1e-12
    assert all(record.n_cliques == 3 for record in result.trace)


def test_the_limit_of_passes_ends_the_run_with_a_record():
    result = _run(_problem(), tol=0.0, max_passes=3)
    assert (result.status, result.n_iter, result.trace[-1].iteration) == (Status.ITERATION_LIMIT, 3, 3)


def test_sweeps_without_inference_follow_a_pass():
    problem, calls = _problem(), []
    sweep = problem.problem.sweep

    def noted(point, order, search=True, **among):
        calls.append((len(order), search))
        return sweep(point, order, search, **among)

    problem.problem.sweep = noted
    _run(problem, tol=0.0, max_passes=2)
    assert calls[0] == (60, True)
    assert calls[1][1] is False
    assert sum(search for _, search in calls) == 2


def test_an_interrupt_leaves_weights_that_belong_to_the_dual_point(monkeypatch):
    problem = _problem()
    add, calls = problem.data.add, []

    def interrupted(rows, changes, sums):
        calls.append(rows)
        if len(calls) == 30:
            raise KeyboardInterrupt
        add(rows, changes, sums)

    monkeypatch.setattr(problem.data, "add", interrupted)
    result = _run(problem)
    assert result.status is Status.INTERRUPTED
    assert result.trace[-1].primal >= result.trace[-1].dual
    kept = problem.sums.copy()
    problem.recompute()
    np.testing.assert_allclose(problem.sums, kept, atol=1e-10)


def test_a_run_from_an_optimum_is_short():
    problem = _problem()
    first = _run(problem)
    point = problem.problem.continued(problem.point)
    solver = BlockFrankWolfe(1e-4, 1000, 0)
    second, _ = solver.solve(problem.problem, solver.start(problem.problem, point))
    assert second.n_iter <= 0.2 * first.n_iter
    assert structured(margin_data(*rows(0)), ((0, 1),), 0.01).problem.continued(point) is None


def test_rounding_is_taken_out_now_and_then():
    passed, recomputed = [], []
    problem = SimpleNamespace(
        rounding_level=0.0,
        first_point=lambda: None,
        complete=lambda point: False,
        passed=lambda point, random, most_sweeps: passed.append(1) or 1.0,
        recompute=lambda point: recomputed.append(sum(passed)),
        evaluate=lambda point: TraceRecord.of(2.0, 1.0),
    )
    BlockFrankWolfe(1e-9, 450, 0).solve(problem)
    assert recomputed == [200, 400]
