"""Constructors of taxonomies: from nested dicts, paths, graphs, or any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from labelweave.labels.taxonomy.forest import Forest
from labelweave.labels.taxonomy.sources import edges_of_graph, edges_of_nested, edges_of_paths

__all__ = ["TaxonomyConstructors"]


class TaxonomyConstructors(Forest):
    """The part of ``Taxonomy`` that makes new ones; see :class:`Forest`."""

    @classmethod
    def from_any(cls, source: Any) -> Self:
        """Read a taxonomy from whatever a user holds.

        Parameters
        ----------
        source : Taxonomy, mapping, networkx graph, DataFrame or iterable
            A taxonomy is given back; a mapping goes to :meth:`from_nested`, a graph
            to :meth:`from_networkx`, a list of texts to :meth:`from_paths`; a frame
            has the columns parent and child; all else is pairs (parent, child).

        Returns
        -------
        Taxonomy
            The taxonomy.

        Raises
        ------
        TypeError
            If it is nothing of these.
        ValueError
            If it is no tree.

        Examples
        --------
        >>> from labelweave import Taxonomy
        >>> Taxonomy.from_any([("a", "b")]) == Taxonomy.from_any({"a": ["b"]})
        True
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, Mapping):
            return cls.from_nested(source)
        if hasattr(source, "nodes") and hasattr(source, "edges"):
            return cls.from_networkx(source)
        if isinstance(source, str) or not isinstance(source, Iterable):
            raise TypeError(
                f"A taxonomy was given as {type(source).__name__}; give a Taxonomy, nested dicts, a networkx "
                "DiGraph, pairs (parent, child) or a list of paths."
            )
        # a frame's own iterator gives its column names
        listed = list(source.itertuples(index=False) if hasattr(source, "itertuples") else source)
        are_paths = bool(listed) and all(isinstance(entry, str) for entry in listed)
        return cls.from_paths(listed) if are_paths else cls(listed)

    @classmethod
    def from_nested(cls, mapping: Any) -> Self:
        """Read nested dicts.

        Parameters
        ----------
        mapping : mapping
            Each name with what is below it: another mapping, or a list or set of
            names.  A leaf has None or an empty one; a list may hold mappings too.

        Returns
        -------
        Taxonomy
            The taxonomy.

        Raises
        ------
        ValueError
            If it is empty, a name is empty or occurs at two places (both are
            given), or something else stands below a name.

        Examples
        --------
        >>> from labelweave import Taxonomy
        >>> print(Taxonomy.from_nested({"animal": {"dog": ["poodle", "terrier"], "cat": None}, "plant": {}}))
        animal
          dog
            poodle
            terrier
          cat
        plant
        """
        return cls(*edges_of_nested(mapping))

    @classmethod
    def from_paths(
        cls, paths: Iterable[str], separator: str = "/", ancestors: Literal["add", "require"] = "add"
    ) -> Self:
        """Read path strings; a node is named by its whole path.

        Parameters
        ----------
        paths : iterable of str
            The paths, of leaves or of all nodes.
        separator : str, default="/"
            What stands between the names of a path.
        ancestors : {"add", "require"}, default="add"
            Whether a node above that is not listed is added, or the path refused.

        Returns
        -------
        Taxonomy
            The taxonomy.

        Raises
        ------
        ValueError
            If there are no paths, one has an empty part, is listed twice, or lacks its parent.

        Examples
        --------
        >>> from labelweave import Taxonomy
        >>> Taxonomy.from_paths(["animal/dog", "animal/cat"]).nodes
        ['animal', 'animal/dog', 'animal/cat']
        """
        return cls(*edges_of_paths(paths, separator, ancestors))

    @classmethod
    def from_networkx(cls, graph: Any, root: Any | None = None) -> Self:
        """Read a directed graph of networkx.

        Parameters
        ----------
        graph : networkx.DiGraph
            Edges run from parent to child; a node without edges is a root.
        root : node or None, default=None
            The node above all others, if there must be one.

        Returns
        -------
        Taxonomy
            The taxonomy, of the nodes' names as text.

        Raises
        ------
        ValueError
            If the graph is undirected, two nodes are written alike, or it is no forest.

        Examples
        --------
        >>> import networkx
        >>> from labelweave import Taxonomy
        >>> Taxonomy.from_networkx(networkx.DiGraph([("animal", "dog"), ("animal", "cat")])).leaves
        ['dog', 'cat']
        """
        return cls(*edges_of_graph(graph), root=root)
