"""Loss-augmented inference for losses that are sums over labels.

The most violated labeling of structured learning maximises the score plus the loss against the truth.  A
loss that is a sum over labels only shifts the labels' own scores: where the truth is 0 saying 1 gains
its cost, where the truth is 1 saying 0 does.  A label whose truth is unobserved costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["shift_by_costs"]

Floats = npt.NDArray[np.float64]


def shift_by_costs(
    unary: Floats, signs: npt.NDArray[np.int8], false_positive_cost: Any = 1.0, false_negative_cost: Any = 1.0
) -> tuple[Floats, Floats]:
    """Put the loss into the labels' own scores.

    Parameters
    ----------
    unary : ndarray of float64, shape (n, L)
        Score of 1 less score of 0.
    signs : ndarray of int8, shape (n, L)
        The truth: 1, -1, and 0 where it is unobserved.
    false_positive_cost, false_negative_cost : float or array-like that broadcasts to (n, L), default=1.0
        The costs of saying 1 where the truth is 0, and of saying 0 where it is 1.

    Returns
    -------
    unary : ndarray of float64, shape (n, L)
        The shifted scores.
    constants : ndarray of float64, shape (n,)
        What the loss adds to the score of any labeling beyond that.
    """
    is_negative, is_positive = signs < 0, signs > 0
    missed = np.where(is_positive, false_negative_cost, 0.0)
    shifted = unary + np.where(is_negative, false_positive_cost, 0.0) - missed
    return np.asarray(shifted), np.asarray(missed.sum(axis=1))
