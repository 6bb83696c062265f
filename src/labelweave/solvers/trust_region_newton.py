"""Minimisation over one factor: conjugate gradients, and TRON where the loss is not quadratic.

Lin, Weng and Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR 9 (2008),
which Yu et al. (2014, section 3.1) take for the logistic and squared hinge loss.  Blocks that do not see
each other, such as the rows of the labels' factor, have a radius each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.solvers.factor_problem import Array, FactorPoint, FactorProblem, Scalars
from labelweave.solvers.truncated_gradients import TruncatedStep, truncated_gradients

__all__ = ["FactorSolution", "TrustRegionNewton"]

_ACCEPTED, _POOR, _GOOD = 1e-4, 0.25, 0.75  # shares of the decrease that the model promised
_SHRINK, _GROW = 0.25, 4.0


@dataclass(frozen=True)
class FactorSolution:
    """A factor that is lower.

    Parameters
    ----------
    factor : ndarray of shape (m, k)
        The factor.
    image : ndarray of shape (n, k)
        Its image.
    value : float
        The objective.
    gradient_share : float
        Length of the last gradient known, as a share of the first.
    n_steps : int
        Newton steps.
    n_iter : int
        Iterations of conjugate gradients.
    """

    factor: Array
    image: Array
    value: float
    gradient_share: float
    n_steps: int
    n_iter: int


class TrustRegionNewton:
    """The solver.

    Parameters
    ----------
    tol : float
        Share of the first gradient, in the preconditioner's norm, to reach.
    max_steps : int
        Newton steps, where the loss is not quadratic.
    max_iter : int
        Iterations of conjugate gradients in a step.
    forcing : float, default=0.1
        Share of the residual that a step's linear system is left with.
    """

    def __init__(self, tol: float, max_steps: int, max_iter: int, forcing: float = 0.1) -> None:
        self.tol, self.max_steps, self.max_iter, self.forcing = tol, max_steps, max_iter, forcing

    def minimise(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        """Go downhill from a factor; the result is never higher.

        Parameters
        ----------
        problem : FactorProblem
            The objective.
        factor : ndarray of shape (m, k)
            Where to start; kept as it is.
        image : ndarray of shape (n, k)
            Its image.

        Returns
        -------
        FactorSolution
            The end.
        """
        if problem.is_quadratic:
            return self._one_step(problem, factor, image)
        return self._steps(problem, factor, image)

    def _one_step(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        point = problem.evaluate(factor, image)
        step = truncated_gradients(problem, point, self.tol, self.max_iter)
        value = float((point.values - step.decrease).sum())
        return FactorSolution(
            factor + step.direction, image + step.image, value, step.residual, 1, step.n_iter
        )

    def _steps(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        point = problem.evaluate(factor, image)
        values, first = point.values, self._gradient(problem, point)
        gradient, radius = first, np.sqrt(first)
        n_iter = n_steps = 0
        while n_steps < self.max_steps:
            is_open = gradient > self.tol**2 * first
            if not is_open.any():
                break
            forcing = np.where(is_open, self.forcing, 1.0)  # a block that is done stays
            step = truncated_gradients(problem, point, forcing, self.max_iter, radius)
            n_steps, n_iter = n_steps + 1, n_iter + step.n_iter
            factor, image, values, radius, moved = self._judged(problem, step, factor, image, values, radius)
            if not moved:
                if radius.max() < 1e-12 * np.sqrt(first).max() or step.decrease.max() <= 0:
                    break
                continue
            point = problem.evaluate(factor, image)
            gradient = self._gradient(problem, point)
        share = np.where(first > 0, gradient / np.where(first > 0, first, 1.0), 0.0)
        return FactorSolution(
            factor, image, float(values.sum()), float(np.sqrt(share.max())), n_steps, n_iter
        )

    def _judged(
        self,
        problem: FactorProblem,
        step: TruncatedStep,
        factor: Array,
        image: Array,
        values: Scalars,
        radius: Scalars,
    ) -> tuple[Array, Array, Scalars, Scalars, bool]:
        """Take the blocks of a step that lower the objective, and set the radii."""
        there, its_image = factor + step.direction, image + step.image
        found = problem.values(there, its_image)
        noise = 1e-12 * np.abs(values) if factor.dtype == np.float64 else 1e-7 * np.abs(values)
        promised = np.maximum(step.decrease, 1e-300)
        ratio = (values - found + noise) / (promised + noise)
        tried = step.decrease > 0
        taken = tried & (ratio > _ACCEPTED)
        radius = np.where(tried & (ratio < _POOR), _SHRINK * np.minimum(radius, step.length), radius)
        radius = np.where(tried & (ratio > _GOOD), np.maximum(radius, _GROW * step.length), radius)
        if taken.all():
            return there, its_image, found, radius, True
        if not taken.any():
            return factor, image, values, radius, False
        values = np.where(taken, found, values)
        return np.where(taken, there, factor), np.where(taken, its_image, image), values, radius, True

    def _gradient(self, problem: FactorProblem, point: FactorPoint) -> Scalars:
        """Square the length of the gradient in the preconditioner's norm."""
        solved = point.precondition(point.gradient)
        return problem.inner(point.gradient, solved, problem.image(solved))
