"""What a fit of a structured model takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from labelweave.array_types import Array, PerRow
from labelweave.arrays import Workers
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import PassRecord
from labelweave.solvers.clique_generation import GraphRecord

__all__ = ["FittedGraph", "GraphData", "GraphSettings"]


class GraphData(NamedTuple):
    """The rows to fit.

    features (n, d): features, with the constant one.
    Shapes: labels (n, L).
    """

    features: FeatureMatrix
    labels: LabelMatrix
    weights: PerRow

    def rows(self, which: Array) -> GraphData:
        """Keep some rows."""
        return GraphData(self.features.rows(which), self.labels[which], self.weights[which])


@dataclass(frozen=True)
class GraphSettings:
    """What a fit depends on beside the data.

    costs (2, L): costs of a false positive and of a false negative label.
    inference: options of MAP inference: ``method``, ``exact_width`` and ``max_nodes``.
    capacity: labelings kept for a row and component.
    solver: the inner solver, "frank_wolfe" or "proximal".
    tol: the relative duality gap to reach, or the relative change of the objective over five proximal passes.
    max_iter: the largest number of passes in one solve.
    seed: fixes the order of rows.
    """

    regularization: float
    costs: Array
    inference: dict[str, Any]
    capacity: int
    solver: str
    tol: float
    max_iter: int
    seed: int
    workers: Workers


@dataclass(frozen=True)
class FittedGraph:
    """The end of a fit.

    weights (d, L + states): the weights of labels, then of the states of cliques.
    status: why the last solve stopped.
    trace: every check of the duality gap.
    rounds: every round of a learned graph.
    reason: why the graph stopped growing.
    """

    graph: CliqueGraph
    weights: Array
    status: Status
    trace: list[PassRecord]
    rounds: list[GraphRecord]
    reason: str
