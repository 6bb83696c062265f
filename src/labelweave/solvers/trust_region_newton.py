"""Minimization over one factor: conjugate gradients, and TRON if the loss is not quadratic.

Lin, Weng and Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR 9 (2008),
which Yu et al. (2014, section 3.1) use for the logistic and squared hinge loss.

A factor is an array of shape (m, k).  A problem may consist of independent *blocks*: its rows, its columns,
or the whole as a single one.  A scalar per block is an entry of an array of shape (m, 1), (1, k) or (1, 1),
which broadcasts with a factor.  Each block has its own radius.

A step minimizes <g, d> + 1/2 <d, H d> by preconditioned conjugate gradients (Steihaug 1983).  A block stops
when its residual is small enough, or where its path leaves the region.  Lengths are in the norm of the
preconditioner's inverse, in which the path grows at every step, so they follow by recurrence.  In exact
arithmetic every iterate lowers the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, namespace
from labelweave.foundation.arrays.linear_algebra import as_type, copied, is_double
from labelweave.foundation.arrays.tables import add_multiple, multiply_and_add

_ACCEPTED, _POOR, _GOOD = 1e-4, 0.25, 0.75  # shares of the decrease predicted by the model
_SHRINK, _GROW = 0.25, 4.0
_NOISE = {True: 1e-12, False: 1e-7}  # relative rounding errors of values, in double precision or not
_TINY = 1e-12  # a radius as a share of the first, below which steps are noise


Scalars = npt.NDArray[np.float64]  # one number per block


class FactorPoint(Protocol):
    """The objective to second order at one factor (m, k); images are (n, k)."""

    values: Scalars
    """The objective, one number a block."""
    gradient: Array
    """Its gradient, shape (m, k)."""

    def curve(self, direction: Array, image: Array) -> Array:
        """Multiply by the Hessian; the product is a new array."""

    def precondition(self, residual: Array) -> Array:
        """Multiply by an approximate inverse of the Hessian, positive definite and self-adjoint."""


class FactorProblem(Protocol):
    """A convex objective of one factor; shapes as in :class:`FactorPoint`."""

    is_quadratic: bool
    """Whether its second derivatives are the same everywhere."""
    workers: Workers

    def image(self, factor: Array) -> Array:
        """Map a factor to its image in the loss."""

    def evaluate(self, factor: Array, image: Array) -> FactorPoint:
        """Return value, gradient and curvature at a factor with a known image."""

    def values(self, factor: Array, image: Array) -> Scalars:
        """Compute the values alone."""

    def steering(self, gradient: Array) -> Array:
        """Return a gradient in the precision of steps; values and gradients have that of the factor."""

    def inner(self, left: Array, right: Array, image: Array) -> Scalars:
        """Compute inner products per block; the image is that of the right argument."""


@dataclass(frozen=True)
class FactorSolution:
    """A factor with a lower objective.

    gradient_share: length of the last computed gradient, relative to the first.
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
    max_steps: Newton steps, if the loss is not quadratic.
    max_iter: iterations of conjugate gradients per step.
    forcing: remaining share of the residual in a step's linear system.
    """

    def __init__(self, tol: float, max_steps: int, max_iter: int, forcing: float = 0.1) -> None:
        self.tol, self.max_steps, self.max_iter, self.forcing = tol, max_steps, max_iter, forcing

    def minimize(self, problem: FactorProblem, factor: Array, image: Array) -> FactorSolution:
        """Minimize from a factor (m, k), unchanged, with image (n, k); the objective never increases."""
        point = problem.evaluate(factor, image)
        down = descent(problem, point)
        if problem.is_quadratic:  # there is one step, and no second array of each kind
            step = truncated_gradients(problem, point, down, self.tol, self.max_iter)
            value = float((point.values - step.decrease).sum())
            end = factor + step.direction
            its_image = end if image is factor and step.image is step.direction else image + step.image
            return FactorSolution(end, its_image, value, step.residual, 1, step.n_iter)
        first = down.square
        now = _Trusted(factor, image, point.values, np.sqrt(first))
        n_iter = n_steps = 0
        while n_steps < self.max_steps:
            is_open = down.square > self.tol**2 * first
            if not is_open.any():
                break
            forcing = np.where(is_open, self.forcing, 1.0)  # a converged block stays
            step = truncated_gradients(problem, point, down.copy(), forcing, self.max_iter, now.radius)
            n_steps, n_iter = n_steps + 1, n_iter + step.n_iter
            now, is_lower = _judged(problem, now, step)
            if is_lower:
                point = problem.evaluate(now.factor, now.image)
                down = descent(problem, point)
            elif now.radius.max() < _TINY * np.sqrt(first).max() or step.decrease.max() <= 0:
                break
        share = np.sqrt(_quotient(down.square, first, first > 0).max())
        return FactorSolution(now.factor, now.image, float(now.values.sum()), float(share), n_steps, n_iter)


@dataclass(frozen=True)
class _Trusted:
    """A factor with its image and values, and the radii of the regions in which the model is trusted."""

    factor: Array
    image: Array
    values: Scalars
    radius: Scalars


def _chosen(taken: npt.NDArray[np.bool_], there: Array, here: Array) -> Array:
    xp = namespace(here)
    return xp.where(xp.asarray(taken, device=here.device), there, here)


def _judged(problem: FactorProblem, now: _Trusted, step: TruncatedStep) -> tuple[_Trusted, bool]:
    """Accept the blocks of a step that lower the objective and set the radii; return whether any do."""
    direction, moved = step.direction, step.image
    if direction.dtype != now.factor.dtype:
        direction = as_type(direction, now.factor.dtype)
        moved = direction if moved is step.direction else problem.image(direction)
    there, its_image = now.factor + direction, now.image + moved
    found = problem.values(there, its_image)
    noise = _NOISE[is_double(now.factor)] * np.abs(now.values)
    ratio = (now.values - found + noise) / (np.maximum(step.decrease, 1e-300) + noise)
    tried = step.decrease > 0
    shrunk = _SHRINK * np.minimum(now.radius, step.length)
    radius = np.where(tried & (ratio < _POOR), shrunk, now.radius)
    radius = np.where(tried & (ratio > _GOOD), np.maximum(radius, _GROW * step.length), radius)
    taken = tried & (ratio > _ACCEPTED)
    if taken.all():
        return _Trusted(there, its_image, found, radius), True
    if not taken.any():
        return replace(now, radius=radius), False
    there, its_image = _chosen(taken, there, now.factor), _chosen(taken, its_image, now.image)
    return _Trusted(there, its_image, np.where(taken, found, now.values), radius), True


@dataclass(frozen=True)
class Descent:
    """The direction of steepest descent in the norm of the preconditioner's inverse.

    square: its squared length, that of the gradient in the norm of the preconditioner.
    Shapes: direction (m, k), image (n, k).
    """

    direction: Array
    image: Array
    square: Scalars

    def copy(self) -> Descent:
        direction = copied(self.direction)
        image = direction if self.image is self.direction else copied(self.image)
        return replace(self, direction=direction, image=image)


@dataclass(frozen=True)
class TruncatedStep:
    """A step.

    decrease: the decrease of the quadratic model.
    residual: the largest remaining share of the residual over blocks.
    Shapes: direction (m, k), image (n, k).
    """

    direction: Array
    image: Array
    decrease: Scalars
    length: Scalars
    n_iter: int
    residual: float


def descent(problem: FactorProblem, point: FactorPoint) -> Descent:
    residual = problem.steering(-point.gradient)
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

    start: its arrays are reused for the direction.
    tol: share of the first residual, in the preconditioner's norm, to reach.
    radius: the longest step allowed; None for any.
    """
    path = _Path(problem, point, start)
    targets = np.square(tol) * start.square
    path.is_open = start.square > targets
    while path.is_open.any() and path.n_iter < max_iter:
        path.advance(radius)
        path.turn(targets)
    share = _quotient(path.rho, start.square, start.square > 0)
    length, left = np.sqrt(np.maximum(path.square, 0.0)), np.maximum(share, 0.0).max(initial=0.0)
    return TruncatedStep(path.step, path.moved, path.decrease, length, path.n_iter, float(np.sqrt(left)))


class _Path:
    """The state of conjugate gradients.

    ``square`` is the squared length of the step, ``reach`` that of the direction, ``overlap`` their inner
    product.  If the image of a factor is the factor itself, both are one array.
    """

    def __init__(self, problem: FactorProblem, point: FactorPoint, start: Descent) -> None:
        self.problem, self.point, self.n_iter = problem, point, 0
        self.residual = as_type(-point.gradient, start.direction.dtype)
        self.direction, self.along = start.direction, start.image
        xp, self.has_image = namespace(self.direction), self.along is not self.direction
        self.step = xp.zeros_like(self.direction)
        self.moved = xp.zeros_like(self.along) if self.has_image else self.step
        self.rho, self.reach = start.square, start.square
        self.decrease, self.square, self.overlap = (np.zeros_like(start.square) for _ in range(3))
        self.is_open = start.square > 0

    def advance(self, radius: Scalars | None) -> None:
        """Step along the direction to the minimum of the model, or to the edge of the region."""
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
        if self.has_image:
            add_multiple(self.moved, rate, self.along, workers)
        add_multiple(self.residual, -rate, bent, workers)
        self.n_iter += 1

    def turn(self, targets: Scalars) -> None:
        """Compute the next direction, conjugate to all previous ones."""
        solved = self.point.precondition(self.residual)
        image = self.problem.image(solved)
        last, self.rho = self.rho, self.problem.inner(self.residual, solved, image)
        self.is_open = self.is_open & (self.rho > targets)
        turn = _quotient(self.rho, last, self.is_open)
        multiply_and_add(self.direction, turn, solved, self.problem.workers)
        if self.has_image:
            multiply_and_add(self.along, turn, image, self.problem.workers)
        self.overlap = turn * self.overlap
        self.reach = self.rho + turn**2 * self.reach

    def _within(self, rate: Scalars, radius: Scalars) -> tuple[Scalars, npt.NDArray[np.bool_]]:
        """Shorten steps that would leave the region; return which blocks stay inside."""
        after: Scalars = self.square + rate * (2 * self.overlap + rate * self.reach)
        inside = np.asarray(after < radius**2)
        room = np.maximum(radius**2 - self.square, 0.0)
        root = np.sqrt(np.maximum(self.overlap**2 + self.reach * room, 0.0))
        to_the_edge = _quotient(room, self.overlap + root, (self.reach > 0) & (self.overlap + root > 0))
        return np.where(inside, rate, np.minimum(rate, to_the_edge)), inside


def _quotient(numerator: Scalars, denominator: Scalars, where: npt.NDArray[np.bool_]) -> Scalars:
    where = where & (denominator > 0)
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=where)
