"""Where the scores of a label can be cut, and what is predicted above each cut.

Predicting one more row that is not positive raises none of the objectives.  So only cuts right below a
positive row can be best, and there are no more of them than positive entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Array, PerLabel, PerRow
from labelweave.inference.labeled_scores import LabeledScores, ScoreLines

__all__ = ["NO_CUT", "LabelCuts", "find_label_cuts", "ranked_groups", "threshold_between"]


NO_CUT = -1


@dataclass(frozen=True)
class LabelCuts:
    """The cuts of all labels, those of a label together and from high scores to low ones.

    upper (m,): the lowest score above the cut.
    lower (m,): the highest observed score below it; -inf if there is none.
    positives: positive rows of every label, weighted.
    highest: the highest observed score of every label; -inf if there is none.
    Shapes: label (m,), hits (m,), predicted (m,).
    """

    label: Array
    upper: Array
    lower: Array
    hits: Array
    predicted: Array
    positives: PerLabel
    highest: PerLabel

    def best(self, values: Array, without: Array | float = 0.0) -> PerLabel:
        """Find the cut of the greatest value of every label, the highest one among equals.

        values (m,): what each cut is worth.
        without (L,): what it is worth to predict no row.
        """
        greatest = np.full(len(self.positives), without, dtype=np.float64)
        np.maximum.at(greatest, self.label, values)
        worse = np.broadcast_to(without, greatest.shape)
        places = np.flatnonzero((values == greatest[self.label]) & (values > worse[self.label]))
        chosen = np.full(len(greatest), NO_CUT)
        chosen[self.label[places[::-1]]] = places[::-1]
        return chosen

    def thresholds(self, chosen: PerLabel) -> PerLabel:
        """Put a threshold into each chosen cut, or on the highest score where nothing is predicted."""
        thresholds = self.highest.copy()
        cut = chosen != NO_CUT
        thresholds[cut] = threshold_between(self.lower[chosen[cut]], self.upper[chosen[cut]])
        return thresholds

    def counts(self, chosen: PerLabel) -> tuple[Array, Array]:
        """Count what the chosen cuts predict.

        Shapes: hits (L,), predicted (L,).
        """
        hits, predicted = (np.append(counts, 0.0)[chosen] for counts in (self.hits, self.predicted))
        return hits, predicted


def threshold_between(lower: Array | np.float64, upper: Array | np.float64) -> Array:
    """Choose thresholds half way between two scores, so that only the upper one lies above.

    lower: scores not to be predicted; -inf where there is none.
    """
    all_above = np.isneginf(lower)
    floor = np.where(all_above, upper - np.maximum(1.0, np.abs(upper)), lower)
    middle = 0.5 * floor + 0.5 * upper
    return np.asarray(np.where(all_above, floor, np.where(middle < upper, middle, floor)))


def find_label_cuts(table: LabeledScores) -> LabelCuts:
    """Sort the scores of every label once and keep the cuts below its positive rows."""
    parts = [_cuts_of(lines, table.weights) for lines in table.label_blocks()]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    label, upper, lower, hits, predicted, highest = columns
    return LabelCuts(label, upper, lower, hits, predicted, table.positive_weights(), highest)


def ranked_groups(lines: ScoreLines, weights: PerRow) -> tuple[Array, Array, Array, Array]:
    """Sort every line by score and count from the top; equal scores go together.

    lines (b, n): labels with their rows, or rows with their labels.
    weights: weights of the entries of a line.
    hits (b, n): weights of the positive entries up to here.
    predicted (b, n): weights of the observed entries up to here.
    is_end (b, n): whether the next score is lower, or there is none, and this one was observed.
    Shapes: ranked (b, n).
    """
    order = np.argsort(lines.scores, axis=1)[:, ::-1]
    ranked = np.take_along_axis(lines.scores, order, axis=1)
    signs = np.take_along_axis(lines.signs, order, axis=1)
    row_weights = weights[order]
    hits = np.cumsum(np.where(signs > 0, row_weights, 0.0), axis=1)
    predicted = np.cumsum(np.where(signs != 0, row_weights, 0.0), axis=1)
    is_end = np.empty(ranked.shape, bool)
    is_end[:, -1] = True
    np.greater(ranked[:, :-1], ranked[:, 1:], out=is_end[:, :-1])
    return ranked, hits, predicted, is_end & (signs != 0)


def _cuts_of(lines: ScoreLines, weights: Array) -> tuple[Array, ...]:
    ranked, hits, predicted, is_end = ranked_groups(lines, weights)
    label, place = np.nonzero(is_end)
    found = hits[label, place]
    before = np.where(np.append(True, label[1:] != label[:-1])[: len(label)], 0.0, np.roll(found, 1))
    keep = found > before
    label, place = label[keep], place[keep]
    below = np.pad(ranked, ((0, 0), (0, 1)), constant_values=-np.inf)[label, place + 1]
    return (
        label + lines.which.start,
        ranked[label, place].astype(np.float64),
        below.astype(np.float64),
        found[keep],
        predicted[label, place],
        ranked[:, 0].astype(np.float64),
    )
