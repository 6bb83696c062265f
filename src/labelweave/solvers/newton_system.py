"""Newton's linear system ``(I + W K) d = r``, where it stands, and what solves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from labelweave.array_types import Array, GroupedColumns
from labelweave.arrays import RowPanels
from labelweave.solvers.newton_problem import NewtonProblem

__all__ = ["Inner", "LinearSolver", "NewtonPoint", "NewtonSystem", "inner_products"]


@dataclass(frozen=True)
class Inner:
    """How arrays of one shape are walked."""

    panels: RowPanels


def inner_products(inner: Inner, *pairs: tuple[Array, Array]) -> Array:
    """Multiply arrays entry by entry and add, for every group.

    inner: how to walk the rows.
    *pairs: pairs of arrays of shape (n, groups, columns).
    Shapes: result (pairs, groups).
    """
    return inner.panels.total(
        lambda rows: np.stack([np.einsum("ngc,ngc->g", left[rows], right[rows]) for left, right in pairs])
    )


@dataclass(frozen=True)
class NewtonPoint:
    """Where a Newton step starts from.

    residual: r = -loss'(u) - a.
    Shapes: values (groups,).
    """

    dual: GroupedColumns
    scores: GroupedColumns
    residual: GroupedColumns
    image: GroupedColumns
    values: Array


@dataclass(frozen=True)
class NewtonSystem:
    """``I + W K`` for some groups.

    problem: gives products with K and W.
    curvature: what products with W need.
    inner: how to walk the rows.
    """

    problem: NewtonProblem
    curvature: GroupedColumns
    groups: Array
    inner: Inner

    def restricted(self, which: Array) -> NewtonSystem:
        """Keep some groups.

        Returns the system of these groups.
        """
        curvature = np.ascontiguousarray(self.curvature[:, which])
        panels = RowPanels(self.problem.workers, len(curvature), curvature[0].size)
        return NewtonSystem(self.problem, curvature, self.groups[which], Inner(panels))

    def curve(self, vectors: GroupedColumns, rows: slice) -> Array:
        """Compute W times some rows of vectors.

        Shapes: result (rows, groups, columns).
        """
        return self.problem.curve(self.curvature[rows], vectors[rows], self.groups, rows)

    def curve_all(self, vectors: GroupedColumns) -> GroupedColumns:
        """Compute W times vectors."""
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

        system: ``I + W K`` at the point.
        point: the point; its arrays are not changed.
        reduction (groups,): the factor by which the residual is to shrink.
        limit: the largest number of iterations.
        Shapes: direction (n, groups, columns), its_image (n, groups, columns).
        """

    def solve(
        self,
        system: NewtonSystem,
        residual: GroupedColumns,
        image: GroupedColumns,
        reduction: Array,
        limit: int,
    ) -> tuple[Array, Array, int]:
        """Solve ``(I + W K) x = r`` for any r.

        reduction (groups,): the factor by which the residual is to shrink.
        limit: the largest number of iterations.
        Shapes: solution (n, groups, columns), its_image (n, groups, columns).
        """
