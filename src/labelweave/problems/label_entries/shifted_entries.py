"""Any loss of entries whose scores begin at known ones, which are a product of two factors as well.

With the known scores ``K = A B^T`` the loss sees ``a_i . h_j + K_ij``: the product of factors that have the
columns of A and B behind their own, of which the former alone move.  No array of all entries is made for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays.tables import WeighedColumns
from labelweave.problems.label_entries.base import EntryPoint, GradientOperator, LabelEntries


@dataclass
class ShiftedEntries(WeighedColumns):
    """The loss.

    entries: the loss of all scores.
    of_rows (rows, c), of_columns (columns, c): A and B.
    """

    entries: LabelEntries
    of_rows: Array
    of_columns: Array

    def __post_init__(self) -> None:
        entries = self.entries
        self.shape, self.is_quadratic, self.least = entries.shape, entries.is_quadratic, entries.least
        self.has_uniform_curvature, self.column_weights = (
            entries.has_uniform_curvature,
            entries.column_weights,
        )

    @cached_property
    def transposed(self) -> ShiftedEntries:
        """The same entries, rows and columns exchanged."""
        return ShiftedEntries(self.entries.transposed, self.of_columns, self.of_rows)

    def _wide(self, image: Array, fixed: Array) -> tuple[Array, Array]:
        return np.hstack([image, self.of_rows]), np.hstack([fixed, self.of_columns])

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        found, width = self.entries.at(*self._wide(image, fixed)), image.shape[1]
        still = np.zeros_like(self.of_rows)

        def curve(direction: Array) -> Array:
            return np.ascontiguousarray(found.curve(np.hstack([direction, still]))[:, :width])

        gradients = np.ascontiguousarray(found.gradients[:, :width])
        return EntryPoint(found.values, gradients, curve, found.weights)

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        return self.entries.values(*self._wide(image, fixed))

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        """Give it; the conjugate of a shifted loss at g is that of the loss, less ``g`` times the shift."""
        found = self.entries.gradient_operator(*self._wide(image, fixed))
        along = float(np.vdot(found.matmul(self.of_columns), self.of_rows))
        return GradientOperator(
            found.matmul, found.adjoint, lambda share: found.conjugate(share) - share * along
        )
