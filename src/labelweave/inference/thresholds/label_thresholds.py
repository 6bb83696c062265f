"""A threshold a label, drawn to the one of all labels where a label has few positive rows.

Micro-averaged F1 with a threshold a label is a ratio of sums over labels, ``2 sum(hits) / sum(predicted +
positives)``.  For a given value F of it, ``sum(2 hits - F (predicted + positives))`` falls apart into labels,
each with an exact best cut, and the ratio is the greatest one when that best sum is 0 (Dinkelbach 1967).
Setting F to the ratio of the cuts just found, and cutting again, raises F until it is the greatest one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Array, PerLabel
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.inference.thresholds.example_f1 import best_for_example_f1
from labelweave.inference.thresholds.label_cuts import NO_CUT, LabelCuts, find_label_cuts
from labelweave.inference.thresholds.objective import Objective, f1_of_counts
from labelweave.inference.thresholds.shared_threshold import shared_threshold

__all__ = ["LabelThresholds", "find_label_thresholds"]


@dataclass(frozen=True)
class LabelThresholds:
    """The labels' own thresholds and the one of all.

    own: the best thresholds of the labels; the shared one where a label has no positive row.
    shared: the best threshold for all labels.
    positives: positive rows of every label, weighted.
    """

    own: PerLabel
    shared: float
    positives: PerLabel

    def pooled(self, strength: float) -> PerLabel:
        """Draw labels with few positive rows to the shared threshold.

        strength: A label with so many positive rows lies half way; 0 leaves labels alone.
        """
        if not strength:
            return self.own
        trust = self.positives / (self.positives + strength)
        return np.asarray(trust * self.own + (1.0 - trust) * self.shared)


def find_label_thresholds(table: LabeledScores, objective: Objective) -> LabelThresholds:
    """Find the best threshold of every label, and of all.

    objective: what they shall be best for.
    Shapes: table (n, L).
    """
    shared, cuts = shared_threshold(table, objective), find_label_cuts(table)
    own = np.where(cuts.positives > 0, cuts.thresholds(_best_cuts(cuts, objective)), shared)
    if objective.name == "example_f1":
        own = best_for_example_f1(table, (own, np.full(table.shape[1], shared)))
    return LabelThresholds(own, shared, cuts.positives)


def _best_cuts(cuts: LabelCuts, objective: Objective) -> Array:
    """Find the best cut of every label; for the rows' F1 score, that of micro-averaged F1."""
    if objective.name in ("micro_f1", "example_f1"):
        return _micro_f1_cuts(cuts)
    values = objective.of_counts(cuts.hits, cuts.predicted, cuts.positives[cuts.label])
    return cuts.best(values, objective.of_nothing)


def _micro_f1_cuts(cuts: LabelCuts) -> Array:
    positives, reached = cuts.positives.sum(), -1.0
    chosen = np.full(len(cuts.positives), NO_CUT)
    while True:
        found = cuts.best(2.0 * cuts.hits - max(reached, 0.0) * cuts.predicted)
        hits, predicted = (counts.sum() for counts in cuts.counts(found))
        ratio = float(f1_of_counts(hits, predicted, positives))
        if ratio <= reached:
            return chosen
        chosen, reached = found, ratio
