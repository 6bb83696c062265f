"""What a fit of a structured model takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

from labelweave.arrays import Workers
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import PassRecord
from labelweave.solvers.clique_generation import GraphRecord

__all__ = ["FittedGraph", "GraphData", "GraphSettings"]

Array = npt.NDArray[Any]


class GraphData(NamedTuple):
    """The rows to fit.

    Parameters
    ----------
    features : FeatureMatrix of shape (n, d)
        Features, with the constant one.
    labels : LabelMatrix of shape (n, L)
        Labels.
    weights : ndarray of shape (n,)
        Row weights.
    """

    features: FeatureMatrix
    labels: LabelMatrix
    weights: Array

    def rows(self, which: Array) -> GraphData:
        """Keep some rows.

        Parameters
        ----------
        which : ndarray of int
            The rows.

        Returns
        -------
        GraphData
            Those rows.
        """
        return GraphData(self.features.rows(which), self.labels[which], self.weights[which])


@dataclass(frozen=True)
class GraphSettings:
    """What a fit depends on beside the data.

    Parameters
    ----------
    regularization : float
        lambda.
    costs : ndarray of shape (2, L)
        Costs of a false positive and of a false negative label.
    inference : dict
        Options of MAP inference: ``method``, ``exact_width`` and ``max_nodes``.
    capacity : int
        Labelings kept for a row and component.
    solver : str
        The inner solver, "frank_wolfe" or "proximal".
    tol : float
        The relative duality gap to reach, or the relative change of the objective over five proximal passes.
    max_iter : int
        The largest number of passes in one solve.
    seed : int
        Fixes the order of rows.
    workers : Workers
        Threads.
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

    Parameters
    ----------
    graph : CliqueGraph
        The graph.
    weights : ndarray of shape (d, L + states)
        The weights of labels, then of the states of cliques.
    status : Status
        Why the last solve stopped.
    trace : list of PassRecord
        Every check of the duality gap.
    rounds : list of GraphRecord
        Every round of a learned graph.
    reason : str
        Why the graph stopped growing.
    """

    graph: CliqueGraph
    weights: Array
    status: Status
    trace: list[PassRecord]
    rounds: list[GraphRecord]
    reason: str
