"""Where a local method ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

__all__ = ["LocalEnd"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LocalEnd:
    """The best points met.

    Parameters
    ----------
    free : ndarray of shape (n, L)
        B, the best primal point.
    boxed : ndarray of shape (n, L)
        V, the best dual point.
    slopes : ndarray of shape (n, L)
        T - A B.
    gap : float
        The relative duality gap between them.
    """

    free: Array
    boxed: Array
    slopes: Array
    gap: float
