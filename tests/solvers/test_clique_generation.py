import numpy as np
import pytest

from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import PassRecord, PassResult
from labelweave.solvers.clique_generation import CliqueGeneration, Proposal


class _Problem:
    """Objectives and scores that are given."""

    def __init__(self, primals, scores, bounds=None, status=Status.CONVERGED):
        self.primals, self.scores, self.status = primals, scores, status
        self.bounds = bounds or [0.0] * len(scores)
        self.active, self.finals = [], []

    def solve(self, final):
        self.finals.append(final)
        primal = self.primals[min(len(self.active), len(self.primals) - 1)]
        record = PassRecord(2, 1.0, primal, primal - 0.1, 0.1, len(self.active))
        return PassResult(self.status, 2, [record])

    def propose(self):
        number = len(self.active)
        if number == len(self.scores):
            return Proposal((), 0.0, 0.0)
        return Proposal(((0, number + 1),), self.scores[number], self.bounds[number])

    def activate(self, proposal):
        self.active += proposal.cliques


def _run(problem, max_rounds=10, change_tol=0.0, on_round=lambda record: False):
    return CliqueGeneration(max_rounds, change_tol, lambda: 0.5, on_round).run(problem)


@pytest.mark.parametrize(
    ("problem", "options", "reason", "n_cliques"),
    [
        (_Problem([5, 4, 3], [1, 1]), {}, "all candidate cliques are in the graph", 2),
        (_Problem([5, 4, 3], [3, 2, 1], [0, 2, 2]), {}, "no candidate clique violates the optimum", 1),
        (_Problem([5, 4, 3, 2], [1] * 9), {"max_rounds": 2}, "the limit of rounds was reached", 2),
        (
            _Problem([5, 4, 3.99, 3.98, 3.97], [1] * 9), {"change_tol": 0.05},
            "two rounds changed the objective by little", 3,
        ),
    ],
)  # fmt: skip
def test_reasons_to_end(problem, options, reason, n_cliques):
    result = _run(problem, **options)
    assert result.reason == reason
    assert len(problem.active) == n_cliques
    assert result.status is Status.CONVERGED
    assert problem.finals == [False] * (n_cliques + 1) + [True]


def test_rounds_tell_cliques_objective_and_held_out_loss():
    result = _run(_Problem([5, 4, 3], [9, 8], [0, 1]))
    assert [record.cliques for record in result.rounds] == [(), ((0, 1),), ((0, 2),)]
    assert [record.score for record in result.rounds] == [0.0, 9, 8]
    assert [record.primal for record in result.rounds] == [5, 4, 3]
    assert {record.held_out_loss for record in result.rounds} == {0.5}
    assert [record.iteration for record in result.trace] == [2, 4, 6, 8]
    assert np.all(np.diff([record.time for record in result.trace]) > 0)


def test_a_callback_or_an_interrupt_ends_the_run():
    result = _run(_Problem([5, 4], [1] * 9), on_round=lambda record: record.round == 1)
    assert (result.reason, result.status, len(result.rounds)) == ("interrupted", Status.INTERRUPTED, 2)
    problem = _Problem([5, 4], [1] * 9, status=Status.INTERRUPTED)
    assert _run(problem).status is Status.INTERRUPTED
    assert problem.active == []
