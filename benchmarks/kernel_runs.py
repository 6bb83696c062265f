"""Runs of kernel machines with their gaps, and the search for the tolerance that reaches a gap.

A peer is trained on some of the labels; its gap is that of these labels together,
and its seconds are those of all labels if the rest take as long on average.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.kernel_objective import label_values
from benchmarks.peers.exchange import PeerProblem, Solution, write_problem
from benchmarks.programs import Program, Session

__all__ = ["KernelRun", "PeerRuns", "own_runs"]


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

    Parameters
    ----------
    problem : PeerProblem
        All rows and labels.
    program : Program
        labelweave.
    gaps : sequence of float
        The relative duality gaps to reach.

    Returns
    -------
    list of KernelRun
        One for each gap; the primal value is computed here, the dual one is labelweave's.
    """
    with tempfile.TemporaryDirectory() as scratch:
        solutions = _train(problem, program, gaps, Path(scratch))
        return [_own_run(problem, solution) for solution in solutions]


def _own_run(problem: PeerProblem, solution: Solution) -> KernelRun:
    primal = float(label_values(problem, solution.weights, bias_is_free=False).primal.sum())
    if solution.dual is None:
        raise RuntimeError("labelweave's run told no dual value.")
    gap = (primal - solution.dual) / primal
    return KernelRun(
        solution.tolerance, solution.seconds, solution.seconds, 0.0,
        primal, solution.dual, gap, None, solution.iterations,
    )  # fmt: skip


class PeerRuns:
    """The runs of one peer, each made once.

    Parameters
    ----------
    problem : PeerProblem
        All rows, the labels to train.
    program : Program
        The peer.
    n_labels : int
        All labels, to scale the seconds to.
    """

    def __init__(self, problem: PeerProblem, program: Program, n_labels: int) -> None:
        self.problem, self.program = problem, program
        self.share = problem.Y.shape[1] / n_labels
        self._runs: dict[float, KernelRun] = {}

    @property
    def runs(self) -> list[KernelRun]:
        """All runs, from the loosest tolerance to the tightest."""
        return [self._runs[tolerance] for tolerance in sorted(self._runs, reverse=True)]

    def at(self, tolerance: float) -> KernelRun:
        """Train at a tolerance, unless that was done.

        Parameters
        ----------
        tolerance : float
            The program's own.

        Returns
        -------
        KernelRun
            Times and gaps.
        """
        if tolerance not in self._runs:
            with tempfile.TemporaryDirectory() as scratch:
                (solution,) = _train(self.problem, self.program, [tolerance], Path(scratch))
                self._runs[tolerance] = self._run(solution)
        return self._runs[tolerance]

    def _run(self, solution: Solution) -> KernelRun:
        values = label_values(self.problem, solution.weights, bias_is_free=True)
        primal, dual = float(values.primal.sum()), float(values.dual.sum())
        return KernelRun(
            solution.tolerance,
            solution.seconds / self.share + solution.shared_seconds,
            solution.seconds,
            solution.shared_seconds,
            primal,
            dual,
            (primal - dual) / primal,
            float(values.gaps().max()),
            solution.iterations,
        )

    def loosest(self, gap: float) -> KernelRun | None:
        """Find the loosest tolerance of the program's series whose gap is small enough.

        The gap is about proportional to the tolerance, which foretells where to look; both the
        tolerance found and the next looser one are run.

        Parameters
        ----------
        gap : float
            The relative gap to reach.

        Returns
        -------
        KernelRun or None
            The run; ``None`` if even the tightest tolerance misses.
        """
        series = self.program.tolerances
        known = {series.index(tolerance): run for tolerance, run in self._runs.items()}
        reaching = min((i for i, run in known.items() if run.gap <= gap), default=len(series))
        missing = max((i for i, run in known.items() if run.gap > gap and i < reaching), default=-1)
        while missing + 1 < reaching:
            middle = int(np.clip(self._foretold(gap), missing + 1, min(reaching, len(series)) - 1))
            if self.at(series[middle]).gap <= gap:
                reaching = middle
            else:
                missing = middle
        return self.at(series[reaching]) if reaching < len(series) else None

    def from_tolerance(self, gap: float, start: float) -> KernelRun | None:
        """Find the first tolerance, from a given one on, whose gap is small enough.

        Parameters
        ----------
        gap : float
            The relative gap to reach.
        start : float
            A tolerance of the program's series.

        Returns
        -------
        KernelRun or None
            The run; ``None`` if even the tightest tolerance misses.
        """
        tail = self.program.tolerances[self.program.tolerances.index(start) :]
        return next((run for run in map(self.at, tail) if run.gap <= gap), None)

    def _foretold(self, gap: float) -> int:
        series = np.array(self.program.tolerances)
        wanted = 5.0 * gap  # what the first run is made at
        if self._runs:
            nearest = min(self._runs.values(), key=lambda run: abs(np.log(run.gap / gap)))
            wanted = nearest.tolerance * gap / nearest.gap
        return int(np.searchsorted(-series, -wanted))


def _train(
    problem: PeerProblem, program: Program, tolerances: Sequence[float], folder: Path
) -> list[Solution]:
    """Train in a process of its own; the weights stay readable while the folder is there."""
    write_problem(folder / "problem.npz", problem)
    session = Session(folder / "problem.npz", problem.threads)
    return session.run(program, tolerances, folder / "answer")
