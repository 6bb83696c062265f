"""Shared parts of the readers and writers of data files: one error, decoded lines, safe replacement.

A reader never returns part of a file; any fault raises :class:`DataFileError`.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import stat
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.foundation.arguments import ParameterMessage
from labelweave.model_files.safe_file import replacing_file

PathLike = str | os.PathLike[str]

MOST_FEATURES = 10**8
MOST_LABELS = 10**7

_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+", re.ASCII)
_BLOCK_BYTES = 1 << 22
_LONGEST_LINE = 1 << 28
_LONGEST_MESSAGE = 300
_LEADING_ZEROS = 20
_LINE_END = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SIGNS = {  # how files of other formats begin; a comma, tab or line end may follow the name of a column
    "gzip": rb"\x1f\x8b", "zip or xlsx": rb"PK\x03\x04", "bzip2": rb"BZh[1-9]1AY&SY", "xz": rb"\xfd7zXZ",
    "zstd": rb"\x28\xb5\x2f\xfd", "7z": rb"7z\xbc\xaf", "xls": rb"\xd0\xcf\x11\xe0", "HDF5": rb"\x89HDF",
    "Parquet": rb"PAR1[^\t\n\r -~]", "Arrow or Feather": rb"ARROW1\0|FEA1\0|\xff{4}", "Avro": rb"Obj\x01",
    "ORC": rb"ORC[^\t\r -~][^\t-\r -~]", "SQLite": rb"SQLite format 3", "MATLAB": rb"MATLAB 5.0 MAT",
    "SPSS": rb"\$FL[23]@", "Stata": rb"<stata_dta>", "HTML": rb"(?i)\s*<(!doctype )?html",
    "PDF": rb"%PDF-", "pickle": rb"\x80[\x02-\x05]", "Git LFS, a pointer to the data": rb"version https://git-lfs",
}  # fmt: skip
_NAMED = {"gzip": "a name with .gz, as the file is compressed", "Parquet": "a name with .parquet"}
_INSIDE = ("data", "rows", "records", "items", "examples")  # what an object of a file calls its rows


class DataFileError(ValueError):
    """Raised for a data file that cannot be read completely.

    Parameters
    ----------
    path : path-like
        The file; kept as a ``pathlib.Path``.
    line : int or None
        The line, counted from one; ``None`` if no line applies.
    found, expected : str
        What the file contains, and what it should contain.
    """

    def __init__(self, path: PathLike, line: int | None, found: str, expected: str) -> None:
        self.path = Path(path)
        self.line = line
        self.found = _cut(found)
        self.expected = _cut(expected)
        where = f"{self.path}" if line is None else f"{self.path}:{line}"
        said = f"{where}: found {self.found}; expected {getattr(self.expected, 'template', self.expected)}."
        super().__init__(ParameterMessage(said) if isinstance(self.expected, ParameterMessage) else said)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.line, self.found, self.expected)


def _cut(text: str) -> str:
    """Shorten a very long text in the middle."""
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


def read_blocks(path: PathLike, block_bytes: int = _BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    r"""Read a file, plain or gzip-compressed, as blocks of whole lines.

    Yields each with the number of its first line, from one; only the last one may lack a final ``\n``.
    Raises DataFileError if the file is missing, not regular, empty, or a damaged archive, or if a line is
    longer than 256 MiB.
    """
    first_line, rest, size = 1, list[bytes | memoryview](), 0
    for chunk in _chunks(Path(path), block_bytes):
        end = chunk.rfind(b"\n") + 1
        if end:
            block, rest, size = b"".join([*rest, memoryview(chunk)[:end]]), [], 0
            yield first_line, block
            first_line += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _LINE_END))
        rest.append(chunk[end:])
        size += len(chunk) - end
        if size > _LONGEST_LINE:
            found = f"a line of more than {_LONGEST_LINE >> 20} MiB"
            raise DataFileError(path, first_line, found, "text in lines")
    if size:
        yield first_line, b"".join(rest)


def require_file(path: PathLike) -> None:
    """Raise DataFileError unless a file is regular: a pipe may block forever, and a device may never end."""
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise DataFileError(path, None, "no such file", "the path of a data file") from None
    if stat.S_ISREG(mode):
        return
    found = "a directory" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
    raise DataFileError(path, None, found, "a data file; the command line reads standard input as '-'")


def _chunks(path: Path, block_bytes: int) -> Iterator[bytes]:
    """Yield the raw bytes, without a byte order mark."""
    require_file(path)
    is_empty = True
    try:
        with opened(path) as stream:
            while chunk := stream.read(block_bytes):
                text = chunk.removeprefix(_BYTE_ORDER_MARK) if is_empty else chunk
                if is_empty:
                    _refuse_binary(path, text)
                is_empty = not text
                yield text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError(path, None, f"a damaged gzip file ({error})", "a whole one") from None
    if is_empty:
        raise DataFileError(path, None, "an empty file", "data")


def _refuse_binary(path: Path, begun: bytes) -> None:
    for name, sign in _SIGNS.items():
        if re.match(sign, begun):
            expected = _NAMED.get(name, "text in UTF-8, such as CSV, or Parquet; unpack or convert it")
            raise DataFileError(path, None, f"the format {name}", expected)
    if b"\0" in begun[:4]:
        raise DataFileError(path, 1, "a byte 0, as in UTF-16", "a file saved as UTF-8")


def contains(path: PathLike, sign: bytes) -> bool:
    """Return whether a file contains a byte; small blocks stay in the processor's cache."""
    return any(sign in chunk for chunk in _chunks(Path(path), 1 << 16))


def opened(path: PathLike) -> Any:
    """Open a file for reading its decompressed bytes."""
    return gzip.open(path, "rb") if is_gzip(path) else Path(path).open("rb")


def is_gzip(path: PathLike) -> bool:
    return Path(path).suffix.lower() == ".gz"


def numbered_lines(path: PathLike, block_bytes: int = _BLOCK_BYTES) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file, plain or compressed, line by line, numbered from one, without line ends."""
    for first_line, block in read_blocks(path, block_bytes):
        lines = decoded(path, first_line, block).split("\n")
        if not lines[-1]:
            lines.pop()
        for offset, line in enumerate(lines):
            yield first_line + offset, line.removesuffix("\r")


def decoded(path: PathLike, first_line: int, block: bytes) -> str:
    """Decode UTF-8; errors name the line and byte."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        column = error.start - block.rfind(b"\n", 0, error.start)
        found = f"the byte 0x{block[error.start]:02x} at position {column} of the line, which is not UTF-8"
        raise DataFileError(path, line, found, "a file saved as UTF-8") from None


def size_in_header(path: PathLike, line: int, what: str, text: str, most: int) -> int:
    """Parse the number of features or labels in a header, up to a limit set by memory."""
    if len(text) > len(str(most)) + _LEADING_ZEROS or int(text) > most:
        raise DataFileError(path, line, f"{text[:40]} {what}", f"at most {most:,} {what}")
    return int(text)


def finite_number(text: str) -> float:
    """Parse a decimal number such as ``-1.5e3``, but not nan, inf or 1_000, which Python accepts."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError("a finite number")
    return float(text)


def ends_with_line_end(path: PathLike) -> bool:
    """Return whether a file ends in a line end or gzip's checksum, so that its last row is complete."""
    if is_gzip(path):
        return True
    with Path(path).open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def warn_open_end(path: PathLike, last_line: int) -> None:
    if not ends_with_line_end(path):
        said = "the last row has no line end; if the file is truncated, its last cell is wrong"
        warnings.warn(f"{path}:{last_line}: {said}", UserWarning, stacklevel=2)


def refuse_open_end(path: PathLike, last_line: int) -> None:
    """Raise DataFileError if the last row of a file may be truncated."""
    if not ends_with_line_end(path):
        found = "a last row without a line end, so its last value may be truncated"
        expected = "a line end after every row; add one if the file is complete"
        raise DataFileError(path, last_line, found, expected)


@contextmanager
def replaced_file(path: PathLike) -> Iterator[io.TextIOWrapper]:
    """Open a text file for writing, gzip by its name, that replaces the target only once it is complete."""
    with replacing_file(path) as file:
        binary: Any = gzip.GzipFile(filename="", fileobj=file, mode="wb") if is_gzip(path) else file
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
        yield stream
        stream.detach()
        if binary is not file:
            binary.close()


def rows_inside(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that an object holds, by row or by column, or the object itself, if it is a row."""
    inner, kinds = [*value.values()], {*map(type, value.values())}
    found = [value[name] for name in (value if len(value) == 1 else _INSIDE) if name in value]
    if len(found) == 1 and isinstance(found[0], list) and {*map(type, found[0])} == {dict}:
        return list(found[0])
    if {"columns", "data"} <= {*value} and kinds == {list}:
        return [dict(zip(value["columns"], row, strict=False)) for row in value["data"]]
    if kinds == {list} and len(value) < len(inner[0]) == max(map(len, inner)) == min(map(len, inner)):
        return [dict(zip(value, row, strict=True)) for row in zip(*inner, strict=True)]
    if kinds != {dict} or any(one.keys() != inner[0].keys() for one in inner):
        return [value]
    are_rows = all(map(str.isdigit, value)) or len(value) > len(inner[0])
    return inner if are_rows else [{name: value[name][key] for name in value} for key in inner[0]]
