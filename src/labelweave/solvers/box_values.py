"""Objectives of a box-constrained quadratic dual and of its primal.

With A positive semi-definite and S = A B the scores,

    dual(V)   = <T, V> - 1/2 <V, A V>,                          V within the box,
    primal(B) = 1/2 <B, A B> + sum max(lower (T - S), upper (T - S)),     any B.

The sum is the box's support function, for a margin dual the hinge loss: no point's
dual value exceeds any point's primal value.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from labelweave.array_types import Array, RowsByLabels

__all__ = ["BoxTerms", "dual_value", "dual_value_above", "primal_value", "relative_gap"]


class BoxTerms(Protocol):
    """The arrays that state the objectives, each of shape (n, L)."""

    @property
    def targets(self) -> Array:
        """T."""

    @property
    def lower(self) -> Array:
        """The lower bounds, at most 0."""

    @property
    def upper(self) -> Array:
        """The upper bounds, at least 0."""


def primal_value(terms: BoxTerms, variables: RowsByLabels, scores: RowsByLabels) -> float:
    """Compute the primal objective.

    Returns an upper bound of the optimum.
    """
    short = terms.targets - scores
    loss = np.maximum(terms.lower * short, terms.upper * short)
    return _inner(variables, scores) / 2 + float(loss.sum(dtype=np.float64))


def dual_value(terms: BoxTerms, boxed: RowsByLabels, scores: RowsByLabels) -> float:
    """Compute the dual objective.

    Returns A lower bound of the optimum.
    """
    return _inner(terms.targets, boxed) - _inner(boxed, scores) / 2


def dual_value_above(terms: BoxTerms, near: RowsByLabels, scores: RowsByLabels, boxed: RowsByLabels) -> float:
    """Bound the dual objective from above without a product: it is concave.

    near: A point B near V.
    Returns the tangent at B, taken at V.
    """
    return _inner(terms.targets - scores, boxed) + _inner(near, scores) / 2


def relative_gap(primal: float, dual: float) -> float:
    """Relate a duality gap to the size of the objective.

    Returns (primal - dual) / max(1, abs(primal)).
    """
    return (primal - dual) / max(1.0, abs(primal))


def _inner(left: Array, right: Array) -> float:
    return float((left * right).sum(dtype=np.float64))
