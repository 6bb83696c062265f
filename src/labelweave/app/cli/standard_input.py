"""Standard input as a data file: a temporary one, since readers look at a file more than once."""

from __future__ import annotations

import re
import sys
import weakref
import zlib
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, BinaryIO

import click

from labelweave.app.cli.messages import show_path_as

_NAMES = ("-", "/dev/stdin")
_SHOWN = "standard input"
_BLOCK_BYTES = 1 << 22
_MOST_BYTES = 1 << 33
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_SVMLIGHT_LINE = re.compile(rb"[^\s:]*(?:\s+[^\s:]+:[^\s:]+)+\s*")


def data_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Give the path of a data file, which for ``-`` holds what comes from standard input."""
    if value not in _NAMES:
        return value
    if sys.stdin is None:
        raise click.UsageError("Standard input is closed; pipe a data file to it.")
    folder = mkdtemp(prefix="labelweave-")
    # a context that is refused later flags is never closed, but goes away
    context.call_on_close(weakref.finalize(context, rmtree, folder, ignore_errors=True))
    path = str(_copied(sys.stdin.buffer, Path(folder)))
    show_path_as(path, _SHOWN)
    return path


def _copied(stream: BinaryIO | Any, folder: Path) -> Path:
    """Write a stream to a file that is named by what it looks like."""
    block, size = stream.read(_BLOCK_BYTES), 0
    if not block:
        raise click.UsageError("Standard input is empty; pipe a data file to it.")
    path = folder / f"standard-input{_suffix(block)}"
    with path.open("wb") as file:
        while block:
            size += len(block)
            if size > _MOST_BYTES:
                raise click.UsageError(
                    f"Standard input is longer than {_MOST_BYTES >> 30} GiB; give a file in its place."
                )
            file.write(block)
            block = stream.read(_BLOCK_BYTES)
    return path


def _suffix(head: bytes) -> str:
    """Say by the first bytes what kind of data file they begin."""
    if head.startswith(_PARQUET):
        return ".parquet"
    if head.startswith(_GZIP):
        try:
            return f"{_suffix(zlib.decompressobj(wbits=31).decompress(head, _BLOCK_BYTES))}.gz"
        except zlib.error:
            return ".csv.gz"  # its reader says what is wrong
    if b"\0" in head:
        raise click.UsageError("Standard input holds bytes that are no text; pipe a data file to it.")
    return _text_suffix(head.removeprefix(b"\xef\xbb\xbf"))


def _text_suffix(head: bytes) -> str:
    lines = (line.strip() for line in head.split(b"\n"))
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    if first.startswith((b"@", b"{")):
        return ".arff" if first.startswith(b"@") else ".jsonl"
    if re.fullmatch(rb"\d+\s+\d+\s+\d+", first):
        return ".txt"
    if _SVMLIGHT_LINE.fullmatch(first):
        return ".svm"
    return ".tsv" if first.count(b"\t") > first.count(b",") else ".csv"
