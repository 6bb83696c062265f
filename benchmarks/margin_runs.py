"""Runs of one-vs-rest hinge machines, with the gaps of their own problems, computed from their weights.

The scores of label l are ``s = X z + t``, or with the RBF kernel K of the training rows ``s = K b + t``.  The
values are those of

    min over z, t:  1/2 ||z||^2 [+ t^2 / 2] + c sum_i max(0, 1 - y_i s_i),

where the term in brackets is present if the bias is regularized: in labelweave, and in all linear programs,
as the weight of a constant feature.  Primal values are computed here, in float64, block by block.

The dual point of a peer with a kernel is b itself: it must satisfy ``0 <= y_i b_i <= c`` and sum to 0, and
its value is ``sum_i y_i b_i - 1/2 b^T K b``.  Linear peers return no dual variables, so their gaps use the
largest dual value that is known: their own if they print it, or labelweave's at a gap of 1e-5.  That is a
lower bound on the gap which the peer itself could certify, and favors the peer.

A peer may be trained on some of the labels; its gap is that of these labels together, and its seconds are
extrapolated to all labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.peers.exchange import PeerProblem, Solution, pack, unpack
from benchmarks.problems import with_labels
from benchmarks.programs import OWN, Program, ask

_ROUNDING, _BLOCK_ROWS = 1e-6, 2048
_REFERENCE = 1e-5  # labelweave's gap for the dual value that linear peers are measured against


@dataclass
class Run:
    """One tolerance of one program; seconds are for all labels, the values for the trained ones."""

    tolerance: float
    seconds: float
    all_seconds: list[float]
    primal: float
    dual: float
    gap: float
    worst_gap: float | None
    iterations: int | None


def label_values(problem: PeerProblem, weights: Any, *, bias_is_free: bool = False) -> tuple[Any, Any]:
    """Compute primal and dual value of every label; the dual is NaN where the bias is regularized.

    weights: A column for each label, of features or, with a kernel, of rows; the last row is the bias.
    bias_is_free: whether the bias is outside the norm; then the coefficients are a dual point.
    """
    table = np.asarray(weights, dtype=np.float64)
    rows, bias = np.ascontiguousarray(table[:-1]), table[-1]
    signs = np.where(problem.Y.toarray() > 0, np.int8(1), np.int8(-1))
    quadratic, loss = np.zeros((2, table.shape[1]))
    for first in range(0, len(signs), _BLOCK_ROWS):
        part = slice(first, first + _BLOCK_ROWS)
        X = problem.X[part]
        scores = (X if problem.is_linear else rbf_kernel(X, problem.X, gamma=problem.gamma)) @ rows
        quadratic += 0.0 if problem.is_linear else (rows[part] * scores).sum(axis=0)
        loss += np.maximum(1.0 - signs[part] * (scores + bias), 0.0).sum(axis=0)
    primal = 0.5 * (np.square(rows).sum(axis=0) if problem.is_linear else quadratic) + problem.penalty * loss
    if not bias_is_free:
        return primal + 0.5 * bias**2, np.full_like(primal, np.nan)
    variables, slack = signs * rows, _ROUNDING * problem.penalty
    if variables.min() < -slack or variables.max() > problem.penalty + slack:
        raise RuntimeError("A peer's dual variables are outside their bounds; its gap cannot be computed.")
    if np.abs(rows.sum(axis=0)).max() > slack * len(rows):
        raise RuntimeError("A peer's dual variables do not balance; its gap cannot be computed.")
    return primal, variables.sum(axis=0) - 0.5 * quadratic


def best_dual(problem: PeerProblem) -> float:
    """Return labelweave's dual value at a small gap, which linear peers need."""
    return Search(problem, OWN).at(_REFERENCE).dual if problem.is_linear else -np.inf


class Search:
    """The runs of one program, each made once in a separate process, with their tolerances and gaps.

    every: a peer trains every so many labels.
    known_dual: of a linear problem, for peers.
    series: the program's tolerances, from the loosest to the tightest.
    """

    def __init__(
        self, problem: PeerProblem, program: Program, every: int = 1, known_dual: float = -np.inf
    ) -> None:
        labels = np.arange(0, problem.Y.shape[1], every)
        self.problem, self.program, self.known_dual = with_labels(problem, labels), program, known_dual
        self.scale = problem.Y.shape[1] / len(labels)
        self.series: Sequence[float] = program.tolerances
        self._runs: dict[float, Run] = {}

    @property
    def runs(self) -> list[Run]:
        return [self._runs[tolerance] for tolerance in sorted(self._runs, reverse=True)]

    def at(self, tolerance: float) -> Run:
        if tolerance not in self._runs:
            self._runs[tolerance] = self._run(tolerance, self._trained(tolerance))
        return self._runs[tolerance]

    def repeat(self, run: Run) -> None:
        """Time a run once more; the median counts."""
        run.all_seconds.append(self._seconds(self._trained(run.tolerance)))
        run.seconds = median(run.all_seconds)

    def _trained(self, tolerance: float) -> Solution:
        found = ask(self.program, **pack(self.problem), tolerance=tolerance)
        return unpack(Solution, found)

    def _seconds(self, one: Solution) -> float:
        return self.scale * one.seconds + one.shared_seconds

    def _run(self, tolerance: float, one: Solution) -> Run:
        bias_is_free = not (self.problem.is_linear or self.program.is_own)
        primal, dual = label_values(self.problem, one.weights, bias_is_free=bias_is_free)
        worst = float(((primal - dual) / primal).max()) if bias_is_free else None
        printed = -np.inf if one.dual is None else one.dual
        total = float(dual.sum()) if bias_is_free else max(self.known_dual, printed)
        values = (p := float(primal.sum())), total, (p - total) / p, worst, one.iterations
        return Run(tolerance, seconds := self._seconds(one), [seconds], *values)

    def loosest(self, gap: float) -> Run | None:
        """Find the run of the loosest tolerance whose gap is small enough; None if even the tightest misses.

        labelweave's tolerance is the gap.  The gap of a peer is about proportional to its tolerance, which
        predicts where to look; both the tolerance found and the next looser one are run.
        """
        if self.program.is_own:
            return self.at(gap)
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
        wanted = (50.0 if self.problem.is_linear else 5.0) * gap
        if self._runs:
            nearest = min(self._runs.values(), key=lambda run: abs(np.log(run.gap / gap)))
            wanted = nearest.tolerance * gap / nearest.gap
        return int(np.searchsorted(-np.array(self.series), -wanted))

    def from_tolerance(self, gap: float, start: float) -> Run | None:
        """Find the first run, from a tolerance of the series on, whose gap is small enough; or None."""
        tail = self.series[self.series.index(start) :]
        return next((run for run in map(self.at, tail) if run.gap <= gap), None)
