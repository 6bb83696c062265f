"""Arrays that start at a cache line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["aligned_empty"]

_LINE = 64  # bytes


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Make an array that starts at a cache line, its entries not set.

    NumPy's large arrays start 16 bytes behind one, so that a vector register is filled
    from two lines: loops that gather rows of a few lines then take twice as long.

    Returns the array, in C order.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)
