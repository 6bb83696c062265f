"""Convert dense, text and sparse arrays to the plain tensors of a container, and back.

Everything read back is checked in full, despite the checksum: offsets in order, column indices in range.
This keeps compiled code safe that relies on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.model_files.container import is_stored
from labelweave.model_files.safe_file import ModelFileError
from labelweave.model_files.schema import MULTIPLE, is_bounded

_SPARSE_CLASSES: dict[str, Any] = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix)
}
_DENSE = "dense", "transposed"
_INDEX_TYPES = ("<i4", "<i8")
_SPARSE_PARTS = ("data", "indices", "indptr")
_TEXT_LIMIT = 2**32  # bytes of all text arrays of a file, padded to their widths
_MOST_DIMENSIONS = 64
_MOST_ITEMS = 2**60
_WIDEST_TEXT = 2**28

Tensor = npt.NDArray[Any]
Tensors = dict[str, Tensor]
Layout = dict[str, Any]


def is_array_name(name: Any) -> bool:
    """Return whether an array can have this name: non-empty Unicode text without a colon."""
    if type(name) is not str or not name or ":" in name or name == "__metadata__":
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def pack_arrays(arrays: Mapping[str, Any]) -> tuple[Layout, Tensors]:
    """Convert arrays to plain tensors, and describe each array as plain data."""
    for name in arrays:
        if not is_array_name(name):
            raise ValueError(f"The array name {name!r} cannot be stored; use Unicode text without ':'.")
    texts = [array for array in arrays.values() if isinstance(array, np.ndarray) and array.dtype.kind == "U"]
    size = sum(array.nbytes for array in texts)
    if size > _TEXT_LIMIT:
        raise ValueError(
            f"The text arrays fill {size:,} bytes, each text padded to the longest; "
            f"{_TEXT_LIMIT:,} are allowed. Shorten the longest texts."
        )
    layout: Layout = {}
    tensors: Tensors = {}
    for name in sorted(arrays):
        layout[name], parts = _pack(name, arrays[name])
        tensors.update(parts)
    stored = sum(tensor.nbytes for tensor in tensors.values())
    if not is_bounded(size, stored):
        raise ValueError(
            f"The text arrays fill {size:,} bytes, each text padded to the longest, which is more than "
            f"{MULTIPLE:,} times the {stored:,} bytes of all arrays. Shorten the longest texts."
        )
    return layout, tensors


def _pack(name: str, array: Any) -> tuple[Layout, Tensors]:
    if type(array) in _SPARSE_CLASSES.values():
        return _pack_sparse(name, array)
    if type(array) not in (np.ndarray, np.memmap):
        raise TypeError(
            f"The array {name!r} is of type {type(array).__name__}; allowed are plain NumPy arrays and "
            "SciPy's CSR and CSC arrays. Convert it, for example with numpy.asarray or .tocsr()."
        )
    if array.dtype.kind == "U":
        return _pack_text(name, array)
    _check_dtype(name, array)
    # the last bits of a matrix product depend on the memory layout
    if not array.flags.c_contiguous and abs(array.strides[0]) < abs(array.strides[-1]):
        return {"type": "transposed"}, {name: array.T}
    return {"type": "dense"}, {name: array}


def _check_dtype(name: str, array: Tensor) -> None:
    if not is_stored(array.dtype):
        raise ValueError(
            f"The array {name!r} is of dtype {array.dtype}; a model file holds bool, integers, float16, "
            "float32, float64 and fixed-width text. Convert it with .astype first."
        )


def _pack_text(name: str, array: Tensor) -> tuple[Layout, Tensors]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in array.ravel().tolist()]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    layout: Layout = {"type": "text", "shape": list(array.shape), "width": array.dtype.itemsize // 4}
    text = np.frombuffer(b"".join(encoded), np.uint8)
    return layout, {f"{name}:text": text, f"{name}:offsets": offsets}


def _pack_sparse(name: str, matrix: Any) -> tuple[Layout, Tensors]:
    if matrix.ndim != 2:
        raise ValueError(f"The sparse array {name!r} has {matrix.ndim} dimension(s); two can be stored.")
    _check_dtype(name, matrix.data)
    stored = int(matrix.indptr[-1])  # SciPy allows unused space after the last entry
    parts: list[Tensor] = [matrix.data[:stored], matrix.indices[:stored], matrix.indptr]
    if not _is_compressed(matrix.format, matrix.shape, *parts):
        raise ValueError(f"The sparse array {name!r} has indices out of range or out of order; rebuild it.")
    layout: Layout = {"type": type(matrix).__name__, "shape": [int(length) for length in matrix.shape]}
    return layout, {f"{name}:{part}": tensor for part, tensor in zip(_SPARSE_PARTS, parts, strict=True)}


def unpack_arrays(layout: Layout, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Restore the arrays; dense and sparse arrays share the memory of their tensors."""
    left = dict(tensors)
    try:
        for name, entry in layout.items():
            _check_entry(name, entry)
        texts = [entry for entry in layout.values() if entry["type"] == "text"]
        padded = sum(4 * entry["width"] * math.prod(entry["shape"]) for entry in texts)
        if padded > _TEXT_LIMIT or not is_bounded(padded, sum(tensor.nbytes for tensor in tensors.values())):
            raise ModelFileError(
                f"its text arrays would fill {padded:,} bytes, each text padded to the longest, which is too "
                "much for its size."
            )
        arrays = {name: _unpack(name, entry, left) for name, entry in layout.items()}
    except KeyError as error:
        raise ModelFileError(f"its list of arrays is damaged: {error} is missing.") from None
    if left:
        raise ModelFileError(f"it holds {next(iter(left))!r}, which belongs to no array.")
    return arrays


def _check_entry(name: str, entry: Any) -> None:
    """Check the values used in later arithmetic; a file may contain anything."""
    known = isinstance(entry, dict) and entry.get("type") in (*_DENSE, "text", *_SPARSE_CLASSES)
    if not known or not is_array_name(name):
        raise ModelFileError(f"its list of arrays has an entry {name!r} that cannot be read.")
    if entry["type"] in _DENSE:
        return
    shape, width = entry["shape"], entry.get("width", 1)
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise ModelFileError(f"its array {name!r} has an unreadable shape.")
    if not all(type(length) is int and length >= 0 for length in (*shape, width)):
        raise ModelFileError(f"its array {name!r} has a length that is not a non-negative integer.")
    # NumPy computes the size as if no length were 0, SciPy never computes it
    is_text = entry["type"] == "text"
    together = math.prod(max(length, 1) for length in shape) if is_text else max(shape, default=0)
    if together * max(width, 1) > _MOST_ITEMS or width > _WIDEST_TEXT:
        raise ModelFileError(f"its array {name!r} has the impossible shape {shape}.")


def _unpack(name: str, entry: Layout, left: Tensors) -> Any:
    if entry["type"] in _DENSE:
        return left.pop(name) if entry["type"] == "dense" else left.pop(name).T
    if entry["type"] == "text":
        return _unpack_text(name, entry, left.pop(f"{name}:text"), left.pop(f"{name}:offsets"))
    return _unpack_sparse(name, entry, [left.pop(f"{name}:{part}") for part in _SPARSE_PARTS])


def _unpack_text(name: str, entry: Layout, text: Tensor, offsets: Tensor) -> npt.NDArray[np.str_]:
    shape, width = tuple(entry["shape"]), entry["width"]
    fits = text.dtype == np.uint8 and text.ndim == 1 and _is_steps(offsets, math.prod(shape), text.size)
    if not fits:
        raise ModelFileError(f"its text array {name!r} is damaged: offsets and bytes do not match.")
    blob = text.tobytes()
    try:
        words = [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(offsets.tolist())]
    except UnicodeDecodeError as error:
        raise ModelFileError(f"its text array {name!r} is not UTF-8 ({error}).") from None
    if max(map(len, words), default=0) > width:
        raise ModelFileError(f"its text array {name!r} has a text longer than its width {width}.")
    return np.array(words, dtype=f"<U{width}").reshape(shape)


def _unpack_sparse(name: str, entry: Layout, parts: list[Tensor]) -> Any:
    shape = tuple(entry["shape"])
    if parts[0].dtype == np.float16 or not _is_compressed(entry["type"][:3], shape, *parts):
        raise ModelFileError(f"its sparse array {name!r} is damaged: it has indices out of range or order.")
    # the public constructor would copy, and narrow 64-bit indices
    matrix = _SPARSE_CLASSES[entry["type"]](shape, dtype=parts[0].dtype)
    matrix.data, matrix.indices, matrix.indptr = parts
    return matrix


def _is_compressed(order: str, shape: tuple[int, ...], data: Tensor, indices: Tensor, indptr: Tensor) -> bool:
    """Return whether three arrays form a valid CSR or CSC array that compiled code can trust."""
    if len(shape) != 2 or data.ndim != 1 or indices.shape != data.shape:
        return False
    major, minor = shape if order == "csr" else shape[::-1]
    if not _is_steps(indptr, major, indices.size) or indices.dtype.newbyteorder("<").str not in _INDEX_TYPES:
        return False
    return indices.size == 0 or bool(indices.min() >= 0 and indices.max() < minor)


def _is_steps(offsets: Tensor, count: int, end: int) -> bool:
    """Return whether ``count + 1`` offsets rise from 0 to ``end`` without decreasing."""
    if offsets.dtype.newbyteorder("<").str not in _INDEX_TYPES or offsets.shape != (count + 1,):
        return False
    return bool(offsets[0] == 0 and offsets[-1] == end and (offsets[1:] >= offsets[:-1]).all())
