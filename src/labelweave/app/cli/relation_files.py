"""Readers of files about labels: covariances, signatures of classes, graphs, and descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelweave import LabelCovariance, LabelMatrix
from labelweave.datasets import DataFileError
from labelweave.datasets.csv_files import DELIMITERS
from labelweave.datasets.data_file import finite_number, require_file
from labelweave.datasets.taxonomy_files import lines_of_cells
from labelweave.foundation.array_types import Array

_PRIOR = "prior"
_EDGE_HEADERS = (["label", "label"], ["source", "target"], ["from", "to"])
_MOST_NAMES = 5
_NAME_WORDS, _TEXT_WORDS = ("name", "label", "tag"), ("description", "text")
_DESCRIPTION_HEADERS = [[name, *more] for name in _NAME_WORDS for more in ([], *([t] for t in _TEXT_WORDS))]


def read_covariance(path: str, label_names: Sequence[str]) -> LabelCovariance:
    """Read a matrix over the labels, in their order.

    path: a ``.npy`` file in the order of the labels; or a ``.csv`` or ``.tsv`` file whose first line and
        first column name them, in any order.
    """
    names = [str(name) for name in label_names]
    if Path(path).suffix.lower() == ".npy":
        matrix = _npy(path)
        if matrix.shape != (len(names), len(names)):
            found = f"an array of shape {matrix.shape}"
            raise DataFileError(path, None, found, f"one over {len(names)} labels")
        return LabelCovariance.dense(matrix, names)
    rows: dict[str, list[float]] = {}
    for line, label, cells in _lines_by_label(path, names):
        if label in rows:
            raise DataFileError(path, line, f"the row {label[:40]!r} again", "one for every label")
        rows[label] = [_number(path, line, cells[name]) for name in names]
    absent = next((name for name in names if name not in rows), None)
    if absent is not None:
        raise DataFileError(path, None, f"no row for the label {absent!r}", "one for every label")
    return LabelCovariance.dense(np.array([rows[name] for name in names]), names)


def _npy(path: str) -> Array:
    require_file(path)
    try:
        matrix: Array = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError):
        raise DataFileError(path, None, "no whole array", "a matrix of numbers saved by numpy.save") from None
    if matrix.dtype.kind not in "iuf":
        raise DataFileError(path, None, f"entries of type {matrix.dtype}", "numbers")
    return matrix


def _lines_by_label(path: str, names: list[str]) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield the lines of a table: number, first cell, and the others by the names in the first line."""
    (_, header), *lines = [*lines_of_cells(path, DELIMITERS)] or [(1, [""])]
    columns = Counter(header[1:])
    for name in names:
        if name not in columns:
            raise DataFileError(path, 1, f"no column for the label {name!r}", "one for every label")
    for name in (*names, _PRIOR):
        if columns[name] > 1:
            raise DataFileError(path, 1, f"more than one column {name!r}", "one for every label")
    for line, cells in lines:
        if len(cells) != len(header):
            raise DataFileError(path, line, f"{len(cells)} cells", f"{len(header)}, as in the first line")
        yield line, cells[0], dict(zip(header[1:], cells[1:], strict=True))


def _number(path: str, line: int, cell: str) -> float:
    try:
        return finite_number(cell)
    except ValueError as error:
        raise DataFileError(path, line, repr(cell[:40]), str(error)) from None


def read_signatures(path: str, label_names: Sequence[str]) -> LabelCovariance:
    """Read the labels of classes, and return the covariance of labels over these.

    path: one line per class: its name, then 0/1 or -1/1 for every label in the first line, in any order.
        A column ``prior`` weighs the classes.
    """
    names = [str(name) for name in label_names]
    signs, prior = list[list[float]](), list[float]()
    for line, _, cells in _lines_by_label(path, names):
        signs.append([_sign(path, line, name, cells[name]) for name in names])
        weight = "1" if _PRIOR in names else cells.get(_PRIOR, "1")
        prior.append(_number(path, line, weight))
        if prior[-1] < 0:
            raise DataFileError(path, line, f"the prior {weight}", "a number >= 0")
    if not any(prior):
        found = "a prior of 0 for every class" if prior else "no class"
        raise DataFileError(path, None, found, "at least one class, of a prior above 0")
    if {0.0, -1.0} <= {sign for row in signs for sign in row}:
        raise DataFileError(path, None, "both 0 and -1", "only 0 and 1, or only -1 and 1")
    return LabelCovariance.from_signatures(LabelMatrix.from_any(np.array(signs), names), prior)


def _sign(path: str, line: int, label: str, cell: str) -> float:
    if cell not in ("0", "1", "-1", "+1"):
        raise DataFileError(path, line, f"{cell[:40]!r} for the label {label!r}", "0 or 1, or -1 or 1")
    return float(cell)


def read_graph(path: str, label_names: Sequence[Any]) -> list[tuple[int, ...]]:
    """Read the edges or larger cliques of a graph.

    path: one edge per line: the names of two or more labels.  A first line ``source,target`` is skipped.
    """
    place = {str(name): number for number, name in enumerate(label_names)}
    found: dict[tuple[int, ...], int] = {}
    for line, cells in lines_of_cells(path, DELIMITERS):
        if line == 1 and [cell.lower() for cell in cells] in _EDGE_HEADERS and not set(cells) <= set(place):
            continue
        unknown = next((cell for cell in cells if cell not in place), None)
        if unknown is not None:
            some = ", ".join(list(place)[:_MOST_NAMES]) + (", ..." if len(place) > _MOST_NAMES else "")
            wanted = f"labels of the data: {some}"
            raise DataFileError(path, line, f"the unknown label {unknown[:40]!r}", wanted)
        clique = tuple(sorted(place[cell] for cell in cells))
        if len(clique) < 2:
            raise DataFileError(path, line, "a single label", "two labels or more")
        if len(set(clique)) < len(clique):
            raise DataFileError(path, line, "a label joined to itself", "an edge between different labels")
        if clique in found:
            raise DataFileError(path, line, f"the edge of line {found[clique]} again", "every edge once")
        found[clique] = line
    if not found:
        raise DataFileError(path, None, "no edge", "lines label,label; or use --graph none")
    return list(found)


def read_descriptions(path: str) -> dict[str, str]:
    """Read the descriptions of labels: one record each, a name and optionally a description.

    The delimiter is a comma, or another one detected in the first line.  A first line ``name,description`` or
    similar is skipped.
    """
    found: dict[str, str] = {}
    for line, cells in lines_of_cells(path, DELIMITERS):
        if line == 1 and [cell.lower() for cell in cells] in _DESCRIPTION_HEADERS:
            continue
        if len(cells) > 2:
            expected = "a name and a description, quoted if it contains the delimiter"
            raise DataFileError(path, line, f"{len(cells)} cells", expected)
        if not cells or not cells[0]:
            raise DataFileError(path, line, "an empty label name", "lines name,description")
        if cells[0] in found:
            raise DataFileError(path, line, f"the label {cells[0][:40]!r} again", "every label once")
        found[cells[0]] = cells[1] if len(cells) > 1 else ""
    if not found:
        raise DataFileError(path, None, "no label", "lines name,description")
    return found
