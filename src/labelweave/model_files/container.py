"""Read and write the container: named tensors and strings in one safetensors file.

The checksum is the SHA-256 of the whole file, its own 64 digits read as
zeros: length, header, padding and every tensor byte.  It is written last, so
arrays stream to the disk in one pass and are never copied as a whole.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from labelweave.model_files.atomic_file import replacing_file
from labelweave.model_files.errors import ModelFileError
from labelweave.model_files.header import (
    CHECKSUM_PLACE,
    FORMAT_VERSION,
    HEADER_LIMIT,
    MAGIC,
    NO_CHECKSUM,
    Header,
    TensorShape,
    parse_header,
    safetensors_type,
)

__all__ = ["map_container", "write_container"]

_CHUNK = 2**22  # bytes

FilePath = str | os.PathLike[str]
Tensor = npt.NDArray[Any]


def write_container(path: FilePath, fields: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    """Write strings and dense arrays as one file, completely or not at all.

    path: the file to write or replace.
    tensors: arrays of bool, integers or float16, float32, float64, in any memory order.
    Raises ValueError if an array has another type or the header would pass 100 MB.
    """
    header = Header(fields, {name: _described(name, tensor) for name, tensor in tensors.items()})
    start = header.to_bytes()
    if len(start) - 8 > HEADER_LIMIT:
        raise ValueError(
            f"The header would have {len(start):,} bytes; a model file allows {HEADER_LIMIT:,}. "
            "Store long lists of names or numbers as arrays."
        )
    with replacing_file(path) as file:
        file.write(start)
        digest = hashlib.sha256(start)
        for name in header.places():
            for block in _blocks(tensors[name]):
                file.write(block)
                digest.update(block)
        file.seek(CHECKSUM_PLACE.start)
        file.write(digest.hexdigest().encode())


def _described(name: str, tensor: Tensor) -> TensorShape:
    type_name = safetensors_type(tensor.dtype)
    if type_name is None:
        raise ValueError(f"The array {name!r} is of type {tensor.dtype}, which a model file does not hold.")
    return TensorShape(type_name, tensor.shape)


def _blocks(tensor: Tensor) -> Iterator[memoryview]:
    """Give the bytes in C order, little-endian, some rows at a time; copy only what is stored otherwise."""
    if not tensor.size:
        return
    rows = np.atleast_1d(tensor)
    step = max(1, _CHUNK * len(rows) // rows.nbytes)
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step], dtype=tensor.dtype.newbyteorder("<"))
        yield block.reshape(-1).view(np.uint8).data


def map_container(path: FilePath, *, verify: bool = True) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read the strings of a file and map its arrays into memory.

    verify: whether to read the whole file once and compare the checksum.
    tensors: read-only views of the mapped file.
    Raises ModelFileError if the file is not, or no longer, as :func:`write_container` left it.
    Raises FileNotFoundError, IsADirectoryError, PermissionError if there is no file to read.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = _read_start(file, path, size)
        header, checksum = parse_header(start)
        _check_size(size, len(start) + header.data_size)
        if verify:
            _check_checksum(file, checksum)
        mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    return dict(header.fields), _views(mapping, len(start), header)


def _opened(path: FilePath) -> BufferedReader:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "This is a directory, not a model file", os.fspath(path))
    if not stat.S_ISREG(mode):  # opening a pipe would wait for ever
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
        return f"it is no labelweave model, or only the beginning of one ({size:,} bytes)."
    try:
        with safe_open(path, framework="np"):
            return "it is a safetensors file, but no labelweave model."
    except (SafetensorError, OSError):
        return "it is no labelweave model."


def _check_version(text: bytes) -> None:
    version = text.partition(b'"')[0]
    if version == str(FORMAT_VERSION).encode():
        return
    if version.isdigit() and int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"it is of format version {int(version)}, this labelweave reads version {FORMAT_VERSION}; "
            "install a newer labelweave."
        )
    raise ModelFileError("it is damaged: its format version cannot be read.")


def _check_size(size: int, expected: int) -> None:
    if size < expected:
        raise ModelFileError(f"it is truncated: it has {size:,} bytes of {expected:,}.")
    if size > expected:
        raise ModelFileError(f"it is damaged: {size - expected:,} bytes follow its end.")


def _check_checksum(file: BufferedReader, stated: str) -> None:
    # reading, not walking over the mapping, keeps the pages out of the process's resident memory
    file.seek(0)
    digest = hashlib.sha256(file.read(CHECKSUM_PLACE.start))
    digest.update(NO_CHECKSUM.encode())
    file.seek(CHECKSUM_PLACE.stop)
    buffer = memoryview(bytearray(2**20))
    while count := file.readinto(buffer):
        digest.update(buffer[:count])
    if digest.hexdigest() != stated:
        raise ModelFileError(
            "its checksum does not match; the file was changed or damaged since it was saved."
        )


def _views(mapping: mmap.mmap, start: int, header: Header) -> dict[str, Tensor]:
    tensors = {}
    for name, (begin, _) in header.places().items():
        tensor = header.tensors[name]
        view: Tensor = np.ndarray(tensor.shape, tensor.dtype, buffer=mapping, offset=start + begin)
        if tensor.type_name == "BOOL" and view.size and view.view(np.uint8).max() > 1:
            raise ModelFileError(f"its array {name!r} is of type bool but holds other bytes than 0 and 1.")
        tensors[name] = view
    return tensors
