"""Output of the command line: one-line notes on stderr, tables on stdout; and checks of output paths."""

from __future__ import annotations

import json
import re
import time
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from labelweave.foundation.arguments import ParameterMessage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

KEY_FILE = "labelweave.key"
"""Key of the --key file's path in click's context."""
_RENAMED = {"n_jobs": "jobs", "random_state": "seed", "outside": "outside_taxonomy"}
_CALLED = {
    "zero_based": "--zero-based or --one-based",
    "label_covariance": "the covariance of labels",
    "label_mean": "--label-descriptions",
}
Exclusion = tuple[Sequence[str], Sequence[str], str]
"""Flags, flags that exclude them, and the message, in which {} are replaced by the two flags."""
_WIDTH = 79
_LONGEST = 4000  # characters of a value; wrapping takes the square of a word's length
_QUIET_SECONDS = 2.0
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_shown_paths: dict[str, str] = {}


def visible(text: str) -> str:
    """Escape control characters, and marks that change the direction of text, for terminals."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Also escape line breaks and tabs, so that no name can forge a line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON that is safe for a terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str, *, err: bool = False) -> None:
    click.echo(visible(text), err=err)


def note(message: str) -> None:
    """Write one line to stderr."""
    for path, name in _shown_paths.items():
        message = message.replace(path, name)
    say(one_line(f"labelweave: {message}"), err=True)


def is_quiet() -> bool:
    """Whether the running command has --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def hint(message: str) -> None:
    """Write one line to stderr, unless --quiet is set."""
    if not is_quiet():
        note(message)


class Waiting:
    """Print the current step, at most every other second; nothing with --quiet."""

    def __init__(self) -> None:
        self.started = self.last = time.monotonic()

    def __call__(self, words: str) -> None:
        now = time.monotonic()
        if now - self.last >= _QUIET_SECONDS:
            self.last = now
            hint(f"{words}, {now - self.started:.0f} s")


def show_path_as(path: str, name: str) -> None:
    _shown_paths[path] = name


def print_lines(lines: Mapping[str, str], indent: int, *, err: bool = False) -> None:
    for name, value in lines.items():
        shown = one_line(f"{name:{indent - 1}} {value[:_LONGEST]}{' ...' * (len(value) > _LONGEST)}")
        say(click.wrap_text(shown, _WIDTH, "", " " * indent), err=err)


def console(stderr: bool = False) -> Console:
    """Make a console that prints names verbatim: ``role::program`` is no emoji, ``[x]`` no markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def metric_table(columns: Mapping[str, Mapping[str, Any]], caption: str | None = None) -> Table:
    """Return a table of metrics, one row each; columns map metrics to numbers or words."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    for name in ("metric", *columns):
        table.add_column(name, justify="left" if name == "metric" else "right", no_wrap=True)
    for metric in next(iter(columns.values())):
        cells = [column[metric] for column in columns.values()]
        words = (
            cell if isinstance(cell, str) else f"{cell:.4f}".replace("nan", "undefined") for cell in cells
        )
        table.add_row(metric, *words)
    return table


def print_json(value: Any) -> None:
    """Write a value to stdout as JSON, with null for numbers that are not finite."""
    plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
    click.echo(json_text(plain, indent=2))


def size_of(path: str) -> str:
    from rich.filesize import decimal

    return decimal(Path(path).stat().st_size)


def short(value: Any) -> float:
    return float(f"{value:.6g}")


def in_flags(error: BaseException, flags: Mapping[str, str] | None = None) -> str:
    """Return the library's message, with flags instead of parameters.

    flags: those that differ from the parameter's name.
    """
    said, known = error.args[0] if error.args else "", _CALLED | dict(flags or {})

    def written(name: str, value: str | None) -> str:
        if (name, value) == ("unknown_labels", "'ignore'"):
            return "--ignore-unknown-labels"
        return known.get(name, flag_of(name)) + ("" if value in (None, "True") else f" {_as_given(value)}")

    return said.written(written) if isinstance(said, ParameterMessage) else str(error)


def _as_given(value: str) -> str:
    """Write a Python value as the command line takes it."""
    with suppress(ValueError, SyntaxError):
        read = literal_eval(value)
        return ",".join(map(str, read)) if isinstance(read, list | tuple) else quote(str(read))
    return value


def alternatives(words: Iterable[str]) -> str:
    """Write ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else str(last)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the most similar known word; empty without a similar one."""
    return "".join(f" Did you mean {close!r}?" for close in get_close_matches(word, list(known), 1))


def flag_of(name: str) -> str:
    return f"--{_RENAMED.get(name, name).replace('_', '-')}"


def refuse(reasons: Iterable[str]) -> None:
    """Raise click.UsageError with the first of the reasons, if any."""
    for reason in reasons:
        raise click.UsageError(reason)


def is_given(value: Any) -> bool:
    """Whether a flag is set; 0 counts as set."""
    return value is not None and value is not False and value != ()


def excluded(options: Mapping[str, Any], rules: Iterable[Exclusion]) -> Iterator[str]:
    """Yield messages about flags that exclude each other."""
    for ones, others, said in rules:
        first, second = ([name for name in some if is_given(options.get(name))] for some in (ones, others))
        pairs = ((one, other) for one in first for other in second if one != other)
        yield from (said.format(*map(flag_of, pair)) for pair in islice(pairs, 1))


def refuse_input_as_output(out: str, *inputs: Any) -> None:
    """Raise for an output that is an input or the --key file; strings in ``inputs`` are paths."""
    context = click.get_current_context(silent=True)
    key = None if context is None else context.meta.get(KEY_FILE)
    paths = (Path(path) for path in (*inputs, key) if isinstance(path, str))
    if Path(out).exists() and any(path.exists() and path.samefile(out) for path in paths):
        raise click.UsageError(f"{out} is an input file; use another name for the output.")


def require_writable(out: str | None, *inputs: Any) -> None:
    """Raise, before a long fit, if no file can be written there; stdout (None or -) is always valid."""
    if out in (None, "-"):
        return
    refuse_input_as_output(out, *inputs)
    if Path(out).is_dir():
        raise click.UsageError(f"--out {out} is a directory; use the name of a file.")
    if not Path(out).resolve().parent.is_dir():
        raise click.UsageError(f"--out {out} is in a directory that does not exist; create it first.")
