"""Quartiles of labels of like frequency."""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Floats

__all__ = ["running_quartiles"]


_LIKE_FREQUENCY = 1.5  # times
_SMALLEST_WINDOW = 5  # labels
_PLACES = 60


def running_quartiles(frequency: Floats, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute quartiles of the labels within a factor of 1.5 of each of 60 frequencies, of 5 at the least.

    places, low, middle, high (m,): frequencies, ascending, and the quartiles there.
    Shapes: frequency (k,), values (k,).
    """
    places = np.unique(np.geomspace(frequency[0], frequency[-1], _PLACES))
    centers = np.searchsorted(frequency, places)
    most = max(0, len(values) - _SMALLEST_WINDOW)
    first = np.clip(centers - _SMALLEST_WINDOW // 2, 0, most)
    starts = np.minimum(np.searchsorted(frequency, places / _LIKE_FREQUENCY), first)
    ends = np.maximum(np.searchsorted(frequency, places * _LIKE_FREQUENCY, "right"), first + _SMALLEST_WINDOW)
    found = [
        np.quantile(values[start:end], [0.25, 0.5, 0.75]) for start, end in zip(starts, ends, strict=True)
    ]
    low, middle, high = np.transpose(found)
    return places, low, middle, high
