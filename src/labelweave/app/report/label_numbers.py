"""How well a model does on each label, and at each node of a taxonomy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelweave.app.report.measured import Measured
from labelweave.app.report.reported_rows import Outcomes
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import ratios
from labelweave.labels import Taxonomy
from labelweave.metrics import expected_calibration_error
from labelweave.metrics.label_sets import label_counts
from labelweave.metrics.probabilities import CALIBRATION_FROM
from labelweave.metrics.rankings import area_under_curve, per_line, transposed


def count_words(count: float) -> str:
    """Write a count, with a decimal where probabilities add up to it."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


@dataclass(frozen=True)
class Counts:
    """What is true, predicted, and both, and shares of these."""

    positive: Any
    predicted: Any
    hits: Any

    @property
    def missed(self) -> Any:
        return self.positive - self.hits

    @property
    def wrong(self) -> Any:
        return self.predicted - self.hits

    @cached_property
    def precision(self) -> Array:
        return ratios(self.hits, self.predicted, np.nan)

    @cached_property
    def recall(self) -> Array:
        return ratios(self.hits, self.positive, np.nan)

    @cached_property
    def f1(self) -> Array:
        return ratios(2 * self.hits, self.predicted + self.positive, np.nan)


@dataclass(frozen=True)
class LabelNumbers(Counts):
    """Counts of rows and shares, one a label; unobserved entries are in none.

    observed: rows where the label is observed.
    auc: the share of pairs of a row with and one without the label that its score puts in order; NaN where
        scores of the best labels alone are known.
    calibration: the calibration error of its probabilities above 0.05, NaN where none is; None without
        probabilities.
    """

    observed: PerLabel
    auc: PerLabel
    calibration: PerLabel | None = None

    @property
    def frequency(self) -> Array:
        return ratios(self.positive, self.observed, np.nan)


def label_numbers(outcomes: Outcomes, probabilities: RowsByLabels | None = None) -> LabelNumbers:
    truth = outcomes.truth
    hits, predicted, positive, observed = label_counts(truth, outcomes.predicted, np.ones(len(truth)))
    areas = np.full(truth.n_labels, np.nan)
    if not outcomes.is_searched:
        areas = per_line(*transposed(truth, outcomes.scores), area_under_curve)[0]
    calibration = None
    if probabilities is not None:
        how: Any = {"average": None, "least": CALIBRATION_FROM}
        calibration = np.asarray(expected_calibration_error(truth, probabilities, **how))
    return LabelNumbers(positive, predicted, hits, observed, areas, calibration)


def weakest_labels(numbers: LabelNumbers, count: int) -> list[int]:
    """Find labels with rows and an F1 score below 1, low scores first, of equal ones the more frequent."""
    order = np.lexsort((-numbers.positive, numbers.f1))
    weak = order[(numbers.positive[order] > 0) & (numbers.f1[order] < 1)]
    return [int(label) for label in weak[:count]]


@dataclass(frozen=True)
class NodeNumbers(Counts):
    """Counts at a node: of rows whose class is there or below it, or of entries of all labels there.

    is_leaf: whether it has no children.
    """

    name: str
    depth: int
    is_leaf: bool


def node_numbers(
    taxonomy: Taxonomy, measured: Measured, numbers: LabelNumbers, is_closed: bool = False
) -> list[NodeNumbers]:
    """Count at the nodes.

    is_closed: whether labels have all that is above them, so that a node's rows are those of its label.
    """
    if measured.true_nodes is None or measured.predicted_nodes is None:
        names, parts = measured.outcomes.names, (numbers.positive, numbers.predicted, numbers.hits)
        counts = [part @ taxonomy.membership(names) for part in parts]
        if is_closed:
            place = {node: k for k, node in enumerate(taxonomy.nodes)}
            for count, own in zip(counts, parts, strict=True):
                count[[place[str(name)] for name in names]] = own
    else:
        true = taxonomy.membership(measured.true_nodes)
        predicted = taxonomy.membership(measured.predicted_nodes)
        counts = [part.sum(axis=0) for part in (true, predicted, true.multiply(predicted))]
    columns = [np.asarray(part, np.float64).ravel().tolist() for part in counts]
    depths, leaves = taxonomy.depth(taxonomy.nodes), taxonomy.is_leaf(taxonomy.nodes)
    lines = zip(*columns, taxonomy.nodes, depths.tolist(), leaves.tolist(), strict=True)
    return [NodeNumbers(*line) for line in lines]
