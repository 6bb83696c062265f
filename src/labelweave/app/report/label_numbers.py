"""Labels in a report: the metrics of each label and hierarchy node, and the correlations of labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelweave.app.display.label_covariance_display import beyond_common_share, is_mostly_common
from labelweave.app.facts import FactorGeometry, Section, covariance_of, model_facts, prior_covariances
from labelweave.app.report.measured import Measured
from labelweave.app.report.reported_rows import Outcomes
from labelweave.decisions.layers import innermost
from labelweave.estimators import LabelGraphClassifier
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import ratios
from labelweave.labels import LabelCovariance, Taxonomy
from labelweave.metrics import expected_calibration_error
from labelweave.metrics.label_sets import label_counts
from labelweave.metrics.probabilities import CALIBRATION_FROM
from labelweave.metrics.rankings import area_under_curve, per_line, transposed

_MOST_LABELS = 2000  # whose pairs are all compared
_FEW_LABELS = 12  # whose correlations are shown without centering
_MOST_TIES = 12  # of each sign
_MOST_EDGES = 40
_MOST_NEIGHBORS = 5
_WEAKEST = 0.005
_DECIMALS = 9  # rounding must not decide between equal pairs


def count_words(count: float) -> str:
    """Return a count as text, with a decimal if it is a sum of probabilities."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


@dataclass(frozen=True)
class Counts:
    """Counts of true labels, predicted labels, and both, and their ratios."""

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
    """Counts of rows and ratios, one per label; unobserved entries are not counted.

    observed: rows where the label is observed.
    auc: the area under the ROC curve of its scores; NaN if only scores of the best labels are
        available.
    calibration: the calibration error of its probabilities above 0.05, NaN if there are none; None without
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
    """Return labels with rows and an F1 score below 1, low scores first, then more frequent labels."""
    order = np.lexsort((-numbers.positive, numbers.f1))
    weak = order[(numbers.positive[order] > 0) & (numbers.f1[order] < 1)]
    return [int(label) for label in weak[:count]]


@dataclass(frozen=True)
class NodeNumbers(Counts):
    """Counts at a node: of rows whose class is the node or below it, or of entries of all labels there.

    is_leaf: whether it has no children.
    """

    name: str
    depth: int
    is_leaf: bool


def node_numbers(
    taxonomy: Taxonomy, measured: Measured, numbers: LabelNumbers, is_closed: bool = False
) -> list[NodeNumbers]:
    """Return the counts of all nodes.

    is_closed: whether labels include their ancestors, so that a node's rows are those of its label.
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


class Tie(NamedTuple):
    """Two labels, and their correlation or cosine."""

    first: str
    second: str
    value: float


class LabelStructure:
    """The label structure of a model, also inside wrappers."""

    def __init__(self, classifier: Any) -> None:
        self.inner, facts = innermost(classifier), model_facts(classifier)
        self.graph = self.inner.label_graph_ if isinstance(self.inner, LabelGraphClassifier) else None
        self.edges: list[Section] = [] if facts.graph is None else facts.graph.cliques[:_MOST_EDGES]
        self.geometry = None if facts.factors is None else FactorGeometry(self.inner)

    @cached_property
    def names(self) -> list[str]:  # other libraries' classifiers have none
        return [str(name) for name in self.inner.label_names_]

    @cached_property
    def covariance(self) -> LabelCovariance | None:
        """The prior covariance of the labels; None if they are independent, too many, or there is none."""
        if all(term.is_diagonal for term in prior_covariances(self.inner)):
            return None
        try:
            found = covariance_of(self.inner)
        except ValueError:
            return None
        return found if found.n_labels == len(self.names) else None  # two classes are one label

    @cached_property
    def _correlations(self) -> tuple[Array | None, bool]:
        if self.covariance is None or self.covariance.n_labels > _MOST_LABELS:
            return None, False
        found = self.covariance.correlations()
        is_centered = len(found) > _FEW_LABELS and is_mostly_common(found)
        return np.round(beyond_common_share(found) if is_centered else found, _DECIMALS), is_centered

    @property
    def correlations(self) -> Array | None:
        """The correlations of the labels, if they exist and are not too many."""
        return self._correlations[0]

    @property
    def is_centered(self) -> bool:
        """Whether the common factor of all labels is removed from the correlations, to show the rest."""
        return self._correlations[1]

    def ties(self) -> list[Tie]:
        """Return the strongest correlations of each sign, in descending order."""
        if self.correlations is None:
            return []
        rows, columns = np.triu_indices(len(self.correlations), 1)
        values = self.correlations[rows, columns]
        order = np.argsort(-values, kind="stable")
        high = [k for k in order[:_MOST_TIES] if values[k] > _WEAKEST]
        low = [k for k in order[::-1][:_MOST_TIES][::-1] if values[k] < -_WEAKEST]
        return [Tie(self.names[rows[k]], self.names[columns[k]], float(values[k])) for k in [*high, *low]]

    def neighbors(self, label: int) -> list[Tie]:
        """Return at most five labels whose weights in a low-rank model have the highest cosines."""
        if self.geometry is None or len(self.geometry.factors) != len(self.names):
            return []
        found = self.geometry.similar(label, _MOST_NEIGHBORS)
        return [Tie(self.names[label], name, cosine) for name, cosine in found if cosine > 0]
