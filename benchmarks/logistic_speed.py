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

For a label ``GaussianProcessClassifier`` minimizes ``sum_i log(1 + exp(-y_i f_i)) + 1/2 f^T K^-1 f``;
``LogisticRegression`` on a factor ``K = G G^T``, with C = 1, has ``f = G w``.  Both are observed from
outside: an objective is recorded whenever the program itself has computed it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg as sl
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.frame import RESULTS, command, markdown, quiet, save, several, timed
from benchmarks.problems import ClassProblem, load_class_problem
from labelweave import KernelLogisticClassifier

Trace = list[tuple[float, float]]

_CASES = (
    "binary-1000", "binary-2000", "rest-1000", "rest-2000", "satimage", "imclef-2000", "imclef-6000",
)  # fmt: skip
_EXCESSES = (1e-4, 1e-6)
_SCALE, _LIMIT = 10.0, 600.0  # of the kernel; seconds for a peer's run
_SAME = 1e-9  # of the objective: the next step changes nothing
_SOLVERS = ("lbfgs", "newton-cg")
_COLUMNS = ("case", "program", "kernel matrix", "factor", *(f"{excess:g} above" for excess in _EXCESSES))


@dataclass(frozen=True)
class Watched:
    """A run of a peer.

    trace: seconds since the start, and the objective there.
    ended: "converged", "time limit" or "target".
    """

    trace: Trace
    ended: str


def reached(trace: Trace, target: float) -> float | None:
    return next((seconds for seconds, objective in trace if objective <= target), None)


def factor_of(matrix: Any) -> tuple[Any, float, float]:
    """Factorize a kernel matrix, with as little added to its diagonal as rounding requires."""
    diagonal = matrix.diagonal().copy()
    for share in (0.0, 1e-12, 1e-10, 1e-8):
        added = share * float(diagonal.max())
        np.fill_diagonal(matrix, diagonal + added)
        start = time.perf_counter()
        try:
            return np.ascontiguousarray(sl.cholesky(matrix, lower=True)), added, time.perf_counter() - start
        except sl.LinAlgError:
            continue
    raise RuntimeError("The kernel matrix is not positive definite, even with 1e-8 more on its diagonal.")


class _EnoughError(Exception):
    """The objective is low enough, or the time is over."""


def fit_logistic_regression(factor: Any, codes: Any, solver: str, target: float, limit: float) -> Watched:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0, fit_intercept=False, solver=solver, tol=1e-9, max_iter=100_000)
    trace: Trace = []
    start = time.perf_counter()

    def note(mean_loss: float) -> None:
        trace.append((time.perf_counter() - start, float(mean_loss) * len(codes)))
        if trace[-1][1] <= target or trace[-1][0] > limit:
            raise _EnoughError

    ended = "converged"
    with _watched_loss(note), quiet(Warning):
        try:
            model.fit(factor, codes)
        except _EnoughError:
            ended = "target" if trace[-1][1] <= target else "time limit"
    return Watched(trace, ended)


@contextmanager
def _watched_loss(note: Callable[[float], None]) -> Iterator[None]:
    """Yield every value of the objective, over the number of rows, that scikit-learn's loss computes."""
    from sklearn.linear_model._linear_loss import LinearModelLoss

    with ExitStack() as stack:
        for name in ("loss", "loss_gradient"):
            original = getattr(LinearModelLoss, name)

            def watched(*arguments: Any, _original: Any = original, **options: Any) -> Any:
                found = _original(*arguments, **options)
                note(found[0] if isinstance(found, tuple) else found)
                return found

            stack.enter_context(patch.object(LinearModelLoss, name, watched))
        yield


def fit_gaussian_process(X: Any, kernel: Any, labels: Sequence[Any]) -> tuple[list[Watched], float, float]:
    """Run GaussianProcessClassifier's search for the mode, label after label."""
    from sklearn.gaussian_process import GaussianProcessClassifier

    runs, fit_seconds = [], 0.0
    matrix, kernel_seconds = timed(kernel, X, clock=time.perf_counter)
    for label in labels:
        model = GaussianProcessClassifier(kernel, optimizer=None, copy_X_train=False)
        fit_seconds += timed(model.fit, X, label, clock=time.perf_counter)[1]
        runs.append(_watched_mode(model.base_estimator_, matrix))
    return runs, fit_seconds, kernel_seconds


def _watched_mode(estimator: Any, matrix: Any) -> Watched:
    """Find the mode with one Newton step, with two, and so on until it ends by itself."""
    trace: Trace = []
    most = estimator.max_iter_predict
    for steps in range(1, most + 1):
        estimator.max_iter_predict = steps
        start = time.perf_counter()
        _, (*_, dual) = estimator._posterior_mode(matrix, return_temporaries=True)
        seconds = time.perf_counter() - start
        trace.append((seconds, _objective(estimator, dual)))
        if steps > 1 and abs(trace[-2][1] - trace[-1][1]) <= _SAME * trace[-1][1]:
            break
    estimator.max_iter_predict = most
    return Watched(trace, "converged")


def _objective(estimator: Any, dual: Any) -> float:
    """Compute the objective of the scores ``f = K a`` that were found last."""
    scores = estimator.f_cached
    losses = np.logaddexp(0.0, -(2.0 * estimator.y_train_ - 1.0) * scores)
    return float(losses.sum() + dual @ scores / 2)


def _measure(case: str, arguments: Any) -> list[dict[str, Any]]:
    kind, _, size = case.partition("-")
    if kind not in ("binary", "rest"):
        return _measure_softmax(load_class_problem(case), arguments)
    problem = load_class_problem("satimage").first(int(size))
    classes = [0] if kind == "binary" else list(range(len(problem.classes)))
    return _measure_logistic(case, problem, classes, arguments)


def _kernel_matrix(problem: ClassProblem) -> tuple[Any, float]:
    return timed(rbf_kernel, problem.X, gamma=problem.paper_gamma(), clock=time.perf_counter)


def _measure_logistic(
    case: str, problem: ClassProblem, classes: list[int], arguments: Any
) -> list[dict[str, Any]]:
    """Compare with the Gaussian process: some classes, each against the rest."""
    labels = [problem.codes == number for number in classes]
    matrix, making = _kernel_matrix(problem)
    own = _OwnRuns(_SCALE * matrix, np.column_stack(labels).astype(int))
    peers = []
    for _ in range(arguments.repeats):
        own.run()
        peers.append(fit_gaussian_process(problem.X, _sklearn_kernel(problem), labels))
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


def _sklearn_kernel(problem: ClassProblem) -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    gamma = problem.paper_gamma()
    return ConstantKernel(_SCALE, "fixed") * RBF(np.sqrt(0.5 / gamma), "fixed")


def _measure_softmax(problem: ClassProblem, arguments: Any) -> list[dict[str, Any]]:
    """Compare with logistic regression on a factor of the kernel matrix."""
    matrix, making = _kernel_matrix(problem)
    matrix *= _SCALE
    factor, added, factor_seconds = factor_of(matrix)
    own = _OwnRuns(matrix, problem.codes)
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

    def __init__(self, matrix: Any, y: Any) -> None:
        self.matrix, self.y = matrix, y
        best = self._fit(1e-10)
        if not best.converged_:
            raise RuntimeError(f"The optimum was not found: a gap of {best.duality_gap_:.1e}.")
        self.optimum = best.trace_[-1].primal
        self.made: list[list[Any]] = []

    def _fit(self, tol: float) -> Any:
        model = KernelLogisticClassifier("precomputed", scale=1.0, intercept_variance=0.0, tol=tol)
        return model.set_params(hyperparameters="fixed", max_iter=500, n_jobs=1).fit(self.matrix, self.y)

    def run(self) -> None:
        self.made.append([self._fit(excess) for excess in _EXCESSES])

    def row(self, case: str, making: float) -> dict[str, Any]:
        """Return the seconds, the optimum and the number of products of a fit."""
        found = [
            [reached(_trace(fits[-1]), (1 + excess) * self.optimum) for fits in self.made]
            for excess in _EXCESSES
        ]
        certified = [
            median(_trace(fits[place])[-1][0] for fits in self.made) for place in range(len(_EXCESSES))
        ]
        last = self.made[-1]
        return _row(case, "labelweave", found) | {
            "kernel_seconds": making,
            "certified_seconds": certified,
            "objective": _trace(last[-1])[-1][1],
            "optimum": self.optimum,
            "kernel_products": [made.kernel_products_ for made in last],
        }


def _trace(model: Any) -> Trace:
    return [(record.time, record.primal) for record in model.trace_]


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

    rows: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for case in arguments.cases:
            rows += _measure(case, arguments)
    table = _table(rows)
    print("\n".join(table))
    settings = {"scale": _SCALE, "width": 1.0, "repeats": arguments.repeats, "limit": _LIMIT}
    save(arguments.out, settings | {"threads": 1, "runs": rows, "table": table})
