import numpy as np
import pytest

from labelweave.problems.structured_margin import RoundPenalty
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import BlockFrankWolfe
from reference.structured_problems import TRIANGLE, margin_data, rows, structured


def _problem(penalty=None):
    return structured(margin_data(*rows(0)), TRIANGLE, 0.01, penalty)


def _run(problem, tol=1e-4, max_iter=1000, on_check=None):
    solver = BlockFrankWolfe(tol, max_iter, np.random.RandomState(0), on_check)
    return solver.run(problem, problem.data.n_rows, problem.graph.n_cliques)


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
    result = _run(_problem(), tol=0.0, max_iter=3)
    assert (result.status, result.n_iter, result.trace[-1].iteration) == (Status.ITERATION_LIMIT, 3, 3)


def test_a_callback_ends_the_run():
    seen = []
    result = _run(_problem(), tol=0.0, on_check=lambda record: seen.append(record) or len(seen) == 2)
    assert result.status is Status.INTERRUPTED
    assert result.trace == seen


def test_sweeps_without_inference_follow_a_pass():
    problem, calls = _problem(), []
    sweep = problem.sweep

    def noted(order, search=True):
        calls.append((len(order), search))
        return sweep(order, search)

    problem.sweep = noted
    _run(problem, tol=0.0, max_iter=2)
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
