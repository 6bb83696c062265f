"""DataFrames and columns of any library, by their own methods: reading them imports no library."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.vectors import are_number_lists, are_vectors, first_list, stacked, vector_cells

TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
"""Words for 1 and 0 in columns of one label, in lower case."""


def is_frame(table: Any) -> bool:
    """Return whether an object is a DataFrame of pandas, polars, pyarrow or another library."""
    # checked on the class, as a lazy polars frame warns when its columns are read
    return hasattr(type(table), "columns") or hasattr(table, "columns")


def column_labels(table: Any) -> list[Any] | None:
    """Return the column labels of a DataFrame, text or not; None for other objects."""
    if not is_frame(table):
        return None
    # pyarrow's columns are the data
    return list(getattr(table, "column_names", table.columns))


def frame_values(table: Any) -> Array:
    """Convert a DataFrame of numbers, booleans or words such as Yes and No to one array, NaN where missing.

    Raises TypeError or ValueError for other entries.
    """
    if hasattr(table, "collect"):
        raise ValueError(f"it is a {type(table).__name__} without rows; call collect() first")
    try:
        if hasattr(table, "iloc"):
            return np.asarray(table.to_numpy(float, na_value=np.nan))
        values = np.asarray(table)
        return values.astype(float) if values.dtype.kind in "OUT" else values
    except (TypeError, ValueError):
        entries = as_pandas(table).to_numpy(object, na_value=np.nan)
        words = {str(entry) for entry in entries.flat if isinstance(entry, str)}
        if not words or not {word.strip().lower() for word in words} <= {*TRUTH}:
            raise
        found = [TRUTH[one.strip().lower()] if isinstance(one, str) else one for one in entries.flat]
        return np.array(found, float).reshape(entries.shape)


def column_entries(column: Any) -> list[Any]:
    """List the entries of a Series, an Arrow array or any other column."""
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, NumPy
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def only_column(table: Any) -> Any:
    """Return the column of a single-column DataFrame, otherwise None."""
    labels = None if hasattr(table, "collect") else column_labels(table)
    if labels is None or len(labels) != 1:
        return None
    return table.iloc[:, 0] if hasattr(table, "iloc") else table[labels[0]]


def with_vectors_as_rows(X: Any) -> Any:
    """Convert rows of vectors, such as ``frame["emb"]`` or ``frame[["emb"]]``, to a matrix.

    Other rows are returned unchanged.
    """
    column = only_column(X) if is_frame(X) else X
    if isinstance(column, np.ndarray) and column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    is_read = isinstance(column, (list, tuple))  # by NumPy, whose errors describe texts better
    if column is None or getattr(column, "ndim", 1) != 1:
        return X
    if not (are_vectors(column) if is_read else first_list(column) is not None):
        return X
    return stacked(
        column,
        lambda row, found, expected: ValueError(f"Row {row} of X is {found}; it must be {expected}."),
        finite=False,
    )


def first_entry_of_no_number(table: Any) -> tuple[Any, Any] | None:
    """Return the first column of a DataFrame with an entry that is not a number, and the entry."""
    for place, label in enumerate(column_labels(table) or ()):
        for entry in column_entries(table.iloc[:, place] if hasattr(table, "iloc") else table[label]):
            try:
                if isinstance(entry, str):
                    raise TypeError
                float(0 if entry is None or type(entry).__name__ == "NAType" else entry)
            except (TypeError, ValueError):
                return label, entry
    return None


def as_pandas(table: Any) -> Any:
    """Convert another library's DataFrame to pandas, with Python objects as entries."""
    if hasattr(table, "iloc") or not is_frame(table):
        return table
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("Data frames need pandas here: install pandas.") from None
    columns: dict[Any, Any] = {
        name: vector_cells(table[name]) if are_number_lists(table[name]) else column_entries(table[name])
        for name in column_labels(table) or ()
    }
    for name, entries in columns.items():
        if set(map(type, entries)) == {int, type(None)}:
            columns[name] = pd.Series(entries, dtype=object)  # not floats, which have fewer digits
    return pd.DataFrame(columns)


def library_of(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


@dataclass(frozen=True)
class FrameForm:
    """The column names of a DataFrame, to name another one the same way.

    library: the library of the DataFrame.
    labels: its columns, if they are not plain text.
    level_names: the names of pandas' column levels, more than one for a MultiIndex.
    """

    library: str
    labels: list[Any] | None = None
    level_names: list[Any] | None = None

    @classmethod
    def of(cls, table: Any) -> FrameForm:
        columns: Any = getattr(table, "columns", None)
        if not hasattr(columns, "nlevels"):
            return cls(library_of(table))
        labels = [_plain(label) for label in columns]
        names = [_plain(name) for name in columns.names]
        if all(type(label) is str for label in labels) and names == [None]:
            return cls(library_of(table))
        return cls(library_of(table), labels, names)

    @property
    def is_plain(self) -> bool:
        """Whether a model file can store the column names."""
        names = [*(self.labels or ()), *(self.level_names or ())]
        parts = [part for name in names for part in (name if isinstance(name, tuple) else (name,))]
        return all(part is None or type(part) in (str, int, float, bool) for part in parts)

    def frame(self, values: Array, names: Array, index: Any) -> Any:
        """Build a DataFrame of the library; an array if this process has not imported it.

        values (n, columns): the entries.
        names: the columns as text.
        index: the row names, which only pandas has.
        """
        if self.library in ("polars", "pyarrow"):
            library = sys.modules.get(self.library)
            make = getattr(library, "DataFrame" if self.library == "polars" else "table", None)
            return values if make is None else make(dict(zip(names, values.T, strict=True)))
        import pandas as pd

        return pd.DataFrame(values, columns=self._pandas_columns(names), index=index)

    def frame_of_columns(self, columns: list[Any], names: Array, index: Any) -> Any:
        """Build a DataFrame of columns (n,) that have types of their own; see :meth:`frame`."""
        if self.library in ("polars", "pyarrow"):
            return self.frame(np.stack([np.asarray(one, object) for one in columns], axis=1), names, index)
        import pandas as pd

        made = pd.DataFrame({place: np.asarray(one, object) for place, one in enumerate(columns)})
        made = made.astype({place: one.dtype for place, one in enumerate(columns)})
        named = made.set_axis(self._pandas_columns(names), axis=1)
        return named if index is None else named.set_axis(index, axis=0)

    def column_of_lists(self, lists: list[list[Any]], index: Any) -> Any:
        """Build a column of lists in the library, or an array of objects; see :meth:`frame`."""
        library = sys.modules.get(self.library)
        if self.library == "pandas" and library is not None:
            return library.Series(lists, index=index, dtype=object)
        is_text = self.labels is None
        if self.library == "polars" and library is not None:
            return library.Series(lists, dtype=library.List(library.String if is_text else library.Int64))
        if self.library == "pyarrow" and library is not None:
            return library.array(lists, library.list_(library.string() if is_text else library.int64()))
        found = np.empty(len(lists), object)
        for row, entries in enumerate(lists):
            found[row] = entries
        return found

    def _pandas_columns(self, names: Array) -> Any:
        import pandas as pd

        if self.labels is None or self.level_names is None:
            return names
        if len(self.level_names) > 1:
            return pd.MultiIndex.from_tuples(self.labels, names=self.level_names)
        return pd.Index(self.labels, name=self.level_names[0], tupleize_cols=False)


def _plain(label: Any) -> Any:
    """Convert NumPy's numbers and text to Python's, in tuples too."""
    if isinstance(label, tuple):
        return tuple(_plain(part) for part in label)
    return label.item() if isinstance(label, np.generic) else label
