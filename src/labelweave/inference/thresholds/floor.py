"""Floors of thresholds, below which a label would be predicted far more often than it is there.

Lewis, Yang, Rose and Li, "RCV1: A new benchmark collection for text categorization research", JMLR 5 (2004),
and Fan and Lin, "A study on threshold selection for multi-label classification" (2007), raise the threshold
of labels whose F1 score stays low to the highest score (FBR, SCutFBR), since thresholds that are best for
such a label predict it for nearly every row.  Here it is raised as far as a bound on predictions asks: where
F is the best F1 score of a label, its best rule predicts it above the probability F / 2 (Lipton, Elkan and
Narayanaswamy, "Optimal thresholding of classifiers to maximize F1 measure", ECML 2014), so that a label that
is hard to tell is best predicted more often than it is there.  ``benchmarks.threshold_floor`` compares both.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.array_types import PerLabel
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.inference.thresholds.search import ranked_groups, threshold_between


def above_floor(table: LabeledScores, thresholds: PerLabel, most: float) -> PerLabel:
    """Raise thresholds until a label is predicted for at most ``most`` times its positive rows, and one."""
    raised, allowed = thresholds.copy(), most * table.positive_weights() + table.weights.mean()
    for lines in table.label_blocks():
        above = (lines.scores > thresholds[lines.which][:, None]) @ table.weights
        for number in np.flatnonzero(above > allowed[lines.which]):
            label = lines.which.start + number
            groups = ranked_groups(lines.line(int(number)), table.weights)
            ranked, _, predicted, is_end = (part[0] for part in groups)
            fits = np.flatnonzero(is_end & (predicted <= allowed[label]))
            floor = float(ranked[0])
            if len(fits) and fits[-1] + 1 == len(ranked):  # sums in another order, rounded apart
                continue
            if len(fits):
                floor = float(threshold_between(*ranked[[fits[-1] + 1, fits[-1]]].astype(np.float64)))
            raised[label] = max(raised[label], floor)
    return raised
