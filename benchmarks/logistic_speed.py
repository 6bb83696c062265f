"""Seconds to an equal objective: kernel logistic models of labelweave and of scikit-learn.

Fixed RBF kernels times a scale, stored in double precision, no intercepts. Logistic, one label against the
rest, one class of satimage and all six: ``GaussianProcessClassifier`` with a fixed kernel, whose mode has
labelweave's objective. Softmax, satimage and ImCLEF07A: ``LogisticRegression`` with lbfgs and newton-cg on
the Cholesky factor of the kernel matrix.

The target is a relative distance above the optimum, which a fit of labelweave to a gap of 1e-10 bounds. The
seconds of a program are those until it has computed an objective that low; computing the kernel matrix, which
all need, and factorizing it, which LogisticRegression needs, are shown separately. labelweave's certified
seconds are those to a duality gap of the same size, which only labelweave reports. The programs alternate;
shown are medians, and ratios of the medians, of one invocation.
"""

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, markdown, save, several, timed
from benchmarks.logistic_fits import (
    Fit,
    Prior,
    Watched,
    factor_of,
    fit,
    fit_gaussian_process,
    fit_logistic_regression,
    kernel_matrix,
    reached,
)
from benchmarks.problems import ClassProblem, load_class_problem

_CASES = (
    "binary-1000", "binary-2000", "rest-1000", "rest-2000", "satimage", "imclef-2000", "imclef-6000",
)  # fmt: skip
_EXCESSES = (1e-4, 1e-6)
_SCALE, _LIMIT = 10.0, 600.0  # of the kernel; seconds for a peer's run
_SOLVERS = ("lbfgs", "newton-cg")
_COLUMNS = ("case", "program", "kernel matrix", "factor", *(f"{excess:g} above" for excess in _EXCESSES))


def _measure(case: str, arguments: Any, workers: Any) -> list[dict[str, Any]]:
    kind, _, size = case.partition("-")
    if kind not in ("binary", "rest"):
        return _measure_softmax(load_class_problem(case), arguments, workers)
    problem = load_class_problem("satimage").first(int(size))
    classes = [0] if kind == "binary" else list(range(len(problem.classes)))
    return _measure_logistic(case, problem, classes, arguments, workers)


def _measure_logistic(
    case: str, problem: ClassProblem, classes: list[int], arguments: Any, workers: Any
) -> list[dict[str, Any]]:
    """Compare with the Gaussian process: some classes, each against the rest."""
    from labelweave.problems.losses import EntrywiseLoss

    labels = [problem.codes == number for number in classes]
    signs = np.where(np.column_stack(labels), 1, -1).astype(np.int8)
    loss = EntrywiseLoss("log_loss", signs, np.ones((len(signs), 1)), is_separate=True)
    gram, making = timed(kernel_matrix, problem, 1.0, workers, clock=perf_counter)
    own = _OwnRuns(gram, Prior(_SCALE, 0.0), loss, workers)
    peers = []
    for _ in range(arguments.repeats):
        own.run()
        peers.append(fit_gaussian_process(problem.X, _sklearn_kernel(problem, arguments), labels))
    rows = [own.row(case, making)]
    found = [[_sum_reached(runs, excess) for runs, _, _ in peers] for excess in _EXCESSES]
    rows.append(
        _row(case, "GaussianProcessClassifier, the mode", found)
        | {"kernel_seconds": median(kernel for _, _, kernel in peers)}
    )
    fits = [seconds for _, seconds, _ in peers]
    rows.append(_row(case, "GaussianProcessClassifier.fit, kernel matrices included", [fits] * 2))
    least = [sum(min(value for _, value in run.trace) for run in runs) for runs, _, _ in peers]
    rows[1]["objective"] = median(least)
    return _with_ratios(rows)


def _sum_reached(runs: list[Watched], excess: float) -> float | None:
    """Sum the seconds at which each label's objective was near its own minimum."""
    times = [reached(run.trace, (1 + excess) * min(value for _, value in run.trace)) for run in runs]
    return None if None in times else sum(seconds for seconds in times if seconds is not None)


def _sklearn_kernel(problem: ClassProblem, arguments: Any) -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    gamma = problem.paper_gamma()
    return ConstantKernel(_SCALE, "fixed") * RBF(np.sqrt(0.5 / gamma), "fixed")


def _measure_softmax(problem: ClassProblem, arguments: Any, workers: Any) -> list[dict[str, Any]]:
    """Compare with logistic regression on a factor of the kernel matrix."""
    from labelweave.features.gram import StoredGram
    from labelweave.problems.losses import SoftmaxLoss

    gram, making = timed(kernel_matrix, problem, 1.0, workers, clock=perf_counter)
    matrix = _SCALE * gram.table
    factor, added, factor_seconds = factor_of(matrix)
    loss = SoftmaxLoss(problem.codes, len(problem.classes), np.ones((len(problem.codes), 1)))
    own = _OwnRuns(StoredGram(matrix, workers), Prior(1.0, 0.0), loss, workers)
    runs: dict[str, list[Watched]] = {solver: [] for solver in _SOLVERS}
    target = (1 + min(_EXCESSES)) * own.optimum
    for _ in range(arguments.repeats):
        own.run()
        for solver, made in runs.items():
            made.append(fit_logistic_regression(factor, problem.codes, solver, target, _LIMIT))
    rows = [own.row(problem.name, making)]
    for solver, made in runs.items():
        found = [[reached(run.trace, (1 + excess) * own.optimum) for run in made] for excess in _EXCESSES]
        rows.append(
            _row(problem.name, f"LogisticRegression, {solver}", found)
            | {"kernel_seconds": making, "factor_seconds": factor_seconds, "added_to_diagonal": added}
            | {"objective": min(value for _, value in made[0].trace), "ended": [run.ended for run in made]}
            | {"evaluations": len(made[0].trace)}
        )
    return _with_ratios(rows)


class _OwnRuns:
    """labelweave's fits: one that bounds the optimum, and those that are timed."""

    def __init__(self, gram: Any, prior: Prior, loss: Any, workers: Any) -> None:
        self.gram, self.prior, self.loss, self.workers = gram, prior, loss, workers
        best = fit(gram, prior, loss, workers, 1e-10, max_iter=500)
        if best.status != "converged":
            raise RuntimeError(f"The optimum was not found: {best.status} at a gap of {best.gap:.1e}.")
        self.optimum = best.objective
        self.made: list[list[Fit]] = []

    def run(self) -> None:
        self.made.append(
            [fit(self.gram, self.prior, self.loss, self.workers, excess) for excess in _EXCESSES]
        )

    def row(self, case: str, making: float) -> dict[str, Any]:
        """Return the seconds, the optimum and the number of products of a fit."""
        found = [
            [reached(fits[-1].trace, (1 + excess) * self.optimum) for fits in self.made]
            for excess in _EXCESSES
        ]
        certified = [median(fits[place].seconds for fits in self.made) for place in range(len(_EXCESSES))]
        last = self.made[-1]
        return _row(case, "labelweave", found) | {
            "kernel_seconds": making,
            "certified_seconds": certified,
            "objective": last[-1].objective,
            "optimum": self.optimum,
            "kernel_products": [made.products for made in last],
        }


def _row(case: str, program: str, found: list[list[float | None]]) -> dict[str, Any]:
    """Take medians of the seconds; a target that a run missed has none."""
    times = [None if None in some else median(x for x in some if x is not None) for some in found]
    return {"case": case, "program": program, "seconds": times, "repeats": found}


def _with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = rows[0]["seconds"]
    for row in rows:
        row["ratios"] = [
            None if theirs is None or ours is None else theirs / ours
            for theirs, ours in zip(row["seconds"], own, strict=True)
        ]
        print(row["case"], row["program"], row["seconds"], row["ratios"], row.get("objective"), flush=True)
    return rows


def _table(rows: list[dict[str, Any]]) -> list[str]:
    cells = []
    for row in rows:
        apart = [_seconds(row.get(name)) for name in ("kernel_seconds", "factor_seconds")]
        own = [_cell(row, place) for place in range(len(_EXCESSES))]
        cells.append([row["case"], row["program"], *apart, *own])
    return markdown(_COLUMNS, cells)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _cell(row: dict[str, Any], place: int) -> str:
    seconds, ratio = row["seconds"][place], row["ratios"][place]
    if seconds is None:
        return "not reached"
    if "certified_seconds" in row:
        return f"{seconds:.2f} s, certified {row['certified_seconds'][place]:.2f} s"
    return f"{seconds:.2f} s, {ratio:.1f}x"


@command(cases=several(_CASES), repeats=3, out=RESULTS / "logistic_speed.json")
def main(arguments: Any) -> None:
    from threadpoolctl import threadpool_limits

    from labelweave.foundation.arrays import Workers

    rows: list[dict[str, Any]] = []
    # labelweave's own threads need the library's to be one; the peers use the library's
    with Workers(1).running() as workers, threadpool_limits(1):
        kernel_matrix(load_class_problem("satimage").first(100), 1.0, workers)  # loads code
        for case in arguments.cases:
            rows += _measure(case, arguments, workers)
    table = _table(rows)
    print("\n".join(table))
    settings = {"scale": _SCALE, "width": 1.0, "repeats": arguments.repeats, "limit": _LIMIT}
    save(arguments.out, settings | {"threads": 1, "runs": rows, "table": table})
