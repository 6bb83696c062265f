"""Observed positives and negatives of every line, grouped by equal score.

A line is what a ranking is made of: the labels of one example or, with the
targets transposed, the examples of one label.  All rank statistics follow from
the counts of positives and negatives in each group of tied scores, so dense and
sparse scores meet here and ties are treated in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import Scores, row_blocks, row_observed_counts, signs_at, stored_rows

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ScoreGroups:
    """Groups of tied scores, line after line, scores ascending within a line.

    Every line has at least one group; unobserved entries are in no count.
    """

    line_starts: Counts
    positives: Counts
    negatives: Counts

    def line_sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum over the groups of every line."""
        return np.add.reduceat(values, self.line_starts)

    def below(self, values: Counts) -> Counts:
        """Sum over the groups of the same line that have a lower score."""
        before = np.cumsum(values) - values
        sizes = np.diff(self.line_starts, append=len(values))
        return before - np.repeat(before[self.line_starts], sizes)

    def at_or_above(self, values: Counts) -> Counts:
        """Sum over the groups of the same line that have this or a higher score."""
        sizes = np.diff(self.line_starts, append=len(values))
        return np.repeat(self.line_sums(values), sizes) - self.below(values)


Statistic = Callable[[ScoreGroups], npt.NDArray[np.float64]]


def per_line(targets: LabelMatrix, scores: Scores, *statistics: Statistic) -> list[npt.NDArray[np.float64]]:
    """Compute statistics of every row, block by block, from one sort."""
    build = _sparse_groups if sp.issparse(scores) else _dense_groups
    blocks = (build(targets[rows], scores[rows]) for rows in row_blocks(scores))
    columns = zip(*([statistic(groups) for statistic in statistics] for groups in blocks), strict=True)
    return [np.concatenate(column) for column in columns]


def transposed(targets: LabelMatrix, scores: Scores) -> tuple[LabelMatrix, Scores]:
    """Turn labels into lines."""
    observed = None if targets.observed is None else targets.observed.T.tocsr()
    turned = scores.T.tocsr() if sp.issparse(scores) else scores.T
    return LabelMatrix(targets.positives.T.tocsr(), observed), turned


def _dense_groups(targets: LabelMatrix, scores: npt.NDArray[Any]) -> ScoreGroups:
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    # what is unobserved has sign 0 and adds to no count, wherever it is sorted to
    signs = np.take_along_axis(targets.to_signs(), order, axis=1).ravel()
    opens = np.ones(ordered.shape, bool)
    opens[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return _grouped(opens.ravel(), np.cumsum(opens.sum(axis=1)), signs > 0, signs < 0)


def _sparse_groups(targets: LabelMatrix, scores: sp.csr_array) -> ScoreGroups:
    """Group the stored scores; what is not stored is one group at the bottom of its line."""
    n_lines = len(targets)
    lines = stored_rows(scores)
    signs = signs_at(targets, lines, scores.indices)
    positive_totals = np.diff(targets.positives.indptr)
    negative_totals = row_observed_counts(targets) - positive_totals
    positives = _below_stored(signs > 0, lines, positive_totals)
    negatives = _below_stored(signs < 0, lines, negative_totals)
    lines = np.concatenate([np.arange(n_lines), lines])
    values = np.concatenate([np.full(n_lines, -np.inf), scores.data])
    order = np.lexsort((values, lines))
    lines, values = lines[order], values[order]
    opens = np.ones(len(lines), bool)
    opens[1:] = (lines[1:] != lines[:-1]) | (values[1:] != values[:-1])
    line_ends = np.cumsum(np.bincount(lines[opens], minlength=n_lines))
    return _grouped(opens, line_ends, positives[order], negatives[order])


def _below_stored(kind: npt.NDArray[np.bool_], lines: Counts, totals: npt.NDArray[Any]) -> Counts:
    """Put, before the stored entries, what each line has left at entries not stored."""
    left = totals - np.bincount(lines[kind], minlength=len(totals))
    return np.concatenate([left, kind]).astype(np.int64)


def _grouped(
    opens: npt.NDArray[np.bool_], line_ends: Counts, positives: npt.NDArray[Any], negatives: npt.NDArray[Any]
) -> ScoreGroups:
    starts = np.flatnonzero(opens)
    return ScoreGroups(
        line_starts=np.concatenate([[0], line_ends[:-1]]).astype(np.int64),
        positives=np.add.reduceat(positives, starts, dtype=np.int64),
        negatives=np.add.reduceat(negatives, starts, dtype=np.int64),
    )
