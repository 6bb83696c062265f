"""Threads, precision and memory of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from labelweave.arrays import Workers

__all__ = ["Resources"]


@dataclass(frozen=True)
class Resources:
    """What a fit may use.

    Parameters
    ----------
    workers : Workers
        Threads.
    dtype : dtype
        The precision while solving.
    budget : float
        Bytes for what grows with pairs of rows.
    factorization : str
        As in :func:`labelweave.problems.memory_plan.plan_gram`.
    seed : int
        Fixes the pivots of an incomplete factor.
    """

    workers: Workers
    dtype: npt.DTypeLike
    budget: float
    factorization: str = "auto"
    seed: int = 0
