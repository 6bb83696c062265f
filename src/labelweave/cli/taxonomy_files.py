"""Taxonomies from files: pairs of parent and child, path lines, or nested JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from labelweave import Taxonomy
from labelweave.datasets import DataFileError
from labelweave.datasets.data_file import numbered_lines

__all__ = ["lines_of_cells", "read_taxonomy"]

_TAB_SUFFIXES = (".tsv", ".tab")
_SEPARATOR = "/"
_WANTED = "a parent and a child, or on every line a path such as a/b/c"

Line = tuple[int, list[str]]


def read_taxonomy(path: str) -> Taxonomy:
    """Read a taxonomy from a file.

    path: lines of parent and child (``.csv``, ``.tsv``), a first line ``parent,child`` being passed over; or
        one path a line, such as ``a/b/c``, by which nodes are then named; or nested objects and lists of
        names (``.json``).
    Raises DataFileError if the file is malformed, or holds no tree.
    """
    if Path(path.lower().removesuffix(".gz")).suffix == ".json":
        nested = _json(path)
        return _made(path, lambda: Taxonomy.from_any(nested))
    lines = list(lines_of_cells(path))
    if _are_paths(lines):
        paths = [cells[0] for _, cells in lines if cells[0].lower() != "path"]
        return _made(path, lambda: Taxonomy.from_paths(paths))
    pairs = list(_pairs(path, lines))
    return _made(path, lambda: Taxonomy(pairs))


def _made(path: str, make: Callable[[], Taxonomy]) -> Taxonomy:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise DataFileError(path, None, "no tree", f"one ({str(error).rstrip('.')})") from None


def _are_paths(lines: list[Line]) -> bool:
    return all(len(cells) == 1 for _, cells in lines) and any(_SEPARATOR in cells[0] for _, cells in lines)


def _pairs(path: str, lines: list[Line]) -> Iterator[tuple[str, str]]:
    for line, cells in lines:
        if len(cells) != 2 or not all(cells):
            raise DataFileError(path, line, f"{len(cells)} cells", _WANTED)
        if line > 1 or [cell.lower() for cell in cells] != ["parent", "child"]:
            yield cells[0], cells[1]


def lines_of_cells(path: str) -> Iterator[Line]:
    """Give the cells of every line that is not empty.

    path: A file with commas, or tabs by its name, between cells.
    cells: its cells, without blanks around them.
    """
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    delimiter = "\t" if suffix in _TAB_SUFFIXES else ","
    for line, text in numbered_lines(path):
        if text.strip():
            yield line, [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]


def _json(path: str) -> Any:
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(path, pairs))
    except json.JSONDecodeError as error:
        raise DataFileError(path, error.lineno, f"no JSON ({error.msg})", "nested objects of names") from None
    except RecursionError:
        raise DataFileError(path, None, "JSON nested too deep", "nested objects of names") from None
    if not isinstance(found, (dict, list)):
        raise DataFileError(path, None, f"the JSON value {str(found)[:40]!r}", "nested objects of names")
    return found


def _without_repeats(path: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that occurs twice in one object, of which JSON would keep the last."""
    names = [name for name, _ in pairs]
    twice = (
        next((name for name in names if names.count(name) > 1), None)
        if len(set(names)) < len(names)
        else None
    )
    if twice is not None:
        raise DataFileError(path, None, f"the name {twice!r} twice in one object", "distinct names")
    return dict(pairs)
