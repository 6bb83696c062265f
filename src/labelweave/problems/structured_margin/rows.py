"""The rows of a structured margin problem, as the compiled passes read them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.loops.structured.arrays import MarginRows
from labelweave.labels import LabelMatrix


class MarginData:
    """Features, labels, costs and weights.

    weights (n,): weights of the rows, some of them positive.
    costs (n, L): of errors; those of unobserved labels do not count.
    arrays: what the passes read, with targets of 0 where nothing was observed.
    products (n, d): the features again, for products; of rows elsewhere these are not made here.
    Shapes: features (n, d), labels (n, L).
    Raises ValueError if the squared norm of a row is too large for a float.
    """

    def __init__(self, features: FeatureMatrix, labels: LabelMatrix, weights: Array, costs: Array) -> None:
        signs = labels.to_signs()
        squares = features.squared_norms()
        if not np.isfinite(squares).all():
            raise ValueError("The squared norm of a row of X is above 1.8e308; scale the features down.")
        arrays = MarginRows(
            targets=np.ascontiguousarray(signs > 0, np.int8),
            observed=np.ascontiguousarray(signs != 0, np.int8),
            costs=np.ascontiguousarray(np.where(signs == 0, 0.0, costs)),
            weights=np.asarray(weights, np.float64) / np.sum(weights, dtype=np.float64),
            squares=squares,
        )
        self._set(features, arrays)

    @classmethod
    def part(cls, features: FeatureMatrix, arrays: MarginRows) -> MarginData:
        """Make them of some of the rows, with the weights that these have among all."""
        made = cls.__new__(cls)
        made._set(features, arrays)
        return made

    def _set(self, features: FeatureMatrix, arrays: MarginRows) -> None:
        is_sparse = not features.is_apart and features.is_sparse
        self.arrays, self.products = arrays, features.astype(np.float64)
        self._sparse = features.sparse_rows(np.float64) if is_sparse else None
        (self.n_rows, self.n_labels), self.n_features = arrays.targets.shape, features.shape[1]
        self.has_missing = bool((arrays.observed == 0).any())

    def arrays_of(self, rows: slice | Array) -> MarginRows:
        """Give what the passes read of some rows."""
        return MarginRows._make(part[rows] for part in self.arrays)

    def arrays_with(self, targets: RowsByLabels) -> MarginRows:
        """Give what the passes read, with completed targets."""
        return self.arrays._replace(targets=targets)

    def clamp(self) -> npt.NDArray[np.int8]:
        """Give the observed labels (n, L), -1 where unobserved."""
        return np.where(self.arrays.observed == 1, self.arrays.targets, -1).astype(np.int8)

    def multiply(self, rows: Array, sums: Array) -> Array:
        """Multiply some rows by a table (d, p)."""
        from labelweave.foundation.loops.structured.rows import multiply_rows

        if self._sparse is None:
            return np.asarray(self.products.data[rows] @ sums)
        products = np.empty((len(rows), sums.shape[1]))
        multiply_rows(rows, *self._sparse, sums, products)
        return products

    def gram(self, rows: Array) -> Array:
        """Multiply some rows by each other."""
        part = self.products.data[rows]
        product = part @ part.T
        return np.asarray(product if self._sparse is None else product.toarray())

    def add(self, rows: Array, changes: Array, sums: Array) -> None:
        """Add some rows times their changes (rows, p) to a table (d, p)."""
        from labelweave.foundation.loops.structured.rows import add_rows

        if self._sparse is None:
            sums += self.products.data[rows].T @ changes
        else:
            add_rows(rows, *self._sparse, changes, sums)

    def transposed_product(self, moments: Array) -> Array:
        """Multiply the rows' weighted moments (n, p) by the features."""
        moments *= self.arrays.weights[:, None]
        return np.asarray(self.products.data.T @ moments)
