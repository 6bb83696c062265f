"""What files say about labels: taxonomies, covariances, signatures of classes, and graphs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelweave import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.array_types import Array
from labelweave.datasets import DataFileError
from labelweave.datasets.data_file import finite_number, numbered_lines

__all__ = ["read_covariance", "read_graph", "read_signatures", "read_taxonomy"]

_TAB_SUFFIXES = (".tsv", ".tab")
_SEPARATOR = "/"
_WANTED = "a parent and a child, or on every line a path such as a/b/c"
_PRIOR = "prior"
_EDGE_HEADERS = (["label", "label"], ["source", "target"], ["from", "to"])
_MOST_NAMES = 5

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
    lines = list(_lines_of_cells(path))
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


def _lines_of_cells(path: str) -> Iterator[Line]:
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


def read_covariance(path: str, label_names: Sequence[str]) -> LabelCovariance:
    """Read a matrix over the labels.

    path: A ``.npy`` file in the order of the labels; or a ``.csv`` or ``.tsv`` file whose first line and
        first column name them, in any order.
    label_names: the labels of the data.
    Returns the covariance, in the order of the labels.
    Raises DataFileError if the file is malformed or lacks a label.
    Raises ValueError if the matrix is no covariance of as many labels.
    """
    names = [str(name) for name in label_names]
    if Path(path).suffix.lower() != ".npy":
        return LabelCovariance.dense(_named_matrix(path, names), names)
    matrix = _npy(path)
    if matrix.shape != (len(names), len(names)):
        raise DataFileError(path, None, f"an array of shape {matrix.shape}", f"one over {len(names)} labels")
    return LabelCovariance.dense(matrix, names)


def _npy(path: str) -> Array:
    try:
        matrix: Array = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError):
        raise DataFileError(path, None, "no whole array", "a matrix of numbers saved by numpy.save") from None
    if matrix.dtype.kind not in "iuf":
        raise DataFileError(path, None, f"entries of type {matrix.dtype}", "numbers")
    return matrix


def _named_matrix(path: str, names: list[str]) -> Array:
    lines = _lines_of_cells(path)
    _, header = next(lines)
    rows: dict[str, list[float]] = {}
    for line, cells in lines:
        _check_width(path, line, cells, header)
        rows[cells[0]] = [_number(path, line, cell) for cell in cells[1:]]
    absent = next((name for name in names if name not in rows or name not in header[1:]), None)
    if absent is not None:
        raise DataFileError(path, None, f"no row and column for the label {absent!r}", "one for every label")
    columns = [header.index(name, 1) - 1 for name in names]
    return np.array([[rows[name][column] for column in columns] for name in names])


def _check_width(path: str, line: int, cells: list[str], header: list[str]) -> None:
    if len(cells) != len(header):
        raise DataFileError(path, line, f"{len(cells)} cells", f"{len(header)}, as in the first line")


def _number(path: str, line: int, cell: str) -> float:
    try:
        return finite_number(cell)
    except ValueError as error:
        raise DataFileError(path, line, repr(cell[:40]), str(error)) from None


def read_signatures(path: str, label_names: Sequence[str]) -> LabelCovariance:
    """Read the labels of classes, and let labels vary together as they do over these.

    path: A ``.csv`` or ``.tsv`` file, a class a line: its name, then 0/1 or -1/1 for every label that the
        first line names, in any order.  A column ``prior`` weighs the classes.
    label_names: the labels of the data.
    Returns the covariance, in the order of the labels.
    Raises DataFileError if the file is malformed or lacks a label.
    """
    names = [str(name) for name in label_names]
    lines = _lines_of_cells(path)
    _, header = next(lines)
    columns = _label_columns(path, header, names)
    weighs = _PRIOR in header[1:] and _PRIOR not in names
    signs: list[list[float]] = []
    prior: list[float] = []
    for line, cells in lines:
        _check_width(path, line, cells, header)
        signs.append([_sign(path, line, header[column], cells[column]) for column in columns])
        prior.append(_weight(path, line, cells[header.index(_PRIOR, 1)]) if weighs else 1.0)
    _check_classes(path, signs, prior)
    return LabelCovariance.from_signatures(LabelMatrix.from_any(np.array(signs), names), prior)


def _label_columns(path: str, header: list[str], names: list[str]) -> list[int]:
    absent = next((name for name in names if name not in header[1:]), None)
    if absent is not None:
        raise DataFileError(path, 1, f"no column for the label {absent!r}", "one for every label")
    twice = next((name for name in [*names, _PRIOR] if header[1:].count(name) > 1), None)
    if twice is not None:
        raise DataFileError(path, 1, f"more than one column {twice!r}", "one for every label")
    return [header.index(name, 1) for name in names]


def _sign(path: str, line: int, label: str, cell: str) -> float:
    if cell not in ("0", "1", "-1", "+1"):
        raise DataFileError(path, line, f"{cell[:40]!r} for the label {label!r}", "0 or 1, or -1 or 1")
    return float(cell)


def _weight(path: str, line: int, cell: str) -> float:
    weight = _number(path, line, cell)
    if weight < 0:
        raise DataFileError(path, line, f"the prior {cell}", "a number >= 0")
    return weight


def _check_classes(path: str, signs: list[list[float]], prior: list[float]) -> None:
    if not any(prior):
        found = "a prior of 0 for every class" if prior else "no class"
        raise DataFileError(path, None, found, "at least one class, of a prior above 0")
    coding = {sign for row in signs for sign in row}
    if {0.0, -1.0} <= coding:
        raise DataFileError(path, None, "both 0 and -1", "0 and 1 throughout, or -1 and 1")


def read_graph(path: str, label_names: Sequence[Any]) -> list[tuple[int, ...]]:
    """Read the edges or larger cliques of a graph.

    path: A ``.csv`` or ``.tsv`` file, an edge a line: the names of its labels, two or more.  A first line
        ``source,target`` is passed over.
    label_names: the labels of the data.
    Raises DataFileError if a line is no edge, joins a label to itself, or repeats an edge.
    """
    place = {str(name): number for number, name in enumerate(label_names)}
    found: dict[tuple[int, ...], int] = {}
    for line, cells in _lines_of_cells(path):
        if line == 1 and [cell.lower() for cell in cells] in _EDGE_HEADERS and not set(cells) <= set(place):
            continue
        clique = _clique(path, line, cells, place)
        if clique in found:
            raise DataFileError(path, line, f"the edge of line {found[clique]} again", "every edge once")
        found[clique] = line
    if not found:
        raise DataFileError(path, None, "no edge", "lines label,label; or give --graph none")
    return list(found)


def _clique(path: str, line: int, cells: list[str], place: dict[str, int]) -> tuple[int, ...]:
    unknown = next((cell for cell in cells if cell not in place), None)
    if unknown is not None:
        some = ", ".join(list(place)[:_MOST_NAMES]) + (", ..." if len(place) > _MOST_NAMES else "")
        raise DataFileError(path, line, f"the unknown label {unknown[:40]!r}", f"labels of the data: {some}")
    clique = tuple(sorted(place[cell] for cell in cells))
    if len(clique) < 2:
        raise DataFileError(path, line, "a single label", "two labels or more")
    if len(set(clique)) < len(clique):
        raise DataFileError(path, line, "a label joined to itself", "an edge between different labels")
    return clique
