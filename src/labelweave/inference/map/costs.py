"""Loss-augmented inference for losses that are sums over labels.

The most violated labeling of structured learning maximises the score plus the loss against the truth.  A
loss that is a sum over labels only shifts the labels' own scores: where the truth is 0 saying 1 gains
its cost, where the truth is 1 saying 0 does.  A label whose truth is unobserved costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Floats

__all__ = ["shift_by_costs"]


def shift_by_costs(
    unary: Floats, signs: npt.NDArray[np.int8], false_positive_cost: Any = 1.0, false_negative_cost: Any = 1.0
) -> tuple[Floats, Floats]:
    """Put the loss into the labels' own scores.

    unary (n, L): score of 1 less score of 0.
    signs (n, L): the truth: 1, -1, and 0 where it is unobserved.
    false_positive_cost, false_negative_cost: the costs of saying 1 where the truth is 0, and of saying 0
        where it is 1.
    constants (n,): what the loss adds to the score of any labeling beyond that.
    Shapes: unary (n, L).
    """
    is_negative, is_positive = signs < 0, signs > 0
    missed = np.where(is_positive, false_negative_cost, 0.0)
    shifted = unary + np.where(is_negative, false_positive_cost, 0.0) - missed
    return np.asarray(shifted), np.asarray(missed.sum(axis=1))
