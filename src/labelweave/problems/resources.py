"""Threads, precision and memory of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from labelweave.foundation.arrays import Workers


@dataclass(frozen=True)
class Resources:
    """What a fit may use.

    budget: bytes for what grows with pairs of rows.
    seed: fixes the pivots of an incomplete factor.
    """

    workers: Workers
    dtype: npt.DTypeLike
    budget: float
    factorization: str = "auto"
    seed: int = 0
