"""Newton's linear system ``(I + W K) d = r``: the problem, the point and the solvers.

:class:`FunctionGradients` is conjugate gradients in the inner product ``<a, K b>``, in which the system is
self-adjoint: the k-th iterate minimizes Newton's quadratic model over the k-th Krylov space.  Every vector is
stored with its image under K.

**Exactly**, if the prior does not couple columns (Seeger 2008, appendix C).
For any r, ``(I + W K)^-1 r = r - B K r`` with ``B = (W^-1 + K)^-1``.  K consists of one n x n matrix K_c per
column.  If W does too, as for separate labels, so does B:

    B_c = S_c A_c^-1 S_c,    A_c = I + S_c K_c S_c,    S_c = W_c^(1/2).

If ``W = S (I - U U^T) S`` couples the columns of a row, as softmax does, the formula of Sherman, Morrison and
Woodbury subtracts a part of rank n:

    B = S (A^-1 - A^-1 U (U^T A^-1 U)^-1 U^T A^-1) S,

where A is block-diagonal in the columns and U is one diagonal matrix per column.  There are no divisions by
small probabilities.  The cost is one Cholesky factorization and one inverse per column, and the memory that
of the factors, n^2 per column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg as sl

from labelweave.foundation.array_types import Array, Floats, GroupedColumns, RowsByRows
from labelweave.foundation.arrays import RowPanels, Workers, namespace
from labelweave.foundation.arrays.linear_algebra import add_to_diagonal, copied, group_products, like

# ratio of gap to objective that is far from the optimum, where plain gradients are better
_NEAR = 1e4
# a preconditioner without this reduction in so many iterations is harmful: few rows with all of the
# curvature are not what it approximates
_PATIENCE, _PROGRESS = 40, 0.1
_SEEN = 0.25  # largest remaining share of <r, K r>: a preconditioner can hide unsolved parts
_LANES = 4  # partial sums over columns, for any number of threads


class Preconditioner(Protocol):
    """An approximate inverse of ``I + W K``, self-adjoint in the inner product of K."""

    def apply(self, residual: GroupedColumns, image: GroupedColumns) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r``."""


class NewtonProblem(Protocol):
    """Groups of columns, each with an objective ``sum_i loss_i(u_i) + 1/2 <a, K a>``, ``u = K a``.

    Losses are convex, except for partially observed rows, see :mod:`labelweave.solvers.newton`.  Products are
    new arrays.
    """

    shape: tuple[int, int, int]
    """Rows, groups, columns of a group."""
    least: float
    """What the losses are at least, 0 or minus infinity."""
    workers: Workers
    curve: Callable[[Array, Array, slice, Array], Array]
    """Multiply by W, for some rows, from the curvature and vectors of rows, these rows and the groups."""
    row_covariances: Callable[[GroupedColumns], GroupedColumns]
    """Multiply by the diagonal blocks of K, one per row, for groups that contain all labels."""

    def product(self, vectors: GroupedColumns, groups: Array) -> GroupedColumns:
        """Multiply by K."""

    def evaluate(self, scores: GroupedColumns, groups: Array) -> tuple[Floats, Array, Array]:
        """Return the losses of every group, minus their gradient, and the curvature for products with W."""

    def along(self, scores: Array, direction: Array, groups: Array, rows: slice) -> tuple[Array, Array]:
        """Return the losses of some rows and their derivatives along a direction, for every group."""

    def preconditioner(self, curvature: GroupedColumns, groups: Array) -> Preconditioner | None:
        """Make a preconditioner; None if not worthwhile."""

    def root(self, curvature: GroupedColumns, groups: Array) -> tuple[Array, Array | None]:
        """Compute S and U with ``W = V V^T``, ``V = S (I - U U^T)`` in every row and group.

        U has unit length in every row and group; None if it is 0.
        """

    def variances(self, groups: Array) -> GroupedColumns:
        """Compute the diagonal of K."""

    def dense_prior(self, group: int, column: int) -> RowsByRows:
        """Return K as a dense matrix between the rows of a column that K does not couple to others."""


def inner_products(panels: RowPanels, *pairs: tuple[Array, Array]) -> Array:
    """Compute the inner products of pairs of arrays for every group: shape (pairs, groups)."""
    return panels.total(
        lambda rows: np.stack([group_products(left[rows, ...], right[rows, ...]) for left, right in pairs])
    )


@dataclass(frozen=True)
class NewtonPoint:
    """The starting point of a Newton step.

    residual: r = -loss'(u) - a; image: K r.
    values (groups,): the objective.
    """

    dual: GroupedColumns
    scores: GroupedColumns
    residual: GroupedColumns
    image: GroupedColumns
    values: Array


@dataclass(frozen=True)
class NewtonSystem:
    """``I + W K`` for some groups; the curvature defines the products with W."""

    problem: NewtonProblem
    curvature: GroupedColumns
    groups: Array

    @cached_property
    def panels(self) -> RowPanels:
        return RowPanels(self.problem.workers, self.curvature)

    def curve(self, vectors: GroupedColumns, rows: slice) -> Array:
        """Compute W times some rows of vectors."""
        return self.problem.curve(self.curvature[rows, ...], vectors[rows, ...], rows, self.groups)

    def curve_all(self, vectors: GroupedColumns) -> GroupedColumns:
        product: Array = namespace(vectors).empty_like(vectors)

        def one(rows: slice) -> None:
            product[rows, ...] = self.curve(vectors, rows)

        self.panels.each(one)
        return product


class LinearSolver(Protocol):
    """A solver of Newton's systems.

    reduction (groups,): the factor by which to reduce the residual. limit: the maximum number of iterations.
    """

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        """Compute Newton's direction, or an approximation, and its image; the point is unchanged."""

    def solve(
        self,
        system: NewtonSystem,
        residual: GroupedColumns,
        image: GroupedColumns,
        reduction: Array,
        limit: int,
    ) -> tuple[Array, Array, int]:
        """Solve ``(I + W K) x = r`` for any r; return x, its image and the number of iterations."""


class FunctionGradients:
    """Solve Newton's systems by conjugate gradients in the function space."""

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        """Compute Newton's direction; see :meth:`LinearSolver.direction`.

        The iteration stops when the quadratic model predicts an objective below its lower bound.
        """
        residual, image = copied(point.residual), copied(point.image)
        run = _Iteration(system, residual, image, point.values - system.problem.least)
        gaps = inner_products(run.panels, (residual, image))[0] / 2
        if (gaps <= _NEAR * np.abs(point.values)).all():
            run.precondition()
        run.descend(reduction, limit)
        return run.solution, run.its_image

    def solve(
        self, system: NewtonSystem, residual: Array, image: Array, reduction: Array, limit: int
    ) -> tuple[Array, Array, int]:
        run = _Iteration(system, residual, image)
        run.precondition()
        done = run.descend(reduction, limit)
        return run.solution, run.its_image, done


class _Iteration:
    """The vectors of one solve, every one with its image under K.

    A group rests once the model has decreased by the allowed amount.
    """

    def __init__(
        self, system: NewtonSystem, residual: Array, image: Array, allowed: Array | float = np.inf
    ) -> None:
        self.system, self.panels, self.allowed = system, system.panels, allowed
        self.residual, self.image = residual, image
        self.preconditioner: Preconditioner | None = None
        xp = namespace(residual)
        self.solution, self.its_image = xp.zeros_like(residual), xp.zeros_like(residual)
        self.curved = xp.empty_like(residual)
        self.fall = np.zeros(residual.shape[1])
        self.start()

    def start(self) -> None:
        self.direction, self.along = (copied(part) for part in self._preconditioned())
        self.square = self._square()

    def precondition(self) -> None:
        system = self.system
        self.preconditioner = system.problem.preconditioner(system.curvature, system.groups)
        if self.preconditioner is not None:
            self.start()

    def descend(self, reduction: Array, limit: int) -> int:
        """Iterate until every group rests or has a small residual; return the number of iterations."""
        whole = inner_products(self.panels, (self.residual, self.image))[0]
        targets, last, done = reduction**2 * self.square, self.square, 0
        while done < limit and self._goes_on(targets, _SEEN * whole):
            self.advance()
            done += 1
            if self.preconditioner is not None and done % _PATIENCE == 0:
                if (self.square > np.maximum(targets, _PROGRESS * last)).any():
                    self.preconditioner, targets = None, reduction**2 * whole
                    self.start()
                last = self.square
        return done

    def _goes_on(self, targets: Array, whole: Array) -> bool:
        """Return whether any residual, with or without preconditioner, is above its target."""
        works = ~self.rests()
        if self.preconditioner is None or (works & (self.square > targets)).any():
            return bool((works & (self.square > targets)).any())
        square = inner_products(self.panels, (self.residual, self.image))[0]
        return bool((works & (square > whole)).any())

    def rests(self) -> Array:
        """Return which groups have reached the allowed decrease."""
        return np.asarray(self.fall >= self.allowed)

    def _preconditioned(self) -> tuple[Array, Array]:
        if self.preconditioner is None:
            return self.residual, self.image
        self.changed = self.preconditioner.apply(self.residual, self.image)
        return self.changed

    def _square(self) -> Array:
        """Compute ``<r, K M^-1 r>``; values that are negative by rounding count as 0."""
        image = self.image if self.preconditioner is None else self.changed[1]
        return np.asarray(np.maximum(inner_products(self.panels, (self.residual, image))[0], 0.0))

    def advance(self) -> None:
        """Step along the direction to the minimum, and compute the next direction."""

        def curve(rows: slice) -> Array:
            self.curved[rows, ...] = self.system.curve(self.along, rows)
            forces = self.direction[rows, ...] + self.curved[rows, ...]
            return group_products(forces, self.along[rows, ...])

        curvature = self.panels.total(curve)
        image = self.system.problem.product(self.curved, self.system.groups)
        lengths = np.divide(self.square, curvature, out=np.zeros_like(curvature), where=curvature > 0)
        lengths[self.rests()] = 0.0
        self.fall += lengths * self.square / 2
        step = like(lengths[:, None], image)

        def move(rows: slice) -> None:
            direction, along = self.direction[rows, ...], self.along[rows, ...]
            self.solution[rows, ...] += step * direction
            self.its_image[rows, ...] += step * along
            self.residual[rows, ...] -= step * (direction + self.curved[rows, ...])
            self.image[rows, ...] -= step * (along + image[rows, ...])

        self.panels.each(move)
        self._turn()

    def _turn(self) -> None:
        """Make the next direction conjugate to the previous ones."""
        new, new_image = self._preconditioned()
        square = self._square()
        ratio = np.divide(square, self.square, out=np.zeros_like(square), where=self.square > 0)[:, None]
        ratio, self.square = like(ratio, new), square

        def one(rows: slice) -> None:
            self.direction[rows, ...] *= ratio
            self.direction[rows, ...] += new[rows, ...]
            self.along[rows, ...] *= ratio
            self.along[rows, ...] += new_image[rows, ...]

        self.panels.each(one)


class ExactDirections:
    """Solve exactly, for a few thousand rows at most."""

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        found = self.solve(system, point.residual, point.image, reduction, limit)
        return found[0], found[1]

    def solve(
        self, system: NewtonSystem, residual: Array, image: Array, reduction: Array, limit: int
    ) -> tuple[Array, Array, int]:
        scale, shares = system.problem.root(system.curvature, system.groups)
        solution = np.empty_like(residual)
        for position, group in enumerate(system.groups):
            own_shares = None if shares is None else shares[:, position]
            inverse = _Inverse(system.problem, int(group), scale[:, position], own_shares)
            solution[:, position] = residual[:, position] - inverse.times(image[:, position])
        return solution, system.problem.product(solution, system.groups), 1


class _Inverse:
    """B for one group, from S and U of shape (n, columns)."""

    def __init__(self, problem: NewtonProblem, group: int, scale: Array, shares: Array | None) -> None:
        self.problem, self.group, self.scale, self.shares = problem, group, scale, shares
        self.columns = list(range(scale.shape[1]))
        self.factors: list[Any] = [None] * len(self.columns)
        lanes = range(min(_LANES, len(self.columns)))
        parts = [self.columns[lane::_LANES] for lane in lanes]
        middles = problem.workers.map(self._factorize, parts)
        if shares is not None:
            self.middle = _cholesky(np.asfortranarray(np.sum(middles, axis=0)))

    def _factorize(self, columns: list[int]) -> Array | None:
        """Factorize A for some columns, and sum their parts of ``U^T A^-1 U``, the upper triangle."""
        total = None if self.shares is None else np.zeros((len(self.scale),) * 2, order="F")
        for column in columns:
            scale = self.scale[:, column]
            matrix = self.problem.dense_prior(self.group, column)
            matrix *= scale[:, None]
            matrix *= scale
            add_to_diagonal(matrix, 1.0)
            factor = self.factors[column] = _cholesky(matrix.T)
            if total is not None and self.shares is not None:
                share = self.shares[:, column]
                total += share[:, None] * sl.lapack.dpotri(factor, lower=0)[0] * share
        return total

    def times(self, vectors: Array) -> Array:
        solved = self._solve(self.scale * vectors)
        if self.shares is not None:
            common = (self.shares * solved).sum(axis=1)
            common = sl.cho_solve((self.middle, False), common, check_finite=False)
            solved -= self._solve(self.shares * common[:, None])
        return np.asarray(self.scale * solved)

    def _solve(self, right: Array) -> Array:
        solution = np.empty_like(right)

        def one(column: int) -> None:
            factor = (self.factors[column], False)
            solution[:, column] = sl.cho_solve(factor, right[:, column], check_finite=False)

        self.problem.workers.each(one, self.columns)
        return solution


def _cholesky(matrix: Array) -> Array:
    """Return the upper factor in the upper triangle; entries below it are undefined."""
    try:
        return np.asarray(sl.cho_factor(matrix, lower=False, overwrite_a=True, check_finite=False)[0])
    except np.linalg.LinAlgError:
        raise ValueError(
            "The prior covariance of a label is not positive semi-definite, so the exact solution failed; "
            "check the kernel, reduce its scale, or use conjugate gradients."
        ) from None
