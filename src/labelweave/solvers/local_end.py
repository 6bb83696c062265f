"""Where a local method ends."""

from __future__ import annotations

from dataclasses import dataclass

from labelweave.array_types import RowsByLabels

__all__ = ["LocalEnd"]


@dataclass(frozen=True)
class LocalEnd:
    """The best points met.

    free: B, the best primal point.
    boxed: V, the best dual point.
    gap: the relative duality gap between them.
    """

    free: RowsByLabels
    boxed: RowsByLabels
    slopes: RowsByLabels
    gap: float
