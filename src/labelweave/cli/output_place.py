"""Where a model file is to go."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["require_writable"]


def require_writable(out: str) -> None:
    """Refuse a place where no file can go before a long fit, not after it.

    Raises click.UsageError if it is a directory, or in none.
    """
    if Path(out).is_dir():
        raise click.UsageError(f"--out {out} is a directory; give the name of a file.")
    if not Path(out).resolve().parent.is_dir():
        raise click.UsageError(f"--out {out} lies in a directory that does not exist; make it first.")
