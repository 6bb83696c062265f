"""From measured points to a Markdown table: seconds to each relative duality gap."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.frame import markdown


@dataclass
class Point:
    """One tolerance of one program; ``gap`` is what the table goes by."""

    tolerance: float
    primal: float
    own_dual: float | None
    iterations: int | None
    gap: float = float("nan")
    own_gap: float | None = None
    all_seconds: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median time."""
        return statistics.median(self.all_seconds)


@dataclass
class Curve:
    """A program's points from the loosest tolerance to the tightest."""

    title: str
    version: str
    is_own: bool
    points: list[Point]

    def set_gaps(self, best_dual: float) -> None:
        """Fill in the gaps: labelweave's against its own dual value, a peer's against the best known one."""
        for point in self.points:
            if point.own_dual is not None:
                point.own_gap = _relative_gap(point.primal, point.own_dual)
            point.gap = _relative_gap(point.primal, best_dual)
            if self.is_own and point.own_gap is not None:
                point.gap = point.own_gap


def _relative_gap(primal: float, dual: float) -> float:
    return (primal - dual) / abs(primal)


def reaching_points(curve: Curve, targets: Sequence[float]) -> list[Point | None]:
    """Find, for each target, the loosest tolerance whose gap is at most the target.

    curve: A program's points with their gaps.
    targets: relative duality gaps.
    Returns: A point for each target; ``None`` where no tolerance reached it.
    """
    return [next((point for point in curve.points if point.gap <= target), None) for target in targets]


def markdown_table(curves: Sequence[Curve], targets: Sequence[float]) -> str:
    """Write a row for each program and a column for each target.

    A cell holds the median seconds, the ratio to labelweave's where labelweave
    was run, and in brackets the tolerance and the gap it gave.

    curves: one for each program.
    targets: relative duality gaps.
    """
    own = next((reaching_points(curve, targets) for curve in curves if curve.is_own), [None] * len(targets))
    rows = []
    for curve in curves:
        points = reaching_points(curve, targets)
        cells = [_cell(point, base) for point, base in zip(points, own, strict=True)]
        rows.append([f"{curve.title} {curve.version}", *cells])
    return "\n".join(markdown(["program", *(f"gap {target:g}" for target in targets)], rows))


def _cell(point: Point | None, base: Point | None) -> str:
    if point is None:
        return "not reached"
    ratio = "" if base is None else f", {point.seconds / base.seconds:.1f}x"
    return f"{point.seconds:.2f} s{ratio} (tolerance {point.tolerance:g}, gap {point.gap:.1e})"
