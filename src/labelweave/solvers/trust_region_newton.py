"""Minimisation over one factor: conjugate gradients, and TRON where the loss is not quadratic.

Lin, Weng and Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR 9 (2008),
which Yu et al. (2014, section 3.1) take for the logistic and squared hinge loss.  Blocks that do not see
each other, such as the rows of the labels' factor, have a radius each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.solvers.factor_problem import FactorProblem, Scalars
from labelweave.solvers.truncated_gradients import TruncatedStep, descent, truncated_gradients

__all__ = ["FactorSolution", "TrustRegionNewton"]

_ACCEPTED, _POOR, _GOOD = 1e-4, 0.25, 0.75  # shares of the decrease that the model promised
_SHRINK, _GROW = 0.25, 4.0
_NOISE = {8: 1e-12, 4: 1e-7}  # rounding errors of values as a share, by bytes of an entry
_TINY = 1e-12  # a radius as a share of the first, below which steps are noise


@dataclass(frozen=True)
class FactorSolution:
    """A factor that is lower.

    gradient_share: length of the last gradient known, as a share of the first.
    Shapes: factor (m, k), image (n, k).
    """

    factor: Array
    image: Array
    value: float
    gradient_share: float
    n_steps: int
    n_iter: int


class TrustRegionNewton:
    """The solver.

    tol: share of the first gradient, in the preconditioner's norm, to reach.
    max_steps: newton steps, where the loss is not quadratic.
    max_iter: iterations of conjugate gradients in a step.
    forcing: share of the residual that a step's linear system is left with.
    """

    def __init__(self, tol: float, max_steps: int, max_iter: int, forcing: float = 0.1) -> None:
        self.tol, self.max_steps, self.max_iter, self.forcing = tol, max_steps, max_iter, forcing

    def minimise(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        """Go downhill from a factor; the result is never higher.

        factor (m, k): where to start; kept as it is.
        Shapes: image (n, k).
        """
        if problem.is_quadratic:
            return self._one_step(problem, factor, image)
        return self._steps(problem, factor, image)

    def _one_step(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        point = problem.evaluate(factor, image)
        down = descent(problem, point)
        step = truncated_gradients(problem, point, down, self.tol, self.max_iter)
        value = float((point.values - step.decrease).sum())
        return FactorSolution(
            factor + step.direction, image + step.image, value, step.residual, 1, step.n_iter
        )

    def _steps(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        point = problem.evaluate(factor, image)
        down = descent(problem, point)
        first = down.square
        state = _State(factor, image, point.values, np.sqrt(first))
        n_iter = n_steps = 0
        while n_steps < self.max_steps:
            is_open = down.square > self.tol**2 * first
            if not is_open.any():
                break
            forcing = np.where(is_open, self.forcing, 1.0)  # a block that is done stays
            step = truncated_gradients(problem, point, down, forcing, self.max_iter, state.radius)
            n_steps, n_iter = n_steps + 1, n_iter + step.n_iter
            if state.judge(problem, step):
                point = problem.evaluate(state.factor, state.image)
                down = descent(problem, point)
            elif state.radius.max() < _TINY * np.sqrt(first).max() or step.decrease.max() <= 0:
                break
        share = np.sqrt(np.divide(down.square, first, out=np.zeros_like(first), where=first > 0).max())
        return FactorSolution(
            state.factor, state.image, float(state.values.sum()), float(share), n_steps, n_iter
        )


class _State:
    """A factor with its image and values, and the radii of the regions in which the model is trusted."""

    def __init__(self, factor: Array, image: Array, values: Scalars, radius: Scalars) -> None:
        self.factor, self.image, self.values, self.radius = factor, image, values, radius

    def judge(self, problem: FactorProblem, step: TruncatedStep) -> bool:
        """Take the blocks of a step that lower the objective and set the radii; say whether there are any."""
        there, its_image = self.factor + step.direction, self.image + step.image
        found = problem.values(there, its_image)
        taken = self._trust(step, found)
        if taken.all():
            self.factor, self.image, self.values = there, its_image, found
        elif taken.any():
            self.factor = np.where(taken, there, self.factor)
            self.image = np.where(taken, its_image, self.image)
            self.values = np.where(taken, found, self.values)
        return bool(taken.any())

    def _trust(self, step: TruncatedStep, found: Scalars) -> npt.NDArray[np.bool_]:
        """Compare what a step did to what its model promised; say which blocks to take."""
        noise = _NOISE[self.factor.dtype.itemsize] * np.abs(self.values)
        promised = np.maximum(step.decrease, 1e-300)
        ratio = (self.values - found + noise) / (promised + noise)
        tried = step.decrease > 0
        shrunk = _SHRINK * np.minimum(self.radius, step.length)
        self.radius = np.where(tried & (ratio < _POOR), shrunk, self.radius)
        grown = np.maximum(self.radius, _GROW * step.length)
        self.radius = np.where(tried & (ratio > _GOOD), grown, self.radius)
        return np.asarray(tried & (ratio > _ACCEPTED))
