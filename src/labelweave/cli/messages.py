"""Where the command line writes: one-line notes on stderr, tables on stdout."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "flag_of", "note", "print_json", "size_of", "with_flags"]

_RENAMED = {"n_jobs": "jobs", "random_state": "seed"}


def note(message: str) -> None:
    """Write one line to stderr."""
    click.echo(f"labelweave: {message}", err=True)


def console(stderr: bool = False) -> Console:
    """Make a console that takes names as they are: ``role::program`` is no emoji, ``[x]`` no markup.

    stderr: whether it writes to stderr in place of stdout.
    """
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def print_json(value: Any) -> None:
    """Write a value to stdout as JSON; what is no finite number becomes null."""
    click.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def size_of(path: str) -> str:
    """Say how large a file is."""
    size = float(Path(path).stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def with_flags(error: Exception | str) -> str:
    """Say what the library says, in the words of the command line.

    Returns the same, with flags in place of keywords.
    """
    said = str(error).replace("unknown_labels='ignore'", "--ignore-unknown-labels")
    return re.sub(r"The '(\w+)' parameter of \w+ must", lambda found: f"{flag_of(found[1])} must", said)


def flag_of(name: str) -> str:
    """Write the flag of an option."""
    return f"--{_RENAMED.get(name, name).replace('_', '-')}"
