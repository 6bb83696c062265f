"""Read how many rows are for training and for testing, as scikit-learn means it."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

__all__ = ["train_and_test_rows"]


def train_and_test_rows(
    n_rows: int, train_size: float | None, test_size: float | None, default: float
) -> tuple[int, int]:
    """Find the numbers of training and of test rows.

    n_rows: the rows that there are.
    train_size: A share between 0 and 1, rounded down, or a number of rows; None for the rest.
    test_size: A share between 0 and 1, rounded up, or a number of rows; None for the rest.
    default: the share of test rows if neither is given.
    train: the number of training rows, at least 1.
    test: the number of test rows, at least 1.
    Raises ValueError if a size is impossible, or both together are more than all rows.
    """
    if train_size is None and test_size is None:
        test_size = default
    train = _rows("train_size", train_size, n_rows, math.floor)
    test = _rows("test_size", test_size, n_rows, math.ceil)
    if train is None:
        train = n_rows - (test or 0)
    if test is None:
        test = n_rows - train
    shares = sum(size for size in (train_size, test_size) if size is not None and size < 1)
    if min(train, test) < 1 or train + test > n_rows or shares > 1:
        raise ValueError(
            f"train_size={train_size} and test_size={test_size} of {n_rows} rows make {train} training and "
            f"{test} test rows; each needs at least 1, and together they are at most {n_rows}."
        )
    return train, test


def _rows(name: str, size: Any, n_rows: int, rounded: Callable[[float], int]) -> int | None:
    if size is None:
        return None
    if not isinstance(size, bool) and isinstance(size, Integral) and 0 < int(size) < n_rows:
        return int(size)
    if isinstance(size, Real) and not isinstance(size, Integral) and 0 < float(size) < 1:
        return rounded(float(size) * n_rows)
    raise ValueError(
        f"{name} is {size!r}; it is a share between 0 and 1 or a number of rows from 1 to below {n_rows}."
    )
