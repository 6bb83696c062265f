"""Fits of kernel logistic models in parts, and scikit-learn's with the seconds to an objective.

labelweave's are ``KernelLogisticClassifier`` with fixed hyperparameters: kernel matrix, prior, solver.

``GaussianProcessClassifier`` with a fixed kernel seeks the mode of the posterior of the scores f, which
minimizes ``sum_i log(1 + exp(-y_i f_i)) + 1/2 f^T K^-1 f``: labelweave's objective of a label without
intercept.  Each label is a separate problem.  ``LogisticRegression`` on a factor ``K = G G^T`` of the kernel
matrix, without intercept and with C = 1, minimizes labelweave's objective of the softmax loss: ``u = G w``.
Both are observed from outside: an objective is recorded whenever the program itself has computed it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg as sl

from benchmarks.frame import quiet, timed
from benchmarks.problems import ClassProblem


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
    on_check = None if stop is None else lambda record, _: stop(record)
    (result, state), seconds = timed(solver.solve, problem, None, on_check, clock=time.perf_counter)
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


Trace = list[tuple[float, float]]

_SAME = 1e-9  # of the objective: the next step changes nothing


@dataclass(frozen=True)
class Watched:
    """A run of a peer.

    trace: seconds since the start, and the objective there.
    seconds: of the whole run.
    ended: "converged", "time limit" or "target".
    """

    trace: Trace
    seconds: float
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
    return Watched(trace, time.perf_counter() - start, ended)


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
    return Watched(trace, trace[-1][0], "converged")


def _objective(estimator: Any, dual: Any) -> float:
    """Compute the objective of the scores ``f = K a`` that were found last."""
    scores = estimator.f_cached
    losses = np.logaddexp(0.0, -(2.0 * estimator.y_train_ - 1.0) * scores)
    return float(losses.sum() + dual @ scores / 2)
