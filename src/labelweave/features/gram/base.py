"""What every form of a kernel matrix can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Gram"]

Array = npt.NDArray[Any]


class Gram(ABC):
    """The symmetric positive semi-definite matrix K of n rows."""

    n_rows: int
    dtype: Any
    """The precision in which entries are held, or computed where a product does not ask for more."""

    @abstractmethod
    def diagonal(self) -> npt.NDArray[np.float64]:
        """Compute the diagonal.

        Returns
        -------
        ndarray of float64, shape (n,)
            The diagonal.
        """

    @abstractmethod
    def columns(self, which: Array) -> Array:
        """Compute some columns.

        Parameters
        ----------
        which : ndarray of int, shape (k,)
            The columns.

        Returns
        -------
        ndarray of shape (n, k)
            The columns.
        """

    @abstractmethod
    def product(self, vectors: Array) -> Array:
        """Compute ``K @ vectors``.

        Parameters
        ----------
        vectors : ndarray of shape (n, p)
            In float64 the entries are computed, or at least summed, in float64.

        Returns
        -------
        ndarray of shape (n, p)
            The product, of the type of the vectors.
        """
