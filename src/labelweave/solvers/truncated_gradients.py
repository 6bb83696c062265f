"""Preconditioned conjugate gradients for Newton steps in a factor, within a trust region (Steihaug 1983).

Minimises <g, d> + 1/2 <d, H d> by block, and stops a block when its residual has fallen far enough, or
where its path leaves the region.  Lengths are those of the preconditioner's inverse, in which the path
grows at every step, so they follow by recurrence.  In exact arithmetic every iterate lowers the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.solvers.factor_problem import Array, FactorPoint, FactorProblem, Scalars

__all__ = ["TruncatedStep", "truncated_gradients"]


@dataclass(frozen=True)
class TruncatedStep:
    """A step.

    Parameters
    ----------
    direction : ndarray of shape (m, k)
        d.
    image : ndarray of shape (n, k)
        Its image.
    decrease : ndarray of float64, one number a block
        By how much the quadratic model falls.
    length : ndarray of float64, one number a block
        The length of d.
    n_iter : int
        Iterations taken.
    residual : float
        What is left of the residual, the largest share over blocks.
    """

    direction: Array
    image: Array
    decrease: Scalars
    length: Scalars
    n_iter: int
    residual: float


def truncated_gradients(
    problem: FactorProblem,
    point: FactorPoint,
    tol: float | Scalars,
    max_iter: int,
    radius: Scalars | None = None,
) -> TruncatedStep:
    """Solve for a Newton step approximately.

    Parameters
    ----------
    problem : FactorProblem
        The objective.
    point : FactorPoint
        Where it stands.
    tol : float or ndarray, one number a block
        Share of the first residual, in the preconditioner's norm, to reach.
    max_iter : int
        The largest number of iterations.
    radius : ndarray of float64, one number a block, or None
        The longest step allowed; None for any.

    Returns
    -------
    TruncatedStep
        The step.
    """
    residual = -point.gradient
    solved = point.precondition(residual)
    image = problem.image(solved)
    first = rho = problem.inner(residual, solved, image)
    direction, along = solved.copy(), image.copy()
    step, moved = np.zeros_like(residual), np.zeros_like(image)
    zero = np.zeros_like(rho)
    decrease, length, overlap, reach = zero.copy(), zero.copy(), zero.copy(), rho.copy()
    targets = np.square(tol) * first
    open_blocks = rho > targets
    n_iter = 0
    while open_blocks.any() and n_iter < max_iter:
        bent = point.curve(direction, along)
        energy = problem.inner(bent, direction, along)
        usable = open_blocks & (energy > 0)
        rate = np.where(usable, rho / np.where(usable, energy, 1.0), 0.0)
        if radius is not None:
            rate, inside = _within(rate, length, overlap, reach, radius)
            usable = usable & inside
        decrease += rate * (rho - 0.5 * rate * energy)
        length += rate * (2 * overlap + rate * reach)
        overlap = overlap + rate * reach
        narrow = rate.astype(step.dtype)
        _add(step, narrow, direction)
        _add(moved, narrow, along)
        _add(residual, -narrow, bent)
        n_iter += 1
        solved = point.precondition(residual)
        image = problem.image(solved)
        last, rho = rho, problem.inner(residual, solved, image)
        open_blocks = usable & (rho > targets)
        turn = np.where(open_blocks, rho / np.where(last > 0, last, 1.0), 0.0)
        _turn(direction, turn.astype(step.dtype), solved)
        _turn(along, turn.astype(step.dtype), image)
        overlap = turn * overlap
        reach = rho + turn**2 * reach
    share = np.where(first > 0, np.maximum(rho, 0) / np.where(first > 0, first, 1.0), 0.0)
    return TruncatedStep(
        step, moved, decrease, np.sqrt(np.maximum(length, 0)), n_iter, float(np.sqrt(share.max()))
    )


def _within(
    rate: Scalars, length: Scalars, overlap: Scalars, reach: Scalars, radius: Scalars
) -> tuple[Scalars, npt.NDArray[np.bool_]]:
    """Shorten steps that would leave the region; say which blocks stay inside."""
    after: Scalars = length + rate * (2 * overlap + rate * reach)
    inside = np.asarray(after < radius**2)
    room = np.maximum(radius**2 - length, 0.0)
    root = np.sqrt(np.maximum(overlap**2 + reach * room, 0.0))
    safe = np.where(overlap + root > 0, overlap + root, 1.0)
    to_the_edge = np.where(reach > 0, room / safe, 0.0)
    return np.where(inside, rate, np.minimum(rate, to_the_edge)), inside


def _add(target: Array, rate: Array, vector: Array) -> None:
    target += rate * vector


def _turn(direction: Array, turn: Array, solved: Array) -> None:
    direction *= turn
    direction += solved
