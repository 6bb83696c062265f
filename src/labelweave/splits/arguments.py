"""Checks of what splitters are given when they are made."""

from __future__ import annotations

from numbers import Integral
from typing import Any

__all__ = ["check_order", "checked_count"]


def checked_count(n_splits: Any, least: int) -> int:
    """Read a number of splits.

    Raises ValueError if it is no whole number, or too small.
    """
    if isinstance(n_splits, bool) or not isinstance(n_splits, Integral) or int(n_splits) < least:
        raise ValueError(f"n_splits is {n_splits!r}; it is a whole number, {least} or more.")
    return int(n_splits)


def check_order(order: Any) -> None:
    """Refuse what is no order of stratification.

    Raises ValueError if it is neither 1 nor 2.
    """
    if isinstance(order, bool) or not isinstance(order, Integral) or order not in (1, 2):
        raise ValueError(f"order is {order!r}; it is 1 to spread labels, or 2 to spread pairs of labels too.")
