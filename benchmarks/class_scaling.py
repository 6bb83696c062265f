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
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import frame
from labelweave import KernelLogisticClassifier

_CLASSES = (10, 20, 50, 100, 200, 500, 1_000)
_FEATURES = 20
_SCALE, _STEPS, _ITERATIONS = 10.0, 3, 10
_MEASURES = {
    "product": "kernel product",
    "iteration": "iteration of conjugate gradients",
    "fixed_fit": f"{_STEPS} Newton steps of {_ITERATIONS} iterations",
    "fit": "fit to a gap of 1e-4",
}


def _clouds(n_rows: int, n_classes: int) -> tuple[Any, Any]:
    """Return the kernel matrix, and the classes."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(n_rows) % n_classes)
    X = rng.normal(size=(n_classes, _FEATURES))[codes] + 0.7 * rng.normal(size=(n_rows, _FEATURES))
    return rbf_kernel(X, gamma=0.5 / X.var(axis=0).sum()), codes


def _measure(matrix: Any, codes: Any, n_classes: int, workers: Any) -> dict[str, float]:
    from labelweave.features.gram import StoredGram
    from labelweave.labels.covariance import LabelCovariance
    from labelweave.problems.coupled_gram import CoupledGram, GramTerm
    from labelweave.problems.kernel_likelihood import KernelLikelihood
    from labelweave.problems.losses import SoftmaxLoss
    from labelweave.solvers.newton import NewtonConjugateGradient

    gram, loss = StoredGram(matrix, workers), SoftmaxLoss(codes, n_classes, np.ones((len(codes), 1)))
    term = GramTerm(gram, LabelCovariance.identity(n_classes).scaled(_SCALE))
    coupled = CoupledGram([term], 1.0, workers)
    solver = NewtonConjugateGradient(1e-15, _STEPS, directions=_FixedIterations())
    problem = KernelLikelihood(coupled, loss, 0, 0)
    _, seconds = frame.timed(solver.solve, problem, clock=time.perf_counter)
    model = KernelLogisticClassifier("precomputed", scale=_SCALE, hyperparameters="fixed", n_jobs=1)
    model.fit(matrix, codes)
    return {
        "product": _product_seconds(gram, len(codes), n_classes),
        "iteration": seconds / coupled.products,
        "fixed_fit": seconds,
        "fit": model.trace_[-1].time,
        "fit_products": model.kernel_products_,
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
                made.append(_measure(*_clouds(arguments.rows, size), size, workers))
                print(f"{size:,} classes: {made[-1]}", flush=True)
    medians = {
        name: [median(run[name] for run in made) for made in runs.values()]
        for name in (*_MEASURES, "fit_products")
    }
    caption = f"{arguments.rows:,} rows, stored RBF kernel"
    curves = {_MEASURES[name]: medians[name] for name in _MEASURES}
    first, second = (dict(list(curves.items())[place : place + 2]) for place in (0, 2))
    panels = [frame.Growth("classes", arguments.classes, some, caption) for some in (first, second)]
    growth = {name: panel.slopes(name) for panel in panels for name in panel.curves}
    settings = {"rows": arguments.rows, "scale": _SCALE, "repeats": arguments.repeats}
    results = {"threads": 1, "classes": arguments.classes, "medians": medians, "slopes": growth}
    results["runs"] = {str(size): made for size, made in runs.items()}
    frame.save(arguments.out, settings | results)
    frame.draw_growths(panels, arguments.figure, "seconds, one thread")
