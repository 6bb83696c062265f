"""A tree over the labels.

Every node is a label or a group of labels.  The tree gives a covariance between labels (Seeger 2008, section
3; Cai and Hofmann's hierarchical support vector machine): two labels share the variances of the nodes above
both.  It also gives the loss by which a near miss costs less than a far one (section 6.1), and says what a
target at an inner node means (section 7.4.2).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelweave.labels.taxonomy.constructors import TaxonomyConstructors
from labelweave.labels.taxonomy.forest import Forest, Names
from labelweave.labels.taxonomy.node_matrices import NodeMatrices
from labelweave.model_files import storable
from labelweave.model_files.schema import TEXT, Items, Optional

_LINES = 30


@storable("Taxonomy", {"pairs": Items(Items(TEXT, "2")), "roots": Optional(Items(TEXT, kind=(list, tuple)))})
class Taxonomy(TaxonomyConstructors, NodeMatrices):
    """A tree over label names, or several trees.

    Make one from pairs, or with :meth:`from_nested`, :meth:`from_paths`,
    :meth:`from_networkx` or, from any of these, :meth:`from_any`.
    Leaves may lie at different depths.  Two taxonomies are equal if they have the
    same nodes and edges, in whatever order; printing one draws it.

    Parameters
    ----------
    pairs : iterable of (str, str)
        One (parent, child) pair an edge.  A node without a parent is a root.
        What is no text is written as text.
    nodes : iterable of str, default=()
        Further nodes, such as a root that is itself a leaf.  They may be in
        pairs too: siblings stand in the order of ``nodes``, then of ``pairs``.
    root : str or None, default=None
        The node above all others.  If given, a node that is not below it is
        refused; if not, there may be several trees.

    Attributes
    ----------
    nodes : list of str
        All names, depth first: every parent before its children, and the nodes below a node right after it.
    parent : dict of str to str
        The parent of each node that has one.

    Raises
    ------
    ValueError
        If there are no nodes, a name is empty, a node has several parents or is
        not below ``root``, or the pairs contain a cycle; the names are given.

    See Also
    --------
    LabelCovariance.from_taxonomy : The covariance between labels.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> tree = Taxonomy([("animal", "dog"), ("animal", "cat"), ("dog", "poodle")], nodes=["mineral"])
    >>> tree
    Taxonomy(5 nodes, 2 roots)
    >>> print(tree)
    mineral
    animal
      dog
        poodle
      cat
    >>> tree.leaves
    ['mineral', 'poodle', 'cat']
    >>> tree.common_ancestor("poodle", "cat")
    'animal'
    """

    def to_networkx(self) -> Any:
        """Make a directed graph of networkx.

        Returns
        -------
        networkx.DiGraph
            The nodes in order, with edges from parent to child.

        Raises
        ------
        ImportError
            If networkx is not installed.
        """
        try:
            import networkx
        except ImportError:
            raise ImportError("to_networkx needs networkx; install labelweave[graph].") from None
        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.pairs())
        return graph

    def pruned(self, keep: Names = ()) -> Taxonomy:
        """Leave out nodes with a single child, which then hangs one node higher.

        Such a node tells nothing that its child does not (Seeger 2008, footnote 5).
        A root with a single child gives way to it.

        Parameters
        ----------
        keep : sequence of str, default=()
            Nodes that stay whatever is below them.

        Returns
        -------
        Taxonomy
            The nodes with no child, with several, or kept.

        Examples
        --------
        >>> from labelweave import Taxonomy
        >>> print(Taxonomy.from_paths(["a/b/c", "a/d"]).pruned())
        a
          a/b/c
          a/d
        """
        counts = np.bincount(self._above[self._above >= 0], minlength=len(self))
        stays = counts != 1
        stays[self._numbers(keep)] = True
        return self._part(stays)

    def restricted(self, names: Names) -> Taxonomy:
        """Keep only some nodes and what is above them.

        Parameters
        ----------
        names : sequence of str
            The nodes, mostly leaves.

        Returns
        -------
        Taxonomy
            These nodes and their ancestors, in the order they have here.

        Raises
        ------
        ValueError
            If no node is named, or a name is no node.
        """
        stays = np.zeros(len(self), bool)
        stays[self.membership(names).indices] = True
        return self._part(stays)

    def _part(self, stays: npt.NDArray[np.bool_]) -> Taxonomy:
        """Keep some nodes, each under the lowest kept node above it."""
        above = np.full(len(self), -1)
        pairs = list[tuple[str, str]]()
        for k, up in enumerate(self._above.tolist()):
            if up >= 0:
                above[k] = up if stays[up] else above[up]
            if stays[k] and above[k] >= 0:
                pairs.append((self.nodes[above[k]], self.nodes[k]))
        return Taxonomy(pairs, nodes=[self.nodes[k] for k in np.flatnonzero(stays)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.parent == other.parent and set(self.nodes) == set(other.nodes)

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), frozenset(self.parent.items())))

    def __repr__(self) -> str:
        roots = len(self.nodes) - len(self.parent)
        return f"Taxonomy({len(self.nodes)} nodes, {roots} roots)"

    def __str__(self) -> str:
        return drawn(self)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""
        return {"pairs": [list(pair) for pair in self.pairs()], "roots": self.roots}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make the object again; see :meth:`labelweave.model_files.Storable.from_state`."""
        return cls(state["pairs"], state.get("roots", ()))


def drawn(forest: Forest, most: int = _LINES) -> str:
    """Draw a forest, one node a line, the upper levels first if it is large, counting what is left out."""
    depths = forest.depth(forest.nodes)
    shown = np.zeros(len(depths), bool)
    shown[np.argsort(depths, kind="stable")[:most]] = True
    lines = [("  " * depth + name) for depth, name in zip(depths, forest.nodes, strict=True)]
    left_out = _left_out_below(forest, shown)
    text = [
        line + (f" (+{left_out[name]})" if name in left_out else "")
        for line, name, drawn_one in zip(lines, forest.nodes, shown, strict=True)
        if drawn_one
    ]
    rest = int((~shown).sum())
    return "\n".join([*text, f"... {rest} of {len(shown)} nodes left out"] if rest else text)


def _left_out_below(forest: Forest, shown: np.ndarray) -> dict[str, int]:
    """Count the nodes left out under the lowest shown node above each."""
    carrier, counts = dict[str, str](), dict[str, int]()
    for name, is_shown in zip(forest.nodes, shown.tolist(), strict=True):
        above = forest.parent.get(name)
        carrier[name] = name if is_shown or above is None else carrier[above]
        if not is_shown and above is not None:
            counts[carrier[name]] = counts.get(carrier[name], 0) + 1
    return counts
