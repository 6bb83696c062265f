"""Files of vectors, one per row: ``.npy``, ``.npz``, SciPy's sparse ``.npz``, ``.safetensors``.

With a table, such a file is an additional column, joined by the order of rows, or by row names if the file
has any: ``.npz`` with the arrays ``ids`` and ``vectors``.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, deserialize, safe_open

from labelweave.datasets.data_file import DataFileError, PathLike, require_file
from labelweave.datasets.raw_table import Columns, RawTable
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import checked_csr
from labelweave.labels.label_names import as_text


@dataclass(frozen=True)
class DenseBlock:
    """Dense features of one name, and their means over training rows, which are imputed for missing numbers.

    Blocks of disjoint rows can be added.  k is 0 before the first vectors.
    Shapes: counts (k,), of observed numbers; sums (k,).
    """

    name: str
    counts: Array
    sums: Floats

    @classmethod
    def of(cls, name: str, vectors: Array) -> Self:
        """Sum the vectors (n, k) of some rows, NaN where missing."""
        counts = np.count_nonzero(~np.isnan(vectors), axis=0)
        return cls(name, counts, np.nansum(vectors, axis=0, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.sums)

    def __add__(self, other: Self) -> Self:
        if not len(self) or not len(other):
            return self if len(self) else other
        if len(self) != len(other):
            lengths = f"{len(self)} numbers in some rows and of {len(other)} in others"
            raise ValueError(f"The column {self.name!r} has vectors of {lengths}; use one length.")
        return type(self)(self.name, self.counts + other.counts, self.sums + other.sums)

    def refuse_gaps(self) -> None:
        """Raise an error if there are no vectors, or a component is missing in all rows."""
        if not len(self) or not self.counts.all():
            what = f"no number at position {np.argmin(self.counts)}" if len(self) else "no vector"
            raise ValueError(f"The vectors column {self.name!r} has {what} in any row; leave it out.")

    @property
    def means(self) -> Floats:
        return self.sums / self.counts

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{place}]" for place in range(len(self))]

    def filled(self, vectors: Array) -> Array:
        """Impute means for missing numbers in vectors (n, k)."""
        is_missing = np.isnan(vectors)
        return (
            np.where(is_missing, self.means.astype(vectors.dtype), vectors) if is_missing.any() else vectors
        )


_SUFFIXES = (".npy", ".npz", ".safetensors")
_SPARSE = {"format", "shape", "data"}  # keys of SciPy's sparse files
_MOST_ENTRIES = 2**28  # of a sparse matrix, which is converted to dense
_DAMAGE = (OSError, ValueError, TypeError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error,
           SafetensorError)  # fmt: skip


def is_vector_file(path: PathLike) -> bool:
    return Path(path).suffix.lower() in _SUFFIXES


def read_vectors(path: PathLike) -> tuple[Any, Array | None]:
    """Read vectors (n, k), lazily from ``.npy``, and row names (n,) if the file has any.

    Raises DataFileError if it is damaged, or has other content.
    """
    require_file(path)
    try:
        arrays = _arrays(path)
    except _DAMAGE as error:
        reason, expected = str(error).partition("\n")[0], "a file of numbers"
        if "pickle" in reason or "Python objects" in reason:
            reason, expected = "no array, or Python objects", f"{expected}, with ids from ids.astype(str)"
        raise DataFileError(path, None, f"an unreadable file ({reason})", expected) from None
    ids = arrays.pop("ids") if arrays.keys() == {"ids", "vectors"} else None
    vectors = next(iter(arrays.values()), np.empty(0))
    if len(arrays) != 1 or vectors.ndim != 2 or not vectors.size or vectors.dtype.kind not in "biuf":
        shapes = ", ".join(f"{one.dtype}{one.shape}" for one in arrays.values())
        expected = "one array (rows, numbers), or two named ids and vectors"
        raise DataFileError(path, None, f"arrays of {shapes}" if shapes else "no array", expected)
    if ids is not None and ids.shape != vectors.shape[:1]:
        what = f"{len(vectors)} vectors and ids of shape {ids.shape}"
        raise DataFileError(path, None, what, "one id per vector")
    if ids is not None and ids.dtype.kind == "S":
        ids = np.char.decode(ids, "utf-8", "replace")
    return vectors, ids


def _arrays(path: PathLike) -> dict[str, Any]:
    """Read the arrays of a file by their names."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        return {"": np.load(path, mmap_mode="r", allow_pickle=False)}
    if suffix == ".safetensors":
        with safe_open(path, framework="numpy") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
            return {
                name: _bfloat16(path, name) if kind == "BF16" else file.get_tensor(name)
                for name, kind in kinds.items()
            }
    with Path(path).open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        if not {*arrays.files} >= _SPARSE:
            return {name: arrays[name] for name in arrays.files}
        file.seek(0)
        matrix = checked_csr(sp.load_npz(file), "the matrix")
    if np.prod(matrix.shape, dtype=float) > _MOST_ENTRIES:
        raise ValueError(f"a sparse matrix of shape {matrix.shape}, with more than {_MOST_ENTRIES:,} entries")
    return {"": matrix.toarray()}


def _bfloat16(path: PathLike, name: str) -> Array:
    """Read a tensor of bfloat16, which NumPy lacks: the upper halves of float32 numbers."""
    read: Any = deserialize
    tensor = dict(read(Path(path).read_bytes()))[name]
    bits = np.frombuffer(tensor["data"], "<u2").astype("<u4") << 16
    return bits.view("<f4").reshape(tensor["shape"])


@dataclass(frozen=True)
class TableWithVectors(os.PathLike[str]):
    """The path of a table, with a file of vectors as an additional column, or of that file as a table.

    id: the column of row names, by which a file with names is joined; name: of the vector column.
    """

    path: PathLike
    vector_path: PathLike
    id: str | None = None
    name: str = "vectors"

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    __str__ = __fspath__

    @cached_property
    def _file(self) -> tuple[Any, Array | None]:
        return read_vectors(self.vector_path)

    @property
    def is_alone(self) -> bool:
        """Whether the vectors, and the names of rows if the file has any, are the table."""
        return self.path == self.vector_path

    def alone(self, chunk_rows: int | None) -> Iterator[RawTable]:
        vectors, ids = self._file
        for first in range(0, len(vectors), chunk_rows or len(vectors)):
            rows = slice(first, first + (chunk_rows or len(vectors)))
            names = {} if ids is None else {str(self.id): [*map(as_text, ids[rows].tolist())]}
            yield RawTable(self.path, Columns({self.name: _column(vectors[rows])} | names), None, first)

    def joined(self, tables: Iterator[RawTable]) -> Iterator[RawTable]:
        """Add the vectors to blocks of rows of the table; raise an error unless rows and vectors match."""
        vectors, ids = self._file
        table = next(tables, None)
        while table is not None:
            following = next(tables, None)
            if self.name in table.columns:
                what = f"a column {self.name!r}, like the vectors of {self.vector_path}"
                raise DataFileError(self.path, None, what, "a different column name")
            rows: Any = slice(table.first_row, table.first_row + len(table))
            if ids is not None:
                rows = self._places(ids, table)
            elif rows.stop > len(vectors) or (following is None and rows.stop < len(vectors)):
                n_rows = rows.stop + sum(map(len, chain([following] if following else [], tables)))
                what = f"{len(vectors)} vectors for the {n_rows} rows of {self.path}"
                raise DataFileError(self.vector_path, None, what, "one per row, in their order")
            yield replace(table, columns=table.columns.with_columns({self.name: _column(vectors[rows])}))
            table = following

    def _places(self, ids: Array, table: RawTable) -> Array:
        """Find the positions of rows in the file by their names."""
        import pandas as pd

        known = pd.Index([as_text(one) for one in ids.tolist()])
        if not known.is_unique:
            what = f"the id {known[known.duplicated()][0][:40]!r} more than once"
            raise DataFileError(self.vector_path, None, what, "distinct ids")
        if self.id is None or self.id not in table.columns:
            expected = ParameterMessage("a column of the table with them as `id`")
            raise DataFileError(self.vector_path, None, "ids of vectors", expected)
        names = [as_text(cell) for cell in table.columns[self.id]]
        places: Array = known.get_indexer(pd.Index(names))
        absent = np.flatnonzero(places < 0)
        if len(absent):
            first = names[absent[0]][:40]
            what = f"no vector for {len(absent)} rows of {self.path}, the first of id {first!r}"
            raise DataFileError(self.vector_path, None, what, "one per row")
        return places


def _column(vectors: Array) -> Any:
    """Convert vectors (n, k) to a pyarrow column."""
    from pyarrow import FixedSizeListArray, chunked_array

    is_plain = vectors.dtype.kind != "b" and vectors.dtype.itemsize <= np.dtype(np.float64).itemsize
    numbers = np.ascontiguousarray(vectors, vectors.dtype.newbyteorder("=") if is_plain else np.float64)
    return chunked_array([FixedSizeListArray.from_arrays(numbers.ravel(), vectors.shape[1])])
