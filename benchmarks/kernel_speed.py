"""Time to a relative duality gap for one-vs-rest machines with the RBF kernel, on one thread.

labelweave solves all labels together, with a regularized bias. The peers solve, label after label, with a
free bias and c = 2 C for labelweave's C,

    min over z, t:  1/2 ||z||^2 + c sum_i max(0, 1 - y_i (z.phi(x_i) + t)).

They are LIBSVM and scikit-learn's SVC on the features, and SVC with the kernel matrix, which is computed once
and whose seconds count once. Each has 2,000 MB for kernel values (--megabytes): the peers as a cache,
labelweave as its memory budget.

The gap (P - D) / P of a program is that of its own problem, P and D summed over labels, computed in float64
from the coefficients and the bias that it returns (``benchmarks.kernel_runs``); labelweave's D is its own.
The worst gap of a label is given too. Peers are timed on every eighth label (--every) and their seconds
scaled to all labels. The loosest tolerance whose gap is small enough counts. It is searched for with the
precomputed kernel, where a run is cheap; the programs on raw features take the same steps and are run at the
tolerances found there, and at tighter ones should the gap be missed. One run each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag, markdown, save, several
from benchmarks.kernel_runs import KernelRun, ToleranceSearch, own_runs, peer_runs
from benchmarks.machine import describe_machine
from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import load_kernel_problem, with_labels
from benchmarks.programs import KERNEL_PROGRAMS, Program, version_of

_GAPS = (1e-2, 1e-3, 1e-4)
_PEERS = ("precomputed", "sklearn", "libsvm")


@dataclass
class KernelCurve:
    """A program's runs, and which of them reached each gap; ``None`` if none did, absent if not tried."""

    title: str
    version: str
    is_own: bool
    runs: list[KernelRun]
    reaching: dict[str, KernelRun | None]


def measure(problem: PeerProblem, arguments: Any) -> list[KernelCurve]:
    curves = [_own_curve(problem, arguments.gaps)]
    timed = with_labels(problem, _timed_labels(problem, arguments.every))
    starts: dict[str, float] = {}
    for name in _PEERS:
        if name in arguments.peers:
            search = peer_runs(timed, KERNEL_PROGRAMS[name], problem.Y.shape[1])
            reaching = _reach(search, arguments.gaps, starts)
            curves.append(_curve(KERNEL_PROGRAMS[name], search.runs, reaching))
            if name == "precomputed":
                starts = {gap: run.tolerance for gap, run in reaching.items() if run is not None}
    return curves


def _own_curve(problem: PeerProblem, gaps: Sequence[float]) -> KernelCurve:
    program = KERNEL_PROGRAMS["labelweave"]
    runs = own_runs(problem, program, gaps)
    return _curve(program, runs, dict(zip(map(str, gaps), runs, strict=True)))


def _curve(program: Program, runs: list[KernelRun], reaching: Mapping[str, KernelRun | None]) -> KernelCurve:
    print(f"{program.title}: {sum(run.seconds for run in runs):.0f} s in {len(runs)} run(s)", flush=True)
    return KernelCurve(program.title, version_of(program), program.is_own, runs, dict(reaching))


def _reach(
    peer: ToleranceSearch, gaps: Sequence[float], starts: dict[str, float]
) -> dict[str, KernelRun | None]:
    """Reach each gap, from the tolerance where the precomputed kernel did if that is known."""
    return {
        str(gap): peer.from_tolerance(gap, starts[str(gap)]) if str(gap) in starts else peer.loosest(gap)
        for gap in gaps
    }


def _timed_labels(problem: PeerProblem, every: int) -> Any:
    return np.arange(0, problem.Y.shape[1], every)


def _describe(arguments: Any, problem: PeerProblem) -> dict[str, Any]:
    return {
        "problem": arguments.problem,
        "rows": problem.X.shape[0],
        "features": problem.X.shape[1],
        "labels": problem.Y.shape[1],
        "labels_timed_with_peers": _timed_labels(problem, arguments.every).tolist(),
        "C": 1.0,
        "gamma": problem.gamma,
        "kernel_megabytes": arguments.megabytes,
        "threads": problem.threads,
    }


def _caption(results: dict[str, Any]) -> str:
    text = (
        "{problem}: {rows} rows, {features} features, {labels} labels; RBF, gamma {gamma:.3g}, C = {C:g} "
        "(the peers' is twice that), {threads} thread, {kernel_megabytes:g} MB for kernel values, "
        "{processor}. Peers were timed on {timed} labels and scaled to all."
    )
    timed = len(results["labels_timed_with_peers"])
    return text.format(**results, **describe_machine(), timed=timed)


def kernel_table(curves: Sequence[KernelCurve], gaps: Sequence[float]) -> str:
    """Write a row for each program and a column for each gap.

    A cell holds the seconds for all labels, the ratio to labelweave's, and in brackets the
    tolerance (of peers), the gap it gave and the worst gap of a label.
    """
    own = next((curve for curve in curves if curve.is_own), None)
    rows = [[f"{one.title} {one.version}", *(_cell(one, own, str(gap)) for gap in gaps)] for one in curves]
    return "\n".join(markdown(["program", *(f"gap {gap:g}" for gap in gaps)], rows))


def _cell(curve: KernelCurve, own: KernelCurve | None, gap: str) -> str:
    if gap not in curve.reaching:
        return "not run"
    run = curve.reaching[gap]
    if run is None:
        return "not reached"
    if curve.is_own:
        return f"{run.seconds:.1f} s (gap {run.gap:.1e})"
    base = None if own is None else own.reaching.get(gap)
    ratio = "" if base is None else f", {run.seconds / base.seconds:.1f}x"
    return f"{run.seconds:.1f} s{ratio} (eps {run.tolerance:g}, gap {run.gap:.1e}, worst {run.worst_gap:.1e})"


@command(
    problem=flag("awa-6000", "awa-<number of images>, rcv1 (subset 1) or tmc2007"),
    peers=several(_PEERS, nargs="*"),
    every=flag(8, "peers train every so many labels"),
    gaps=_GAPS,
    megabytes=flag(2000.0, "memory for kernel values"),
    out=flag(None, "a JSON file; default results/kernel_<problem>.json", type=Path),
)
def main(arguments: Any) -> None:
    problem = load_kernel_problem(arguments.problem, 1.0, arguments.megabytes)
    curves = measure(problem, arguments)
    table = kernel_table(curves, arguments.gaps)
    results = _describe(arguments, problem)
    print(_caption(results), table, sep="\n\n")
    results |= {"programs": [asdict(curve) for curve in curves], "table": table.splitlines()}
    save(arguments.out or RESULTS / f"kernel_{arguments.problem}.json", results)
