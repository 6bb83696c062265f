"""How well a model does on each label, and at each node of a taxonomy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from labelweave.array_types import Array, PerLabel
from labelweave.arrays import ratios
from labelweave.labels import Taxonomy
from labelweave.metrics.rankings import area_under_curve, per_line, transposed
from labelweave.report.measured import Measured
from labelweave.report.reported_rows import Outcomes


@dataclass(frozen=True)
class LabelNumbers:
    """Counts and shares, one a label; unobserved entries are in none.

    observed, positive, predicted, hits: rows where the label is observed, true, predicted, and both.
    auc: the share of pairs of a row with and one without the label that its score puts in order.
    """

    observed: PerLabel
    positive: PerLabel
    predicted: PerLabel
    hits: PerLabel
    auc: PerLabel

    @property
    def missed(self) -> Array:
        """Rows with the label that is not predicted."""
        return self.positive - self.hits

    @property
    def wrong(self) -> Array:
        """Rows without the label that is predicted."""
        return self.predicted - self.hits

    @property
    def frequency(self) -> Array:
        """The share of observed rows that have the label."""
        return ratios(self.positive, self.observed, np.nan)

    @cached_property
    def precision(self) -> Array:
        """The share of rows with the prediction that have the label."""
        return ratios(self.hits, self.predicted, np.nan)

    @cached_property
    def recall(self) -> Array:
        """The share of rows with the label that have the prediction."""
        return ratios(self.hits, self.positive, np.nan)

    @cached_property
    def f1(self) -> Array:
        """The harmonic mean of both."""
        return ratios(2 * self.hits, self.predicted + self.positive, np.nan)


def label_numbers(outcomes: Outcomes) -> LabelNumbers:
    """Count and divide."""
    truth = outcomes.truth
    positive, observed = truth.positive_counts(), truth.observed_counts()
    predicted, hits = (
        np.bincount(m.indices, minlength=truth.n_labels) for m in (outcomes.counted, outcomes.hits)
    )
    areas = per_line(*transposed(truth, outcomes.scores), area_under_curve)[0]
    return LabelNumbers(observed, positive, predicted, hits, areas)


def weakest_labels(numbers: LabelNumbers, count: int) -> list[int]:
    """Find labels with rows and an F1 score below 1, low scores first, of equal ones the more frequent."""
    order = np.lexsort((-numbers.positive, numbers.f1))
    weak = order[(numbers.positive[order] > 0) & (numbers.f1[order] < 1)]
    return [int(label) for label in weak[:count]]


class NodeNumbers(NamedTuple):
    """Counts at a node.

    is_leaf: whether it has no children.
    positive: rows whose class is the node or below it; for labels the true entries of all labels there.
    hits: rows where both are; for labels the entries that are both.
    """

    name: str
    depth: int
    is_leaf: bool
    positive: int
    predicted: int
    hits: int

    @property
    def missed(self) -> int:
        """What belongs here and was predicted elsewhere."""
        return self.positive - self.hits

    @property
    def recall(self) -> float:
        """The share of what belongs here that is predicted here."""
        return self.hits / self.positive if self.positive else float("nan")

    @property
    def precision(self) -> float:
        """The share of what is predicted here that belongs here."""
        return self.hits / self.predicted if self.predicted else float("nan")


def node_numbers(taxonomy: Taxonomy, measured: Measured, numbers: LabelNumbers) -> list[NodeNumbers]:
    """Count at the nodes."""
    if measured.true_nodes is None or measured.predicted_nodes is None:
        under = taxonomy.membership(measured.outcomes.names)
        counts = [part @ under for part in (numbers.positive, numbers.predicted, numbers.hits)]
    else:
        true = taxonomy.membership(measured.true_nodes)
        predicted = taxonomy.membership(measured.predicted_nodes)
        counts = [part.sum(axis=0) for part in (true, predicted, true.multiply(predicted))]
    columns = [np.asarray(part).ravel().astype(np.int64).tolist() for part in counts]
    depths, leaves = taxonomy.depth(taxonomy.nodes), taxonomy.is_leaf(taxonomy.nodes)
    lines = zip(taxonomy.nodes, depths.tolist(), leaves.tolist(), *columns, strict=True)
    return [NodeNumbers(*line) for line in lines]
