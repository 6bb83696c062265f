"""The objective of one factor of a low-rank model while the other one is fixed.

    minimise over F   sum of entries' losses at (Phi F, N)  +  lambda / 2 <F, F>.

Both half steps of alternating minimisation are of this form: the features' factor with Phi = X or a
kernel, and the labels' factor with Phi = 1 on the transposed entries (Yu et al. 2014, equations 5 and 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.features.factor_maps import FactorMap
from labelweave.features.inner_products import column_inner, row_inner
from labelweave.problems.label_entries import LabelEntries
from labelweave.problems.label_entries.base import weighted_rows
from labelweave.solvers.row_updates import add_multiple

__all__ = ["FactorStep", "StepPoint"]

Blocks = Literal["whole", "rows", "columns"]


class FactorStep:
    """The objective.

    entries (n, c): the loss, rows on the side of the factor that moves.
    fixed (c, k): N; N^T C N should be diagonal, with the weights C of the entries' columns, for the
        preconditioner's sake.
    blocks: what falls apart: rows where Phi = 1, columns where the curvature is the same for all entries and
        N^T N is diagonal.
    Shapes: factor_map (n, m).
    """

    def __init__(
        self,
        entries: LabelEntries,
        factor_map: FactorMap,
        fixed: Array,
        penalty: float,
        blocks: Blocks,
        workers: Workers,
    ) -> None:
        self.entries, self.map, self.fixed = entries, factor_map, fixed
        self.penalty, self.blocks, self.workers = penalty, blocks, workers
        self.spread = column_inner(fixed, weighted_rows(fixed, entries.column_weights), workers)

    @property
    def is_quadratic(self) -> bool:
        return self.entries.is_quadratic

    def image(self, factor: Array) -> Array:
        return self.map.image(factor)

    def evaluate(self, factor: Array, image: Array) -> StepPoint:
        found = self.entries.at(image, self.fixed)
        gradient = self.map.gradient(found.slopes)
        add_multiple(gradient, self.penalty, factor, self.workers)
        values = self._total(found.values, factor, image)
        return StepPoint(self, found.curve, values, gradient, self._inverse(found.weights))

    def values(self, factor: Array, image: Array) -> npt.NDArray[np.float64]:
        return self._total(self.entries.values(image, self.fixed), factor, image)

    def inner(self, left: Array, right: Array, image: Array) -> npt.NDArray[np.float64]:
        dual = self.map.dual(right, image)
        if self.blocks == "rows":
            return row_inner(left, dual, self.workers)[:, None]
        sums = column_inner(left, dual, self.workers)[None, :]
        return sums if self.blocks == "columns" else sums.sum(axis=1, keepdims=True)

    def _total(self, losses: Array, factor: Array, image: Array) -> npt.NDArray[np.float64]:
        """Add the penalty to the losses; of blocks that are columns the first gets all losses."""
        penalties = 0.5 * self.penalty * self.inner(factor, factor, image)
        if self.blocks == "rows":
            return penalties + losses[:, None]
        penalties[0, 0] += losses.sum()
        return penalties

    def _inverse(self, weights: Array) -> Array:
        """Invert an estimate of the Hessian's diagonal; 0 where there is no curvature at all.

        Without a penalty all features are scaled alike: steps then stay in the span of the rows of the
        features, and of all solutions the one of least norm is found.
        """
        dtype = weights.dtype
        squares = self.map.squares(weights)
        if self.penalty:
            diagonal = squares * self.spread.astype(dtype) + dtype.type(self.penalty)
        else:
            if self.blocks != "rows":
                squares = squares.mean(keepdims=True, dtype=np.float64).astype(dtype)
            there = self.spread > np.finfo(dtype).eps * self.spread.max(initial=0.0)
            diagonal = squares * np.where(there, self.spread, 0.0).astype(dtype)
        return np.asarray(np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0))


@dataclass(frozen=True)
class StepPoint:
    """The objective at one factor; see :class:`~labelweave.solvers.factor_problem.FactorPoint`.

    bend: the curvature of the loss; see :class:`label_entries.EntryPoint`.
    Shapes: gradient (m, k).
    """

    step: FactorStep
    bend: Callable[[Array], Array]
    values: npt.NDArray[np.float64]
    gradient: Array
    inverse: Array

    def curve(self, direction: Array, image: Array) -> Array:
        bent = self.step.map.gradient(self.bend(image))
        add_multiple(bent, self.step.penalty, direction, self.step.workers)
        return bent

    def precondition(self, residual: Array) -> Array:
        return self.inverse * residual
