"""Numba's ``njit`` with a cache that never fails.

Numba refuses to build a loop if no cache folder is writable (``NUMBA_CACHE_DIR``, next to the source,
or the user's), as with a library that an administrator installed and an account without a home.  Loops then
use a private temporary folder, and if that is impossible, or only compiled files of labelweave are
installed, each process compiles its own.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

LOOP = {"nogil": True, "cache": True, "error_model": "numpy"}
# For loops that only other loops call: the Python wrapper takes half of the compile time.
INNER = LOOP | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return the decorator that compiles a loop; the options are Numba's."""

    def compiled(function: Any) -> Any:
        import numba

        # raised when the cache is set up, before compiling: no folder is writable, or no source is there
        with suppress(RuntimeError):
            return numba.njit(**options)(function)
        folder = _private_folder()
        if folder is not None:
            with suppress(RuntimeError), _cache_folder(folder):
                return numba.njit(**options)(function)
        return numba.njit(**options | {"cache": False})(function)

    return compiled


@cache
def _private_folder() -> str | None:
    """Return a temporary folder that no one else can write, since its content is executed."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir(), f"labelweave-loops-{user}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    is_mine = user is None or (found.st_uid == user and not found.st_mode & 0o022)
    return str(folder) if stat.S_ISDIR(found.st_mode) and is_mine else None


@contextmanager
def _cache_folder(folder: str) -> Iterator[None]:
    import numba

    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before
