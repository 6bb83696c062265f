"""Files of vectors, one a row: NumPy's ``.npy`` and ``.npz``, SciPy's sparse ``.npz``, ``.safetensors``.

Beside a table such a file is one more column of it, joined by the order of rows, or by their names where the
file has some: ``.npz`` with the arrays ``ids`` and ``vectors``.
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.data_file import DataFileError, PathLike, require_file
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.arrays import checked_csr
from labelweave.labels.label_names import as_text

if TYPE_CHECKING:
    from labelweave.datasets.table_files import RawTable

SUFFIXES = (".npy", ".npz", ".safetensors")
_SPARSE = {"format", "shape", "data"}  # in what SciPy saves
_MOST_ENTRIES = 2**28  # of a sparse matrix that is written out
_DAMAGE = (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error)


class VectorFile(NamedTuple):
    """Vectors (n, k), which may stay on the disk until they are asked for, and the names of rows or None."""

    vectors: Any
    ids: npt.NDArray[Any] | None = None


def is_vector_file(path: PathLike) -> bool:
    """Say whether a file is one of vectors, by its name."""
    return Path(path).suffix.lower() in SUFFIXES


def read_vectors(path: PathLike) -> VectorFile:
    """Read a file of vectors; raises DataFileError if it is damaged, or holds other things."""
    require_file(path)
    read = {".npy": _of_npy, ".npz": _of_npz, ".safetensors": _of_safetensors}[Path(path).suffix.lower()]
    try:
        found = read(path)
    except DataFileError:
        raise
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0]
        raise DataFileError(path, None, f"what cannot be read ({reason})", "a file of numbers") from None
    if found.vectors.ndim != 2 or not found.vectors.size or found.vectors.dtype.kind not in "biuf":
        what = f"an array of shape {found.vectors.shape} and type {found.vectors.dtype}"
        raise DataFileError(path, None, what, "numbers in two dimensions, (rows, numbers)")
    if found.ids is not None and found.ids.shape != found.vectors.shape[:1]:
        what = f"{found.vectors.shape[0]} vectors and ids of shape {found.ids.shape}"
        raise DataFileError(path, None, what, "an id for each vector")
    return found


def _of_npy(path: PathLike) -> VectorFile:
    return VectorFile(np.load(path, mmap_mode="r", allow_pickle=False))


def _of_npz(path: PathLike) -> VectorFile:
    with np.load(path, allow_pickle=False) as arrays:
        names = set(arrays.files)
        if names >= _SPARSE:
            return VectorFile(_dense(path))
        if names == {"ids", "vectors"}:
            return VectorFile(arrays["vectors"], arrays["ids"])
        if len(names) != 1:
            what = f"the arrays {', '.join(sorted(names)) or 'of nothing'}"
            raise DataFileError(path, None, what, "one array, or two called ids and vectors")
        return VectorFile(arrays[names.pop()])


def _dense(path: PathLike) -> npt.NDArray[Any]:
    """Write a sparse matrix out."""
    matrix = checked_csr(sp.load_npz(path), "the matrix")
    if np.prod(matrix.shape, dtype=float) > _MOST_ENTRIES:
        what, most = f"a sparse matrix of shape {matrix.shape}", f"{_MOST_ENTRIES:,}"
        raise DataFileError(path, None, what, f"at most {most} entries, as vectors are written out")
    dense: npt.NDArray[Any] = matrix.toarray()
    return dense


def _of_safetensors(path: PathLike) -> VectorFile:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if len(names) == 1:
                return VectorFile(file.get_tensor(names[0]))
    except (SafetensorError, TypeError) as error:
        raise ValueError(f"{error}") from None
    raise DataFileError(path, None, f"{len(names)} tensors", "one, of two dimensions")


@dataclass(frozen=True)
class TableWithVectors(os.PathLike[str]):
    """The path of a table, with a file of vectors that are one more column of it.

    id: the column that names rows, by which a file with names is joined; name: of the column of vectors.
    """

    path: PathLike
    vector_path: PathLike
    id: str | None = None
    name: str = "vectors"

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return os.fspath(self.path)

    @cached_property
    def _file(self) -> VectorFile:
        return read_vectors(self.vector_path)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Find the place of each name in the file."""
        ids = [as_text(one) for one in np.asarray(self._file.ids).tolist()]
        places = {name: place for place, name in enumerate(ids)}
        if len(places) < len(ids):
            twice = next(name for place, name in enumerate(ids) if places[name] != place)
            raise DataFileError(self.vector_path, None, f"the id {twice[:40]!r} twice", "each once")
        return places

    def joined(self, tables: Iterator[RawTable]) -> Iterator[RawTable]:
        """Add the vectors to blocks of rows of the table; refuse rows without one, and vectors left over."""
        table = next(tables, None)
        while table is not None:
            following = next(tables, None)
            if self.name in table.columns:
                what = f"a column {self.name!r} beside the vectors of {self.vector_path}"
                raise DataFileError(self.path, None, what, "another name for the column")
            if self._file.ids is None:
                self._refuse_other_count(table, chain([following] if following else [], tables))
                rows: Any = slice(table.first_row, table.first_row + len(table))
            else:
                rows = self._rows_by_name(table)
            yield replace(table, columns=table.columns.with_column(self.name, self._column(rows)))
            table = following

    def _refuse_other_count(self, table: RawTable, rest: Iterator[RawTable]) -> None:
        """Refuse more rows than vectors, and fewer where no rows follow."""
        n_vectors, n_rows = len(self._file.vectors), table.first_row + len(table)
        following = next(rest, None)
        if n_rows > n_vectors or (following is None and n_rows < n_vectors):
            n_rows += 0 if following is None else len(following) + sum(map(len, rest))
            what = f"{n_vectors} vectors for the {n_rows} rows of {self.path}"
            raise DataFileError(self.vector_path, None, what, "one for each row, in their order")

    def _rows_by_name(self, table: RawTable) -> list[int]:
        if self.id is None or self.id not in table.columns:
            expected = ParameterMessage("a column of the table that names its rows, given as `id`")
            raise DataFileError(self.vector_path, None, "ids of the vectors", expected)
        names = [as_text(cell) for cell in table.columns[self.id]]
        absent = [name for name in names if name not in self._places]
        if absent:
            what = f"no vector for {len(absent)} rows of {self.path}, the first of id {absent[0][:40]!r}"
            raise DataFileError(self.vector_path, None, what, "one for each row")
        return [self._places[name] for name in names]

    def _column(self, rows: Any) -> Any:
        from pyarrow import FixedSizeListArray, chunked_array

        vectors = np.ascontiguousarray(self._file.vectors[rows])
        is_plain = vectors.dtype.kind != "b" and vectors.dtype.itemsize <= np.dtype(np.float64).itemsize
        vectors = vectors.astype(vectors.dtype.newbyteorder("=") if is_plain else np.float64, copy=False)
        return chunked_array([FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])])
