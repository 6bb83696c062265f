"""The header of a model file: safetensors, in exactly one spelling.

A safetensors file is an 8-byte little-endian length, that many bytes of JSON, then the tensors' bytes without
gaps.  The header here is what safetensors allows, with every free choice fixed: ASCII, no spaces, metadata
first with ``format``, ``format_version`` and ``checksum`` in front, tensors by falling item size and then by
name (so every one is aligned), padded with spaces to a multiple of 64 bytes.

Reading parses the header, checks names, types and shapes, writes it again and compares.  Whatever the
comparison lets through has no repeated keys, no gaps or overlaps and no unknown fields.  (The library's own
writer puts metadata in random order, and its reader copies every tensor.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.model_files.errors import ModelFileError

__all__ = [
    "CHECKSUM_PLACE",
    "FORMAT_VERSION",
    "HEADER_LIMIT",
    "MAGIC",
    "NO_CHECKSUM",
    "Header",
    "TensorShape",
    "parse_header",
    "safetensors_type",
]

FORMAT_VERSION = 1
HEADER_LIMIT = 100_000_000  # the limit of the safetensors library, bytes
MAGIC = b'{"__metadata__":{"format":"labelweave","format_version":"'
NO_CHECKSUM = "0" * 64

_BEFORE_CHECKSUM = MAGIC + f'{FORMAT_VERSION}","checksum":"sha256:'.encode()
CHECKSUM_PLACE = slice(8 + len(_BEFORE_CHECKSUM), 8 + len(_BEFORE_CHECKSUM) + len(NO_CHECKSUM))
_PADDED_TO = 64
_MOST_DIMENSIONS = 64
_MOST_BYTES = 2**62

_NUMPY_TYPES = {
    "BOOL": np.dtype("|b1"),
    **{f"{letter.upper()}8": np.dtype(f"|{letter}1") for letter in "iu"},
    **{f"{letter.upper()}{8 * size}": np.dtype(f"<{letter}{size}") for letter in "iu" for size in (2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_SAFETENSORS_TYPES = {dtype.str: name for name, dtype in _NUMPY_TYPES.items()}


def safetensors_type(dtype: npt.DTypeLike) -> str | None:
    """Name a NumPy type as safetensors does.

    dtype: A NumPy type of any byte order.
    Returns the name, such as ``"F64"``; ``None`` if a model file does not hold this type.
    """
    return _SAFETENSORS_TYPES.get(np.dtype(dtype).newbyteorder("<").str)


@dataclass(frozen=True)
class TensorShape:
    """What a header says of one tensor.

    type_name: the safetensors name of its type.
    """

    type_name: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type, little-endian."""
        return _NUMPY_TYPES[self.type_name]

    @property
    def n_bytes(self) -> int:
        """The number of bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Header:
    """All that stands before the tensors' bytes.

    fields: the metadata after format, version and checksum, in order.
    tensors: the tensors, in any order.
    """

    fields: Mapping[str, str]
    tensors: Mapping[str, TensorShape]

    def places(self) -> dict[str, tuple[int, int]]:
        """Place the tensors one after the other.

        Returns first byte and end of every tensor, counted from the first tensor, in file order.
        """
        places, end = {}, 0
        for name in sorted(self.tensors, key=lambda name: (-self.tensors[name].dtype.itemsize, name)):
            begin, end = end, end + self.tensors[name].n_bytes
            places[name] = (begin, end)
        return places

    @property
    def data_size(self) -> int:
        """The number of bytes of all tensors."""
        return sum(tensor.n_bytes for tensor in self.tensors.values())

    def to_bytes(self, checksum: str = NO_CHECKSUM) -> bytes:
        """Write the header, with its length in front.

        Returns the file up to the first tensor.
        """
        first = {
            "format": "labelweave",
            "format_version": str(FORMAT_VERSION),
            "checksum": f"sha256:{checksum}",
        }
        entries: dict[str, Any] = {"__metadata__": {**first, **self.fields}}
        for name, place in self.places().items():
            tensor = self.tensors[name]
            entries[name] = {"dtype": tensor.type_name, "shape": tensor.shape, "data_offsets": place}
        text = json.dumps(entries, separators=(",", ":")).encode("ascii")
        text += b" " * (-(8 + len(text)) % _PADDED_TO)
        return len(text).to_bytes(8, "little") + text


def parse_header(start: bytes) -> tuple[Header, str]:
    """Read what :meth:`Header.to_bytes` wrote.

    start: the file up to the first tensor, length included.
    checksum: the checksum it states, 64 hexadecimal digits.
    Raises ModelFileError if :meth:`Header.to_bytes` cannot have written these bytes.
    """
    checksum = start[CHECKSUM_PLACE].decode("ascii", errors="replace")
    try:
        entries = json.loads(start[8:].decode("ascii"))
        metadata = entries.pop("__metadata__")
        fields = dict(list(metadata.items())[3:])
        header = Header(fields, {name: _tensor_shape(entry) for name, entry in entries.items()})
        same = header.to_bytes(checksum) == start
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"its header is damaged ({type(error).__name__}: {error}).") from None
    if not same or not all(isinstance(text, str) for text in fields.values()):
        raise ModelFileError("its header is damaged or was edited; labelweave would write it differently.")
    return header, checksum


def _tensor_shape(entry: Any) -> TensorShape:
    type_name, shape = entry["dtype"], entry["shape"]
    if type_name not in _NUMPY_TYPES:
        raise ValueError(f"unknown type {str(type_name)[:20]!r}")
    if len(shape) > _MOST_DIMENSIONS or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("a shape is not a short list of non-negative integers")
    # NumPy multiplies the lengths as if none were 0
    if math.prod(max(length, 1) for length in shape) * 8 > _MOST_BYTES:
        raise ValueError("a shape is too large")
    return TensorShape(type_name, tuple(shape))
