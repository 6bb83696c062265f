"""From a clique graph to the arrays that the compiled loops of MAP inference read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave._loops.map.arrays import CliqueArrays, Components, Limits, MapPlan
from labelweave.inference.map.buckets import BucketBuilder
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.clique_graph.elimination_order import elimination_order

__all__ = ["ComponentOrder", "compile_plan", "component_orders"]


# Table entries of an elimination for each label and each of its cliques, above which it pays to look for dead
# ends first (measured).
_LITTLE_WORK = 100


class ComponentOrder(NamedTuple):
    """A connected component and the order in which to eliminate its labels, if it has one.

    order: each label with the labels that are its neighbors by then.
    """

    labels: tuple[int, ...]
    order: list[tuple[int, list[int]]] | None

    @property
    def width(self) -> int:
        """The largest number of neighbors in the order."""
        return max((len(around) for _, around in self.order or ()), default=0)


def component_orders(graph: CliqueGraph, width: int | None) -> list[ComponentOrder]:
    """Find min-fill orders of all components.

    width: components of larger width get no order; None is no limit.
    """
    neighbors = graph.neighbors()
    found = []
    for labels in graph.components:
        place = {label: number for number, label in enumerate(labels)}
        around = [{place[other] for other in neighbors[label]} for label in labels]
        order = elimination_order(around, width) if len(labels) > 1 else None
        named = order and [(labels[one], [labels[other] for other in others]) for one, others in order]
        found.append(ComponentOrder(labels, named))
    return found


def compile_plan(graph: CliqueGraph, orders: list[ComponentOrder], limits: Limits) -> MapPlan:
    """Lay a graph out for the compiled loops.

    limits: what may be spent where a component has no order.
    """
    buckets = BucketBuilder(graph)
    bucket_starts, directly = [0], []
    joined = [component for component in orders if len(component.labels) > 1]
    for component in joined:
        work, size = buckets.add(component.order or [])
        bucket_starts.append(len(buckets.rows))
        directly.append(0 < work <= _LITTLE_WORK * size)
    components = Components(
        starts=_ends([len(component.labels) for component in joined]),
        labels=_integers([label for component in joined for label in component.labels]),
        bucket_starts=_integers(bucket_starts),
        directly=_integers(directly),
    )
    return MapPlan(_clique_arrays(graph), components, buckets.arrays(), limits)


def _integers(values: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(values, np.int64)


def _ends(sizes: list[int]) -> npt.NDArray[np.int64]:
    return _integers(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))


def _clique_arrays(graph: CliqueGraph) -> CliqueArrays:
    labels = _integers([label for clique in graph.cliques for label in clique])
    cliques = np.repeat(np.arange(graph.n_cliques), [len(clique) for clique in graph.cliques])
    starts = _ends([len(clique) for clique in graph.cliques])
    order = np.argsort(labels, kind="stable")
    return CliqueArrays(
        starts=starts,
        labels=labels,
        table_starts=_integers(graph.table_starts),
        label_starts=_ends(np.bincount(labels, minlength=graph.n_labels).tolist()),
        places=_integers(np.stack([cliques[order], (np.arange(len(labels)) - starts[cliques])[order]])),
    )
