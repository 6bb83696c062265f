"""Constructors of taxonomies from nested dicts, path strings, graphs, or any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, Self

from labelweave.foundation.frames import as_pandas, is_frame
from labelweave.labels.taxonomy.node_graph import NodeGraph, node_name
from labelweave.labels.written_labels import DIVIDERS

_PATH_SIGNS = {
    **{sign: rf"\s*{re.escape(sign)}\s*" for sign in ("//", *DIVIDERS)},
    **{sign: re.escape(sign) for sign in (" : ", " - ", " – ", " — ")},
    ":": r":(?=\S)",
    ".": r"(?<=[^\d\s])\.(?=\S)|(?<=\S)\.(?=[^\d\s])",
}
_CODE = re.compile(r"[A-Za-z]?\d+(?:\.\w+)*")


class TaxonomyConstructors(NodeGraph):
    """Mixin of ``Taxonomy`` with its constructors; see :class:`NodeGraph`."""

    @classmethod
    def from_any(cls, source: Any) -> Self:
        """Make a taxonomy from any supported type.

        Parameters
        ----------
        source : Taxonomy, mapping, networkx graph, DataFrame or iterable
            A taxonomy is returned unchanged; a mapping is read by :meth:`from_nested`, a graph by
            :meth:`from_networkx`, a list of texts by :meth:`from_paths`; a frame has the columns parent and
            child, or two in this order; anything else is pairs (parent, child).

        Returns
        -------
        Taxonomy
            The taxonomy.

        Raises
        ------
        TypeError
            If it is none of these.
        ValueError
            If it has a cycle or invalid names.

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
        if is_frame(source) and not hasattr(source, "collect"):  # which lazy frames of polars have
            table = as_pandas(source)
            ends = ["parent", "child"]
            table = table[ends] if set(ends) <= set(table.columns) else table
            return cls(list(table.itertuples(index=False, name=None)))
        if hasattr(source, "nodes") and hasattr(source, "edges"):
            return cls.from_networkx(source)
        if isinstance(source, str) or not isinstance(source, Iterable) or getattr(source, "ndim", 1) == 0:
            raise TypeError(
                f"The taxonomy is of type {type(source).__name__}; pass a Taxonomy, nested dicts, a "
                "networkx.DiGraph, pairs (parent, child) or a list of paths."
            )
        listed = list(source)
        are_paths = bool(listed) and all(isinstance(entry, str) for entry in listed)
        return cls.from_paths(listed) if are_paths else cls(listed)

    @classmethod
    def from_nested(cls, mapping: Any) -> Self:
        """Make a taxonomy from nested dicts.

        Parameters
        ----------
        mapping : mapping
            Maps each name to its children: another mapping, or a list or set of names.  A leaf has None or an
            empty one; a list may hold mappings too.

        Returns
        -------
        Taxonomy
            The taxonomy.

        Raises
        ------
        ValueError
            If it is empty, a name is empty or occurs at two places (both are named), or the children of a
            name have another type.

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
        pairs, places = list[tuple[str, str]](), dict[str, tuple[str, ...]]()
        waiting: list[tuple[Any, Any, tuple[str, ...]]] = [
            (*branch, ()) for branch in _branches(mapping, ())[::-1]
        ]
        while waiting:
            given, below, above = waiting.pop()
            name = node_name(given, f"{_shown(above)} of the nested taxonomy" if above else "the top")
            path = (*above, name)
            if name in places:
                raise ValueError(
                    f"The name {name!r} occurs twice, at {_shown(places[name])} and at {_shown(path)}; "
                    "rename one, or use Taxonomy.from_paths."
                )
            places[name] = path
            pairs.extend((parent, name) for parent in above[-1:])
            waiting.extend((*branch, path) for branch in _branches(below, path)[::-1])
        return cls(pairs, places)

    @classmethod
    def from_paths(
        cls, paths: Iterable[str], separator: str | None = None, ancestors: Literal["add", "require"] = "add"
    ) -> Self:
        """Make a taxonomy from path strings; the name of a node is its full path.

        Parameters
        ----------
        paths : iterable of str
            The paths, of leaves or of all nodes.
        separator : str or None, default=None
            The separator between the names of a path.  By default one of ``/``, ``>``, ``::``, ``|``,
            ``.`` and the like, whichever splits most paths and yields shared prefixes; a point between digits
            is then part of a number, unless every path is one, such as 1.2.3.
        ancestors : {"add", "require"}, default="add"
            Whether an ancestor that is not listed is added, or an error is raised.

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
        if isinstance(paths, str):
            raise ValueError(f"paths is the text {paths!r}; pass a list of paths.")
        if not isinstance(paths, Iterable) or getattr(paths, "ndim", 1) == 0:
            raise ValueError(f"paths is {paths!r}; pass a list of paths.")
        words = (ancestors, separator)
        if (
            not all(isinstance(word, str | None) for word in words)
            or ancestors not in ("add", "require")
            or separator == ""
        ):
            raise ValueError(
                f"ancestors={ancestors!r}, separator={separator!r}; ancestors must be 'add' or 'require', "
                "and separator not empty."
            )
        listed = dict[str, tuple[str, ...]]()
        named = [node_name(path, f"path {position}") for position, path in enumerate(paths)]
        divided = path_divider(named) if separator is None else re.compile(re.escape(separator))
        for position, name in enumerate(named):
            if name in listed:
                raise ValueError(
                    f"The path {name!r} occurs twice, again at position {position}; list it once."
                )
            listed[name] = _upwards(name, divided)
        if ancestors == "require":
            _refuse_orphans(listed)
        nodes = list(dict.fromkeys(node for path in listed.values() for node in path))
        above = {child: parent for path in listed.values() for parent, child in pairwise(path)}
        return cls([(above[name], name) for name in nodes if name in above], nodes)

    @classmethod
    def from_networkx(cls, graph: Any, root: Any | None = None) -> Self:
        """Make a taxonomy from a directed networkx graph.

        Parameters
        ----------
        graph : networkx.DiGraph
            Edges run from parent to child; a node may have several parents.  Edges of ontologies often run
            from child to parent: reverse them with ``graph.reverse()``.
        root : node or None, default=None
            The required root above all other nodes, if any.

        Returns
        -------
        Taxonomy
            The taxonomy, with the names of the nodes as text.

        Raises
        ------
        ValueError
            If the graph is undirected, two nodes are the same text, or it has a cycle.

        Examples
        --------
        >>> import networkx
        >>> from labelweave import Taxonomy
        >>> Taxonomy.from_networkx(networkx.DiGraph([("animal", "dog"), ("animal", "cat")])).leaves
        ['dog', 'cat']
        """
        if not hasattr(graph, "is_directed"):
            raise ValueError(f"graph is {graph!r}; pass a networkx.DiGraph.")
        if not graph.is_directed():
            raise ValueError(
                "The graph is undirected; pass a DiGraph whose edges run from parent to child, such as "
                "networkx.bfs_tree(graph, root)."
            )
        names = {node: node_name(node, "a node of the graph") for node in graph.nodes}
        written = dict[str, Any]()
        for node, name in names.items():
            if name in written:
                raise ValueError(
                    f"Two nodes of the graph, {written[name]!r} and {node!r}, are both {name!r} as text; "
                    "rename one."
                )
            written[name] = node
        return cls([(names[above], names[below]) for above, below in graph.edges()], names.values(), root)


def _branches(below: Any, path: tuple[str, ...]) -> list[tuple[Any, Any]]:
    if below is None:
        return []
    if isinstance(below, Mapping):
        return list(below.items())
    if isinstance(below, str) or not isinstance(below, Iterable) or getattr(below, "ndim", 1) == 0:
        raise ValueError(
            f"Below {_shown(path)} is {below!r}; pass a dict, a list of names, or None for a leaf "
            "(for a table of parents use pairs)."
        )
    # sets are sorted, as their order differs between runs
    items = sorted(below, key=str) if isinstance(below, (set, frozenset)) else below
    return [branch for item in items for branch in _branches_of_item(item, path)]


def _branches_of_item(item: Any, path: tuple[str, ...]) -> list[tuple[Any, Any]]:
    if isinstance(item, Mapping):
        return list(item.items())
    if isinstance(item, Iterable) and not isinstance(item, str):
        held = " ".join(repr(item).split())
        raise ValueError(f"The list below {_shown(path)} contains {held}; it may contain names and dicts.")
    return [(item, None)]


def _shown(path: tuple[str, ...]) -> str:
    return repr(" > ".join(path)) if path else "the top"


def _upwards(path: str, divider: re.Pattern[str]) -> tuple[str, ...]:
    """Return the nodes on a path from the root down, each by its full path."""
    if not all(part.strip() for part in divider.split(path)):
        raise ValueError(
            f"The path {path!r} has an empty part; separate names by one {divider.findall(path)[0]!r}, "
            "without any at the ends."
        )
    return (*(path[: found.start()].rstrip() for found in divider.finditer(path)), path)


def _refuse_orphans(listed: Mapping[str, tuple[str, ...]]) -> None:
    orphans = [name for name, path in listed.items() if len(path) > 1 and path[-2] not in listed]
    if orphans:
        raise ValueError(
            f"The path {orphans[0]!r} is listed without its parent {listed[orphans[0]][-2]!r} "
            f"({len(orphans)} of {len(listed)} lack theirs); list the parent, or pass ancestors='add'."
        )


def path_divider(names: Sequence[str]) -> re.Pattern[str]:
    """Detect the separator of paths such as "Food > Dairy" and "food/dairy"; by default a slash."""
    are_codes = all(map(_CODE.fullmatch, names))
    best, most = re.compile("/"), 0
    for sign, pattern in _PATH_SIGNS.items():
        divider = re.compile(r"\." if sign == "." and are_codes else pattern)
        paths = [parts for name in names if len(parts := divider.split(name)) > 1]
        firsts = [parts[0] for parts in paths]
        is_shared = len({*firsts, *names}) < len(firsts) + len(names)
        is_one = len(names) == 1 and sign not in (".", "//")
        is_whole = all(part.strip() for parts in paths for part in parts)
        if (is_shared or is_one) and is_whole and len(paths) > most:
            best, most = divider, len(paths)
    return best
