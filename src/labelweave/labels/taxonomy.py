"""A tree over the labels.

Every node is a label or a group of labels.  The tree gives a covariance between
labels (Seeger 2008, section 3; Cai and Hofmann's hierarchical support vector
machine): two labels share the variances of the nodes above both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.model_files import storable

__all__ = ["Taxonomy"]


@storable("Taxonomy")
class Taxonomy:
    """A forest given by pairs of parent and child names.

    Parameters
    ----------
    pairs : iterable of (str, str)
        One (parent, child) pair an edge.  A node without a parent is a root.

    Attributes
    ----------
    nodes : list of str
        All names, every parent before its children.
    parent : dict of str to str
        The parent of each node that has one.

    Raises
    ------
    ValueError
        If a node has two parents, or the pairs contain a cycle; the names are given.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.parent: dict[str, str] = {}
        for above, below in ((str(a), str(b)) for a, b in pairs):
            if self.parent.setdefault(below, above) != above:
                raise ValueError(
                    f"The node {below!r} has two parents, {self.parent[below]!r} and {above!r}; a taxonomy "
                    "is a tree, so give each node one parent."
                )
        try:
            self.nodes = list(TopologicalSorter({b: [a] for b, a in self.parent.items()}).static_order())
        except CycleError as error:
            raise ValueError(f"The taxonomy has a cycle: {' -> '.join(error.args[1])}.") from None

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        roots = len(self.nodes) - len(self.parent)
        return f"Taxonomy({len(self.nodes)} nodes, {roots} roots)"

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            The pairs of parent and child.
        """
        return {"pairs": [list(pair) for pair in self.pairs()]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Taxonomy:
        """Make the taxonomy again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        Taxonomy
            The taxonomy.
        """
        return cls(state["pairs"])

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
        above = [name]
        while above[-1] in self.parent:
            above.append(self.parent[above[-1]])
        return above[::-1]

    def membership(self, label_names: Sequence[str] | npt.NDArray[np.str_]) -> sp.csr_array:
        """Say which nodes each label lies under: the matrix Phi of Seeger's section 3.

        Parameters
        ----------
        label_names : sequence of str
            The labels, each the name of a node.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (L, nodes)
            Ones at a label's own node and at its ancestors.

        Raises
        ------
        ValueError
            If a label is no node of the tree.
        """
        number = {name: k for k, name in enumerate(self.nodes)}
        absent = [str(name) for name in label_names if str(name) not in number]
        if absent:
            raise ValueError(
                f"The label {absent[0]!r} is not in the taxonomy ({len(absent)} of {len(label_names)} are "
                "not); every label must be one of its nodes."
            )
        columns = [[number[node] for node in self.path(str(name))] for name in label_names]
        indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.int64)
        indices = np.asarray([node for path in columns for node in path], np.int64)
        shape = (len(columns), len(self.nodes))
        return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
