"""Write a file completely or not at all, and the error of a file that is not, or no longer, a model.

The bytes go to a temporary file in the same directory, reach the disk, and only then take the place of the
old file.  Whoever has the old file open, or mapped into memory, keeps it unharmed.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path``, links followed, when the block ends well."""
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "This is a directory; give the name of a file", str(target))
    if not target.parent.is_dir():
        said = "There is no such directory to write into; make it first"
        raise FileNotFoundError(errno.ENOENT, said, str(target.parent))
    temporary = target.with_name(f".labelweave-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":  # elsewhere a directory cannot be opened, and the rename is already safe
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ModelFileError(ValueError):
    """Say in one sentence why a file is refused as a model."""


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file's name before the reason of every refusal inside."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load the model file {os.fspath(path)!r}: {error}") from error.__cause__
