"""Newton's linear system ``(I + W K) d = r``, where it stands, and what solves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.arrays import RowPanels
from labelweave.solvers.newton_problem import NewtonProblem

__all__ = ["Inner", "LinearSolver", "NewtonPoint", "NewtonSystem", "inner_products"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Inner:
    """How arrays of one shape are walked.

    Parameters
    ----------
    panels : RowPanels
        Their rows in runs.
    """

    panels: RowPanels


def inner_products(inner: Inner, *pairs: tuple[Array, Array]) -> Array:
    """Multiply arrays entry by entry and add, for every group.

    Parameters
    ----------
    inner : Inner
        How to walk the rows.
    *pairs : tuple of ndarray
        Pairs of arrays of shape (n, groups, columns).

    Returns
    -------
    ndarray of float64, shape (pairs, groups)
        The sums.
    """
    return inner.panels.total(
        lambda rows: np.stack([np.einsum("ngc,ngc->g", left[rows], right[rows]) for left, right in pairs])
    )


@dataclass(frozen=True)
class NewtonPoint:
    """Where a Newton step starts from.

    Parameters
    ----------
    dual : ndarray of float64, shape (n, groups, columns)
        The dual variables a.
    scores : ndarray of float64, shape (n, groups, columns)
        u = K a.
    residual : ndarray of float64, shape (n, groups, columns)
        r = -loss'(u) - a.
    image : ndarray of float64, shape (n, groups, columns)
        K r.
    values : ndarray of float64, shape (groups,)
        Phi.
    """

    dual: Array
    scores: Array
    residual: Array
    image: Array
    values: Array


@dataclass(frozen=True)
class NewtonSystem:
    """``I + W K`` for some groups.

    Parameters
    ----------
    problem : NewtonProblem
        Gives products with K and W.
    curvature : ndarray of shape (n, groups, columns)
        What products with W need.
    groups : ndarray of int
        Which groups.
    inner : Inner
        How to walk the rows.
    """

    problem: NewtonProblem
    curvature: Array
    groups: Array
    inner: Inner

    def restricted(self, which: Array) -> NewtonSystem:
        """Keep some groups.

        Parameters
        ----------
        which : ndarray of int
            Positions among the groups.

        Returns
        -------
        NewtonSystem
            The system of these groups.
        """
        curvature = np.ascontiguousarray(self.curvature[:, which])
        panels = RowPanels(self.problem.workers, len(curvature), curvature[0].size)
        return NewtonSystem(self.problem, curvature, self.groups[which], Inner(panels))

    def curve(self, vectors: Array, rows: slice) -> Array:
        """Compute W times some rows of vectors.

        Parameters
        ----------
        vectors : ndarray of shape (n, groups, columns)
            The vectors.
        rows : slice
            The rows.

        Returns
        -------
        ndarray of shape (rows, groups, columns)
            The product.
        """
        return self.problem.curve(self.curvature[rows], vectors[rows], self.groups, rows)

    def curve_all(self, vectors: Array) -> Array:
        """Compute W times vectors.

        Parameters
        ----------
        vectors : ndarray of shape (n, groups, columns)
            The vectors.

        Returns
        -------
        ndarray of shape (n, groups, columns)
            The product.
        """
        product = np.empty_like(vectors)

        def one(rows: slice) -> None:
            product[rows] = self.curve(vectors, rows)

        self.inner.panels.each(one)
        return product


class LinearSolver(Protocol):
    """A way to solve Newton's systems."""

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        """Find Newton's direction, or one near it.

        Parameters
        ----------
        system : NewtonSystem
            ``I + W K`` at the point.
        point : NewtonPoint
            The point; its arrays are not changed.
        reduction : ndarray of float64, shape (groups,)
            The factor by which the residual is to shrink.
        limit : int
            The largest number of iterations.

        Returns
        -------
        direction : ndarray of shape (n, groups, columns)
            d.
        its_image : ndarray of shape (n, groups, columns)
            K d.
        """

    def solve(
        self, system: NewtonSystem, residual: Array, image: Array, reduction: Array, limit: int
    ) -> tuple[Array, Array, int]:
        """Solve ``(I + W K) x = r`` for any r.

        Parameters
        ----------
        system : NewtonSystem
            The system.
        residual : ndarray of shape (n, groups, columns)
            r, overwritten.
        image : ndarray of shape (n, groups, columns)
            K r, overwritten.
        reduction : ndarray of float64, shape (groups,)
            The factor by which the residual is to shrink.
        limit : int
            The largest number of iterations.

        Returns
        -------
        solution : ndarray of shape (n, groups, columns)
            x.
        its_image : ndarray of shape (n, groups, columns)
            K x.
        iterations : int
            Iterations done.
        """
