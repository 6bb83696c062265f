"""Label covariances from files: a matrix, or signatures of classes; and from a tree that came with data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.cli.taxonomy_files import lines_of_cells
from labelweave.datasets import DataFileError
from labelweave.datasets.data_file import finite_number

__all__ = ["read_covariance", "read_signatures", "tree_covariance"]

_PRIOR = "prior"


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


def _npy(path: str) -> npt.NDArray[Any]:
    try:
        matrix: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError):
        raise DataFileError(path, None, "no whole array", "a matrix of numbers saved by numpy.save") from None
    if matrix.dtype.kind not in "iuf":
        raise DataFileError(path, None, f"entries of type {matrix.dtype}", "numbers")
    return matrix


def _named_matrix(path: str, names: list[str]) -> npt.NDArray[np.float64]:
    lines = lines_of_cells(path)
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
    lines = lines_of_cells(path)
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


def tree_covariance(pairs: Sequence[tuple[str, str]], label_names: Sequence[Any]) -> LabelCovariance:
    """Make the covariance of a tree that came with the data.

    label_names: the labels; one that is in no pair is a tree of its own.
    """
    tree = Taxonomy(pairs)
    inside = np.isin([str(name) for name in label_names], tree.nodes)
    membership = tree.membership([name for name, known in zip(label_names, inside, strict=True) if known])
    places = np.flatnonzero(inside)
    spread = np.zeros((len(inside), len(places)))
    spread[places, np.arange(len(places))] = 1.0
    return LabelCovariance.low_rank(spread @ membership, (~inside).astype(float), label_names)
