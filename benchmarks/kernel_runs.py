"""Runs of kernel machines, with the gaps of their own problems.

A peer is trained on some of the labels; its gap is that of these labels together,
and its seconds are those of all labels if the rest take as long on average.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kernel_objective import LabelValues, label_values
from benchmarks.peers.exchange import PeerProblem, Solution, write_problem
from benchmarks.programs import Program, Session
from benchmarks.tolerance_search import ToleranceSearch


@dataclass(frozen=True)
class KernelRun:
    """One tolerance of one program.

    ``seconds`` are for all labels; ``label_seconds``, ``primal``, ``dual`` and the gaps are
    those of the labels that were trained.
    """

    tolerance: float
    seconds: float
    label_seconds: float
    shared_seconds: float
    primal: float
    dual: float
    gap: float
    worst_gap: float | None
    iterations: int | None


def own_runs(problem: PeerProblem, program: Program, gaps: Sequence[float]) -> list[KernelRun]:
    """Fit labelweave to gaps.

    problem: all rows and labels.
    gaps: the relative duality gaps to reach.
    Returns: one for each gap; the primal value is computed here, the dual one is labelweave's.
    """
    with tempfile.TemporaryDirectory() as scratch:
        solutions = _train(problem, program, gaps, Path(scratch))
        return [_own_run(problem, solution) for solution in solutions]


def _own_run(problem: PeerProblem, solution: Solution) -> KernelRun:
    primal = float(_values(problem, solution, bias_is_free=False).primal.sum())
    if solution.dual is None:
        raise RuntimeError("labelweave's run told no dual value.")
    gap = (primal - solution.dual) / primal
    return KernelRun(
        solution.tolerance, solution.seconds, solution.seconds, 0.0,
        primal, solution.dual, gap, None, solution.iterations,
    )  # fmt: skip


def peer_runs(problem: PeerProblem, program: Program, n_labels: int) -> ToleranceSearch[KernelRun]:
    """Get ready to run a peer at tolerances.

    problem: all rows, the labels to train.
    n_labels: all labels, to scale the seconds to.
    """
    share = problem.Y.shape[1] / n_labels

    def train(tolerance: float) -> KernelRun:
        with tempfile.TemporaryDirectory() as scratch:
            (solution,) = _train(problem, program, [tolerance], Path(scratch))
            return _peer_run(problem, solution, share)

    return ToleranceSearch(program.tolerances, train)


def _peer_run(problem: PeerProblem, solution: Solution, share: float) -> KernelRun:
    values = _values(problem, solution, bias_is_free=True)
    primal, dual = float(values.primal.sum()), float(values.dual.sum())
    return KernelRun(
        solution.tolerance, solution.seconds / share + solution.shared_seconds,
        solution.seconds, solution.shared_seconds, primal, dual, (primal - dual) / primal,
        float(values.gaps().max()), solution.iterations,
    )  # fmt: skip


def _values(problem: PeerProblem, solution: Solution, *, bias_is_free: bool) -> LabelValues:
    if solution.weights is None:
        raise RuntimeError(f"The run at tolerance {solution.tolerance:g} left no coefficients.")
    return label_values(problem, solution.weights, bias_is_free=bias_is_free)


def _train(
    problem: PeerProblem, program: Program, tolerances: Sequence[float], folder: Path
) -> list[Solution]:
    """Train in a process of its own; the weights stay readable while the folder is there."""
    write_problem(folder / "problem.npz", problem)
    session = Session(folder / "problem.npz", problem.threads)
    return session.run(program, tolerances, folder / "answer")
