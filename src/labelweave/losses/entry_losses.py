"""Losses of single entries: a score against a label that is there or not (Yu et al. 2014, appendix B.1).

A loss is a sum over observed entries of ``loss(sign, score)``.  The squared loss has targets 1 and 0,
so that a sparse label matrix is a sparse target; the others see signs +1 and -1.
All functions work on arrays of any shape, entry by entry.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import expit, xlogy

from labelweave.array_types import Array

__all__ = ["ENTRY_LOSSES", "EntryLoss", "LogisticEntryLoss", "SquaredEntryLoss", "SquaredHingeEntryLoss"]


class EntryLoss(Protocol):
    """The value of a loss, its derivatives by the score and its convex conjugate, entry by entry."""

    is_quadratic: bool
    threshold: float

    def value(self, signs: Array, scores: Array) -> Array:
        """Compute the losses."""

    def slope(self, signs: Array, scores: Array) -> Array:
        """Compute the first derivatives by the scores."""

    def curvature(self, signs: Array, scores: Array) -> Array:
        """Compute second derivatives by the scores (generalised ones)."""

    def conjugate(self, signs: Array, slopes: Array) -> Array:
        """Compute ``max over s of slope * s - loss(sign, s)``.

        slopes: slopes that the loss can have.
        """


class SquaredEntryLoss:
    """``1/2 (score - target)^2`` with target 1 for a label that is there and 0 for one that is not."""

    is_quadratic = True
    threshold = 0.5

    def value(self, signs: Array, scores: Array) -> Array:
        return np.asarray(0.5 * np.square(scores - (signs > 0)))

    def slope(self, signs: Array, scores: Array) -> Array:
        return np.asarray(scores - (signs > 0))

    def curvature(self, signs: Array, scores: Array) -> Array:
        return np.ones_like(scores)

    def conjugate(self, signs: Array, slopes: Array) -> Array:
        return np.asarray(slopes * (0.5 * slopes + (signs > 0)))


class LogisticEntryLoss:
    """``log(1 + exp(-sign * score))``."""

    is_quadratic = False
    threshold = 0.0

    def value(self, signs: Array, scores: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -signs * scores))

    def slope(self, signs: Array, scores: Array) -> Array:
        return np.asarray(-signs * expit(-signs * scores))

    def curvature(self, signs: Array, scores: Array) -> Array:
        return np.asarray(expit(scores) * expit(-scores))

    def conjugate(self, signs: Array, slopes: Array) -> Array:
        share = np.clip(-signs * slopes, 0.0, 1.0)
        return np.asarray(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share))


class SquaredHingeEntryLoss:
    """``1/2 max(0, 1 - sign * score)^2``."""

    is_quadratic = False
    threshold = 0.0

    def value(self, signs: Array, scores: Array) -> Array:
        return np.asarray(0.5 * np.square(np.maximum(0.0, 1.0 - signs * scores)))

    def slope(self, signs: Array, scores: Array) -> Array:
        return np.asarray(-signs * np.maximum(0.0, 1.0 - signs * scores))

    def curvature(self, signs: Array, scores: Array) -> Array:
        return (signs * scores < 1.0).astype(scores.dtype)

    def conjugate(self, signs: Array, slopes: Array) -> Array:
        return np.asarray(slopes * (0.5 * slopes + signs))


ENTRY_LOSSES: dict[str, type[EntryLoss]] = {
    "squared": SquaredEntryLoss,
    "logistic": LogisticEntryLoss,
    "squared_hinge": SquaredHingeEntryLoss,
}
