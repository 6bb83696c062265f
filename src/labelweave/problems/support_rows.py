"""A solution in the span of its support rows, for models that keep no others."""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array, RowsByLabels
from labelweave.features.gram import Gram

__all__ = ["on_support"]


_SUPPORT_STEPS = 30
_SUPPORT_SHARE = 1e-8  # of the squared residual, at which a label is done


def on_support(gram: Gram, free: RowsByLabels, boxed: RowsByLabels) -> RowsByLabels:
    """Find a point with the scores of B, nearly, in the span of the rows that support V.

    B - V is projected on that span in the norm of K by conjugate gradients, which find its
    large parts, those along large eigenvalues, first.

    boxed: V; a row supports it if it has an entry other than 0.
    Returns the point; rows outside the support are 0.
    """
    support = boxed.any(axis=1)
    if support.all():
        return free
    found = np.zeros_like(free)
    residual = gram.product(free - boxed)
    residual[~support] = 0
    direction, size = residual.copy(), _column_squares(residual)
    enough = _SUPPORT_SHARE * size
    for _ in range(_SUPPORT_STEPS):
        image = gram.product(direction)
        image[~support] = 0
        curvature = (direction * image).sum(axis=0)
        # a label that is done has but rounding left, along which a singular K has no curvature
        going = (size > enough) & (curvature > 0)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=going)
        found += step * direction
        residual -= step * image
        new_size = _column_squares(residual)
        if not (going & (new_size > enough)).any():
            break
        direction = residual + (new_size / np.maximum(size, 1e-30)) * direction
        size = new_size
    return np.asarray(boxed + found)


def _column_squares(table: Array) -> Array:
    return np.asarray((table * table).sum(axis=0))
