"""From a clique graph to the arrays that the compiled loops of MAP inference read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.foundation.loops.map.arrays import (
    BUCKET,
    BUCKET_FACTOR,
    PLACE,
    Buckets,
    CliqueArrays,
    Components,
    Limits,
    MapPlan,
)
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.clique_graph.graph import elimination_order

# Table entries of an elimination for each label and each of its cliques, above which it pays to look for dead
# ends first (measured).
_LITTLE_WORK = 100
_SECONDS_A_STATE, _SECONDS_A_CLIQUE = 7.5e-8, 6.5e-7  # of an elimination's tables; of a node


class ComponentOrder(NamedTuple):
    """A connected component and the order in which to eliminate its labels, if it has one.

    order: each label with the labels that are its neighbors by then.
    """

    labels: tuple[int, ...]
    order: list[tuple[int, list[int]]] | None

    @property
    def width(self) -> int:
        return max((len(around) for _, around in self.order or ()), default=0)


def component_orders(graph: CliqueGraph, width: int | None) -> list[ComponentOrder]:
    """Find min-fill orders of all components; those wider than ``width`` get none, None is no limit."""
    neighbors = graph.neighbors()
    found = []
    for labels in graph.components:
        place = {label: number for number, label in enumerate(labels)}
        around = [{place[other] for other in neighbors[label]} for label in labels]
        order = elimination_order(around, width) if len(labels) > 1 else None
        named = order and [(labels[one], [labels[other] for other in others]) for one, others in order]
        found.append(ComponentOrder(labels, named))
    return found


def expected_seconds(graph: CliqueGraph, orders: list[ComponentOrder], max_nodes: int) -> float:
    """Estimate how long a row takes: measured on complete graphs of 9 to 60 labels.

    An elimination takes time by its tables.  Branch and bound without an order needs more nodes the more
    labels there are, up to its budget, and at each some sweeps over all cliques.
    """
    homes = {label: number for number, part in enumerate(orders) for label in part.labels}
    cliques = np.bincount([homes[clique[0]] for clique in graph.cliques], minlength=len(orders))
    total = 0.0
    for part, n_cliques in zip(orders, cliques, strict=True):
        if part.order is None:
            total += _SECONDS_A_CLIQUE * n_cliques * min(max_nodes, 2.0 ** (len(part.labels) / 3))
        else:
            total += _SECONDS_A_STATE * sum(2.0 ** (len(around) + 1) for _, around in part.order)
    return total


def compile_plan(graph: CliqueGraph, orders: list[ComponentOrder], limits: Limits) -> MapPlan:
    """Lay a graph out for the compiled loops; ``limits`` are for components without an order."""
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
        places=_records(
            zip(cliques[order], (np.arange(len(labels)) - starts[cliques])[order], strict=True), PLACE
        ),
    )


class BucketBuilder:
    """Collects the buckets of one component after another."""

    def __init__(self, graph: CliqueGraph) -> None:
        self.graph = graph
        self.rows: list[dict[str, int]] = []
        self.separators: list[int] = []
        self.factors: list[tuple[int, ...]] = []
        self.maps: list[npt.NDArray[np.uint32]] = []
        self._map_end = self._beliefs = self._messages = 0
        self._cliques_of: list[list[int]] = [[] for _ in range(graph.n_labels)]
        for clique, labels in enumerate(graph.cliques):
            self._cliques_of[labels[0]].append(clique)

    def add(self, order: list[tuple[int, list[int]]]) -> tuple[int, int]:
        """Append the buckets of a component.

        order: its labels in the order of elimination, each with the labels that are its neighbors by then.
        work: the table entries that elimination reads.
        size: the number of labels and of their places in cliques.
        """
        before, first = self._map_end, len(self.rows)
        position = {label: step for step, (label, _) in enumerate(order)}
        owned = self._owned(position)
        waiting: list[list[int]] = [[] for _ in order]
        for step, (label, around) in enumerate(order):
            separator = sorted(around, key=position.__getitem__)
            self._append(label, separator, owned[step], waiting[step])
            if separator:
                waiting[position[separator[0]]].append(first + step)
        size = len(order) + sum(len(self.graph.cliques[clique]) for some in owned for clique in some)
        return self._map_end - before, size

    def _owned(self, position: dict[int, int]) -> list[list[int]]:
        owned: list[list[int]] = [[] for _ in position]
        for label in position:
            for clique in self._cliques_of[label]:
                owned[min(position[other] for other in self.graph.cliques[clique])].append(clique)
        return owned

    def _append(self, label: int, separator: list[int], cliques: list[int], children: list[int]) -> None:
        start, factors = len(self.separators), len(self.factors)
        end = factors + len(cliques) + len(children)
        values = label, len(separator), self._beliefs, self._messages, factors, end, start, -1
        self.rows.append(dict(zip(BUCKET.names or (), values, strict=True)))
        self.separators += separator
        self._beliefs += 2 << len(separator)
        self._messages += 1 << len(separator)
        scope = [label, *separator]
        for clique in cliques:
            start = int(self.graph.table_starts[clique])
            self._add_factor(scope, self.graph.cliques[clique], start, is_message=False)
        for child in children:
            row = self.rows[child]
            row["parent_factor"] = len(self.factors)
            members = self.separators[row["separator"] :][: row["width"]]
            self._add_factor(scope, members, row["message"], is_message=True)

    def _add_factor(self, scope: list[int], members: Sequence[int], source: int, is_message: bool) -> None:
        """Map each state of a bucket to that of some of its labels."""
        self.factors.append((source, int(is_message), self._map_end, len(self.rows) - 1))
        states = np.arange(1 << len(scope), dtype=np.uint32)
        index = np.zeros_like(states)
        for bit, member in enumerate(members):
            index |= ((states >> np.uint32(scope.index(member))) & np.uint32(1)) << np.uint32(bit)
        self.maps.append(index)
        self._map_end += len(index)

    def arrays(self) -> Buckets:
        return Buckets(
            rows=_records((row.values() for row in self.rows), BUCKET),
            separators=np.array(self.separators, np.int64),
            factors=_records(self.factors, BUCKET_FACTOR),
            maps=np.concatenate([*self.maps, np.zeros(0, np.uint32)]),
        )


def _records(values: Iterable[Iterable[int]], kind: np.dtype[np.void]) -> npt.NDArray[np.void]:
    return np.array([tuple(value) for value in values], kind)
