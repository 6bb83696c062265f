"""Scores with the labels of their rows, validated once and iterated in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import numbers_of, panels, read_row_weights
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import columns_by_name
from labelweave.labels.label_tables import shown_name

BLOCK_ENTRIES = 2**20


@dataclass(frozen=True)
class ScoreLines:
    """Some labels with all their rows, or some rows with all their labels; one per line.

    scores (b, width), signs (b, width): -inf and 0 for unobserved entries; otherwise finite, and +1 or -1, or
        2 q - 1 for targets q.
    """

    which: slice
    scores: Array
    signs: Array

    @cached_property
    def order(self) -> Array:
        """The order of every line by descending score (b, width); sorted once."""
        return np.argsort(self.scores, axis=1)[:, ::-1]

    @property
    def shares(self) -> Array:
        """The weight of every entry as a positive (b, width): 0 or 1, or its target."""
        if self.signs.dtype.kind == "i":
            return self.signs > 0
        return np.where(self.signs == 0, 0.0, 0.5 * (1.0 + self.signs))

    def line(self, number: int) -> ScoreLines:
        one = ScoreLines(self.which, self.scores[[number]], self.signs[[number]])
        one.__dict__["order"] = self.order[[number]]
        return one


@dataclass(frozen=True)
class LabeledScores:
    """Labels (n, L), finite scores and weights of the same rows; unobserved entries are ignored.

    Blocks of a small table, which a search needs again and again, are cached; they are read-only.
    """

    labels: LabelMatrix
    scores: RowsByLabels
    weights: PerRow

    @property
    def shape(self) -> tuple[int, int]:
        return self.labels.shape

    def rows(self, which: Array) -> LabeledScores:
        return LabeledScores(self.labels[which], self.scores[which], self.weights[which])

    def drawn_labels(self, most_entries: int, least: int = 1) -> LabeledScores:
        """Keep an even sample of labels, at least a few, if all have too many entries."""
        n_rows, n_labels = self.shape
        wanted = max(least, most_entries // n_rows)
        if wanted >= n_labels:
            return self
        drawn = np.linspace(0, n_labels - 1, wanted).round().astype(np.intp)
        return LabeledScores(self.labels.select_labels(drawn), self.scores[:, drawn], self.weights)

    def label_blocks(self) -> Iterable[ScoreLines]:
        return self._kept_if_small(self._made_label_blocks)

    def row_blocks(self) -> Iterable[ScoreLines]:
        return self._kept_if_small(self._made_row_blocks)

    @cached_property
    def _kept(self) -> dict[str, list[ScoreLines]]:
        return {}

    def _kept_if_small(self, make: Callable[[], Iterator[ScoreLines]]) -> Iterable[ScoreLines]:
        if self.scores.size > BLOCK_ENTRIES:
            return make()
        if make.__name__ not in self._kept:
            self._kept[make.__name__] = list(make())
        return self._kept[make.__name__]

    def _made_label_blocks(self) -> Iterator[ScoreLines]:
        n_rows, n_labels = self.shape
        for columns in panels(n_labels, max(1, BLOCK_ENTRIES // max(1, n_rows))):
            chosen = np.arange(columns.start, columns.stop)
            signs = np.ascontiguousarray(self.labels.select_labels(chosen).to_soft_signs().T)
            yield ScoreLines(columns, _where_seen(signs, self.scores[:, columns].T), signs)

    def _made_row_blocks(self) -> Iterator[ScoreLines]:
        n_rows, n_labels = self.shape
        for rows in panels(n_rows, max(1, BLOCK_ENTRIES // max(1, n_labels))):
            signs = self.labels[rows].to_soft_signs()
            yield ScoreLines(rows, _where_seen(signs, self.scores[rows]), signs)

    def row_positives(self) -> PerRow:
        """Count the positive labels per row; labels with probabilities count with their targets."""
        if self.labels.flip_probabilities is None:
            return np.diff(self.labels.positives.indptr)
        return np.asarray(self.labels.expected_positives.sum(axis=1))

    def positive_weights(self) -> PerLabel:
        return np.asarray(self.labels.expected_positives.T @ self.weights, dtype=np.float64)


def _where_seen(signs: Array, scores: Array) -> Array:
    return np.where(signs == 0, -np.inf, scores).astype(scores.dtype, copy=False)


def read_labeled_scores(labels: Any, scores: Any, sample_weight: Any = None) -> LabeledScores:
    """Validate labels, scores (n, L) and row weights; errors name the place."""
    truth = LabelMatrix.from_any(labels)
    if truth.names is not None:
        scores = columns_by_name(scores, [str(name) for name in truth.names], "scores")
    table = read_score_table(scores, truth.names)
    if table.shape != truth.shape:
        raise ValueError(
            f"scores have shape {table.shape} but the labels have shape {truth.shape}; pass both as "
            "(rows, labels)."
        )
    if not table.size:
        what = "rows" if not len(truth) else "labels"
        raise ValueError(f"There are no {what} to choose from; pass at least one.")
    return LabeledScores(truth, table, read_row_weights(sample_weight, len(truth), may_vanish=True))


def read_score_table(scores: Any, names: Any = None) -> RowsByLabels:
    try:
        table = numbers_of(scores, "scores")
    except ValueError:
        raise ValueError(
            "scores have entries that are not numbers; pass numbers of shape (rows, labels)."
        ) from None
    if table.ndim != 2:
        raise ValueError(f"scores have shape {table.shape}; pass numbers of shape (rows, labels).")
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"scores at row {row}, label {shown_name(names, column)} is {table[row, column]}; pass "
            "finite numbers."
        )
    return table
