"""Buckets of an elimination order, with maps from their states to those of cliques and messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelweave._loops.map.arrays import Buckets
from labelweave.labels.clique_graph import CliqueGraph

__all__ = ["BucketBuilder"]


class BucketBuilder:
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
        """Give each clique to the bucket of its label that is eliminated first."""
        owned: list[list[int]] = [[] for _ in position]
        for label in position:
            for clique in self._cliques_of[label]:
                owned[min(position[other] for other in self.graph.cliques[clique])].append(clique)
        return owned

    def _append(self, label: int, separator: list[int], cliques: list[int], children: list[int]) -> None:
        """Append a bucket with its cliques and the messages of earlier buckets."""
        start, factors = len(self.separators), len(self.factors)
        end = factors + len(cliques) + len(children)
        self.rows.append([label, len(separator), self._beliefs, self._messages, factors, end, start, -1])
        self.separators += separator
        self._beliefs += 2 << len(separator)
        self._messages += 1 << len(separator)
        scope = [label, *separator]
        for clique in cliques:
            start = int(self.graph.table_starts[clique])
            self._add_factor(scope, self.graph.cliques[clique], start, is_message=False)
        for child in children:
            self._add_message(scope, child)

    def _add_message(self, scope: list[int], child: int) -> None:
        _, width, _, message, _, _, start, _ = self.rows[child]
        self.rows[child][7] = len(self.factors)
        self._add_factor(scope, self.separators[start : start + width], message, is_message=True)

    def _add_factor(self, scope: list[int], members: Sequence[int], source: int, is_message: bool) -> None:
        """Map each state of a bucket to that of some of its labels."""
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
            rows=_rows(self.rows, 8),
            separators=np.array(self.separators, np.int64),
            factors=_rows(self.factors, 4),
            maps=np.concatenate([*self.maps, np.zeros(0, np.uint32)]),
        )


def _rows(values: list[list[int]], width: int) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64).reshape(-1, width)
