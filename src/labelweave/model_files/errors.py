"""The error of a file that is not, or no longer, a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ModelFileError", "naming_file"]


class ModelFileError(ValueError):
    """Say in one sentence why a file is refused as a model."""


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file's name before the reason of every refusal inside.

    Raises ModelFileError the refusal, completed.
    """
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load the model file {os.fspath(path)!r}: {error}") from error.__cause__
