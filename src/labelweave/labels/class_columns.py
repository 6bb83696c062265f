"""Targets of several columns, each with one of several classes per row, as one label per class.

Such tables are called multi-target, or multioutput-multiclass.  A class of a column becomes the label
``column=class``, and exactly one label of a column is positive in a row where the column is observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import unmasked
from labelweave.foundation.frames import FrameForm, column_entries, column_labels, is_frame
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_names import as_text, distinct_classes, typed, unknown_entries
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import TEXT, Items, Made, Maybe, Numbers, Texts

_OF_LABELS = (0, 1, -1)
_RARE = 50  # other numbers than labels are fewer where they are mistakes
_MOST_DISTINCT = 20  # classes of a column that may be more than half of its rows
_CLASSES = Maybe(Texts("c"), Numbers("c", "iufb"), none=False)


@storable("ClassColumn", {"name": TEXT, "classes": _CLASSES, "dtype": TEXT})
@dataclass(frozen=True)
class ClassColumn(StoredParameters):
    """The classes of a column of targets.

    classes (C,): the distinct values, sorted.
    dtype: the name of the column's type: one of pandas, or "object" for text; empty for that of the classes.
    """

    name: str
    classes: Array
    dtype: str = ""

    @property
    def labels(self) -> list[str]:
        """The names of the labels that stand for the classes."""
        return [f"{self.name}={as_text(value)}" for value in self.classes]

    def values(self, codes: Array) -> Any:
        """Return the classes of codes (n,), as the type of the column."""
        found = self.classes[codes]
        if self.dtype in ("", "object"):
            return found.astype(self.dtype or found.dtype)
        import pandas as pd

        kind: Any = pd.CategoricalDtype(list(self.classes)) if self.dtype == "category" else self.dtype
        return pd.Series(found).astype(kind)


@storable("ClassColumns", {"columns": Items(Made(ClassColumn), least=1, kind=tuple)})
@dataclass(frozen=True)
class ClassColumns(StoredParameters):
    """The columns of targets; their classes, one column after the other, are the labels."""

    columns: tuple[ClassColumn, ...]

    def __iter__(self) -> Iterator[ClassColumn]:
        return iter(self.columns)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def labels(self) -> list[str]:
        return [label for column in self.columns for label in column.labels]

    @cached_property
    def slices(self) -> list[slice]:
        """The labels of each column."""
        ends = np.cumsum([0, *(len(column.classes) for column in self.columns)]).tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    def words_on_numbers(self) -> str | None:
        """Describe numbers that are read as classes; None if the type of a column shows that."""
        if any(column.dtype == "category" or column.classes.dtype.kind in "OU" for column in self):
            return None
        others = ((column.name, np.setdiff1d(column.classes, _OF_LABELS)) for column in self)
        name, numbers = next((name, numbers) for name, numbers in others if len(numbers))
        said = f"column {name!r} holds numbers such as {numbers[0]}, so columns are read as classes"
        return f"{said}; read_class_columns(Y) silences this, and Y > 0 makes labels"

    def require_classes(self) -> None:
        """Raise ValueError for a column without an observed class."""
        empty = next((column.name for column in self.columns if not len(column.classes)), None)
        if empty is not None:
            raise ValueError(f"Column {empty!r} of y has no observed class; leave it out.")

    def best(self, scores: RowsByLabels) -> Array:
        """Return the code of the class with the highest score of every column: shape (n, m)."""
        return np.column_stack([scores[:, part].argmax(axis=1) for part in self.slices])

    def sets(self, scores: RowsByLabels) -> RowsByLabels:
        """Return 1 for the class with the highest score of every column, else 0: shape (n, L)."""
        found = np.zeros(scores.shape)
        starts = [part.start for part in self.slices]
        np.put_along_axis(found, self.best(scores) + starts, 1.0, axis=1)
        return found

    def apart(self, table: RowsByLabels) -> list[RowsByLabels]:
        """Return numbers of labels (n, L) as one table per column."""
        return [table[:, part] for part in self.slices]

    def table(self, codes: Array, frame: FrameForm | None, index: Any) -> Any:
        """Return the classes of codes (n, m) as a frame, or an array."""
        found = [column.values(own) for column, own in zip(self.columns, codes.T, strict=True)]
        if frame is not None:
            return frame.frame_of_columns(found, np.array(self.names, object), index)
        is_one_kind = len({np.asarray(own).dtype.kind for own in found}) == 1
        return np.column_stack(found if is_one_kind else [np.asarray(own, object) for own in found])


class CodedColumn(NamedTuple):
    """A column of targets: its classes, and the code of every row's class, -1 where it is unobserved."""

    column: ClassColumn
    codes: Array


@checked
def read_class_columns(Y: Any, names: Sequence[str] | None = None) -> LabelMatrix:
    """Read a table whose columns have one class per row each.

    Parameters
    ----------
    Y : DataFrame or array-like of shape (n, m)
        Classes that are text, booleans or whole numbers; None or NaN where unobserved.  All numbers are
        classes here, also 0, 1 and -1.
    names : sequence of str or None, default=None
        The names of the columns; by default those of a frame, else 0, 1, ...

    Returns
    -------
    LabelMatrix
        One label ``column=class`` per class; its ``class_columns`` are the columns.

    Raises
    ------
    ValueError
        If a column mixes text and numbers, or has another value in nearly every row.

    Examples
    --------
    >>> from labelweave import read_class_columns
    >>> labels = read_class_columns([["red", 3], ["blue", None], ["red", 5]], ["color", "size"])
    >>> labels.names.tolist()
    ['color=blue', 'color=red', 'size=3', 'size=5']
    >>> labels.to_dense()
    array([[ 0.,  1.,  1.,  0.],
           [ 1.,  0., nan, nan],
           [ 0.,  1.,  0.,  1.]])
    """
    return one_hot(_read(Y, names))


def has_class_columns(Y: Any) -> bool:
    """Return whether targets that are no labels are columns of classes: text, or whole numbers.

    Few numbers that are no labels are taken for mistakes, as is a single one instead of 0 or 1.
    """
    if isinstance(Y, LabelMatrix) or sp.issparse(Y) or hasattr(Y, "collect"):
        return False
    if not is_frame(Y) and np.ndim(np.asarray(unmasked(Y), object)) != 2:
        return False
    every = [typed(values[~unknown_entries(values)]) for _, values, _ in _columns_of(Y, None)]
    texts = [known for known in every if known.dtype.kind in "OU"]
    numbers = np.concatenate([np.zeros(1), *(one.astype(float) for one in every if one.dtype.kind in "biuf")])
    if not all(isinstance(one, (str, Real, np.bool_)) for known in texts for one in known):
        return False
    is_whole = all(one.dtype.kind in "OUbiuf" for one in every) and np.array_equal(numbers, np.rint(numbers))
    if texts or not is_whole:
        return is_whole and any(len({*known.tolist()}) > 1 for known in every)
    values = [np.unique(one) for one in every]
    has_several = any(len(found) > 2 or np.isin(found, _OF_LABELS, invert=True).sum() > 1 for found in values)
    others = np.count_nonzero(np.isin(numbers, _OF_LABELS, invert=True))
    return has_several and bool(others > max(1, len(numbers) / _RARE))


def _columns_of(Y: Any, names: Sequence[str] | None) -> list[tuple[str, Array, str]]:
    """Return the name, the values and pandas' type of every column."""
    labels = column_labels(Y)
    if labels is None:
        Y = unmasked(Y.astype(object)) if np.ma.isMaskedArray(Y) else Y
        table = np.asarray(Y, None if hasattr(Y, "dtype") else object)
        if table.ndim != 2:
            raise ValueError(f"Y has shape {table.shape}; columns of classes need two, (rows, columns).")
        names = [*map(str, range(table.shape[1]))] if names is None else names
        if len(names) != table.shape[1]:
            raise ValueError(
                f"Y has {table.shape[1]} columns but {len(names)} names were given; pass one name per column."
            )
        return [(name, values, "") for name, values in zip(names, table.T, strict=True)]
    names = [*map(str, labels)] if names is None else names
    if not hasattr(Y, "iloc"):
        cells = [np.array([*column_entries(Y[label]), None], object)[:-1] for label in labels]
        return [(name, values, "") for name, values in zip(names, cells, strict=True)]
    series = [Y.iloc[:, place] for place in range(len(labels))]
    kinds = ["" if isinstance(one.dtype, np.dtype) else str(one.dtype) for one in series]
    cells = [one.to_numpy(object if kind else None) for one, kind in zip(series, kinds, strict=True)]
    return list(zip(names, cells, kinds, strict=True))


def _read(Y: Any, names: Sequence[str] | None) -> list[CodedColumn]:
    found = _columns_of(Y, names)
    if not found:
        raise ValueError("Y has no columns of classes; at least one is needed.")
    return [_coded(*column) for column in found]


def _coded(name: str, values: Array, dtype: str) -> CodedColumn:
    missing = unknown_entries(values)
    known = typed(values[~missing])
    classes, codes = distinct_classes(known)
    if len(classes) > max(_MOST_DISTINCT, len(known) / 2):
        raise ValueError(
            f"Column {name!r} of y has {len(classes)} distinct values in {len(known)} rows, too many for "
            "classes; leave it out, or group its values."
        )
    every = np.full(len(values), -1, np.intp)
    every[~missing] = codes
    if classes.dtype.kind == "O":
        classes, dtype = classes.astype(np.str_), dtype or "object"
    return CodedColumn(ClassColumn(name, classes, dtype), every)


def one_hot(coded: Sequence[CodedColumn]) -> LabelMatrix:
    """Return columns of classes as labels."""
    columns = ClassColumns(tuple(one.column for one in coded))
    codes = np.column_stack([one.codes for one in coded])
    parts, seen = columns.slices, codes >= 0
    rows, places = np.nonzero(seen)
    shape = len(codes), parts[-1].stop
    at = rows, np.array([part.start for part in parts])[places] + codes[seen]
    positives = sp.csr_array((np.ones(len(rows), np.int8), at), shape=shape)
    sizes = [part.stop - part.start for part in parts]
    observed = None if seen.all() else sp.csr_array(np.repeat(seen, sizes, axis=1))
    return LabelMatrix(positives, observed, columns.labels, class_columns=columns)


def coded_columns(labels: LabelMatrix) -> list[CodedColumn]:
    """Return the columns of labels that were read as such; a row without a positive label is unobserved."""
    assert labels.class_columns is not None, "labels are those of columns"
    tables = [labels.positives[:, part].toarray() for part in labels.class_columns.slices]
    codes = [np.where(own.any(axis=1), own.argmax(axis=1), -1) for own in tables]
    return [CodedColumn(*pair) for pair in zip(labels.class_columns, codes, strict=True)]


def joined_columns(first: LabelMatrix, second: LabelMatrix) -> LabelMatrix:
    """Stack rows of the same columns, with the classes of both; raise ValueError for other columns."""
    before, after = coded_columns(first), coded_columns(second)
    names = [[one.column.name for one in part] for part in (before, after)]
    if names[0] != names[1]:
        raise ValueError(f"y has the columns {names[1]}, but had {names[0]} before; go on with the same.")
    return one_hot([_joined(*pair) for pair in zip(before, after, strict=True)])


def _joined(first: CodedColumn, second: CodedColumn) -> CodedColumn:
    kinds = {one.column.classes.dtype.kind in "OU" for one in (first, second)}
    if len(kinds) > 1:
        raise ValueError(f"Column {first.column.name!r} of y mixes text and numbers; go on with one type.")
    classes = np.unique(np.concatenate([first.column.classes, second.column.classes]))
    column = replace(first.column, classes=classes)
    return CodedColumn(column, np.concatenate([_recoded(one, column.labels) for one in (first, second)]))


def _recoded(coded: CodedColumn, labels: Sequence[str]) -> Array:
    """Return codes among other labels of the same column, all of which must be there."""
    place = {label: code for code, label in enumerate(labels)}
    return np.array([*(place[label] for label in coded.column.labels), -1])[coded.codes]


def labels_of_columns(Y: Any, columns: ClassColumns) -> LabelMatrix:
    """Read a table as known columns; the labels of further classes come after those of the known ones.

    Frames match by name, in any order, other tables by position.
    """
    names = columns.names
    if isinstance(Y, LabelMatrix):
        if Y.class_columns is None:
            return Y
        coded = coded_columns(Y)
    else:
        coded = _read(Y, None if is_frame(Y) else names)
    by_name = {one.column.name: one for one in coded}
    absent = [name for name in names if name not in by_name]
    if absent or len(coded) != len(names):
        raise ValueError(
            f"y has the columns {list(by_name)}, but the model was fitted to {names}; pass these columns."
        )
    wide = [_widened(column, by_name[column.name]) for column in columns]
    labels, own = one_hot(wide), {label for column in columns for label in column.labels}
    further = [number for number, name in enumerate(labels.words) if name not in own]
    return labels.select_labels([*np.setdiff1d(np.arange(labels.n_labels), further), *further])


def _widened(column: ClassColumn, coded: CodedColumn) -> CodedColumn:
    """Return a column with the known classes, and further ones after them, as text."""
    every = [*dict.fromkeys([*column.labels, *coded.column.labels])]
    texts = np.array([label.removeprefix(f"{column.name}=") for label in every])
    return CodedColumn(ClassColumn(column.name, texts), _recoded(coded, every))
