"""Preconditioned conjugate gradients for Newton steps in a factor, within a trust region (Steihaug 1983).

Minimises <g, d> + 1/2 <d, H d> by block, and stops a block when its residual has fallen far enough, or
where its path leaves the region.  Lengths are those of the preconditioner's inverse, in which the path
grows at every step, so they follow by recurrence.  In exact arithmetic every iterate lowers the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.solvers.factor_problem import FactorPoint, FactorProblem, Scalars
from labelweave.solvers.row_updates import add_multiple, multiply_and_add

__all__ = ["Descent", "TruncatedStep", "descent", "truncated_gradients"]


@dataclass(frozen=True)
class Descent:
    """The direction of steepest descent where lengths are those of the preconditioner's inverse.

    square: its squared length, which is the gradient's in the norm of the preconditioner.
    Shapes: direction (m, k), image (n, k).
    """

    direction: Array
    image: Array
    square: Scalars


@dataclass(frozen=True)
class TruncatedStep:
    """A step.

    decrease: by how much the quadratic model falls.
    residual: what is left of the residual, the largest share over blocks.
    Shapes: direction (m, k), image (n, k).
    """

    direction: Array
    image: Array
    decrease: Scalars
    length: Scalars
    n_iter: int
    residual: float


def descent(problem: FactorProblem, point: FactorPoint) -> Descent:
    """Give the direction of steepest descent."""
    residual = -point.gradient
    solved = point.precondition(residual)
    image = problem.image(solved)
    return Descent(solved, image, np.maximum(problem.inner(residual, solved, image), 0.0))


def truncated_gradients(
    problem: FactorProblem,
    point: FactorPoint,
    start: Descent,
    tol: float | Scalars,
    max_iter: int,
    radius: Scalars | None = None,
) -> TruncatedStep:
    """Solve for a Newton step approximately.

    start: the direction of steepest descent there.
    tol: share of the first residual, in the preconditioner's norm, to reach.
    max_iter: the largest number of iterations.
    radius: the longest step allowed; None for any.
    """
    path = _Path(problem, point, start)
    targets = np.square(tol) * start.square
    path.is_open = start.square > targets
    while path.is_open.any() and path.n_iter < max_iter:
        path.advance(radius)
        path.turn(targets)
    share = _quotient(path.rho, start.square, start.square > 0)
    return TruncatedStep(
        path.step,
        path.moved,
        path.decrease,
        np.sqrt(np.maximum(path.square, 0.0)),
        path.n_iter,
        float(np.sqrt(np.maximum(share, 0.0).max(initial=0.0))),
    )


class _Path:
    """Where conjugate gradients are.

    ``square`` is the squared length of the step, ``reach`` that of the direction, ``overlap`` their inner
    product.
    """

    def __init__(self, problem: FactorProblem, point: FactorPoint, start: Descent) -> None:
        self.problem, self.point, self.n_iter = problem, point, 0
        self.residual = -point.gradient
        self.direction, self.along = start.direction.copy(), start.image.copy()
        self.step, self.moved = np.zeros_like(self.direction), np.zeros_like(self.along)
        self.rho, self.reach = start.square, start.square
        self.decrease, self.square, self.overlap = (np.zeros_like(start.square) for _ in range(3))
        self.is_open = start.square > 0

    def advance(self, radius: Scalars | None) -> None:
        """Go along the direction as far as the model falls, or to the edge of the region."""
        bent = self.point.curve(self.direction, self.along)
        energy = self.problem.inner(bent, self.direction, self.along)
        self.is_open = self.is_open & (energy > 0)
        rate = _quotient(self.rho, energy, self.is_open)
        if radius is not None:
            rate, inside = self._within(rate, radius)
            self.is_open = self.is_open & inside
        self.decrease = self.decrease + rate * (self.rho - 0.5 * rate * energy)
        self.square = self.square + rate * (2 * self.overlap + rate * self.reach)
        self.overlap = self.overlap + rate * self.reach
        workers = self.problem.workers
        add_multiple(self.step, rate, self.direction, workers)
        add_multiple(self.moved, rate, self.along, workers)
        add_multiple(self.residual, -rate, bent, workers)
        self.n_iter += 1

    def turn(self, targets: Scalars) -> None:
        """Take the next direction, conjugate to all before."""
        solved = self.point.precondition(self.residual)
        image = self.problem.image(solved)
        last, self.rho = self.rho, self.problem.inner(self.residual, solved, image)
        self.is_open = self.is_open & (self.rho > targets)
        turn = _quotient(self.rho, last, self.is_open)
        multiply_and_add(self.direction, turn, solved, self.problem.workers)
        multiply_and_add(self.along, turn, image, self.problem.workers)
        self.overlap = turn * self.overlap
        self.reach = self.rho + turn**2 * self.reach

    def _within(self, rate: Scalars, radius: Scalars) -> tuple[Scalars, npt.NDArray[np.bool_]]:
        """Shorten steps that would leave the region; say which blocks stay inside."""
        after: Scalars = self.square + rate * (2 * self.overlap + rate * self.reach)
        inside = np.asarray(after < radius**2)
        room = np.maximum(radius**2 - self.square, 0.0)
        root = np.sqrt(np.maximum(self.overlap**2 + self.reach * room, 0.0))
        to_the_edge = _quotient(room, self.overlap + root, (self.reach > 0) & (self.overlap + root > 0))
        return np.where(inside, rate, np.minimum(rate, to_the_edge)), inside


def _quotient(numerator: Scalars, denominator: Scalars, where: npt.NDArray[np.bool_]) -> Scalars:
    """Divide, 0 elsewhere."""
    where = where & (denominator > 0)
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=where)
