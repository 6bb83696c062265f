"""Which of the k best-scored observed labels of every row are positive, and at which place.

Ties go to the lower label index.  A score of -inf, like an entry that a sparse
score matrix does not store, offers no label, so its place stays empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import Scores, row_blocks, signs_at, stored_rows

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TopHits:
    """The positives among the top k: row, label and place (0 is the best) of each."""

    rows: Integers
    labels: Integers
    places: Integers

    def first(self, k: int) -> TopHits:
        """Keep the hits at the first k places."""
        kept = self.places < k
        return TopHits(self.rows[kept], self.labels[kept], self.places[kept])

    def row_sums(self, n_rows: int, gains: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
        """Add up the gains of every row's hits, by default one a hit."""
        return np.bincount(self.rows, weights=gains, minlength=n_rows).astype(np.float64)


def top_hits(targets: LabelMatrix, scores: Scores, k: int) -> TopHits:
    """Find the positives among the k best-scored observed labels of every row."""
    find = _top_of_sparse if sp.issparse(scores) else _top_of_dense
    blocks = [_hits(targets[rows], *find(targets[rows], scores[rows], k)) for rows in row_blocks(scores)]
    starts = [rows.start for rows in row_blocks(scores)]
    return TopHits(
        np.concatenate([block.rows + start for block, start in zip(blocks, starts, strict=True)]),
        np.concatenate([block.labels for block in blocks]),
        np.concatenate([block.places for block in blocks]),
    )


def _hits(targets: LabelMatrix, rows: Integers, labels: Integers, places: Integers) -> TopHits:
    positive = signs_at(targets, rows, labels) > 0
    return TopHits(rows[positive], labels[positive], places[positive])


def _top_of_dense(
    targets: LabelMatrix, scores: npt.NDArray[Any], k: int
) -> tuple[Integers, Integers, Integers]:
    if targets.has_missing:
        scores = np.where(targets.to_signs() == 0, -np.inf, scores)
    labels = largest_labels(scores, k)
    offered = np.take_along_axis(scores, labels, axis=1) > -np.inf
    rows, places = np.nonzero(offered)
    return rows, labels[offered], places


def largest_labels(scores: npt.NDArray[Any], k: int) -> Integers:
    """Find the k largest of every row in falling order, ties by rising index."""
    n_labels = scores.shape[1]
    # a partition breaks ties as it likes, so take only the k-th value from it
    threshold = np.partition(scores, n_labels - k, axis=1)[:, [n_labels - k]]
    chosen = scores > threshold
    tied = scores == threshold
    places = k - chosen.sum(axis=1, keepdims=True)
    chosen |= tied & (np.cumsum(tied, axis=1, dtype=np.int32) <= places)
    labels = np.nonzero(chosen)[1].reshape(len(scores), k)
    order = np.argsort(-np.take_along_axis(scores, labels, axis=1), axis=1, kind="stable")
    return np.take_along_axis(labels, order, axis=1)


def _top_of_sparse(targets: LabelMatrix, scores: sp.csr_array, k: int) -> tuple[Integers, Integers, Integers]:
    rows, labels, values = stored_rows(scores), scores.indices.astype(np.int64), scores.data
    if targets.has_missing:
        seen = signs_at(targets, rows, labels) != 0
        rows, labels, values = rows[seen], labels[seen], values[seen]
    order = np.lexsort((labels, -values, rows))
    counts = np.bincount(rows, minlength=len(targets))
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = places < k
    return rows[kept], labels[order][kept], places[kept]
