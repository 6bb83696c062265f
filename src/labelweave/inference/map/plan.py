"""From a clique graph to the arrays that the compiled loops of MAP inference read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave._loops.map.arrays import Buckets, CliqueArrays, Components, Limits, MapPlan
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.clique_graph.elimination_order import elimination_order

__all__ = ["ComponentOrder", "compile_plan", "component_orders"]

Array = npt.NDArray[Any]

_LITTLE_WORK = 3000  # table entries of an elimination; with more, dead ends are looked for first


class ComponentOrder(NamedTuple):
    """A connected component and the order in which to eliminate its labels, if it has one.

    Parameters
    ----------
    labels : tuple of int
        The labels, ascending.
    order : list of (int, list of int), or None
        Each label with the labels that are its neighbors by then.
    """

    labels: tuple[int, ...]
    order: list[tuple[int, list[int]]] | None

    @property
    def width(self) -> int:
        """The largest number of neighbors in the order."""
        return max((len(around) for _, around in self.order or ()), default=0)


def component_orders(graph: CliqueGraph, width: int | None) -> list[ComponentOrder]:
    """Find min-fill orders of all components.

    Parameters
    ----------
    graph : CliqueGraph
        The graph.
    width : int or None
        Components of larger width get no order; None is no limit.

    Returns
    -------
    list of ComponentOrder
        The components.
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

    Parameters
    ----------
    graph : CliqueGraph
        The graph.
    orders : list of ComponentOrder
        Its components.
    limits : Limits
        What may be spent where a component has no order.

    Returns
    -------
    MapPlan
        The arrays.
    """
    builder = _BucketBuilder(graph)
    bucket_starts, directly = [0], []
    for component in orders:
        work = builder.add(component)
        bucket_starts.append(len(builder.rows))
        is_little = component.order is not None and work <= _LITTLE_WORK
        directly.append(int(is_little or len(component.labels) == 1))
    components = Components(
        starts=_ends([len(component.labels) for component in orders]),
        labels=_integers([label for component in orders for label in component.labels]),
        bucket_starts=_integers(bucket_starts),
        directly=_integers(directly),
    )
    return MapPlan(_clique_arrays(graph), components, builder.arrays(), limits)


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


class _BucketBuilder:
    """Collects the buckets of one component after another."""

    def __init__(self, graph: CliqueGraph) -> None:
        self.graph = graph
        self.rows: list[list[int]] = []
        self.separators: list[int] = []
        self.factors: list[list[int]] = []
        self.maps: list[npt.NDArray[np.uint32]] = []
        self._map_end = self._beliefs = self._messages = 0
        self._cliques_of: list[list[int]] = [[] for _ in range(graph.n_labels)]
        for clique, labels in enumerate(graph.cliques):
            self._cliques_of[labels[0]].append(clique)

    def add(self, component: ComponentOrder) -> int:
        """Append the buckets of a component; return the table entries that elimination reads."""
        if component.order is None:
            return 0
        before, first = self._map_end, len(self.rows)
        position = {label: step for step, (label, _) in enumerate(component.order)}
        owned = self._owned(component, position)
        waiting: list[list[int]] = [[] for _ in component.order]
        for step, (label, around) in enumerate(component.order):
            separator = sorted(around, key=position.__getitem__)
            self._open(label, separator)
            scope = [label, *separator]
            for clique in owned[step]:
                start = int(self.graph.table_starts[clique])
                self._add_factor(scope, self.graph.cliques[clique], start, is_message=False)
            for child in waiting[step]:
                self._add_message(scope, child)
            self.rows[-1][5] = len(self.factors)
            if separator:
                waiting[position[separator[0]]].append(first + step)
        return self._map_end - before

    def _owned(self, component: ComponentOrder, position: dict[int, int]) -> list[list[int]]:
        """Give each clique to the bucket of its label that is eliminated first."""
        owned: list[list[int]] = [[] for _ in component.labels]
        for label in component.labels:
            for clique in self._cliques_of[label]:
                owned[min(position[other] for other in self.graph.cliques[clique])].append(clique)
        return owned

    def _open(self, label: int, separator: list[int]) -> None:
        start, factors = len(self.separators), len(self.factors)
        self.rows.append([label, len(separator), self._beliefs, self._messages, factors, factors, start, -1])
        self.separators += separator
        self._beliefs += 2 << len(separator)
        self._messages += 1 << len(separator)

    def _add_message(self, scope: list[int], child: int) -> None:
        _, width, _, message, _, _, start, _ = self.rows[child]
        self.rows[child][7] = len(self.factors)
        self._add_factor(scope, self.separators[start : start + width], message, is_message=True)

    def _add_factor(self, scope: list[int], members: Any, source: int, is_message: bool) -> None:
        self.factors.append([source, int(is_message), self._map_end, len(self.rows) - 1])
        states = np.arange(1 << len(scope), dtype=np.uint32)
        index = np.zeros_like(states)
        for bit, member in enumerate(members):
            index |= ((states >> np.uint32(scope.index(member))) & np.uint32(1)) << np.uint32(bit)
        self.maps.append(index)
        self._map_end += len(index)

    def arrays(self) -> Buckets:
        """Give the buckets collected."""
        return Buckets(
            rows=_integers(self.rows).reshape(-1, 8),
            separators=_integers(self.separators),
            factors=_integers(self.factors).reshape(-1, 4),
            maps=np.concatenate([*self.maps, np.zeros(0, np.uint32)]),
        )
