"""What dual variables make of the features: true statistics of labels and cliques less the expected ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelweave._loops.structured.arrays import DualPoint
from labelweave._loops.structured.moments import clique_moments, pair_moments
from labelweave.array_types import Array, PerLabel
from labelweave.problems.structured_margin.rows import MarginData

__all__ = ["DualMoments"]


class DualMoments(NamedTuple):
    """A distribution over labelings for every row, and the columns of z that it stands for.

    homes: the component of every label, -1 where it is alone.
    dual: the distributions; independent between components.
    """

    data: MarginData
    homes: PerLabel
    dual: DualPoint
    regularization: float

    def label_sums(self) -> Array:
        """Compute the labels' columns.

        Shapes: result (d, L).
        """
        return self._sums(self.data.arrays.targets - self.dual.means)

    def clique_sums(self, clique: tuple[int, ...]) -> Array:
        """Compute a clique's columns, whether it is in the graph or not.

        Shapes: result (d, states).
        """
        labels, size = np.asarray(clique, np.int64), 1 << len(clique)
        moments, targets = np.empty((self.data.n_rows, size)), self.data.arrays.targets
        clique_moments(labels, self.homes[labels], targets, self.dual, np.empty(size), moments)
        return self._sums(moments)

    def pair_sums(self, label: int, others: Array) -> Array:
        """Compute the columns of the products of a label's sign and others'.

        Shapes: others (p,), result (d, p).
        """
        moments = np.empty((self.data.n_rows, len(others)))
        pair_moments(label, others, self.homes, self.data.arrays.targets, self.dual, moments)
        return self._sums(moments)

    def _sums(self, moments: Array) -> Array:
        return self.data.transposed_product(moments) / self.regularization
