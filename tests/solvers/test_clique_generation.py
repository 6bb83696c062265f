from dataclasses import dataclass, field

import numpy as np
import pytest

from labelweave.solvers import Status, TraceRecord
from labelweave.solvers.clique_generation import CliqueGeneration, Proposal
from labelweave.solvers.passes import BlockFrankWolfe


@dataclass
class _Problem:
    """Given objectives and excesses; its points are the number of the round.

    offers: the proposed cliques; by default another one every round.
    """

    primals: list
    excesses: list
    offers: list = None
    ends: list = field(default_factory=list)
    n_rows = 1

    def at(self, rounds):
        return self

    def first_point(self):
        return 0

    def complete(self, point):
        return False

    def mend(self, point):
        pass

    def evaluate(self, point):
        primal = self.primals[min(point, len(self.primals) - 1)]
        return TraceRecord(0, 0.0, primal, primal - 0.1, 0.1, n_cliques=point)

    def propose(self, rounds, point):
        if point == len(self.excesses):
            return Proposal((), 0.0, 0.0, True)
        cliques = self.offers[point] if self.offers else ((0, point + 1),)
        return Proposal(cliques, 2.0 * self.excesses[point], self.excesses[point])

    def activated(self, rounds, point, cliques):
        return point + 1

    def held_out_loss(self, rounds, point):
        return 0.5


class _Passes(BlockFrankWolfe):
    def one_pass(self, problem, state, random):
        if state.rounds - state.begun < 2:
            return state, None, None
        problem.ends.append(self.tol)
        return state, problem.evaluate(state.point), Status.CONVERGED


def _run(problem, max_rounds=10, change_tol=0.0, on_check=None):
    solver = CliqueGeneration(_Passes(0.1, 9, 0), _Passes(0.01, 9, 0), max_rounds, change_tol)
    return solver.solve(problem, None, on_check)


@pytest.mark.parametrize(
    ("problem", "options", "reason", "n_cliques"),
    [
        (_Problem([5, 4, 3], [1, 1]), {}, "all candidate cliques are in the graph", 2),
        (
            _Problem([5, 4, 3], [3, 0, 1]), {},
            "no cliques outside the graph violate the optimum", 1,
        ),
        (_Problem([5, 4, 3, 2], [1] * 9), {"max_rounds": 2}, "the limit of rounds was reached", 2),
        (
            _Problem([5, 4, 3.99, 3.98, 3.97], [1] * 9), {"change_tol": 0.05},
            "two rounds changed the objective by little", 3,
        ),
        (
            _Problem([5, 4, 3.5, 3.49, 3.48, 3.47], [1] * 9), {"change_tol": 0.05},
            "two rounds changed the objective by little", 4,
        ),
    ],
)  # fmt: skip
def test_reasons_to_end(problem, options, reason, n_cliques):
    result, state = _run(problem, **options)
    assert state.reason == reason
    assert state.cliques == ((), *(((0, number + 1),) for number in range(n_cliques)))
    assert result.status is Status.CONVERGED
    assert problem.ends == [0.1] * (n_cliques + 1) + [0.01]


@pytest.mark.parametrize(
    ("last", "excess", "rounds"),
    [
        (((0, 1), (2, 3)), 0.05, 3),  # of chosen cliques, by more than the tolerance of 0.01
        (((0, 1), (2, 3)), 0.03, 2),
        (((0, 1), (0, 3)), 1e-9, 3),  # with a new clique
        (((2, 3), (0, 2)), 0.05, 2),  # a round again
    ],
)
def test_chosen_cliques_return_where_they_violate_by_the_tolerance(last, excess, rounds):
    offers = [((0, 1), (1, 2)), ((0, 2), (2, 3)), last]
    _, state = _run(_Problem([5, 4, 4, 4], [1, 1, excess], offers))
    assert state.cliques == ((), *offers[:rounds])


def test_rounds_tell_cliques_objective_and_held_out_loss():
    result, state = _run(_Problem([5, 4, 3], [9, 8]))
    assert [record.cliques for record in state.records] == [(), ((0, 1),), ((0, 2),)]
    assert [record.score for record in state.records] == [0.0, 18, 16]
    assert [record.primal for record in state.records] == [5, 4, 3]
    assert [record.n_iter for record in state.records] == [2, 2, 2]
    assert {record.held_out_loss for record in state.records} == {0.5}
    assert [record.iteration for record in result.trace] == [2, 4, 6, 8]
    assert np.all(np.diff([record.time for record in result.trace]) > 0)


def test_an_interrupt_between_two_graphs_leaves_the_first(monkeypatch):
    def interrupted(self, rounds, point):
        raise KeyboardInterrupt

    monkeypatch.setattr(_Problem, "propose", interrupted)
    result, state = _run(_Problem([5, 4], [1] * 9))
    assert result.status is Status.INTERRUPTED
    assert (state.cliques, len(state.records), result.trace[-1].primal) == (((),), 1, 5)
