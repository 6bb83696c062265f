"""The container of a model file: named tensors and strings in one safetensors file with a canonical encoding.

``docs/model_file_format.md`` describes the bytes.  Reading parses the header, checks names, types and shapes,
encodes it again and compares: a header that passes has no repeated keys, no gaps or overlaps and no unknown
fields.  (The library's own writer puts metadata in random order, and its reader copies tensors.)
Checksum and signature are written last, so arrays stream to the disk in one pass and are never copied.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import math
import mmap
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from labelweave.model_files.safe_file import ModelFileError, replacing_file

_CHUNK = 2**22  # bytes

FilePath = str | os.PathLike[str]
Tensor = npt.NDArray[Any]
FORMAT_VERSION = 1
HEADER_LIMIT = 100_000_000  # the limit of the safetensors library, bytes
MAGIC = b'{"__metadata__":{"format":"labelweave","format_version":"'
NO_CHECKSUM = "0" * 64

_BEFORE_CHECKSUM = MAGIC + f'{FORMAT_VERSION}","checksum":"sha256:'.encode()
CHECKSUM_PLACE = slice(8 + len(_BEFORE_CHECKSUM), 8 + len(_BEFORE_CHECKSUM) + len(NO_CHECKSUM))
_BEFORE_SIGNATURE = b'","signature":"hmac-sha256:'
_SIGNATURE_START = CHECKSUM_PLACE.stop + len(_BEFORE_SIGNATURE)
SIGNATURE_PLACE = slice(_SIGNATURE_START, _SIGNATURE_START + len(NO_CHECKSUM))
_SHORTEST_KEY = 16  # bytes
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


class Seals(NamedTuple):
    """The hexadecimal digits in a file; they are computed with zeros in their place."""

    checksum: str = NO_CHECKSUM
    signature: str | None = None

    def blank(self) -> Seals:
        return Seals(signature=None if self.signature is None else NO_CHECKSUM)


_UNSEALED = Seals()


class _Digests:
    """The checksum of a file's bytes and, with a key, their signature."""

    def __init__(self, start: bytes, key: bytes | None) -> None:
        self._checksum = hashlib.sha256(start)
        self._signature = None if key is None else hmac.new(key, start, hashlib.sha256)

    def update(self, block: bytes | memoryview) -> None:
        self._checksum.update(block)
        if self._signature is not None:
            self._signature.update(block)

    def seals(self) -> Seals:
        signature = None if self._signature is None else self._signature.hexdigest()
        return Seals(self._checksum.hexdigest(), signature)


def check_key(key: bytes | None) -> None:
    """Raise if a key is too short to protect a signature from guessing."""
    if key is None:
        return
    if not isinstance(key, bytes):
        raise TypeError(
            f"key is a {type(key).__name__}; pass bytes, such as those of a file of random bytes."
        )
    if len(key) < _SHORTEST_KEY:
        said = f"pass at least {_SHORTEST_KEY}, such as secrets.token_bytes(32)"
        raise ValueError(f"key has {len(key)} bytes; {said}.")


def write_container(
    path: FilePath, fields: Mapping[str, str], tensors: Mapping[str, Tensor], key: bytes | None = None
) -> None:
    """Write strings and dense arrays of stored types as one file, atomically.

    key: the signing key; None for no signature.
    Raises ValueError if the header would exceed 100 MB.
    """
    check_key(key)
    types = {name: _SAFETENSORS_TYPES[_little_endian(tensor.dtype)] for name, tensor in tensors.items()}
    header = Header(
        fields, {name: TensorShape(types[name], tensor.shape) for name, tensor in tensors.items()}
    )
    start = header.to_bytes(Seals(signature=None if key is None else NO_CHECKSUM))
    if len(start) - 8 > HEADER_LIMIT:
        raise ValueError(
            f"The header would have {len(start):,} bytes; a model file allows {HEADER_LIMIT:,}. "
            "Store long lists of names or numbers as arrays."
        )
    with replacing_file(path) as file:
        file.write(start)
        digests = _Digests(start, key)
        for name in header.places():
            for block in _blocks(tensors[name]):
                file.write(block)
                digests.update(block)
        file.seek(0)
        file.write(header.to_bytes(digests.seals()))


def _blocks(tensor: Tensor) -> Iterator[memoryview]:
    """Yield the bytes in C order, little-endian, some rows at a time; copy only arrays stored otherwise."""
    if not tensor.size:
        return
    rows = np.atleast_1d(tensor)
    step = max(1, _CHUNK * len(rows) // rows.nbytes)
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step], dtype=tensor.dtype.newbyteorder("<"))
        yield block.reshape(-1).view(np.uint8).data


def map_container(
    path: FilePath, *, verify: bool = True, key: bytes | None = None, map_file: bool = True
) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read the strings of a file and memory-map its arrays, read-only.

    verify: whether to read the whole file once and compare the checksum.
    key: the key of the file's signature; None accepts any signature or none.
    map_file: False to read the whole file into memory, so that later changes of the file have no effect.
    Raises ModelFileError if the file is not exactly as :func:`write_container` wrote it.
    """
    check_key(key)
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = _read_start(file, path, size)
        header, seals = parse_header(start)
        expected = len(start) + sum(tensor.n_bytes for tensor in header.tensors.values())
        if size < expected:
            raise ModelFileError(f"it is truncated: it has {size:,} bytes of {expected:,}.")
        if size > expected:
            raise ModelFileError(f"it is damaged: {size - expected:,} bytes follow its end.")
        memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if map_file else _read(file, start)
        if verify or key is not None:
            file.seek(len(start))
            blocks = _chunks(file) if map_file else iter([memoryview(memory)[len(start) :]])
            _check_seals(header, seals, blocks, key)
    return dict(header.fields), _views(memoryview(memory).toreadonly(), len(start), header)


def _opened(path: FilePath) -> BufferedReader:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "This is a directory, not a model file", os.fspath(path))
    if not stat.S_ISREG(mode):  # opening a pipe would block
        raise ModelFileError("it is not a regular file.")
    return open(path, "rb")


def _read_start(file: BufferedReader, path: FilePath, size: int) -> bytes:
    start = file.read(8 + len(MAGIC) + 16)
    if not start[8:].startswith(MAGIC):
        raise ModelFileError(_why_foreign(start, path, size))
    _check_version(start[8 + len(MAGIC) :])
    length = int.from_bytes(start[:8], "little")
    if length > HEADER_LIMIT:
        raise ModelFileError(
            f"it is damaged: its header claims {length:,} bytes, {HEADER_LIMIT:,} are allowed."
        )
    if 8 + length > size:
        raise ModelFileError(f"it is truncated: it has {size:,} bytes, its header alone {8 + length:,}.")
    file.seek(0)
    return file.read(8 + length)


def _why_foreign(start: bytes, path: FilePath, size: int) -> str:
    if MAGIC.startswith(start[8:]):
        return f"it is not a labelweave model, or only the beginning of one ({size:,} bytes)."
    try:
        with safe_open(path, framework="np"):
            return "it is a safetensors file, but not a labelweave model."
    except (SafetensorError, OSError):
        return "it is not a labelweave model."


def _check_version(text: bytes) -> None:
    version = text.partition(b'"')[0]
    if version == str(FORMAT_VERSION).encode():
        return
    if version.isdigit() and int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {int(version)}, but this labelweave reads version {FORMAT_VERSION}; "
            "install a newer labelweave."
        )
    raise ModelFileError("it is damaged: its format version cannot be read.")


def _read(file: BufferedReader, start: bytes) -> mmap.mmap:
    """Read a file into page-aligned memory, as a mapping is."""
    size = os.fstat(file.fileno()).st_size
    memory = mmap.mmap(-1, size)
    file.seek(0)
    if file.readinto(memory) != size or memory[: len(start)] != start:
        raise ModelFileError("it changed while it was read.")
    return memory


def _chunks(file: BufferedReader) -> Iterator[memoryview]:
    # reading instead of traversing the mapping keeps the pages out of the process's resident memory
    buffer = memoryview(bytearray(2**20))
    while count := file.readinto(buffer):
        yield buffer[:count]


def _check_seals(header: Header, stated: Seals, blocks: Iterator[memoryview], key: bytes | None) -> None:
    """Compare the checksum and, with a key, the signature with those of the header and blocks."""
    if key is not None and stated.signature is None:
        raise ModelFileError(
            "it is not signed, but a key was passed; load it without one only if you trust it."
        )
    digests = _Digests(header.to_bytes(stated.blank()), key)
    for block in blocks:
        digests.update(block)
    found = digests.seals()
    if found.signature is not None and not hmac.compare_digest(found.signature, str(stated.signature)):
        raise ModelFileError(
            "its signature does not match the key; it was signed with another key, or changed since."
        )
    if found.checksum != stated.checksum:
        raise ModelFileError(
            "its checksum does not match; the file was changed or damaged since it was saved."
        )


def _views(memory: memoryview, start: int, header: Header) -> dict[str, Tensor]:
    tensors = {}
    for name, (begin, _) in header.places().items():
        tensor = header.tensors[name]
        view: Tensor = np.ndarray(tensor.shape, tensor.dtype, buffer=memory, offset=start + begin)
        if tensor.type_name == "BOOL" and view.size and view.view(np.uint8).max() > 1:
            raise ModelFileError(f"its array {name!r} is of type bool but has bytes other than 0 and 1.")
        tensors[name] = view
    return tensors


def is_stored(dtype: npt.DTypeLike) -> bool:
    return _little_endian(dtype) in _SAFETENSORS_TYPES


def _little_endian(dtype: npt.DTypeLike) -> str:
    return np.dtype(dtype).newbyteorder("<").str


@dataclass(frozen=True)
class TensorShape:
    """A header's entry of one tensor, with the safetensors name of its type."""

    type_name: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        return _NUMPY_TYPES[self.type_name]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Header:
    """Everything before the tensors' bytes; fields are the metadata after the seals, in order."""

    fields: Mapping[str, str]
    tensors: Mapping[str, TensorShape]

    def places(self) -> dict[str, tuple[int, int]]:
        """Return the first byte and the end of each tensor in file order; they are contiguous."""
        places, end = {}, 0
        for name in sorted(self.tensors, key=lambda name: (-self.tensors[name].dtype.itemsize, name)):
            begin, end = end, end + self.tensors[name].n_bytes
            places[name] = (begin, end)
        return places

    def to_bytes(self, seals: Seals = _UNSEALED) -> bytes:
        """Encode the file up to the first tensor: the header, preceded by its length."""
        first = {
            "format": "labelweave",
            "format_version": str(FORMAT_VERSION),
            "checksum": f"sha256:{seals.checksum}",
        }
        if seals.signature is not None:
            first["signature"] = f"hmac-sha256:{seals.signature}"
        entries: dict[str, Any] = {"__metadata__": {**first, **self.fields}}
        for name, place in self.places().items():
            tensor = self.tensors[name]
            entries[name] = {"dtype": tensor.type_name, "shape": tensor.shape, "data_offsets": place}
        text = json.dumps(entries, separators=(",", ":")).encode("ascii")
        text += b" " * (-(8 + len(text)) % _PADDED_TO)
        return len(text).to_bytes(8, "little") + text


def parse_header(start: bytes) -> tuple[Header, Seals]:
    """Parse the output of :meth:`Header.to_bytes`, with its seals; refuse all other bytes."""
    is_signed = start[CHECKSUM_PLACE.stop :].startswith(_BEFORE_SIGNATURE)
    places = (CHECKSUM_PLACE, SIGNATURE_PLACE) if is_signed else (CHECKSUM_PLACE,)
    seals = Seals(*(start[place].decode("ascii", errors="replace") for place in places))
    try:
        entries = json.loads(start[8:].decode("ascii"))
        metadata = entries.pop("__metadata__")
        fields = dict(list(metadata.items())[2 + len(places) :])
        header = Header(fields, {name: _tensor_shape(entry) for name, entry in entries.items()})
        same = header.to_bytes(seals) == start
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"its header is damaged ({type(error).__name__}: {error}).") from None
    if not same or not all(isinstance(text, str) for text in fields.values()):
        raise ModelFileError("its header is damaged or was edited; it is not as labelweave writes it.")
    return header, seals


def _tensor_shape(entry: Any) -> TensorShape:
    type_name, shape = entry["dtype"], entry["shape"]
    if type_name not in _NUMPY_TYPES:
        raise ValueError(f"unknown type {str(type_name)[:20]!r}")
    if len(shape) > _MOST_DIMENSIONS or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("a shape is not a short list of non-negative integers")
    # NumPy computes the size as if no length were 0
    if math.prod(max(length, 1) for length in shape) * 8 > _MOST_BYTES:
        raise ValueError("a shape is too large")
    return TensorShape(type_name, tuple(shape))
