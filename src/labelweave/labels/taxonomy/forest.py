"""Names hung in trees: what stands above a name, and what below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from labelweave.labels.taxonomy.edges import ordered_forest

__all__ = ["Forest", "Names"]

Names = Iterable[str] | npt.NDArray[Any]
# not Sequence: a text is a sequence of texts, and one name
Several = list[str] | tuple[str, ...] | npt.NDArray[Any]


class Forest:
    """Trees over names, and questions about one name or several.

    pairs: one (parent, child) pair an edge.
    root: the node above all others, if there must be one.
    nodes: all names, every parent before its children.
    parent: the parent of each node that has one.
    """

    def __init__(self, pairs: Iterable[Any], nodes: Iterable[Any] = (), root: Any | None = None) -> None:
        self.nodes, self.parent = ordered_forest(pairs, nodes, root)
        self._number = {name: k for k, name in enumerate(self.nodes)}
        self._above = np.array(
            [self._number.get(self.parent.get(name, ""), -1) for name in self.nodes], np.int64
        )
        self._depths = np.zeros(len(self.nodes), np.int64)
        # the nodes below node k are k + 1, ..., end[k] - 1, since the order is depth first
        self._ends = np.arange(1, len(self.nodes) + 1)
        self._measure()

    def _measure(self) -> None:
        for k, above in enumerate(self._above.tolist()):
            self._depths[k] = 0 if above < 0 else self._depths[above] + 1
        for k in range(len(self.nodes) - 1, -1, -1):
            if self._above[k] >= 0:
                self._ends[self._above[k]] = max(self._ends[self._above[k]], self._ends[k])

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return str(name) in self._number

    @property
    def roots(self) -> list[str]:
        """The nodes without a parent."""
        return [name for name in self.nodes if name not in self.parent]

    @property
    def leaves(self) -> list[str]:
        """The nodes without children, in the order of ``nodes``."""
        return [self.nodes[k] for k in np.flatnonzero(self._is_leaf())]

    def pairs(self) -> list[tuple[str, str]]:
        """List the edges.

        Returns
        -------
        list of (str, str)
            The (parent, child) pairs.
        """
        return [(above, below) for below, above in self.parent.items()]

    def path(self, name: str) -> list[str]:
        """List a node and its ancestors, from the root down.

        Parameters
        ----------
        name : str
            A node.

        Returns
        -------
        list of str
            The path, ending with the node itself.
        """
        above = [self.nodes[self._numbers([name])[0]]]
        while above[-1] in self.parent:
            above.append(self.parent[above[-1]])
        return above[::-1]

    def children(self, name: str) -> list[str]:
        """List the nodes right below a node.

        Parameters
        ----------
        name : str
            A node.

        Returns
        -------
        list of str
            Its children, none for a leaf.
        """
        number = int(self._numbers([name])[0])
        below = slice(number, self._ends[number])
        return [self.nodes[number + k] for k in np.flatnonzero(self._above[below] == number)]

    def leaves_below(self, name: str) -> list[str]:
        """List the leaves of the subtree of a node.

        Parameters
        ----------
        name : str
            A node.

        Returns
        -------
        list of str
            The leaves; a leaf gives itself.
        """
        number = int(self._numbers([name])[0])
        below = slice(number, self._ends[number])
        return [self.nodes[number + k] for k in np.flatnonzero(self._is_leaf()[below])]

    @overload
    def depth(self, names: str) -> int: ...
    @overload
    def depth(self, names: Several) -> npt.NDArray[np.int64]: ...
    def depth(self, names: Any) -> Any:
        """Count the steps from the root down to nodes.

        Parameters
        ----------
        names : str or sequence of str
            One node, or several.

        Returns
        -------
        int or ndarray of int64, shape (k,)
            The depths; 0 for a root.
        """
        depths = self._depths[self._numbers(names)]
        return int(depths[0]) if _is_one(names) else depths

    @overload
    def is_leaf(self, names: str) -> bool: ...
    @overload
    def is_leaf(self, names: Several) -> npt.NDArray[np.bool_]: ...
    def is_leaf(self, names: Any) -> Any:
        """Say whether nodes have no children.

        Parameters
        ----------
        names : str or sequence of str
            One node, or several.

        Returns
        -------
        bool or ndarray of bool, shape (k,)
            True for leaves.
        """
        leaf = self._is_leaf()[self._numbers(names)]
        return bool(leaf[0]) if _is_one(names) else leaf

    @overload
    def top(self, names: str) -> str: ...
    @overload
    def top(self, names: Several) -> list[str]: ...
    def top(self, names: Any) -> Any:
        """Find the roots above nodes.

        Parameters
        ----------
        names : str or sequence of str
            One node, or several.

        Returns
        -------
        str or list of str
            The root of each node; a root gives itself.
        """
        tops = [self.nodes[k] for k in self._ancestors_at(0)[self._numbers(names)]]
        return tops[0] if _is_one(names) else tops

    def parents_of(self, names: Names) -> list[str | None]:
        """Name the parents of nodes.

        Parameters
        ----------
        names : sequence of str
            Nodes.

        Returns
        -------
        list of str or None
            The parent of each node, None for a root.
        """
        return [self.parent.get(self.nodes[k]) for k in self._numbers(names)]

    def common_ancestor(self, first: str, second: str) -> str | None:
        """Find the deepest node that is above two nodes or one of them.

        Parameters
        ----------
        first, second : str
            Nodes.

        Returns
        -------
        str or None
            The lowest common ancestor; None if the nodes are in different trees.
        """
        above, below = self._numbers([first, second]).tolist()
        while above >= 0 and not above <= below < self._ends[above]:
            above = int(self._above[above])
        return self.nodes[above] if above >= 0 else None

    def _numbers(self, names: Any, what: str = "name") -> npt.NDArray[np.int64]:
        """Find the places of names in ``nodes``."""
        asked = [str(name) for name in ([names] if _is_one(names) else names)]
        absent = [name for name in asked if name not in self._number]
        if absent:
            raise ValueError(
                f"The {what} {absent[0]!r} is not in the taxonomy ({len(absent)} of {len(asked)} are not); "
                f"every {what} must be one of its nodes."
            )
        return np.array([self._number[name] for name in asked], np.int64)

    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._ends == np.arange(1, len(self.nodes) + 1))

    def _ancestors_at(self, depth: int) -> npt.NDArray[np.int64]:
        """Give each node's ancestor at a depth; the node itself where it is less deep."""
        heads = np.arange(len(self.nodes))
        for k in range(len(self.nodes)):
            if self._depths[k] > depth:
                heads[k] = heads[self._above[k]]
        return heads


def _is_one(names: Any) -> bool:
    return isinstance(names, str) or not isinstance(names, Iterable)
