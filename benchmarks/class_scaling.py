"""Seconds of kernel logistic fits against the number of classes, 10 to 1,000.

The rows stay the same: 2,000 with an RBF kernel matrix that is kept. Each class is a Gaussian cloud around a
center of its own, so that with more classes each has fewer rows. Measured are a product of the kernel matrix
with a column per class; an iteration of conjugate gradients, the seconds of a fit over its kernel products; a
fit of so many Newton steps, with so many iterations in each (the tolerance is out of reach), without the
preconditioner, whose cost has other powers; and a fit to a gap of 1e-4 as ``KernelLogisticClassifier`` does
it, with the preconditioner.

The slope of the logarithms is 1 where time is proportional to the classes; it is printed for the whole range
and for its upper half. Single thread; the median of the repeats counts, sizes in turns.
"""

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks import frame
from benchmarks.logistic_fits import Prior, fit, kernel_matrix
from benchmarks.problems import ClassProblem

_CLASSES = (10, 20, 50, 100, 200, 500, 1_000)
_FEATURES = 20
_SCALE, _STEPS, _ITERATIONS = 10.0, 3, 10
_MEASURES = {
    "product": "kernel product",
    "iteration": "iteration of conjugate gradients",
    "fixed_fit": f"{_STEPS} Newton steps of {_ITERATIONS} iterations",
    "fit": "fit to a gap of 1e-4",
}


def _clouds(n_rows: int, n_classes: int) -> ClassProblem:
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(n_rows) % n_classes)
    X = rng.normal(size=(n_classes, _FEATURES))[codes] + 0.7 * rng.normal(size=(n_rows, _FEATURES))
    return ClassProblem("clouds", X, codes, [str(number) for number in range(n_classes)], None)


def _measure(problem: ClassProblem, workers: Any) -> dict[str, float]:
    from labelweave.problems.losses import SoftmaxLoss

    gram = kernel_matrix(problem, 1.0, workers)
    prior = Prior(_SCALE, 1.0)
    n_rows, n_classes = len(problem.codes), len(problem.classes)
    loss = SoftmaxLoss(problem.codes, n_classes, np.ones((n_rows, 1)))
    fixed = fit(gram, prior, loss, workers, 1e-15, rank=0, max_iter=_STEPS, directions=_FixedIterations())
    whole = fit(gram, prior, loss, workers, 1e-4)
    return {
        "product": _product_seconds(gram, n_rows, n_classes),
        "iteration": fixed.seconds / fixed.products,
        "fixed_fit": fixed.seconds,
        "fit": whole.seconds,
        "fit_products": whole.products,
    }


class _FixedIterations:
    """Conjugate gradients in the function space, with a fixed number of iterations per step."""

    def __init__(self) -> None:
        from labelweave.solvers.newton_system import FunctionGradients

        self.solver = FunctionGradients()

    def direction(self, system: Any, point: Any, reduction: Any, limit: int) -> tuple[Any, Any]:
        return self.solver.direction(system, point, np.zeros_like(reduction), _ITERATIONS)


def _product_seconds(gram: Any, n_rows: int, n_classes: int) -> float:
    vectors = np.random.default_rng(0).normal(size=(n_rows, n_classes))
    return median(frame.in_turns({"": lambda: gram.product(vectors)}, 5, time.perf_counter)[""])


def _draw(arguments: Any, medians: dict[str, list[float]], growth: dict[str, dict[str, float]]) -> None:
    figure, axes = frame.begin_picture(1, 2, figsize=(9.5, 3.8), sharex=True)
    legends = {
        name: f"{title}: slope {growth[name]['all']:.2f} ({growth[name]['upper half']:.2f})"
        for name, title in _MEASURES.items()
    }
    for axis, names in zip(axes, (("product", "iteration"), ("fixed_fit", "fit")), strict=True):
        frame.draw_growth(
            axis, "classes", arguments.classes, {legends[name]: medians[name] for name in names}
        )
        axis.set_ylabel("seconds, one thread")
    figure.suptitle(
        f"{arguments.rows:,} rows, stored RBF kernel (slope of the upper half in brackets)", size=10
    )
    frame.write_picture(figure, arguments.figure)


@frame.command(
    rows=2000,
    classes=_CLASSES,
    repeats=3,
    out=frame.RESULTS / "class_scaling.json",
    figure=frame.IMAGES / "logistic_class_scaling.png",
)
def main(arguments: Any) -> None:
    runs: dict[int, list[dict[str, float]]] = {size: [] for size in arguments.classes}
    from labelweave.foundation.arrays import Workers

    with Workers(1).running() as workers:
        for _ in range(arguments.repeats):
            for size, made in runs.items():
                made.append(_measure(_clouds(arguments.rows, size), workers))
                print(f"{size:,} classes: {made[-1]}", flush=True)
    medians = {
        name: [median(run[name] for run in made) for made in runs.values()]
        for name in (*_MEASURES, "fit_products")
    }
    growth = {name: frame.slopes(arguments.classes, medians[name]) for name in _MEASURES}
    settings = {"rows": arguments.rows, "scale": _SCALE, "repeats": arguments.repeats}
    results = {"threads": 1, "classes": arguments.classes, "medians": medians, "slopes": growth}
    results["runs"] = {str(size): made for size, made in runs.items()}
    frame.save(arguments.out, settings | results)
    _draw(arguments, medians, growth)
    for name, found in growth.items():
        print(f"{_MEASURES[name]}: classes ^ {found['all']:.2f}; upper half ^ {found['upper half']:.2f}")
