"""Conjugate gradients in the function space of a kernel.

Solves ``(I + W K) x = r``, W symmetric and positive semi-definite, in the inner product
``<a, K b>``: the equation is K's Newton system, and the k-th iterate minimises Newton's quadratic
model over the k-th Krylov space.  Every vector is kept with its image under K.
"""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array
from labelweave.solvers.newton_problem import Preconditioner
from labelweave.solvers.newton_system import NewtonPoint, NewtonSystem, inner_products

__all__ = ["FunctionGradients"]


# duality gaps so many times the objective are far from the optimum; plain gradients serve better there
_NEAR = 1e4
# a preconditioner that does not do this much in so many iterations does harm: few rows with all of the
# curvature are not what it stands for
_PATIENCE, _PROGRESS = 40, 0.1
_SEEN = 0.25  # what at most may be left of <r, K r>: a preconditioner can hide what it takes for solved


class FunctionGradients:
    """Newton's systems by conjugate gradients in the function space."""

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        """Find Newton's direction; see :meth:`labelweave.solvers.newton_system.LinearSolver.direction`.

        The quadratic model is followed no further than it promises a lower objective than 0.
        """
        residual, image = point.residual.copy(), point.image.copy()
        run = _Iteration(system, residual, image, point.values)
        gaps = inner_products(system.inner, (residual, image))[0] / 2
        if (gaps <= _NEAR * point.values).all():
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

    A group rests once the model has fallen by what is allowed.
    """

    def __init__(
        self, system: NewtonSystem, residual: Array, image: Array, allowed: Array | float = np.inf
    ) -> None:
        self.system, self.residual, self.image, self.allowed = system, residual, image, allowed
        self.preconditioner: Preconditioner | None = None
        self.solution, self.its_image = np.zeros_like(residual), np.zeros_like(residual)
        self.curved = np.empty_like(residual)
        self.fall = np.zeros(residual.shape[1])
        self.start()

    def start(self) -> None:
        """Go on from the residual itself."""
        self.direction, self.along = (part.copy() for part in self._preconditioned())
        self.square = self._square()

    def precondition(self) -> None:
        """Use the problem's preconditioner, if it has one."""
        system = self.system
        self.preconditioner = system.problem.preconditioner(system.curvature, system.groups)
        if self.preconditioner is not None:
            self.start()

    def descend(self, reduction: Array, limit: int) -> int:
        """Iterate until every group rests or has a small residual; the iterations done are given."""
        whole = self._whole_square()
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

    def _whole_square(self) -> Array:
        """Compute ``<r, K r>``."""
        return np.asarray(inner_products(self.system.inner, (self.residual, self.image))[0])

    def _goes_on(self, targets: Array, whole: Array) -> bool:
        """Tell whether a group has a residual above its target, also as it is without preconditioner."""
        works = ~self.rests()
        if self.preconditioner is None or (works & (self.square > targets)).any():
            return bool((works & (self.square > targets)).any())
        return bool((works & (self._whole_square() > whole)).any())

    def rests(self) -> Array:
        """Tell which groups have come as far as they may."""
        return np.asarray(self.fall >= self.allowed)

    def _preconditioned(self) -> tuple[Array, Array]:
        if self.preconditioner is None:
            return self.residual, self.image
        self.changed = self.preconditioner.apply(self.residual, self.image)
        return self.changed

    def _square(self) -> Array:
        """Compute ``<r, K M^-1 r>``; what rounding makes negative counts as nothing left."""
        image = self.image if self.preconditioner is None else self.changed[1]
        return np.asarray(np.maximum(inner_products(self.system.inner, (self.residual, image))[0], 0.0))

    def advance(self) -> None:
        """Go along the direction to the least value, and turn to the next direction."""
        panels = self.system.inner.panels

        def curve(rows: slice) -> Array:
            self.curved[rows] = self.system.curve(self.along, rows)
            forces = self.direction[rows] + self.curved[rows]
            return np.asarray(np.einsum("ngc,ngc->g", forces, self.along[rows]))

        curvature = panels.total(curve)
        image = self.system.problem.product(self.curved, self.system.groups)
        length = np.divide(self.square, curvature, out=np.zeros_like(curvature), where=curvature > 0)
        length[self.rests()] = 0.0
        self.fall += length * self.square / 2
        step = length[:, None]

        def move(rows: slice) -> None:
            direction, along = self.direction[rows], self.along[rows]
            self.solution[rows] += step * direction
            self.its_image[rows] += step * along
            self.residual[rows] -= step * (direction + self.curved[rows])
            self.image[rows] -= step * (along + image[rows])

        panels.each(move)
        self._turn()

    def _turn(self) -> None:
        """Make the next direction conjugate to the last ones."""
        new, new_image = self._preconditioned()
        square = self._square()
        ratio = np.divide(square, self.square, out=np.zeros_like(square), where=self.square > 0)[:, None]
        self.square = square

        def one(rows: slice) -> None:
            self.direction[rows] *= ratio
            self.direction[rows] += new[rows]
            self.along[rows] *= ratio
            self.along[rows] += new_image[rows]

        self.system.inner.panels.each(one)
