"""What two pictures need: F1 score against frequency, and correlations of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelweave.array_types import Array, LabelsByLabels
from labelweave.display.label_order import cluster_order
from labelweave.report.label_numbers import LabelNumbers

__all__ = ["CorrelationPicture", "FrequencyPicture", "correlation_picture", "frequency_picture"]


_MOST_POINTS = 2000
_MOST_SHOWN = 30
_DECIMALS = 9  # rounding must not choose among equal labels
_ENOUGH_FOR_MEDIAN = 50
_GROUPS = 10
_WIDTH, _HEIGHT = 640.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 72.0, 12.0, 12.0, 52.0  # for words at the edges
_MARGIN = 10.0
_ENOUGH_TICKS = 2
_SHORTEST_AXIS = 0.3  # in powers of ten


class Point(NamedTuple):
    """A label in a picture."""

    x: float
    y: float
    name: str
    n_rows: int
    f1: float


@dataclass(frozen=True)
class FrequencyPicture:
    """F1 scores against numbers of rows, on a logarithmic axis.

    x_ticks, y_ticks: places and words on the axes.
    median: the median F1 score of labels of about the same frequency.
    left_out: labels without a point, where there are very many.
    """

    points: list[Point]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    median: list[tuple[float, float]]
    left_out: int

    width, height = _WIDTH, _HEIGHT
    left, right, top, bottom = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM


def frequency_picture(numbers: LabelNumbers, names: list[str]) -> FrequencyPicture | None:
    """Place the labels that some row has.

    numbers: how well each label does.
    Returns the picture; None for fewer than two labels.
    """
    shown = np.flatnonzero(numbers.positive > 0)
    if len(shown) < 2:
        return None
    shown = shown[np.argsort(numbers.positive[shown], kind="stable")]
    counts, f1 = numbers.positive[shown], numbers.f1[shown]
    x, y = _across(counts, counts), _down(f1)
    kept = np.unique(np.linspace(0, len(shown) - 1, min(_MOST_POINTS, len(shown))).round().astype(np.intp))
    points = [Point(x[k], y[k], names[shown[k]], int(counts[k]), float(f1[k])) for k in kept.tolist()]
    ticks = _round_counts(int(counts[0]), int(counts[-1]))
    return FrequencyPicture(
        points,
        list(zip(_across(np.array(ticks), counts), [f"{count:,}" for count in ticks], strict=True)),
        list(zip(_down(np.array([0.0, 0.5, 1.0])), ("0", "0.5", "1"), strict=True)),
        _running_median(x, y),
        len(shown) - len(kept),
    )


def _across(counts: Array, all_counts: Array) -> list[float]:
    """Place numbers of rows between the left and the right edge."""
    low, high = np.log10(all_counts.min()), np.log10(all_counts.max())
    share = (np.log10(counts) - low) / max(high - low, _SHORTEST_AXIS)
    places = _LEFT + _MARGIN + share * (_WIDTH - _LEFT - _RIGHT - 2 * _MARGIN)
    return [float(place) for place in places.round(1)]


def _down(f1: Array) -> list[float]:
    places = _HEIGHT - _BOTTOM - _MARGIN - f1 * (_HEIGHT - _TOP - _BOTTOM - 2 * _MARGIN)
    return [float(place) for place in places.round(1)]


def _round_counts(low: int, high: int) -> list[int]:
    """Give numbers for the axis: powers of ten, or finer ones where these are few."""
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        powers = range(int(math.log10(low)), int(math.log10(high)) + 1)
        chosen = [round(step * 10**power) for power in powers for step in steps]
        inside = [count for count in dict.fromkeys(chosen) if low <= count <= high]
        if len(inside) >= _ENOUGH_TICKS:
            return inside
    return sorted({low, high})


def _running_median(x: list[float], y: list[float]) -> list[tuple[float, float]]:
    """Summarise ten groups of labels of about one frequency."""
    if len(x) < _ENOUGH_FOR_MEDIAN:
        return []
    groups = zip(np.array_split(x, _GROUPS), np.array_split(y, _GROUPS), strict=True)
    return [(round(float(np.median(a)), 1), round(float(np.median(b)), 1)) for a, b in groups]


class Square(NamedTuple):
    """A pair of labels in a picture."""

    row: int
    column: int
    value: float


@dataclass(frozen=True)
class CorrelationPicture:
    """Correlations of labels, related ones beside each other.

    names: the labels from top to bottom.
    squares: the pairs that are not uncorrelated.
    n_labels: how many labels there are, of which the most related are shown.
    strongest: the correlation of the strongest colour: the largest between different labels.
    """

    names: list[str]
    squares: list[Square]
    n_labels: int
    strongest: float


def correlation_picture(correlations: LabelsByLabels, names: list[str]) -> CorrelationPicture:
    """Choose the labels that are most related, and order them.

    correlations: entries from -1 to 1.
    """
    n_labels = len(correlations)
    related = (correlations**2).sum(axis=1).round(_DECIMALS)
    chosen = np.sort(np.argsort(-related, kind="stable")[:_MOST_SHOWN])
    part = correlations[np.ix_(chosen, chosen)]
    order = cluster_order(part)
    ordered = np.round(part[np.ix_(order, order)], 2)
    pairs = np.argwhere(ordered != 0).tolist()
    squares = [Square(row, column, float(ordered[row, column])) for row, column in pairs]
    between = np.abs(ordered - np.diag(ordered.diagonal())).max()
    return CorrelationPicture([names[chosen[k]] for k in order], squares, n_labels, float(between) or 1.0)
