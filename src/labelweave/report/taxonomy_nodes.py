"""How well a model does at each node of a taxonomy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelweave.labels import Taxonomy
from labelweave.report.label_numbers import LabelNumbers
from labelweave.report.measured import Measured

__all__ = ["NodeNumbers", "node_numbers"]


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
    """Count at the nodes.

    measured: truth and prediction of rows.
    """
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
