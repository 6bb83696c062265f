"""Newton's systems made symmetric, by preconditioned conjugate gradients (Seeger 2008, equation 5).

With ``W = V V^T`` and g the gradient of the loss, the next dual variables are ``a' = V b``, where

    (I + V^T K V) b = V^T u - S^-1 g,

and S is ``D^(1/2)`` of the paper.  The start ``b = S^-1 a`` corresponds to the last dual variables.

Two measures of appendix B guard against entries of S near 0.  If such an entry has a relatively large
gradient, for an observed class of very low probability, ``S b = -g`` is nearly exact: the entry is fixed and
the system is solved in the others.  Otherwise such an entry starts at 0.

The preconditioner is the diagonal of the system (appendix B).  With ``p = U^2``, entry by entry,

    1 + S_c^2 (K_cc - 2 (K_ii p)_c + p^T K_ii p),

where K_ii is the covariance of the scores of one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.foundation.array_types import Array, GroupedColumns
from labelweave.foundation.arrays.linear_algebra import group_products
from labelweave.solvers.newton_system import NewtonPoint, NewtonSystem, inner_products

_SAME = 1e-13  # of the largest dual variable; changes below it are rounding
_SHORT = 0.5  # of Newton's step: a direction with a shorter best step needs more iterations
_GUARDED = float(np.exp(-23.0))  # kappa of appendix B: entries of a smaller probability are guarded
_FURTHER = 0.1  # reduction of the residual before a direction is tried again


@dataclass(frozen=True)
class CurvatureRoot:
    """``W = V V^T``, ``V = S (I - U U^T)`` in every row and group.

    V is the paper's ``A D^(1/2)``, of which ``D^(1/2)`` is S and ``A = I - U^2 1^T``.

    shares (n, groups, columns): U, of unit length in every row and group; None for ``V = S``.
    """

    scale: GroupedColumns
    shares: Array | None

    def times(self, vectors: Array, rows: slice) -> Array:
        return np.asarray(self.scale[rows] * self._projected(vectors, rows))

    def transposed(self, vectors: Array, rows: slice) -> Array:
        return self._projected(self.scale[rows] * vectors, rows)

    def _projected(self, vectors: Array, rows: slice) -> Array:
        if self.shares is None:
            return vectors
        shares = self.shares[rows]
        return np.asarray(vectors - shares * (shares * vectors).sum(axis=2, keepdims=True))

    def centered(self, vectors: Array, rows: slice) -> Array:
        """Compute ``A v``, so that ``V v = A S v``, for some rows."""
        if self.shares is None:
            return vectors
        return np.asarray(vectors - self.shares[rows] ** 2 * vectors.sum(axis=2, keepdims=True))


class SymmetrizedGradients:
    """The linear solver of the paper.

    limit: iterations per Newton step, the paper's k2; more if the direction does not descend far enough
        (footnote 17).
    diagonal: whether the system is preconditioned by its diagonal.
    reduction: the smallest required reduction of the residual; 0 for ``limit`` iterations in every step.
    """

    def __init__(self, limit: int = 25, *, diagonal: bool = True, reduction: float = 0.1) -> None:
        self.limit, self.diagonal, self.reduction = limit, diagonal, reduction

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        root = CurvatureRoot(*system.problem.root(system.curvature, system.groups))
        change, image, residual, free = _start(system, root, point)
        run = _Iteration(system, root, residual, free, diagonal=self.diagonal)
        targets, done = np.minimum(reduction, self.reduction) ** 2 * run.square, 0
        while True:
            done += run.descend(targets, min(self.limit, limit - done))
            direction, along = change + run.sums, image + run.images
            poor = _best_lengths(system, point, direction, along) < _SHORT
            if done >= limit or not (poor & (run.square > 0)).any():
                return _descending(system, point, direction, along)
            targets = np.where(poor, _FURTHER**2 * run.square, targets)

    def solve(
        self, system: NewtonSystem, residual: Array, image: Array, reduction: Array, limit: int
    ) -> tuple[Array, Array, int]:
        """Solve ``(I + V^T K V) b = -V^T K r``, without divisions: the solution is ``r + V b``."""
        root = CurvatureRoot(*system.problem.root(system.curvature, system.groups))
        right = -root.transposed(image, slice(None))
        run = _Iteration(system, root, right, None, diagonal=self.diagonal)
        # b is large relative to x if K is, so the residual must be small relative to r as well
        length = inner_products(system.panels, (residual, residual))[0]
        done = run.descend(reduction**2 * np.minimum(run.square, length), limit)
        return residual + run.sums, image + run.images, done


def _best_lengths(system: NewtonSystem, point: NewtonPoint, direction: Array, along: Array) -> Array:
    """Compute the optimal step lengths of Newton's model: 1 for its own direction."""
    descent, square = inner_products(system.panels, (point.residual, along), (direction, along))
    curvature = inner_products(system.panels, (along, system.curve_all(along)))[0] + square
    return np.asarray(np.divide(descent, curvature, out=np.zeros_like(descent), where=curvature > 0))


def _descending(
    system: NewtonSystem, point: NewtonPoint, direction: Array, along: Array
) -> tuple[Array, Array]:
    """Use the negative gradient in the function space where the direction still ascends."""
    ascends = inner_products(system.panels, (point.residual, along))[0] <= 0
    direction[:, ascends], along[:, ascends] = point.residual[:, ascends], point.image[:, ascends]
    return direction, along


def _system_diagonal(system: NewtonSystem, root: CurvatureRoot) -> Array:
    """Compute the diagonal of ``I + V^T K V``."""
    variances, shares = system.problem.variances(system.groups), root.shares
    if shares is not None:
        probabilities = shares**2
        mixed = system.problem.row_covariances(probabilities)
        variances = variances - 2 * mixed + (probabilities * mixed).sum(axis=2, keepdims=True)
    return np.asarray(1.0 + root.scale**2 * np.maximum(variances, 0.0))


def _start(
    system: NewtonSystem, root: CurvatureRoot, point: NewtonPoint
) -> tuple[Array, Array, Array, Array | None]:
    """Return the start of conjugate gradients: offset from the point, image, residual, free entries.

    With ``c = S b`` the dual variables at the start are ``A c``: the paper's ``c = a``, but -g where an
    entry is fixed and 0 where it is guarded.
    """
    squares, pull = root.scale**2, point.residual + point.dual  # pull is -g
    fixed = squares < _GUARDED * np.abs(pull)
    guarded = squares <= _GUARDED * squares.max(axis=(0, 2), initial=0.0)[:, None]
    spread = np.where(fixed, pull, np.where(guarded, 0.0, point.dual))
    change = root.centered(spread, slice(None)) - point.dual
    if np.abs(change).max(initial=0.0) > _SAME * np.abs(point.dual).max(initial=0.0):
        image = system.problem.product(change, system.groups)
    else:
        change, image = np.zeros_like(point.dual), np.zeros_like(point.dual)
    usable = ~fixed & (squares > 0)
    residual = np.divide(pull - spread, root.scale, out=np.zeros_like(pull), where=usable)
    residual -= root.transposed(image, slice(None))
    if not fixed.any():
        return change, image, residual, None
    return change, image, residual * ~fixed, ~fixed


class _Iteration:
    """Conjugate gradients on ``(I + V^T K V) b = right`` from 0, for the entries that are free.

    ``sums`` is V b and ``images`` is K V b; b itself is not kept.
    """

    def __init__(
        self, system: NewtonSystem, root: CurvatureRoot, right: Array, free: Array | None, *, diagonal: bool
    ) -> None:
        self.system, self.root, self.residual = system, root, right
        self.free = free
        self.diagonal = _system_diagonal(system, root) if diagonal else np.broadcast_to(1.0, right.shape)
        self.sums, self.images = np.zeros_like(right), np.zeros_like(right)
        self.spread = np.empty_like(right)
        self.step = right / self.diagonal
        self.square = inner_products(system.panels, (right, self.step))[0]

    def descend(self, targets: Array, limit: int) -> int:
        """Iterate until every group's residual is small enough; return the number of iterations."""
        for done in range(limit):
            if (self.square <= targets).all():
                return done
            self._advance()
        return limit

    def _advance(self) -> None:
        panels, root = self.system.panels, self.root

        def spread(rows: slice) -> None:
            self.spread[rows] = root.times(self.step[rows], rows)

        panels.each(spread)
        image = self.system.problem.product(self.spread, self.system.groups)
        forces = np.empty_like(image)

        def pull(rows: slice) -> Array:
            forces[rows] = self.step[rows] + root.transposed(image[rows], rows)
            if self.free is not None:
                forces[rows] *= self.free[rows]
            return group_products(self.step[rows], forces[rows])

        curvature = panels.total(pull)
        length = np.divide(self.square, curvature, out=np.zeros_like(curvature), where=curvature > 0)
        self._move(length[:, None], image, forces)

    def _move(self, length: Array, image: Array, forces: Array) -> None:
        panels = self.system.panels

        def move(rows: slice) -> Array:
            self.sums[rows] += length * self.spread[rows]
            self.images[rows] += length * image[rows]
            self.residual[rows] -= length * forces[rows]
            return group_products(self.residual[rows], self._preconditioned(rows))

        square = panels.total(move)
        ratio = np.divide(square, self.square, out=np.zeros_like(square), where=self.square > 0)[:, None]
        self.square = square

        def turn(rows: slice) -> None:
            self.step[rows] *= ratio
            self.step[rows] += self._preconditioned(rows)

        panels.each(turn)

    def _preconditioned(self, rows: slice) -> Array:
        return np.asarray(self.residual[rows] / self.diagonal[rows])
