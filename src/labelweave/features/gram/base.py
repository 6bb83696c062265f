"""What every form of a kernel matrix can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array

__all__ = ["Array", "Gram"]


class Gram(ABC):
    """The symmetric positive semi-definite matrix K of n rows."""

    n_rows: int
    dtype: Any
    """The precision in which entries are held, or computed where a product does not ask for more."""

    @abstractmethod
    def diagonal(self) -> npt.NDArray[np.float64]:
        """Compute the diagonal.

        Shapes: result (n,).
        """

    @abstractmethod
    def columns(self, which: Array) -> Array:
        """Compute some columns.

        Shapes: which (k,), result (n, k).
        """

    @abstractmethod
    def product(self, vectors: Array) -> Array:
        """Compute ``K @ vectors``.

        vectors (n, p): in float64 the entries are computed, or at least summed, in float64.
        Returns (n, p): the product, of the type of the vectors.
        """
