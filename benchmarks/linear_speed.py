"""Time to a relative duality gap for linear one-vs-rest hinge machines.

Every program solves, for every label l,

    min over z:  1/2 ||z||^2 + c sum_i max(0, 1 - y_il z.x_i),

``x_i`` with a constant feature 1 appended and c = 2 C for labelweave's C. The gap (P - D) / P has P and D
summed over labels; P is computed here, in float64, from the weights that a program returns.

labelweave's gap uses its own dual value. A peer returns no dual variables, so its gap uses D_best, the
largest dual value that any run of any program reached (labelweave is run once more, to 1e-5, for it): a lower
bound on the gap which the peer itself could certify, which favors the peer. LIBLINEAR prints its dual value,
so its own gap is in the results file too.

Peers stop by another rule than the gap: the loosest of a series of tolerances whose gap is below the target
counts. The first round runs the whole series, later rounds the tolerances that count; within a round the
programs follow one another, so that other load on the machine falls on all of them. Data are in memory before
the clock starts; what else is not timed is in the docstring of each program's module.
"""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import OUT, command, flag, markdown, save, several
from benchmarks.machine import describe_machine
from benchmarks.peers.exchange import PeerProblem, Solution, write_problem
from benchmarks.problems import load_problem
from benchmarks.programs import PROGRAMS, Program, Session, version_of

_TARGETS = (1e-2, 1e-3, 1e-4)
_REFERENCE = 1e-5  # labelweave's gap for D_best


@dataclass
class Point:
    """One tolerance of one program; the table uses ``gap``."""

    tolerance: float
    primal: float
    own_dual: float | None
    iterations: int | None
    gap: float = float("nan")
    own_gap: float | None = None
    all_seconds: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(self.all_seconds)


@dataclass
class Curve:
    """A program's points from the loosest tolerance to the tightest."""

    title: str
    version: str
    is_own: bool
    points: list[Point]

    def set_gaps(self, best_dual: float) -> None:
        """Compute the gaps: labelweave's from its own dual value, a peer's from the best known one."""
        for point in self.points:
            if point.own_dual is not None:
                point.own_gap = _relative_gap(point.primal, point.own_dual)
            point.gap = _relative_gap(point.primal, best_dual)
            if self.is_own and point.own_gap is not None:
                point.gap = point.own_gap


def _relative_gap(primal: float, dual: float) -> float:
    return (primal - dual) / abs(primal)


def measure(problem: PeerProblem, programs: Sequence[Program], repeats: int) -> tuple[list[Curve], float]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_problem(folder / "problem.npz", problem)
        session = Session(folder / "problem.npz", problem.threads)
        curves = [_first_round(session, problem, program, folder) for program in programs]
        best_dual = _best_dual(session, programs, curves)
        for curve in curves:
            curve.set_gaps(best_dual)
        for _ in range(repeats - 1):
            for program, curve in zip(programs, curves, strict=True):
                _further_round(session, program, curve)
    return curves, best_dual


def _first_round(session: Session, problem: PeerProblem, program: Program, folder: Path) -> Curve:
    """Run all tolerances and compute the primal values; the weights are dropped afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as answer:
        solutions = session.run(program, program.tolerances, Path(answer))
        points = [
            Point(
                solution.tolerance,
                _primal_of(problem, solution),
                solution.dual,
                solution.iterations,
                all_seconds=[solution.seconds],
            )
            for solution in solutions
        ]
    return Curve(program.title, version_of(program), program.is_own, points)


def _primal_of(problem: PeerProblem, solution: Solution) -> float:
    if solution.weights is None:
        raise ValueError(
            f"The run at tolerance {solution.tolerance:g} left no weights; its primal is unknown."
        )
    return primal_value(problem.X, problem.Y, problem.penalty / 2.0, solution.weights)


def _further_round(session: Session, program: Program, curve: Curve) -> None:
    shown = {point.tolerance: point for point in reaching_points(curve, _TARGETS) if point is not None}
    if shown:
        for solution in session.run(program, list(shown)):
            shown[solution.tolerance].all_seconds.append(solution.seconds)


def _best_dual(session: Session, programs: Sequence[Program], curves: Sequence[Curve]) -> float:
    duals = [point.own_dual for curve in curves for point in curve.points]
    for program in programs:
        if program.is_own:
            duals += [solution.dual for solution in session.run(program, [_REFERENCE])]
    known = [dual for dual in duals if dual is not None]
    if not known:
        raise ValueError("No program given reports a dual value; add labelweave or liblinear to --programs.")
    return max(known)


def _describe(arguments: Any, problem: PeerProblem) -> dict[str, Any]:
    return {
        "problem": arguments.problem,
        "rows": problem.X.shape[0],
        "features": problem.X.shape[1],
        "non_zeros": int(problem.X.nnz),
        "labels": problem.Y.shape[1],
        "positives": int(problem.Y.nnz),
        "penalty": problem.penalty,
        "threads": problem.threads,
        "repeats": arguments.repeats,
    }


def _caption(results: dict[str, Any]) -> str:
    return (
        "{problem}: {rows} rows, {features} features, {non_zeros} non-zeros, {labels} labels; "
        "c = {penalty:g} (labelweave's C is half of it), {threads} thread(s), median of {repeats} rounds, "
        "{processor}, {cores} cores. D_best = {best_dual:.3f}."
    ).format(**results, **describe_machine())


def reaching_points(curve: Curve, targets: Sequence[float]) -> list[Point | None]:
    """Find, for each target, the loosest tolerance whose gap is at most the target."""
    return [next((point for point in curve.points if point.gap <= target), None) for target in targets]


def markdown_table(curves: Sequence[Curve], targets: Sequence[float]) -> str:
    """Write a row for each program and a column for each target.

    A cell holds the median seconds, the ratio to labelweave's where labelweave
    was run, and in brackets the tolerance and the gap it gave.
    """
    own = next((reaching_points(curve, targets) for curve in curves if curve.is_own), [None] * len(targets))
    rows = []
    for curve in curves:
        points = reaching_points(curve, targets)
        cells = [_cell(point, base) for point, base in zip(points, own, strict=True)]
        rows.append([f"{curve.title} {curve.version}", *cells])
    return "\n".join(markdown(["program", *(f"gap {target:g}" for target in targets)], rows))


def _cell(point: Point | None, base: Point | None) -> str:
    if point is None:
        return "not reached"
    ratio = "" if base is None else f", {point.seconds / base.seconds:.1f}x"
    return f"{point.seconds:.2f} s{ratio} (tolerance {point.tolerance:g}, gap {point.gap:.1e})"


def primal_value(X: Any, Y: Any, C: float, weights: Any, block_rows: int = 2048) -> float:
    """Compute sum_l 1/2 ||z_l||^2 + 2 C sum_i max(0, 1 - y_il z_l.x_i) in float64."""
    weights = np.asarray(weights, dtype=np.float64)
    X, Y = sp.csr_array(X, dtype=np.float64), sp.csr_array(Y)
    loss = sum(
        _hinge_sum(X[first : first + block_rows], Y[first : first + block_rows], weights)
        for first in range(0, X.shape[0], block_rows)
    )
    return 0.5 * float(np.vdot(weights, weights)) + 2.0 * C * loss


def _hinge_sum(X: sp.csr_array, Y: sp.csr_array, weights: Any) -> float:
    margins = X @ weights[:-1] + weights[-1]
    positives = Y.nonzero()
    margins[positives] *= -1.0
    # margins hold -y * score now, except that y = -1 leaves the score as it is
    return float(np.maximum(1.0 + margins, 0.0).sum())


@command(
    problem=flag("rcv1", "rcv1, rcv1-subset1, tmc2007, debtags or synthetic:n,d,L"),
    repeats=flag(3, "rounds; the median time of a tolerance counts"),
    programs=several(PROGRAMS),
    out=OUT,
)
def main(arguments: Any) -> None:
    X, Y = load_problem(arguments.problem)
    problem = PeerProblem(X, Y, 1.0)
    programs = [PROGRAMS[name] for name in arguments.programs]
    curves, best_dual = measure(problem, programs, arguments.repeats)
    results = _describe(arguments, problem) | {"best_dual": best_dual, "curves": list(map(asdict, curves))}
    table = markdown_table(curves, _TARGETS)
    print(_caption(results), table, sep="\n\n")
    save(arguments.out, results | {"table": table.splitlines()})
