"""A hierarchy over the labels: a tree, or a directed acyclic graph.

Every node is a label or a group of labels.  The hierarchy defines a covariance between labels (Seeger 2008,
section 3; Cai and Hofmann's hierarchical support vector machine): two labels share the variances of their
common ancestors.  A tree also defines the taxonomic loss, by which a near miss costs less than a far one
(section 6.1), and the meaning of a target at an inner node (section 7.4.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import ParameterError
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.taxonomy.constructors import TaxonomyConstructors
from labelweave.labels.taxonomy.node_graph import Names, NodeGraph
from labelweave.labels.taxonomy.node_matrices import NodeMatrices
from labelweave.model_files import storable
from labelweave.model_files.schema import TEXT, Items, Optional

_LINES = 30
Outside = Literal["raise", "drop", "root"]


_PAIRS, _ROOTS = Items(Items(TEXT, "2")), Optional(Items(TEXT, kind=(list, tuple)))


@storable("Taxonomy", {"pairs": _PAIRS, "roots": _ROOTS, "aliases": Optional(_PAIRS)})
class Taxonomy(TaxonomyConstructors, NodeMatrices):
    """A hierarchy over label names: nodes may have several parents, and there may be several roots.

    Make one from pairs, or with :meth:`from_nested`, :meth:`from_paths`,
    :meth:`from_networkx` or, from any of these, :meth:`from_any`; files are read by
    :func:`labelweave.datasets.read_taxonomy`.
    Leaves may have different depths.  Methods for trees only, where no node has several parents, are
    documented as such, and raise an error for other graphs.  Two taxonomies are equal if they have the same
    nodes and edges, in any order; printing one draws it.

    Parameters
    ----------
    pairs : iterable of (str, str)
        One (parent, child) pair per edge.  A node without a parent is a root. Names of other types are
        converted to text.
    nodes : iterable of str, default=()
        Further nodes, such as a root that is also a leaf.  They may be in ``pairs`` too: siblings are in the
        order of ``nodes``, then of ``pairs``.
    root : str or None, default=None
        The node above all others.  If given, nodes that are not below it raise an error; if not, there may be
        several trees.

    Attributes
    ----------
    nodes : list of str
        All names, every parent before its children; in a tree the nodes below a node directly follow it.

    Raises
    ------
    ValueError
        If there are no nodes, a name is empty, a node is not below ``root``, or the pairs contain a cycle;
        the message has the names.

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
    >>> graph = Taxonomy([("animal", "dog"), ("pet", "dog")])
    >>> graph.is_tree, graph.ancestors("dog")
    (False, ['animal', 'pet'])
    """

    def to_networkx(self) -> Any:
        """Convert to a directed networkx graph.

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
            raise ImportError("to_networkx needs networkx; install labelweave[app].") from None
        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.pairs())
        return graph

    def pruned(self, keep: Names = ()) -> Taxonomy:
        """Remove the nodes of a tree with a single child, which moves up to their parent.

        Such a node adds no information to its child (Seeger 2008, footnote 5). A root with a single child is
        replaced by it.

        Parameters
        ----------
        keep : sequence of str, default=()
            Nodes that stay regardless of their children.

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
        self.require_tree("A pruned taxonomy")
        counts = np.bincount(self._edges[:, 0], minlength=len(self))
        stays = counts != 1
        stays[self._numbers(keep)] = True
        return self._part(stays)

    def restricted(self, names: Names) -> Taxonomy:
        """Keep only some nodes and their ancestors.

        Parameters
        ----------
        names : sequence of str
            The nodes, usually leaves.

        Returns
        -------
        Taxonomy
            These nodes and their ancestors, in the same order.

        Raises
        ------
        ValueError
            If no node is named, or a name is no node.
        """
        stays = np.zeros(len(self), bool)
        stays[self.membership(names).indices] = True
        if self.is_tree:
            return self._part(stays)
        pairs = [(self.nodes[above], self.nodes[below]) for above, below in self._edges if stays[below]]
        return Taxonomy(pairs, [self.nodes[k] for k in np.flatnonzero(stays)])._with_aliases(self.aliases)

    def _part(self, stays: npt.NDArray[np.bool_]) -> Taxonomy:
        """Keep some nodes of a tree, each below its lowest kept ancestor."""
        above = np.full(len(self), -1)
        pairs = list[tuple[str, str]]()
        for k, up in enumerate(self._above.tolist()):
            if up >= 0:
                above[k] = up if stays[up] else above[up]
            if stays[k] and above[k] >= 0:
                pairs.append((self.nodes[above[k]], self.nodes[k]))
        return Taxonomy(pairs, [self.nodes[k] for k in np.flatnonzero(stays)])._with_aliases(self.aliases)

    def matched(self, labels: Any, outside: Outside = "raise") -> Matched:
        """Match labels to the taxonomy, and return the changes; see :meth:`with_ancestors`.

        Alternative and obsolete identifiers are replaced by their terms, and several labels of one node are
        merged; full URIs are unchanged.  Labels that are no nodes raise an error ("raise"), are dropped
        ("drop") or become roots ("root").
        """
        if not isinstance(outside, str) or outside not in ("raise", "drop", "root"):
            raise ValueError(f"outside is {outside!r}; it must be 'raise', 'drop' or 'root'.")
        Y = LabelMatrix.from_any(labels)
        words = [str(name) for name in self._names_of(Y)]
        nodes = {name: self._node_of(name) for name in words}
        absent = [name for name, node in nodes.items() if node is None]
        if absent and outside == "raise":
            raise ParameterError(
                f"The label {absent[0]!r} is not in the taxonomy ({len(absent)} of {len(words)} are not), "
                f"whose nodes are such as {self.nodes[-1]!r}; use `outside='drop'`, or `outside='root'` to "
                "keep them as roots."
            )
        if len(absent) == len(words):
            self._numbers(words, "label")  # which raises for them
        several = Counter(nodes.values())
        names = {
            name: node if node and (several[node] > 1 or "://" not in name) else name
            for name, node in nodes.items()
            if node is not None or outside == "root"
        }
        renamed = {name: now for name, now in names.items() if name != now}
        return Matched(merged_labels(Y, names), self._with_roots(names), renamed, absent)

    def _with_roots(self, names: Names) -> Taxonomy:
        """Return the taxonomy with unknown names as further roots; see :meth:`restricted`."""
        nodes = [*self.nodes, *(name for name in names if name not in self)]
        return self if len(nodes) == len(self) else Taxonomy(self.pairs(), nodes)._with_aliases(self.aliases)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return set(self.nodes) == set(other.nodes) and set(self.pairs()) == set(other.pairs())

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), frozenset(self.pairs())))

    def __repr__(self) -> str:
        edges = "" if self.is_tree else f", {len(self._edges)} edges"
        return f"Taxonomy({len(self.nodes)} nodes{edges}, {len(self.roots)} roots)"

    def __str__(self) -> str:
        return drawn(self)

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        state = {"pairs": [list(pair) for pair in self.pairs()], "roots": self.roots}
        return state | ({"aliases": [*map(list, self.aliases.items())]} if self.aliases else {})

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        found = cls(state["pairs"], state.get("roots", ()))
        return found._with_aliases(dict(state.get("aliases", ())))


class Matched(NamedTuple):
    """Matched labels and their taxonomy, with the original names of labels and those without a node."""

    labels: LabelMatrix
    taxonomy: Taxonomy
    renamed: dict[str, str]
    outside: list[str]


def merged_labels(Y: LabelMatrix, names: Mapping[str, str]) -> LabelMatrix:
    """Rename labels, and drop those without a new name.

    If several get the same name, a row is positive if one of them is, and negative if all are.
    """
    words = Y.words
    kept = [place for place, word in enumerate(words) if word in names]
    called = [names[words[place]] for place in kept]
    found = list(dict.fromkeys(called))
    if len(found) == len(kept):
        return LabelMatrix.from_any(Y.select_labels(kept), called)
    found.sort()
    entries = np.ones(len(kept), np.int32), (kept, np.searchsorted(found, called))
    to = sp.csr_array(entries, shape=(len(words), len(found)))
    positives = sp.csr_array(Y.positives @ to > 0)
    if Y.observed is None:
        return LabelMatrix(positives, None, found)
    seen = (abs(Y.observed) @ to).toarray() == np.asarray(to.sum(axis=0))
    return LabelMatrix(positives, sp.csr_array(seen) + positives, found)


def drawn(graph: NodeGraph, most: int = _LINES) -> str:
    """Draw a graph, one node per line below one of its parents, the upper levels first if it is large.

    Other parents are named next to the node; omitted nodes are counted.
    """
    above = graph._above.tolist()
    steps = [0] * len(above)
    for k, up in enumerate(above):
        steps[k] = steps[up] + 1 if up >= 0 else 0
    shown = np.zeros(len(above), bool)
    shown[np.argsort(steps, kind="stable")[:most]] = True
    omitted = _omitted_below(above, shown)
    text = [
        "  " * steps[k] + graph.nodes[k] + _also_under(graph, k) + (f" (+{omitted[k]})" if omitted[k] else "")
        for k in np.flatnonzero(shown).tolist()
    ]
    rest = int((~shown).sum())
    return "\n".join([*text, f"... {rest} of {len(shown)} nodes omitted"] if rest else text)


def _also_under(graph: NodeGraph, number: int) -> str:
    starts, places = graph._rows_of_parents
    others = places[starts[number] : starts[number + 1]][:-1]
    return f" (also under {', '.join(graph.nodes[k] for k in others)})" if len(others) else ""


def _omitted_below(above: list[int], shown: np.ndarray) -> list[int]:
    """Count the omitted nodes below each shown node, at their lowest shown ancestor."""
    carrier, counts = [*range(len(above))], [0] * len(above)
    for k, up in enumerate(above):
        if not shown[k] and up >= 0:
            carrier[k] = carrier[up]
            counts[carrier[k]] += 1
    return counts
