"""Time to a relative duality gap for one-vs-rest hinge machines, linear or with the RBF kernel, on one
thread.

The problem and the gap (P - D) / P of each program are those of ``benchmarks.margin_runs``, P and D summed
over labels; c is 2 C for labelweave's C of linear models, and of kernel models with C = 1.  The loosest
tolerance of a program whose gap is small enough counts.  Later rounds repeat the runs that count, the
programs in turn, so that other load on the machine falls on all of them.  Data are in memory before the clock
starts; what else is not timed is in the docstring of each program's module.

``--kernel``: each program has 2,000 MB for kernel values (--megabytes), the peers as a cache, labelweave as
its memory budget.  Peers are timed on every eighth label (--every).  With SVC on a kernel matrix, which is
computed once and whose seconds count once, a run is cheap, so tolerances are searched for there; the programs
on raw features take the same steps and are run at the tolerances found, and at tighter ones should the gap be
missed.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.frame import RESULTS, command, flag, markdown, save
from benchmarks.machine import describe_machine
from benchmarks.margin_runs import Run, Search, best_dual
from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import load_kernel_problem, load_problem
from benchmarks.programs import KERNEL_PROGRAMS, OWN, PROGRAMS, version_of

Reaching = dict[str, Run | None]  # the runs that count, by gaps; None if none reached one


def measure(problem: PeerProblem, arguments: Any) -> list[tuple[Search, Reaching]]:
    programs = PROGRAMS if problem.is_linear else KERNEL_PROGRAMS
    chosen = [name for name in programs if arguments.peers is None or name in arguments.peers]
    dual = best_dual(problem) if chosen else 0.0
    searches = [Search(problem, OWN)]
    searches += [Search(problem, programs[name], arguments.every, dual) for name in chosen]
    starts: dict[str, float] = {}
    found = []
    for search in searches:
        reaching = {str(gap): _reach(search, gap, starts.get(str(gap))) for gap in arguments.gaps}
        found.append((search, reaching))
        print(f"{search.program.title}: {len(search.runs)} run(s)", flush=True)
        if search.program is programs.get("precomputed"):
            starts = {gap: run.tolerance for gap, run in reaching.items() if run is not None}
    for _ in range(arguments.repeats - 1):
        for search, reaching in found:
            for run in {run.tolerance: run for run in reaching.values() if run is not None}.values():
                search.repeat(run)
    return found


def _reach(search: Search, gap: float, start: float | None) -> Run | None:
    return search.loosest(gap) if start is None else search.from_tolerance(gap, start)


def _describe(arguments: Any, problem: PeerProblem) -> dict[str, Any]:
    return {
        "problem": arguments.problem,
        "rows": problem.X.shape[0],
        "features": problem.X.shape[1],
        "labels": problem.Y.shape[1],
        "labels_timed_with_peers": len(range(0, problem.Y.shape[1], arguments.every)),
        "penalty": problem.penalty,
        "gamma": None if problem.is_linear else problem.gamma,
        "kernel_megabytes": problem.kernel_megabytes,
        "threads": problem.threads,
        "repeats": arguments.repeats,
    }


def _caption(results: dict[str, Any]) -> str:
    return (
        "{problem}: {rows} rows, {features} features, {labels} labels; gamma {gamma}, c = {penalty:g} "
        "(labelweave's C is half of it), {threads} thread(s), median of {repeats} round(s), {processor}, "
        "{cores} cores. Peers were timed on {labels_timed_with_peers} labels and scaled to all."
    ).format(**results, **describe_machine())


def table(found: Sequence[tuple[Search, Reaching]]) -> list[str]:
    """Write a row for each program and a column for each gap.

    A cell holds the seconds for all labels, the ratio to labelweave's, and in brackets the tolerance, the gap
    it gave and, with a kernel, the worst gap of a label.
    """
    own, rows = found[0][1], []
    for search, reaching in found:
        cells = [_cell(run, own[gap]) for gap, run in reaching.items()]
        rows.append([f"{search.program.title} {version_of(search.program)}", *cells])
    return markdown(["program", *(f"gap {float(gap):g}" for gap in own)], rows)


def _cell(run: Run | None, base: Run | None) -> str:
    if run is None:
        return "not reached"
    ratio = "" if base is None else f", {run.seconds / base.seconds:.1f}x"
    worst = "" if run.worst_gap is None else f", worst {run.worst_gap:.1e}"
    return f"{run.seconds:.2f} s{ratio} (tolerance {run.tolerance:g}, gap {run.gap:.1e}{worst})"


@command(
    problem=flag("rcv1", "rcv1, rcv1-subset1, tmc2007, debtags or synthetic:n,d,L; awa-<n>, rcv1 or tmc2007"),
    kernel=flag(False, "the RBF kernel"),
    gaps=[1e-2, 1e-3, 1e-4],
    peers=flag(help="beside labelweave; by default all", nargs="*", choices=[*PROGRAMS, *KERNEL_PROGRAMS]),
    every=flag(help="time peers on every so many labels; default 1, with a kernel 8", type=int),
    repeats=flag(help="rounds; the median counts; default 3, with a kernel 1", type=int),
    megabytes=flag(2000.0, "memory for kernel values"),
    out=flag(help="a JSON file; default results/linear_PROBLEM or kernel_PROBLEM", type=Path),
)
def main(arguments: Any) -> None:
    kind = "kernel" if arguments.kernel else "linear"
    arguments.every = arguments.every or (8 if arguments.kernel else 1)
    arguments.repeats = arguments.repeats or (1 if arguments.kernel else 3)
    if arguments.kernel:
        problem = load_kernel_problem(arguments.problem, 1.0, arguments.megabytes)
    else:
        problem = PeerProblem(*load_problem(arguments.problem), 1.0)
    found = measure(problem, arguments)
    results, lines = _describe(arguments, problem), table(found)
    print(_caption(results), "", *lines, sep="\n")
    runs = {search.program.title: list(map(asdict, search.runs)) for search, _ in found}
    path = arguments.out or RESULTS / f"{kind}_{arguments.problem}.json"
    save(path, results | {"programs": runs, "table": lines})
