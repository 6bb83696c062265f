"""The objective of one factor of a low-rank model while the other one is fixed.

    minimise over F   sum of entries' losses at (Phi F, N)  +  lambda / 2 <F, F>.

Both half steps of alternating minimisation are of this form: the features' factor with Phi = X or a
kernel, and the labels' factor with Phi = 1 on the transposed entries (Yu et al. 2014, equations 5 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers
from labelweave.arrays.inner_products import column_inner, row_inner
from labelweave.features.factor_maps import FactorMap
from labelweave.problems.label_entries import EntryPoint, LabelEntries

__all__ = ["FactorStep", "StepPoint"]

Array = npt.NDArray[Any]
Blocks = Literal["whole", "rows", "columns"]


class FactorStep:
    """The objective.

    Parameters
    ----------
    entries : LabelEntries of shape (n, c)
        The loss, rows on the side of the factor that moves.
    factor_map : FactorMap of shape (n, m)
        Phi.
    fixed : ndarray of shape (c, k)
        N; N^T N should be diagonal, for the preconditioner's sake.
    penalty : float
        lambda.
    blocks : {"whole", "rows", "columns"}
        What falls apart: rows where Phi = 1, columns where the curvature is the same for all
        entries and N^T N is diagonal.
    workers : Workers
        The threads.
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
        self.spread = column_inner(fixed, fixed, workers)

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is; see :meth:`FactorProblem.is_quadratic`."""
        return self.entries.is_quadratic

    def image(self, factor: Array) -> Array:
        """Map a factor; see :meth:`FactorProblem.image`."""
        return self.map.image(factor)

    def evaluate(self, factor: Array, image: Array) -> StepPoint:
        """Evaluate to second order; see :meth:`FactorProblem.evaluate`."""
        entry_point = self.entries.at(image, self.fixed)
        gradient = self.map.gradient(entry_point.slopes)
        gradient = gradient + self.penalty * factor
        values = self._total(entry_point.values, factor, image)
        return StepPoint(self, entry_point, values, gradient, self._inverse(entry_point.weights))

    def values(self, factor: Array, image: Array) -> npt.NDArray[np.float64]:
        """Compute the values alone; see :meth:`FactorProblem.values`."""
        return self._total(self.entries.values(image, self.fixed), factor, image)

    def inner(self, left: Array, right: Array, image: Array) -> npt.NDArray[np.float64]:
        """Compute inner products by block; see :meth:`FactorProblem.inner`."""
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
        """Invert an estimate of the Hessian's diagonal; 0 where there is no curvature at all."""
        dtype = weights.dtype
        diagonal = self.map.squares(weights) * self.spread.astype(dtype) + dtype.type(self.penalty)
        there = diagonal > np.finfo(dtype).eps * diagonal.max(initial=0.0)
        return np.asarray(np.where(there, 1.0 / np.where(there, diagonal, 1.0), 0.0), dtype)


@dataclass(frozen=True)
class StepPoint:
    """The objective at one factor; see :class:`~labelweave.solvers.factor_problem.FactorPoint`.

    Parameters
    ----------
    step : FactorStep
        The objective.
    entry_point : EntryPoint
        The loss at the image.
    values : ndarray of float64, one number a block
        The objective.
    gradient : ndarray of shape (m, k)
        Its gradient.
    inverse : ndarray broadcastable to (m, k)
        The preconditioner.
    """

    step: FactorStep
    entry_point: EntryPoint
    values: npt.NDArray[np.float64]
    gradient: Array
    inverse: Array

    def curve(self, direction: Array, image: Array) -> Array:
        """Multiply by the Hessian; see :meth:`FactorPoint.curve`."""
        bent = self.step.map.gradient(self.entry_point.curve(image))
        return bent + self.step.penalty * direction

    def precondition(self, residual: Array) -> Array:
        """Scale the entries; see :meth:`FactorPoint.precondition`."""
        return self.inverse * residual
