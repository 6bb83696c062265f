"""Dual progress against iterations and time, after Figures 2 and 3 of the M3L paper.

Animals with Attributes or texts, RBF, gamma 1 / (d var X), C = 1, independent labels, one thread. Drawn is
how far the dual value is below its optimum, as a share of it, for the paper's Algorithm 1
(``solver="working_set"``), one run, measured every round, whose iteration moves a pair of variables; for
``solver="alternating_directions"``, a run for every tolerance, whose iteration moves all variables of all
labels; and for LIBSVM, one-vs-all, a run for every tolerance on every eighth label (--every), iterations and
seconds scaled to all labels, whose iteration moves a pair of variables.

LIBSVM tells nothing on the way, so a point is the end of a whole run in which every label has the same
tolerance: better than what the labels' sum would show while they are solved one after another, as in the
paper. It has a free bias, labelweave a regularized one, so each is measured against the optimum of its own
problem: the dual value of a much tighter run. Seconds count from the data in memory, kernel and factorization
included.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.frame import IMAGES, RESULTS, begin_picture, command, flag, save, timed, write_picture
from benchmarks.margin_runs import Search
from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import load_kernel_problem
from benchmarks.programs import KERNEL_PROGRAMS

_GAPS = (0.3, 0.1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
_OWN_REFERENCE = 1e-7
_TOLERANCES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3)
_LIBSVM_REFERENCE = 1e-5
_NEAREST = 1e-6  # drawn last
_STYLES = {
    "working sets (the paper's)": ("-", "#1f5a92"),
    "alternating directions": ("o-", "#b04a2f"),
    "LIBSVM, one-vs-all": ("s-", "0.45"),
}


@dataclass
class Progress:
    """A method's iterations, seconds, and distances 1 - D / D* of the dual value from its optimum."""

    iterations: list[float]
    seconds: list[float]
    distances: list[float]


def own_progress(problem: PeerProblem) -> tuple[Progress, Progress]:
    for solver in ("working_set", "alternating_directions"):
        _fit(problem, 300, solver, 0.1)
    best = _fit(problem, None, "alternating_directions", _OWN_REFERENCE)[0].trace_[-1].dual
    model, seconds = _fit(problem, None, "working_set", 1e-4)
    fits = [_fit(problem, None, "alternating_directions", gap) for gap in _GAPS]
    alternating = Progress(
        [float(fitted.n_iter_) for fitted, _ in fits],
        [taken for _, taken in fits],
        [1.0 - fitted.trace_[-1].dual / best for fitted, _ in fits],
    )
    return _of_trace(model.trace_, seconds, best, problem.Y.shape), alternating


def _fit(problem: PeerProblem, n_rows: int | None, solver: str, tol: float) -> tuple[Any, float]:
    from labelweave import MaxMarginClassifier, set_config

    set_config(memory_budget=problem.kernel_megabytes)
    model = MaxMarginClassifier(
        C=problem.penalty / 2, kernel="rbf", gamma=problem.gamma, tol=tol, solver=solver,
        max_iter=1_000_000, n_jobs=1,
    )  # fmt: skip
    return timed(model.fit, problem.X[:n_rows], problem.Y[:n_rows], clock=time.perf_counter)


def _of_trace(trace: Any, seconds: float, best: float, shape: tuple[int, int]) -> Progress:
    """Read a run of working sets, whose active share is twice the steps of a round over all variables."""
    steps = np.cumsum([record.active_share for record in trace]) * shape[0] * shape[1] / 2
    before = seconds - trace[-1].time
    return Progress(
        steps.tolist(),
        [before + record.time for record in trace],
        [1.0 - record.dual / best for record in trace],
    )


def libsvm_progress(problem: PeerProblem, every: int) -> Progress:
    search = Search(problem, KERNEL_PROGRAMS["libsvm"], every)
    best = search.at(_LIBSVM_REFERENCE).dual
    runs = [search.at(tolerance) for tolerance in _TOLERANCES]
    return Progress(
        [search.scale * (run.iterations or 0) for run in runs],
        [run.seconds for run in runs],
        [1.0 - run.dual / best for run in runs],
    )


def table(curves: dict[str, Progress]) -> list[str]:
    """Return the iterations of each method at some distances from the optimum, interpolated on its curve."""
    marks = (1e-1, 1e-2, 1e-3, 1e-4)
    heads = "".join(f"{f'within {mark:g}':>22}" for mark in marks)
    lines = [f"{'iterations and seconds':26}{heads}"]
    for name, curve in curves.items():
        nearness = -np.log(np.maximum(curve.distances, _NEAREST / 10))  # rises along a curve
        cells = []
        for mark in marks:
            place = -np.log(mark)
            iterations, seconds = (np.interp(place, nearness, of) for of in (curve.iterations, curve.seconds))
            cell = f"{iterations:,.0f}, {seconds:.2f} s" if nearness[0] <= place <= nearness[-1] else ""
            cells.append(f"{cell:>22}")
        lines.append(f"{name:26}{''.join(cells)}".rstrip())
    return lines


def _draw(curves: dict[str, Progress], title: str, path: Path) -> None:
    figure, axes = begin_picture(1, 2, figsize=(9.5, 3.9), sharey=True)
    for name, curve in curves.items():
        style, color = _STYLES[name]
        distances = np.array(curve.distances)
        shown = distances > _NEAREST
        for axis, values in zip(axes, (curve.iterations, curve.seconds), strict=True):
            axis.loglog(np.array(values)[shown], distances[shown], style, color=color, ms=4, label=name)
    axes[0].set_xlabel("iterations, of two variables each (alternating directions: of all)")
    axes[1].set_xlabel("seconds, one thread")
    axes[0].set_ylabel("1 − D / D*, distance of the dual value")
    axes[0].legend(frameon=False, fontsize=9, loc="center")
    for axis in axes:
        axis.grid(True, which="major", alpha=0.3)
    figure.suptitle(title, fontsize=10)
    write_picture(figure, path)


@command(
    problem=flag("awa-2000", "a kernel problem, such as rcv1-2000"),
    every=flag(8, "LIBSVM trains every so many labels"),
    out=RESULTS / "dual_progress.json",
    figure=IMAGES / "dual_progress.png",
)
def main(arguments: Any) -> None:
    problem = load_kernel_problem(arguments.problem)
    with threadpool_limits(1):
        working_sets, alternating = own_progress(problem)
    libsvm = libsvm_progress(problem, arguments.every)
    curves = dict(zip(_STYLES, (working_sets, alternating, libsvm), strict=True))
    lines = table(curves)
    print("\n".join(lines))
    settings = {"problem": arguments.problem, "labels": problem.Y.shape[1], "every": arguments.every}
    numbers = {name: asdict(curve) for name, curve in curves.items()}
    save(arguments.out, settings | {"C": 1.0, "threads": 1, "table": lines, "curves": numbers})
    _draw(curves, f"{arguments.problem}, {problem.Y.shape[1]} labels, RBF", arguments.figure)
