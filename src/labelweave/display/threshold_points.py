"""Precision, recall and F1 of observed entries against the threshold above which they are predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.array_types import Floats
from labelweave.arrays import panels
from labelweave.labels import LabelMatrix

__all__ = ["ThresholdCurve", "threshold_curve"]


_MOST_CUTS = 1000  # beyond so many positive entries a curve leaves cuts out
_EVEN_STEPS = 200
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True)
class ThresholdCurve:
    """What a threshold gives, of one label or of several together.

    name: what the legend calls the curve.
    thresholds (m,): ascending; scores above are predicted.
    precision, recall, f1 (m,): the measures; precision is NaN where nothing is predicted.
    chosen: the threshold that the model uses, one of ``thresholds``.
    """

    name: str
    thresholds: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    chosen: float | None

    def at_chosen(self, measure: str) -> float:
        """Give a measure at the chosen threshold.

        Returns its value; NaN if no threshold is chosen.
        """
        if self.chosen is None:
            return float("nan")
        values = getattr(self, measure)
        return float(values[min(np.searchsorted(self.thresholds, self.chosen), len(values) - 1)])


def threshold_curve(labels: LabelMatrix, scores: Floats, chosen: float | None, name: str) -> ThresholdCurve:
    """Count observed entries above each of many thresholds, all labels together.

    chosen: A threshold to be among them.
    name: what the legend calls the curve.
    Returns the curve; up to 1000 positive entries nothing between two cuts is left out.
    Shapes: labels (n, L), scores (n, L).
    Raises ValueError if no observed entry is positive.
    """
    rows = np.repeat(np.arange(len(labels)), np.diff(labels.positives.indptr))
    positives = scores[rows, labels.positives.indices]
    if not len(positives):
        raise ValueError(
            f"No observed entry of {name} is positive, so there is no F1 at any threshold; choose labels "
            "that have some."
        )
    cuts = _cuts(positives, scores, chosen)
    hits, predicted = _above(cuts, positives), np.zeros(len(cuts))
    for part in panels(len(labels), max(1, _BLOCK_ENTRIES // max(1, labels.n_labels))):
        signs = labels[part].to_signs()
        predicted += _above(cuts, scores[part][signs != 0])
    precision = np.full(len(cuts), np.nan)
    np.divide(hits, predicted, out=precision, where=predicted > 0)
    f1 = 2.0 * hits / (predicted + len(positives))
    return ThresholdCurve(name, cuts, precision, hits / len(positives), f1, chosen)


def _cuts(positives: Floats, scores: Floats, chosen: float | None) -> Floats:
    """Put thresholds right below positive scores, where F1 has its peaks, and at even steps."""
    found = np.unique(positives[np.isfinite(positives)])
    if len(found) > _MOST_CUTS:
        found = found[np.linspace(0, len(found) - 1, _MOST_CUTS).astype(np.intp)]
    low, high = np.min(scores, where=np.isfinite(scores), initial=np.inf), scores.max()
    even = np.linspace(min(low, high), high, _EVEN_STEPS)
    return np.unique(np.concatenate([np.nextafter(found, -np.inf), even, [] if chosen is None else [chosen]]))


def _above(cuts: Floats, scores: Floats) -> Floats:
    """Count the scores above every cut."""
    places = np.bincount(np.searchsorted(cuts, scores, side="left"), minlength=len(cuts) + 1)
    counted: Any = np.cumsum(places[::-1])[::-1][1:]
    return np.asarray(counted, np.float64)
