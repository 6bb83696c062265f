"""Fits of kernel logistic models in parts: kernel matrix, prior, solver.

This is ``KernelLogisticClassifier`` with fixed hyperparameters, with separate access to its parts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.logistic_problems import ClassProblem


@dataclass(frozen=True)
class Prior:
    """The prior of the scores without the kernel.

    scale: the kernel's factor, of every class or of every node of the tree.
    tree: the tree, or None for independent classes.
    """

    scale: float
    intercept_variance: float
    tree: Any = None


@dataclass(frozen=True)
class Fit:
    """A fit.

    status: why it ended.
    objective, gap: its objective and its relative duality gap.
    steps: of Newton's method.
    products: with the kernel matrix.
    trace: seconds and objective after every step.
    """

    status: str
    objective: float
    gap: float
    seconds: float
    steps: int
    products: float
    trace: list[tuple[float, float]]


def kernel_matrix(problem: ClassProblem, width: float, workers: Any) -> Any:
    from labelweave.features import FeatureMatrix, RBFKernel
    from labelweave.features.gram import StoredGram
    from labelweave.features.gram.sources import KernelSource

    source = KernelSource(RBFKernel(width * problem.paper_gamma()), FeatureMatrix(problem.X))
    return StoredGram.from_source(source, 0.0, np.float64, workers)


def fit(
    gram: Any,
    prior: Prior,
    loss: Any,
    workers: Any,
    tol: float,
    *,
    classes: list[str] | None = None,
    **options: Any,
) -> Fit:
    from labelweave.problems.coupled_gram import CoupledGram, GramTerm
    from labelweave.problems.kernel_likelihood import KernelLikelihood
    from labelweave.solvers.newton import NewtonConjugateGradient

    separate = bool(getattr(loss, "is_separate", False))
    n_classes = loss.signs.shape[1] if separate else loss.shape[2]
    term = GramTerm(gram, _covariance(prior, n_classes, classes))
    coupled = CoupledGram([term], prior.intercept_variance, workers, is_separate=separate)
    problem = KernelLikelihood(coupled, loss, options.get("rank", 100), 0)
    stop: Callable[[Any], bool] | None = options.get("stop")
    solver = NewtonConjugateGradient(tol, options.get("max_iter", 200), directions=options.get("directions"))
    start = time.perf_counter()
    on_check = None if stop is None else lambda record, _: stop(record)
    result, state = solver.solve(problem, None, on_check)
    seconds = time.perf_counter() - start
    return Fit(
        result.status.name.lower(),
        float(state.values.sum()),
        float(result.trace[-1].gap),
        seconds,
        result.n_iter,
        coupled.products,
        [(record.time, record.primal) for record in result.trace],
    )


def _covariance(prior: Prior, n_classes: int, classes: list[str] | None) -> Any:
    """Make the covariance of the classes as the classifier does."""
    from labelweave.labels.covariance import FactorCovariance

    if prior.tree is None:
        return FactorCovariance(np.zeros((n_classes, 0)), prior.scale)
    assert classes is not None, "a tree needs the names of its leaves"
    tree = prior.tree.restricted(classes).pruned(keep=classes)
    return FactorCovariance(tree.membership(classes) * np.sqrt(prior.scale))
