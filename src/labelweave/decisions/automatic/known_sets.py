"""The most probable label set among those that training rows have.

With labels independent given the row, a set's log probability is the sum of the log-odds of its labels and a
number that all sets share.  A share of the log of how often the set was met is added, as labels are not
independent; a set that no training row has is never predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from labelweave.estimators.held_out import HeldOutScores
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.metrics import subset_accuracy
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Numbers

_SHARES = (0.0, 0.25, 0.5, 1.0)
_LEAST, _HALF = 1e-12, 0.5
_AT_ONCE = 10_000_000


@storable("KnownSets", {"sets": Numbers("s L", "f", 0, 1), "bonus": Numbers("s")})
@dataclass(frozen=True)
class KnownSets(StoredParameters):
    """Label sets to choose from, and what is added to the log probability of each.

    Shapes: sets (s, L), bonus (s,).
    """

    sets: Array
    bonus: Array

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.sets.shape[1])

    def choose(self, log_odds: RowsByLabels) -> RowsByLabels:
        """Give the set of each row: 0 and 1, shape (n, L)."""
        chosen = np.empty(len(log_odds), np.intp)
        step = max(1, _AT_ONCE // max(1, len(self.sets)))
        for start in range(0, len(log_odds), step):
            part = log_odds[start : start + step]
            chosen[start : start + step] = (part @ self.sets.T + self.bonus).argmax(axis=1)
        return np.asarray(self.sets[chosen])

    @classmethod
    def of_rows(cls, held: HeldOutScores, rows: Array, share: float) -> KnownSets:
        """Take the label sets of rows of which every label is known; none at all where there are no such."""
        signs = held.labels[rows].to_signs()
        weights = np.ones(len(rows)) if held.weights is None else held.weights[rows]
        whole = (signs != 0).all(axis=1)
        sets, number = np.unique(signs[whole] > 0, axis=0, return_inverse=True)
        if not len(sets):
            return cls(np.zeros((1, signs.shape[1])), np.zeros(1))
        counts = np.bincount(number.ravel(), weights[whole])
        return cls(sets.astype(np.float64), share * np.log(np.maximum(counts, _LEAST)))


def choose_known_sets(held: HeldOutScores, folds: PerRow) -> tuple[KnownSets | Floats, Array]:
    """Choose the share of the counts by the subset accuracy of left-out rows, with the sets of other folds.

    Returns the sets of all rows, or thresholds of 1/2 where these are better, as with few rows of which every
    label is known; and the sets that left-out rows get, (n, L).
    """
    log_odds = logit(np.clip(held.scores, _LEAST, 1.0 - _LEAST))
    best = -np.inf, 0.0, np.zeros(held.scores.shape)
    for share in _SHARES:
        found = np.empty(held.scores.shape)
        for fold in np.unique(folds):
            inside, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            found[inside] = KnownSets.of_rows(held, others, share).choose(log_odds[inside])
        value = subset_accuracy(held.labels, found.astype(np.int8), sample_weight=held.weights)
        if value > best[0]:
            best = value, share, found
    plain = (held.scores > _HALF).astype(np.int8)
    if subset_accuracy(held.labels, plain, sample_weight=held.weights) > best[0]:
        return np.full(plain.shape[1], _HALF), plain
    return KnownSets.of_rows(held, np.arange(len(folds)), best[1]), best[2].astype(np.int8)
