"""Label sets and scores of a hierarchy for the metrics: with all ancestors, one column per node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, Floats
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.metrics._inputs import read_predictions, read_scores, read_targets, read_weights, row_blocks


@dataclass(frozen=True)
class NodeSets:
    """True and predicted sets (n, nodes) with all ancestors, one column per node of the graph."""

    graph: Taxonomy
    targets: LabelMatrix
    predicted: sp.csr_array

    @classmethod
    def read(cls, Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> Self:
        labels = read_targets(Y_true, Y_pred)
        predicted = LabelMatrix(read_predictions(Y_pred, labels), None, labels.names)
        targets, graph = all_nodes(labels, taxonomy)
        return cls(graph, targets, all_nodes(predicted, taxonomy)[0].positives)

    def score(self, metric: Callable[..., Any], leave_out: Sequence[str], settings: dict[str, Any]) -> float:
        kept = _kept(self.graph, leave_out)
        return float(metric(self.targets.select_labels(kept), self.predicted[:, kept], **settings))


@dataclass(frozen=True)
class NodeScores:
    """True sets and hierarchy-consistent scores, one column per node, of rows with a true class."""

    graph: Taxonomy
    targets: LabelMatrix
    scores: Floats
    weights: Floats

    @classmethod
    def read(
        cls, Y_true: Any, scores: Any, taxonomy: Taxonomy, sample_weight: Any, *, all_rows: bool = False
    ) -> Self:
        labels = read_targets(Y_true)
        table, weights = read_scores(scores, labels), read_weights(sample_weight, labels)
        targets, graph = all_nodes(labels, taxonomy)
        given = _written_out(table) if sp.issparse(table) else table
        lines = np.full((len(graph), len(labels)), -np.inf)
        lines[graph._numbers(labels.names)] = given.T
        for up, k in graph._edges[np.argsort(-graph._edges[:, 1], kind="stable")].tolist():
            np.maximum(lines[up], lines[k], out=lines[up])
        rows = np.arange(len(labels)) if all_rows else np.flatnonzero(np.diff(targets.positives.indptr))
        return cls(graph, targets[rows], np.ascontiguousarray(lines.T[rows]), weights[rows])

    def without(self, leave_out: Sequence[str]) -> Self:
        """Remove nodes, and rows that have no class after that."""
        kept = _kept(self.graph, leave_out)
        targets = self.targets.select_labels(kept)
        rows = np.flatnonzero(np.diff(targets.positives.indptr))
        return type(self)(self.graph, targets[rows], self.scores[np.ix_(rows, kept)], self.weights[rows])

    def by_threshold(self, thresholds: Floats, values: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Sum class values, 1 by default: true predicted and predicted (n, thresholds), and true (n,)."""
        n, width = len(self.targets), len(thresholds) + 1
        values = np.ones(self.scores.shape[1]) if values is None else values
        sums = np.zeros((2, n, width))
        positive = np.zeros(n)
        for rows in row_blocks(self.scores):
            signs = self.targets[rows].to_signs()
            reached = np.searchsorted(thresholds, self.scores[rows], side="right")
            places = reached + width * np.arange(len(signs))[:, None]
            for found, seen in zip(sums, (signs > 0, signs != 0), strict=True):
                counts = np.bincount(places.ravel(), (seen * values).ravel(), len(signs) * width)
                found[rows] = counts.reshape(-1, width)
            positive[rows] = (signs > 0) @ values
        reached_sums = sums[:, :, ::-1].cumsum(axis=2)[:, :, ::-1][:, :, 1:]
        return reached_sums[0], reached_sums[1], positive


def _written_out(table: sp.csr_array) -> Floats:
    """Return sparse scores as a dense array, -inf where none is stored."""
    dense = np.full(table.shape, -np.inf)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    dense[rows, table.indices] = table.data
    return dense


def all_nodes(labels: LabelMatrix, taxonomy: Taxonomy) -> tuple[LabelMatrix, Taxonomy]:
    """Add a column for every class and ancestor to completed labels; return them and the columns' graph.

    An added ancestor is negative where all columns below it are, positive where one is.
    """
    names = taxonomy._names_of(labels)
    graph = taxonomy.restricted(names)
    numbers = graph._numbers(names, "label")
    if len(graph) == len(numbers):
        place = np.argsort(numbers)
        return graph.with_ancestors(labels.select_labels(place)), graph

    def spread(entries: Any) -> Any:
        found = sp.coo_array(entries)
        shape = (len(labels), len(graph))
        return sp.csr_array((found.data, (found.row, numbers[found.col])), shape=shape)

    if labels.observed is None:
        return graph.with_ancestors(LabelMatrix(spread(labels.positives), None, graph.nodes)), graph
    partly = LabelMatrix(spread(labels.positives), spread(labels.observed), graph.nodes)
    return _negative_above(graph.with_ancestors(partly), graph, numbers), graph


def _negative_above(labels: LabelMatrix, graph: Taxonomy, given: Array) -> LabelMatrix:
    """Set added classes, which had no column, to negative where all columns below them are."""
    is_added = np.ones(len(graph), bool)
    is_added[given] = False
    below = sp.csr_array(graph.at_or_above(graph.nodes), dtype=np.int32)[given]
    seen = labels.observed_pattern()
    lacking = (abs(seen) - labels.positives).astype(np.int32)[:, given]
    found = sp.csr_array(lacking @ below)
    lacks_all = found.data == np.asarray(below.sum(axis=0))[found.indices]
    found.data = (lacks_all & is_added[found.indices]).astype(np.int32)
    return LabelMatrix(labels.positives, abs(seen) + found, labels.names)


def _kept(graph: Taxonomy, leave_out: Sequence[str]) -> Array:
    omitted = {str(name) for name in ([leave_out] if isinstance(leave_out, str) else leave_out)}
    kept = np.flatnonzero([name not in omitted for name in graph.nodes])
    if not len(kept):
        raise ValueError("leave_out has all classes of the data and their ancestors; pass fewer.")
    return kept
