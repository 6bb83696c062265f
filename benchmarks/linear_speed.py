"""Time to a relative duality gap for linear one-vs-rest hinge machines.

Every program solves, for every label l,

    min over z:  1/2 ||z||^2 + c sum_i max(0, 1 - y_il z.x_i),

``x_i`` with a constant feature 1 appended and c = 2 C for labelweave's C.  The
gap (P - D) / P has P and D summed over labels; P is computed here, in float64,
from the weights that a program returns.

labelweave's gap uses its own dual value.  A peer returns no dual variables, so
its gap uses D_best, the largest dual value that any run of any program reached
(labelweave is run once more, to --reference-tolerance, for it).  That is a
lower bound on the gap which the peer itself could certify: it favours the peer.
LIBLINEAR prints its dual value, so its own gap is in the results file too.

Peers stop by another rule than the gap.  Each is run over a series of
tolerances, and the loosest one whose gap is below the target is the one that
counts.  The first round runs the whole series, later rounds the tolerances that
count; within a round the programs follow one another, so that other load on the
machine falls on all of them.  Data are in memory before the clock starts.  What
else is not timed is in the docstring of each program's module.

Example: ``python -m benchmarks.linear_speed --problem rcv1 --repeats 3``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.frame import flag, read_options, several, write_json
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.objective import primal_value
from benchmarks.peers.exchange import PeerProblem, Solution, write_problem
from benchmarks.problems import DEFAULT_DATA, load_problem
from benchmarks.programs import PROGRAMS, Program, Session, version_of
from benchmarks.speed_table import Curve, Point, markdown_table, reaching_points

_TARGETS = (1e-2, 1e-3, 1e-4)


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        problem=flag("rcv1", "rcv1, rcv1-subset1, tmc2007, debtags or synthetic:n,d,L"),
        penalty=flag(1.0, "c above: LIBLINEAR's -c, twice labelweave's C"),
        threads=flag(1, "LIBLINEAR uses one whatever is given"),
        repeats=flag(3, "rounds; the median time of a tolerance counts"),
        programs=several(PROGRAMS),
        reference_tolerance=flag(1e-5, "labelweave's gap for D_best"),
        data=flag(DEFAULT_DATA, "the folder that has rcv1/"),
        out=flag(help="a JSON file for the results", type=Path),
    )
    X, Y = load_problem(arguments.problem, arguments.data)
    problem = PeerProblem(X, Y, arguments.penalty, arguments.threads)
    programs = [PROGRAMS[name] for name in arguments.programs]
    curves, best_dual = measure(problem, programs, arguments.repeats, arguments.reference_tolerance)
    results = _describe(arguments, problem) | {"best_dual": best_dual, "curves": list(map(asdict, curves))}
    table = markdown_table(curves, _TARGETS)
    print(_caption(results), table, sep="\n\n")
    if arguments.out is not None:
        write_json(arguments.out, results | {"table": table.splitlines()})


def measure(
    problem: PeerProblem, programs: Sequence[Program], repeats: int, reference_tolerance: float
) -> tuple[list[Curve], float]:
    """Run the programs in interleaved rounds.

    problem: features, labels, penalty and threads.
    programs: the programs, in the order of the table.
    reference_tolerance: the relative gap of labelweave's run for the best dual value.
    curves: Times and gaps, one for each program.
    best_dual: The largest dual value seen.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_problem(folder / "problem.npz", problem)
        session = Session(folder / "problem.npz", problem.threads)
        curves = [_first_round(session, problem, program, folder) for program in programs]
        best_dual = _best_dual(session, programs, curves, reference_tolerance)
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
    """Time again the points that the table shows."""
    shown = {point.tolerance: point for point in reaching_points(curve, _TARGETS) if point is not None}
    if shown:
        for solution in session.run(program, list(shown)):
            shown[solution.tolerance].all_seconds.append(solution.seconds)


def _best_dual(
    session: Session, programs: Sequence[Program], curves: Sequence[Curve], tolerance: float
) -> float:
    duals = [point.own_dual for curve in curves for point in curve.points]
    for program in programs:
        if program.is_own:
            duals += [solution.dual for solution in session.run(program, [tolerance])]
    known = [dual for dual in duals if dual is not None]
    if not known:
        raise ValueError("No program given reports a dual value; add labelweave or liblinear to --programs.")
    return max(known)


def _describe(arguments: argparse.Namespace, problem: PeerProblem) -> dict[str, Any]:
    return {
        "problem": arguments.problem,
        "rows": problem.X.shape[0],
        "features": problem.X.shape[1],
        "non_zeros": int(problem.X.nnz),
        "labels": problem.Y.shape[1],
        "positives": int(problem.Y.nnz),
        "penalty": arguments.penalty,
        "threads": arguments.threads,
        "repeats": arguments.repeats,
        **describe_machine(),
    }


def _caption(results: dict[str, Any]) -> str:
    return (
        "{problem}: {rows} rows, {features} features, {non_zeros} non-zeros, {labels} labels; "
        "c = {penalty:g} (labelweave's C is half of it), {threads} thread(s), median of {repeats} rounds, "
        "{processor}, {cores} cores. D_best = {best_dual:.3f}."
    ).format(**results)


if __name__ == "__main__":
    main()
