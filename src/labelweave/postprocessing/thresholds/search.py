"""The best thresholds for a measure, per label and shared.

Predicting one more negative row improves no objective, so only cuts right below a positive row can be best.
Entries with a probability count with their expected values.

Micro-averaged F1 with one threshold per label is a ratio of sums over labels.  For a given value F of it,
``sum(2 hits - F (predicted + positives))`` separates into labels, each with an exact best cut.  Setting F to
the ratio at these cuts, and cutting again, raises F to its maximum (Dinkelbach 1967).

A row's F1 score depends on all its labels.  With the others fixed the best cut of a label is found exactly in
one pass over its sorted rows; labels are updated in turn until none moves.

With one threshold for all labels, the changes of an objective at candidates are summed over blocks, and
no array of the size of all scores is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from labelweave.foundation.array_types import Array, PerLabel, PerRow
from labelweave.foundation.arrays import ratios
from labelweave.postprocessing.labeled_scores import LabeledScores, ScoreLines
from labelweave.postprocessing.thresholds.objective import Objective, f1_of_counts

NO_CUT = -1
_MOST_PASSES = 20
_LEAST_GAIN = 1e-6
_KEPT_ENTRIES = 2**24  # sorted once and cached, about 200 MB; above it, labels are sorted again in every pass


class PooledThresholds(NamedTuple):
    """The labels' own thresholds, the shared one, and the weight of every label's positive rows."""

    own: PerLabel
    shared: float
    positives: PerLabel

    def pooled(self, strength: float) -> PerLabel:
        """Shrink labels with few positive rows to the shared threshold, halfway at weight ``strength``."""
        if not strength:
            return self.own
        trust = self.positives / (self.positives + strength)
        return np.asarray(trust * self.own + (1.0 - trust) * self.shared)


def find_label_thresholds(table: LabeledScores, objective: Objective) -> PooledThresholds:
    shared, cuts = shared_threshold(table, objective), find_label_cuts(table)
    if objective.name in ("micro_f1", "example_f1"):  # a start for the rows' F1 scores
        chosen = _micro_f1_cuts(cuts, _predicted_anyway(table, cuts.positives, shared))
    else:
        values = objective.of_counts(cuts.hits, cuts.predicted, cuts.positives[cuts.label])
        chosen = cuts.best(values, objective.of_nothing)
    own = np.where(cuts.positives > 0, cuts.thresholds(chosen), shared)
    if objective.name == "example_f1":
        own = best_for_example_f1(table, (own, np.full(table.shape[1], shared)))
    return PooledThresholds(own, shared, cuts.positives)


def _predicted_anyway(table: LabeledScores, positives: PerLabel, shared: float) -> float:
    """Count predictions of the shared threshold for labels without positive rows, weighted."""
    if (positives > 0).all():
        return 0.0
    above = (lines.scores[positives[lines.which] <= 0] > np.float64(shared) for lines in table.label_blocks())
    return float(sum((part @ table.weights).sum() for part in above))


def _micro_f1_cuts(cuts: LabelCuts, predicted_anyway: float) -> Array:
    positives, reached = cuts.positives.sum(), -1.0
    chosen = np.full(len(cuts.positives), NO_CUT)
    while True:
        found = cuts.best(2.0 * cuts.hits - max(reached, 0.0) * cuts.predicted)
        # NO_CUT, the last position, predicts nothing
        hits, predicted = (np.append(counts, 0.0)[found].sum() for counts in (cuts.hits, cuts.predicted))
        ratio = float(f1_of_counts(hits, predicted + predicted_anyway, positives))
        if ratio <= reached:
            return chosen
        chosen, reached = found, ratio


class LabelCuts(NamedTuple):
    """The cuts of all labels, grouped by label and from high scores to low ones; each (m,).

    upper, lower: the lowest score above the cut, the highest observed one below it (-inf without any).
    highest (L,): the highest observed score of every label; -inf if there is none.
    positives (L,): positive rows of every label, weighted.
    """

    label: Array
    upper: Array
    lower: Array
    hits: Array
    predicted: Array
    highest: PerLabel
    positives: PerLabel

    def best(self, values: Array, without: float = 0.0) -> PerLabel:
        """Return each label's cut of the largest value, the highest of ties, if above predicting nothing."""
        greatest = np.full(len(self.positives), without, dtype=np.float64)
        np.maximum.at(greatest, self.label, values)
        places = np.flatnonzero((values == greatest[self.label]) & (values > without))
        chosen = np.full(len(greatest), NO_CUT)
        chosen[self.label[places[::-1]]] = places[::-1]
        return chosen

    def thresholds(self, chosen: PerLabel) -> PerLabel:
        """Return the threshold of each chosen cut, or the highest score where nothing is predicted."""
        thresholds = self.highest.copy()
        cut = chosen != NO_CUT
        thresholds[cut] = threshold_between(self.lower[chosen[cut]], self.upper[chosen[cut]])
        return thresholds


def threshold_between(lower: Array, upper: Array) -> Array:
    """Return thresholds halfway between two scores; the lower one is -inf where there is none."""
    all_above = np.isneginf(lower)
    floor = np.where(all_above, upper - np.maximum(1.0, np.abs(upper)), lower)
    middle = 0.5 * floor + 0.5 * upper
    return np.where(all_above, floor, np.where(middle < upper, middle, floor))


def find_label_cuts(table: LabeledScores) -> LabelCuts:
    """Sort the scores of every label once and keep the cuts below its positive rows."""
    parts = [_cuts_of(lines, table.weights) for lines in table.label_blocks()]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return LabelCuts(*columns, table.positive_weights())  # type: ignore[call-arg]


def ranked_groups(lines: ScoreLines, weights: PerRow) -> tuple[Array, Array, Array, Array]:
    """Sort every line by score and count from the top; tied scores are grouped.

    Returns, each of shape (b, n), the scores, the weights of the positive and of the observed entries so far,
    and whether this score is observed and the last of its tie.
    """
    order = lines.order
    ranked = np.take_along_axis(lines.scores, order, axis=1)
    signs = np.take_along_axis(lines.signs, order, axis=1)
    row_weights = weights[order]
    hits = np.cumsum(np.take_along_axis(lines.shares, order, axis=1) * row_weights, axis=1)
    predicted = np.cumsum(np.where(signs != 0, row_weights, 0.0), axis=1)
    is_end = np.empty(ranked.shape, bool)
    is_end[:, -1] = True
    np.greater(ranked[:, :-1], ranked[:, 1:], out=is_end[:, :-1])
    return ranked, hits, predicted, is_end & (signs != 0)


def changes_on_lines(line: Array, values: Array) -> Array:
    """Subtract from every value the previous one on the same line."""
    is_first = np.diff(line, prepend=-1) != 0
    return values - np.where(is_first, 0.0, np.roll(values, 1))


def _cuts_of(lines: ScoreLines, weights: Array) -> tuple[Array, ...]:
    ranked, hits, predicted, is_end = ranked_groups(lines, weights)
    label, place = np.nonzero(is_end)
    found = hits[label, place]
    keep = changes_on_lines(label, found) > 0
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


def shared_threshold(table: LabeledScores, objective: Objective) -> float:
    """Return the best threshold for all labels; the highest score if predicting nothing is best."""
    expected = table.labels.expected_positives
    rows = np.repeat(np.arange(len(table.weights)), np.diff(expected.indptr))
    scores = table.scores[rows, expected.indices]
    candidates = np.unique(scores[(table.weights[rows] > 0) & (expected.data > 0)].astype(np.float64))
    values = _values(table, objective, candidates) if len(candidates) else np.full(1, -np.inf)
    best = len(values) - 1 - int(np.argmax(values[::-1]))  # the highest among equals
    if values[best] <= objective.of_nothing:
        return float(table.scores.max())
    upper = candidates[best]
    lower = max(np.max(b.scores, where=b.scores < upper, initial=-np.inf) for b in table.row_blocks())
    return float(threshold_between(np.asarray(lower, np.float64), np.asarray(upper)))


def _values(table: LabeledScores, objective: Objective, candidates: Array) -> Array:
    ones = np.ones(table.shape[1])
    if objective.name == "macro_f1":
        per_line = (table.positive_weights(), ones)
        return _summed_f1(table.label_blocks(), table.weights, per_line, candidates)
    if objective.name == "example_f1":
        return _summed_f1(table.row_blocks(), ones, (table.row_positives(), table.weights), candidates)
    hits, predicted = np.zeros((2, len(candidates)))
    for block in table.row_blocks():
        weights, seen = table.weights[block.which][:, None], block.signs != 0
        for counts, shares in ((hits, block.shares), (predicted, seen)):
            kept = shares != 0
            _add_steps(counts, candidates, block.scores[kept], (weights * shares)[kept])
    positives = float(table.positive_weights().sum())
    return objective.of_counts(_from_above(hits), _from_above(predicted), positives)


def _summed_f1(
    blocks: Iterable[ScoreLines], weights: Array, per_line: tuple[Array, Array], candidates: Array
) -> Array:
    positives, line_weights = per_line
    steps = np.zeros(len(candidates))
    for lines in blocks:
        ranked, hits, predicted, is_end = ranked_groups(lines, weights)
        line, place = np.nonzero(is_end)
        number = line + lines.which.start
        f1 = f1_of_counts(hits[line, place], predicted[line, place], positives[number])
        changes = changes_on_lines(line, f1) * line_weights[number]
        _add_steps(steps, candidates, ranked[line, place], changes)
    return _from_above(steps)


def _add_steps(steps: Array, candidates: Array, scores: Array, changes: Array) -> None:
    """Add each change at the largest candidate that does not exceed its score."""
    place = np.searchsorted(candidates, scores, side="right") - 1
    inside = place >= 0
    steps += np.bincount(place[inside], changes[inside], minlength=len(steps))


def _from_above(steps: Array) -> Array:
    return np.asarray(np.cumsum(steps[::-1])[::-1])


class _Ranked(NamedTuple):
    """The observed rows of labels with positive rows, label by label, in descending order of score."""

    labels: Array
    starts: Array
    rows: Array
    scores: Array
    shares: Array
    positives: Array


class _RowCounts(NamedTuple):
    """The rows' counts under the current thresholds: 2 hits, and predicted + positive labels."""

    hits: PerRow
    labels: PerRow
    weights: PerRow

    def total(self) -> float:
        return float(self.weights @ ratios(self.hits, self.labels))


def best_for_example_f1(table: LabeledScores, starts: Iterable[PerLabel]) -> PerLabel:
    """Improve thresholds until no single one can be improved; return the best of several starts."""
    kept = list(_ranked_blocks(table)) if table.scores.size <= _KEPT_ENTRIES else None
    return max((_ascend(table, start, kept) for start in starts), key=lambda ascent: ascent[1])[0]


def _ranked_blocks(table: LabeledScores) -> Iterator[_Ranked]:
    for lines in table.label_blocks():
        labels = np.flatnonzero((lines.shares > 0).any(axis=1))
        order = lines.order[labels]
        shares = np.take_along_axis(lines.shares[labels], order, axis=1)
        seen = np.take_along_axis(lines.signs[labels], order, axis=1) != 0
        starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        scores = np.take_along_axis(lines.scores[labels], order, axis=1)[seen]
        rows, positives = order[seen].astype(np.int32), (shares > 0).sum(axis=1)
        yield _Ranked(lines.which.start + labels, starts, rows, scores, shares[seen], positives)


def _ascend(table: LabeledScores, start: PerLabel, kept: list[_Ranked] | None) -> tuple[PerLabel, float]:
    from labelweave.foundation.loops.f1_scores import move_cuts

    thresholds, counts = start.astype(np.float64), _count(table, start)
    total = counts.total()
    for _ in range(_MOST_PASSES):
        for ranked in kept or _ranked_blocks(table):
            is_above = ranked.scores > np.repeat(thresholds[ranked.labels], np.diff(ranked.starts))
            before = np.diff(np.append(0, np.cumsum(is_above))[ranked.starts])
            above = before.copy()
            move_cuts(*ranked[1:], above, *counts)
            moved = np.flatnonzero(above != before)
            thresholds[ranked.labels[moved]] = _cut_at(ranked, moved, above[moved])
        last, total = total, counts.total()
        if total - last <= _LEAST_GAIN * total:
            break
    return thresholds, total


def _cut_at(ranked: _Ranked, moved: Array, above: Array) -> Array:
    place, stop = ranked.starts[moved] + above, ranked.starts[moved + 1]
    scores = np.append(ranked.scores, 0).astype(np.float64)
    lower, upper = np.where(place < stop, scores[place], -np.inf), scores[place - 1]
    return np.where(above > 0, threshold_between(lower, upper), scores[ranked.starts[moved]])


def _count(table: LabeledScores, thresholds: PerLabel) -> _RowCounts:
    hits, labels = np.zeros(len(table.weights)), table.row_positives().astype(np.float64)
    for lines in table.label_blocks():
        above = lines.scores > thresholds[lines.which][:, None]
        hits += 2.0 * (above * lines.shares).sum(axis=0)
        labels += above.sum(axis=0)
    return _RowCounts(hits, labels, np.asarray(table.weights, np.float64))
