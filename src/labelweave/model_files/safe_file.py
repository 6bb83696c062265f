"""Write files atomically, and the error of a file that is not a valid model.

The bytes go to a new file in the same directory, are flushed to the disk, and only then replace the old
file.  Processes that have the old file open or memory-mapped keep it unchanged.  Where the system has unnamed
files (Linux, on most file systems), the new file gets a name when it is complete, so a killed process leaves
nothing behind.  Elsewhere it has a name from the start and a lock; the next writer in that directory removes
files without a lock, whose process is dead.
An existing special file (a device, a pipe, a socket) is written into when all bytes are ready.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

# Windows has no such locks and cannot remove open files
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

_TEMPORARY = ".labelweave-{}.saving"
_PROC = "/proc/self/fd/"
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)  # file systems and older kernels


@contextmanager
def replacing_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that replaces ``path``, links followed, if the block ends without an error.

    Mode and owner of the replaced file are kept, the owner if the system permits.
    """
    status = os.stat(path) if os.path.exists(path) else None
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "This is a directory; pass the name of a file", os.fspath(path))
    if status is not None and not stat.S_ISREG(status.st_mode):
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            _write_through(path, stat.S_ISSOCK(status.st_mode), file)
        return
    target = Path(path).resolve()
    if not target.parent.is_dir():
        said = "There is no such directory to write into; create it first"
        raise FileNotFoundError(errno.ENOENT, said, str(target.parent))
    _remove_stale(target.parent)
    with _New(target.parent, 0o666 if status is None else 0o600) as new:
        yield new.file
        if status is not None:
            new.take_over(status)
        new.replace(target)
    _sync_directory(target.parent)


def _write_through(path: str | os.PathLike[str], is_socket: bool, file: BinaryIO) -> None:
    if is_socket:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fspath(path))
            connection.sendfile(file)
        return
    with open(os.open(path, os.O_WRONLY), "wb") as into:
        shutil.copyfileobj(file, into)


class _New:
    """A file that is not yet in its place; it is removed if it remains unfinished."""

    def __init__(self, directory: Path, mode: int) -> None:
        self.name = directory / _TEMPORARY.format(secrets.token_hex(8))
        self.is_named = False
        descriptor = _unnamed(directory, mode)
        self.file = os.fdopen(self._named(mode) if descriptor is None else descriptor, "w+b")

    def _named(self, mode: int) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        while True:
            descriptor = os.open(self.name, flags, mode)
            self.is_named = True
            _lock(descriptor)
            if os.fstat(descriptor).st_nlink:  # another writer may have removed it as stale before the lock
                return descriptor
            os.close(descriptor)

    def __enter__(self) -> _New:
        return self

    def take_over(self, status: os.stat_result) -> None:
        """Copy owner, group and mode; without permission for the owner, the group if possible."""
        if not hasattr(os, "fchown"):
            os.chmod(self.name, stat.S_IMODE(status.st_mode))
            return
        for owner in (status.st_uid, -1):
            with suppress(PermissionError):
                os.fchown(self.file.fileno(), owner, status.st_gid)
                break
        os.fchmod(self.file.fileno(), stat.S_IMODE(status.st_mode))

    def replace(self, target: Path) -> None:
        """Flush the bytes to the disk and move the file to its place."""
        self.file.flush()
        os.fsync(self.file.fileno())
        if not self.is_named:
            self.is_named = True
            folder = os.open(self.name.parent, os.O_RDONLY)
            try:  # with a directory descriptor, link follows the /proc entry of the file
                os.link(f"{_PROC}{self.file.fileno()}", self.name.name, dst_dir_fd=folder)
            finally:
                os.close(folder)
        if fcntl is None:
            self.file.close()  # Windows cannot rename open files
        os.replace(self.name, target)
        self.is_named = False

    def __exit__(self, *_: object) -> None:
        self.file.close()
        if self.is_named:
            self.name.unlink(missing_ok=True)


def _unnamed(directory: Path, mode: int) -> int | None:
    """Open a file without a name, locked; None if the system does not support it."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_PROC):
        return None
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR, mode)
    except OSError as error:
        if error.errno in _NO_UNNAMED:
            return None
        raise
    _lock(descriptor)
    return descriptor


def _lock(descriptor: int) -> None:
    """Lock a file while it is written; the lock ends with the process."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks; stale files are not removed there
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _remove_stale(directory: Path) -> None:
    """Remove unfinished files of dead processes: those without a lock."""
    if fcntl is None:
        return
    for name in directory.glob(_TEMPORARY.format("*")):
        with suppress(OSError):  # another process may remove it, or have it locked
            descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                name.unlink()
            finally:
                os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":  # elsewhere a directory cannot be opened, and the rename is already safe
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ModelFileError(ValueError):
    """A file is refused as a model, with the reason in one sentence."""


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Prefix every refusal inside with the file's name."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load the model file {os.fspath(path)!r}: {error}") from error.__cause__
