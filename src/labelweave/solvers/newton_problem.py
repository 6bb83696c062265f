"""What Newton's method asks of a penalised likelihood."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers

__all__ = ["NewtonProblem", "Preconditioner"]

Array = npt.NDArray[Any]


class Preconditioner(Protocol):
    """An approximate inverse of ``I + W K``, self-adjoint in the inner product of K."""

    def apply(self, residual: Array, image: Array) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r`` from r and K r, all of shape (n, groups, columns)."""


class NewtonProblem(Protocol):
    """Groups of columns, each with an objective ``sum_i loss_i(u_i) + 1/2 <a, K a>``, ``u = K a``."""

    shape: tuple[int, int, int]
    """Rows, groups, columns of a group."""
    workers: Workers

    def product(self, vectors: Array, groups: Array) -> Array:
        """Compute K times vectors of shape (n, groups, columns)."""

    def evaluate(self, scores: Array, groups: Array) -> tuple[npt.NDArray[np.float64], Array, Array]:
        """Compute the losses, shape (groups,), their negative slopes, and what :meth:`curve` needs."""

    def values(self, scores: Array, groups: Array, rows: slice) -> npt.NDArray[np.float64]:
        """Compute the losses of some rows from their scores, shape (groups,)."""

    def curve(self, curvature: Array, vectors: Array, groups: Array, rows: slice) -> Array:
        """Compute W times vectors, for some rows."""

    def preconditioner(self, curvature: Array, groups: Array) -> Preconditioner | None:
        """Make a preconditioner for a curvature, or none."""
