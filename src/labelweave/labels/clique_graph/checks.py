"""Validation of the parts of a clique graph."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import numbers_of
from labelweave.labels.label_tables import shown_name

Cliques = tuple[tuple[int, ...], ...]

_LARGEST = 20  # labels per clique, with a table of 2^20 entries


def checked_cliques(cliques: Iterable[Sequence[int]], n_labels: int, names: Array | None) -> Cliques:
    """Check cliques of 2 to 20 distinct label indices, without duplicates; return them in ascending order."""
    if not isinstance(n_labels, (int, np.integer)) or n_labels < 1:
        raise ValueError(f"n_labels is {n_labels!r}; it must be an integer >= 1.")
    if not isinstance(cliques, Iterable) or getattr(cliques, "ndim", 1) == 0:
        raise ValueError(f"cliques is {cliques!r}; pass a list of cliques of two or more labels.")
    found: dict[tuple[int, ...], int] = {}
    for position, clique in enumerate(cliques):
        parts = _parts(position, clique)
        for label in parts:
            if not is_index(label, n_labels):
                raise ValueError(
                    f"The edge {tuple(parts)} at position {position} has the unknown label {label!r}; use "
                    f"numbers from 0 to {n_labels - 1}, or CliqueGraph.from_edges for names."
                )
        labels = tuple(sorted(int(label) for label in parts))
        _refuse_shape(position, labels, names)
        if labels in found:
            raise ValueError(
                f"The edge {_shown(labels, names)} occurs twice, at positions {found[labels]} and "
                f"{position}; pass each edge once, in one direction."
            )
        found[labels] = position
    return tuple(found)


def _refuse_shape(position: int, labels: tuple[int, ...], names: Array | None) -> None:
    if len(labels) < 2 or len(labels) > _LARGEST:
        raise ValueError(
            f"The edge {_shown(labels, names)} at position {position} has {len(labels)} label(s); pass 2 to "
            f"{_LARGEST} labels."
        )
    if len(set(labels)) < len(labels):
        twice = next(one for one, other in pairwise(labels) if one == other)
        raise ValueError(
            f"The edge {_shown(labels, names)} at position {position} joins the label "
            f"{shown_name(names, twice)} to itself; remove it."
        )


def _parts(position: int, edge: Any) -> tuple[Any, ...]:
    if isinstance(edge, str) or not isinstance(edge, Iterable):
        raise ValueError(f"The edge at position {position} is {edge!r}; pass a pair of labels.")
    return tuple(edge)


def is_index(label: Any, n_labels: int) -> bool:
    is_whole = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    return is_whole and 0 <= label < n_labels


def _shown(labels: Sequence[int], names: Array | None) -> str:
    return f"({', '.join(shown_name(names, label) for label in labels)})"


def named_cliques(edges: Iterable[Any], n_labels: int, names: Array | None) -> list[tuple[int, ...]]:
    if not isinstance(edges, Iterable) or getattr(edges, "ndim", 1) == 0:
        raise ValueError("edges is not a list; pass a list of edges of two or more labels.")
    known = {} if names is None else {name: label for label, name in enumerate(names.tolist())}
    parts = [_parts(position, edge) for position, edge in enumerate(edges)]
    if numbers_are_names((label for edge in parts for label in edge), known):
        parts = [tuple(str(label) for label in edge) for edge in parts]
    return [
        tuple(_index(label, edge, position, known, n_labels) for label in edge)
        for position, edge in enumerate(parts)
    ]


def numbers_are_names(labels: Iterable[Any], known: Container[str]) -> bool:
    """Return whether whole numbers are names, such as the years 2001 to 2010."""
    return all(str(label) in known for label in labels if not isinstance(label, bool))


def _index(part: Any, edge: tuple[Any, ...], position: int, known: dict[str, int], n_labels: int) -> int:
    if is_index(part, n_labels):
        return int(part)
    if isinstance(part, str) and part in known:
        return known[part]
    kind = "name" if isinstance(part, str) else "number"
    allowed = f"{', '.join(map(repr, list(known)[:5]))}{', ...' if len(known) > 5 else ''}"
    raise ValueError(
        f"The edge {edge!r} at position {position} has the unknown label {kind} {part!r}; use "
        + (f"the names {allowed}, or " if known else "")
        + f"the numbers from 0 to {n_labels - 1}."
    )


def checked_numbers(name: str, values: Any | None, n_cliques: int) -> Array | None:
    """Check the ``weights`` of cliques, finite numbers, or their ``signs``: -1, 0 or 1."""
    if values is None:
        return None
    is_weight = name == "weights"
    array = np.array(numbers_of(values, name), np.float64 if is_weight else None)
    if array.shape != (n_cliques,):
        raise ValueError(f"{name} has shape {array.shape} for {n_cliques} cliques; pass one per clique.")
    bad = ~(np.isfinite(array) if is_weight else np.isin(array, (-1, 0, 1)))
    if bad.any():
        place, allowed = int(np.argmax(bad)), "finite" if is_weight else "-1, 0 or 1"
        raise ValueError(f"The {name[:-1]} of clique {place} is {array[place]}; it must be {allowed}.")
    array = array if is_weight else array.astype(np.int8)
    array.flags.writeable = False
    return array
