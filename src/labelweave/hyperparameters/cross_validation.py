"""The cross-validation log likelihood and its gradient (Seeger 2008, sections 4 and 5.2).

For folds with training rows J and held-out rows I,

    psi(h) = sum_folds sum_{i in I} loss_i(u_i),    u = K a,    a = -loss'_J(u).

The folds are groups of one penalised likelihood whose weights are 0 outside J, so every product with
the kernel matrix serves all of them, and the rows I of ``K a`` are the held-out scores.  With
``e = loss'_I(u)`` and W the curvature of the training loss,

    d psi = tr a^T (dK) f,    f = e - (I + W K)^-1 W K e:

one more solve with the matrix of Newton's system, whatever the number of hyper-parameters.  The same
f corrects the value for what the fits leave undone: with their residual ``r = -loss'_J(u) - a`` the
criterion at the exact fits is ``psi + <f, K r>`` to second order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, PerRow
from labelweave.arrays import RowPanels, Workers
from labelweave.features import FeatureMatrix
from labelweave.hyperparameters.kernel_slopes import term_slopes
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes
from labelweave.losses import ScoreLoss
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.prior_grams import MakeGram, coupled_gram
from labelweave.problems.score_prior import ScorePrior
from labelweave.solvers import Status
from labelweave.solvers.function_gradients import FunctionGradients
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonResult, NewtonState
from labelweave.solvers.newton_system import Inner, LinearSolver, NewtonSystem, inner_products

__all__ = ["CrossValidationLikelihood", "Evaluation", "FoldedData", "InnerSettings"]


_MOST_ITERATIONS = 500  # in the solve for the gradient


@dataclass(frozen=True)
class FoldedData:
    """Rows for a cross-validation.

    make_loss: makes the loss from the weights of the rows in each fit, of shape (n, folds).
    weights: the weights of the rows.
    held_out (n, folds): which rows each fold holds out.
    make_gram: makes the kernel matrix of the rows for a kernel.
    ties_labels: whether the labels of a fold are solved for together.
    """

    features: FeatureMatrix
    make_loss: Callable[[Array], ScoreLoss]
    weights: PerRow
    held_out: Array
    make_gram: MakeGram
    ties_labels: bool


@dataclass(frozen=True)
class InnerSettings:
    """How the fits to the folds are done.

    tol: their relative duality gap.  The error of the value is of the order of the gap, that of the gradient
        of the order of its square root.
    solved: the residual reduction in the solve for the gradient.
    max_iter: newton steps of a fit.
    max_inner: conjugate gradient iterations of a step.
    directions: solves Newton's systems and that of the gradient; None for conjugate gradients.
    """

    tol: float = 1e-6
    solved: float = 1e-6
    max_iter: int = 30
    max_inner: int = 200
    rank: int = 100
    seed: int = 0
    directions: LinearSolver | None = None


class Evaluation(NamedTuple):
    """The criterion at some hyper-parameters.

    gap: the relative duality gap of the fits.
    converged: whether all fits reached the tolerance; if not, value and slope are not to be used.
    Shapes: slope (p,).
    """

    value: float
    slope: npt.NDArray[np.float64]
    gap: float
    products: float
    time: float
    converged: bool


class CrossValidationLikelihood:
    """The criterion as a function of theta.

    settings: how the fits to the folds are done; None for the defaults.
    """

    def __init__(
        self,
        family: PriorFamily,
        data: FoldedData,
        workers: Workers,
        settings: InnerSettings | None = None,
    ) -> None:
        self.family, self.data, self.workers = family, data, workers
        self.settings = InnerSettings() if settings is None else settings
        weights = np.broadcast_to(data.weights[:, None], data.held_out.shape)
        self.training = data.make_loss(np.where(data.held_out, 0.0, weights))
        self.testing = data.make_loss(np.where(data.held_out, weights, 0.0))
        self.every = np.arange(self.training.shape[1])
        self.mass = float(weights[data.held_out].sum())
        self.inner_state: Array | None = None
        """The dual variables of the last successful evaluation, from which the next one starts."""

    def __call__(self, theta: Array) -> Evaluation:
        """Evaluate value and gradient.

        Shapes: theta (p,).
        """
        begin = time.perf_counter()
        prior = self.family.prior(theta)
        gram = coupled_gram(prior, self.data.make_gram, self.workers, ties_labels=self.data.ties_labels)
        problem = KernelLikelihood(gram, self.training, self.settings.rank, self.settings.seed)
        fitted, state = self._fit(problem)
        value, slope = np.nan, np.full(len(theta), np.nan)
        if fitted.result.converged:
            self.inner_state = state.dual
            value, sources = self._held_out(state.scores)
            # at the optimum these are the dual variables, and unlike them exact in the null space of K
            _, dual, curvature = problem.evaluate(state.scores, self.every)
            adjoint = self._adjoint(problem, curvature, sources)
            value += float(np.vdot(adjoint, problem.product(dual - state.dual, self.every)))
            slope = self._slope(theta, prior, problem, dual, adjoint)
        seconds = time.perf_counter() - begin
        return Evaluation(
            value / self.mass,
            slope / self.mass,
            fitted.result.gap,
            gram.products,
            seconds,
            fitted.result.converged,
        )

    def _fit(self, problem: KernelLikelihood) -> tuple[NewtonResult, NewtonState]:
        settings = self.settings
        solver = NewtonConjugateGradient(
            settings.tol, settings.max_iter, settings.max_inner, directions=settings.directions
        )
        start = None
        if self.inner_state is not None:
            start = NewtonState.at(self.inner_state.copy())
        fitted, state = solver.solve(problem, start)
        if fitted.result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # the solver keeps its point and ends; here the search is to end
        return fitted, state

    def _held_out(self, scores: Array) -> tuple[float, Array]:
        """Compute the criterion and its slope by the scores."""
        slopes = np.empty_like(scores)

        def one(rows: slice) -> Array:
            found = self.testing.evaluate(scores[rows], rows, self.every)
            np.negative(found.residuals, out=slopes[rows])
            return found.values

        return float(self._panels(scores).total(one).sum()), slopes

    def _panels(self, scores: Array) -> RowPanels:
        return RowPanels(self.workers, len(scores), scores[0].size)

    def _adjoint(self, problem: KernelLikelihood, curvature: Array, sources: Array) -> Array:
        """Compute f from e.

        The solver sees its solution x only through K.  In the null space of K, which is large for few
        features, the residual is what x lacks; elsewhere it may be far more than that.  So x moves along
        it by the length that leaves the least residual.
        """
        system = NewtonSystem(problem, curvature, self.every, Inner(self._panels(sources)))
        right = system.curve_all(problem.product(sources, self.every))
        reduction = np.full(len(self.every), self.settings.solved)
        image = problem.product(right, self.every)
        linear = self.settings.directions or FunctionGradients()
        solution, solved, _ = linear.solve(system, right.copy(), image, reduction, _MOST_ITERATIONS)
        residual = right - solution - system.curve_all(solved)
        change = residual + system.curve_all(problem.product(residual, self.every))
        along, square = inner_products(system.inner, (change, residual), (change, change))
        lengths = np.divide(along, square, out=np.zeros_like(along), where=square > 0)
        return np.asarray(sources - solution - lengths[:, None] * residual)

    def _slope(
        self, theta: Array, prior: ScorePrior, problem: KernelLikelihood, dual: Array, adjoint: Array
    ) -> Array:
        fits = self.data.held_out.shape[1]
        pair = dual.reshape(len(dual), fits, -1), adjoint.reshape(len(adjoint), fits, -1)
        features, workers, whole = self.data.features, self.workers, self.family.learns_covariance
        slopes = [
            term_slopes(gram_term, term.kernel, features, pair, workers, all_entries=whole)
            for gram_term, term in zip(problem.gram.terms, prior.terms, strict=True)
        ]
        by_intercept = float(np.vdot(*(part.sum(axis=0) for part in pair)))
        return self.family.slope(theta, PriorSlopes(slopes, by_intercept))
