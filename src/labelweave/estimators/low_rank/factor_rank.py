"""How many columns the factors of a low-rank model get: a number, or a share of the labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from labelweave.sklearn_compat import Interval

__all__ = ["RANKS", "columns_for_rank", "largest_rank"]

RANKS: list[Any] = [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right")]
"""What scikit-learn's declarative constraints allow as a rank."""


def columns_for_rank(rank: Any, n_labels: int) -> int:
    """Turn a rank that may be a share of the number of labels into a number of columns.

    rank: A number of columns (int), or a share of the labels (float, above 0 and at most 1).
    Returns the columns, at least 1.
    """
    return int(rank) if isinstance(rank, Integral) else max(1, round(rank * n_labels))


def largest_rank(n_rows: int, n_features: int | None, n_labels: int, fit_intercept: bool) -> int:
    """Say which rank a product of factors can have at most.

    n_features: explicit features; None for a kernel.
    fit_intercept: whether there is a constant feature.
    Returns the rank; more columns make no other models.
    """
    width = n_rows if n_features is None else min(n_rows, n_features + fit_intercept)
    return max(1, min(width, n_labels))
