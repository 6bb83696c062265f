"""Runs of one-vs-rest kernel machines, with the gaps of their own problems, computed from their coefficients.

The scores of label l are ``s = K b + t`` with the RBF kernel K between the training rows, coefficients b and
bias t.  The values are those of

    min over z, t:  1/2 ||z||^2 [+ t^2 / 2] + c sum_i max(0, 1 - y_i s_i),

where the term in brackets is present if the bias is regularized, as in labelweave but not in the peers.  The
peers' dual point is b itself: it must satisfy ``0 <= y_i b_i <= c`` and sum to 0, and its value is ``sum_i
y_i b_i - 1/2 b^T K b``.  The kernel is computed here, in float64, by scikit-learn, block by block.

A peer is trained on some of the labels; its gap is that of these labels together, and its seconds are
extrapolated to all labels.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.peers.exchange import PeerProblem, Solution, write_problem
from benchmarks.programs import Program, Session

_ROUNDING, _BLOCK_ROWS = 1e-6, 2048


@dataclass(frozen=True)
class KernelRun:
    """One tolerance of one program; seconds are for all labels, the rest for the trained ones."""

    tolerance: float
    seconds: float
    label_seconds: float
    shared_seconds: float
    primal: float
    dual: float
    gap: float
    worst_gap: float | None
    iterations: int | None


def label_values(problem: PeerProblem, coefficients: Any, *, bias_is_free: bool) -> tuple[Any, Any]:
    """Compute primal and dual value of every label; the dual is NaN where the bias is regularized.

    coefficients: A column for each label; the last row is the bias.
    bias_is_free: whether the bias is outside the norm; then the coefficients are a dual point.
    """
    table = np.asarray(coefficients, dtype=np.float64)
    rows, bias = np.ascontiguousarray(table[:-1]), table[-1]
    signs = np.where(problem.Y.toarray() > 0, 1.0, -1.0)
    quadratic, loss = np.zeros((2, table.shape[1]))
    for first in range(0, len(rows), _BLOCK_ROWS):
        part = slice(first, first + _BLOCK_ROWS)
        scores = rbf_kernel(problem.X[part], problem.X, gamma=problem.gamma) @ rows
        quadratic += (rows[part] * scores).sum(axis=0)
        loss += np.maximum(1.0 - signs[part] * (scores + bias), 0.0).sum(axis=0)
    primal = 0.5 * quadratic + problem.penalty * loss
    if not bias_is_free:
        return primal + 0.5 * bias**2, np.full_like(primal, np.nan)
    variables, slack = signs * rows, _ROUNDING * problem.penalty
    if variables.min() < -slack or variables.max() > problem.penalty + slack:
        raise RuntimeError("A peer's dual variables are outside their bounds; its gap cannot be computed.")
    if np.abs(rows.sum(axis=0)).max() > slack * len(rows):
        raise RuntimeError("A peer's dual variables do not balance; its gap cannot be computed.")
    return primal, variables.sum(axis=0) - 0.5 * quadratic


class ToleranceSearch:
    """The runs of one program, each made once, with their tolerances and gaps.

    series: its tolerances, from the loosest to the tightest.
    train: makes the run at a tolerance.
    per_gap: a guess of tolerance over gap, for the first run.
    """

    def __init__(self, series: Sequence[float], train: Callable[[float], Any], per_gap: float = 5.0) -> None:
        self.series, self.train, self.per_gap = list(series), train, per_gap
        self._runs: dict[float, Any] = {}

    @property
    def runs(self) -> list[Any]:
        return [self._runs[tolerance] for tolerance in sorted(self._runs, reverse=True)]

    def at(self, tolerance: float) -> Any:
        if tolerance not in self._runs:
            self._runs[tolerance] = self.train(tolerance)
        return self._runs[tolerance]

    def loosest(self, gap: float) -> Any:
        """Find the run of the loosest tolerance whose gap is small enough; None if even the tightest misses.

        The gap is about proportional to the tolerance, which predicts where to look; both the tolerance found
        and the next looser one are run.
        """
        known = {self.series.index(tolerance): run for tolerance, run in self._runs.items()}
        reaching = min((i for i, run in known.items() if run.gap <= gap), default=len(self.series))
        missing = max((i for i, run in known.items() if run.gap > gap and i < reaching), default=-1)
        while missing + 1 < reaching:
            last = min(reaching, len(self.series)) - 1
            position = int(np.clip(self._foretold(gap), missing + 1, last))
            if self.at(self.series[position]).gap <= gap:
                reaching = position
            else:
                missing = position
        return self.at(self.series[reaching]) if reaching < len(self.series) else None

    def _foretold(self, gap: float) -> int:
        wanted = self.per_gap * gap
        if self._runs:
            nearest = min(self._runs.values(), key=lambda run: abs(np.log(run.gap / gap)))
            wanted = nearest.tolerance * gap / nearest.gap
        return int(np.searchsorted(-np.array(self.series), -wanted))

    def from_tolerance(self, gap: float, start: float) -> Any:
        """Find the first run, from a tolerance of the series on, whose gap is small enough; or None."""
        tail = self.series[self.series.index(start) :]
        return next((run for run in map(self.at, tail) if run.gap <= gap), None)


def own_runs(problem: PeerProblem, program: Program, gaps: Sequence[float]) -> list[KernelRun]:
    """Fit labelweave to gaps; the primal value is computed here, the dual one is labelweave's."""
    runs = []
    with tempfile.TemporaryDirectory() as scratch:
        for one in trained(problem, program, gaps, Path(scratch)):
            primal = float(label_values(problem, one.weights, bias_is_free=False)[0].sum())
            if one.dual is None:
                raise RuntimeError("labelweave's run told no dual value.")
            values = primal, one.dual, (primal - one.dual) / primal, None, one.iterations
            runs.append(KernelRun(one.tolerance, one.seconds, one.seconds, 0.0, *values))
    return runs


def peer_runs(problem: PeerProblem, program: Program, n_labels: int) -> ToleranceSearch:
    """Prepare a peer for some labels, whose seconds are scaled to this many."""
    share = problem.Y.shape[1] / n_labels

    def train(tolerance: float) -> KernelRun:
        with tempfile.TemporaryDirectory() as scratch:
            (one,) = trained(problem, program, [tolerance], Path(scratch))
            primal, dual = label_values(problem, one.weights, bias_is_free=True)
        seconds = one.seconds / share + one.shared_seconds, one.seconds, one.shared_seconds
        worst, (p, d) = float(((primal - dual) / primal).max()), (float(primal.sum()), float(dual.sum()))
        return KernelRun(one.tolerance, *seconds, p, d, (p - d) / p, worst, one.iterations)

    return ToleranceSearch(program.tolerances, train)


def trained(
    problem: PeerProblem, program: Program, tolerances: Sequence[float], folder: Path
) -> list[Solution]:
    """Train in a separate process; the weights stay readable while the folder exists."""
    write_problem(folder / "problem.npz", problem)
    session = Session(folder / "problem.npz", problem.threads)
    solutions = session.run(program, tolerances, folder / "answer")
    if any(solution.weights is None for solution in solutions):
        raise RuntimeError(f"A run of {program.title} left no coefficients.")
    return solutions
