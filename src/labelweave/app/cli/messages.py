"""Where the command line writes: one-line notes on stderr, tables on stdout; and what files it may write."""

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
"""Where a context of click has the path of the file of --key."""
_RENAMED = {"n_jobs": "jobs", "random_state": "seed", "outside": "outside_taxonomy"}
_CALLED = {
    "zero_based": "--zero-based or --one-based",
    "label_covariance": "the covariance of labels",
    "label_mean": "--label-descriptions",
}
Exclusion = tuple[Sequence[str], Sequence[str], str]
"""Some flags, others that exclude them, and why; in it {} stand for the one of each that is given."""
_WIDTH = 79
_QUIET_SECONDS = 2.0
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_shown_paths: dict[str, str] = {}


def visible(text: str) -> str:
    """Write out what a terminal would obey or hide: escapes, control characters, turns of direction."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Write out what would end a line or move in it too, so that no name looks like a line of its own."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def json_text(value: Any, indent: int | None = None) -> str:
    """Write JSON that a terminal can show."""
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
    """Whether the command that runs was given --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def hint(message: str) -> None:
    """Write one line to stderr, unless --quiet is given."""
    if not is_quiet():
        note(message)


class Waiting:
    """Say what is being done, every other second at most; nothing with --quiet."""

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
        say(click.wrap_text(one_line(f"{name:{indent}}{value}"), _WIDTH, "", " " * indent), err=err)


def console(stderr: bool = False) -> Console:
    """Make a console that takes names as they are: ``role::program`` is no emoji, ``[x]`` no markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def metric_table(columns: Mapping[str, Mapping[str, Any]], caption: str | None = None) -> Table:
    """Lay out metrics, one row each; the numbers, or words, of a column by metric."""
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
    """Write a value to stdout as JSON; what is no finite number becomes null."""
    plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
    click.echo(json_text(plain, indent=2))


def size_of(path: str) -> str:
    from rich.filesize import decimal

    return decimal(Path(path).stat().st_size)


def short(value: Any) -> float:
    return float(f"{value:.6g}")


def in_flags(error: BaseException, flags: Mapping[str, str] | None = None) -> str:
    """Say what the library says, with flags in place of the parameters that it names.

    flags: those of parameters that are called otherwise.
    """
    said, known = error.args[0] if error.args else "", _CALLED | dict(flags or {})

    def written(name: str, value: str | None) -> str:
        if (name, value) == ("unknown_labels", "'ignore'"):
            return "--ignore-unknown-labels"
        return known.get(name, flag_of(name)) + ("" if value in (None, "True") else f" {_as_given(value)}")

    return said.written(written) if isinstance(said, ParameterMessage) else str(error)


def _as_given(value: str) -> str:
    """Write a value of Python as the command line takes it."""
    with suppress(ValueError, SyntaxError):
        read = literal_eval(value)
        return ",".join(map(str, read)) if isinstance(read, list | tuple) else quote(str(read))
    return value


def alternatives(words: Iterable[str]) -> str:
    """Write ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else str(last)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Ask for the known word that is most like one that is not; nothing where none is like it."""
    return "".join(f" Did you mean {close!r}?" for close in get_close_matches(word, list(known), 1))


def flag_of(name: str) -> str:
    return f"--{_RENAMED.get(name, name).replace('_', '-')}"


def refuse(reasons: Iterable[str]) -> None:
    """Raise click.UsageError for the first reason that there is."""
    for reason in reasons:
        raise click.UsageError(reason)


def is_given(value: Any) -> bool:
    """Whether the value of a flag says that it is there; 0 does."""
    return value is not None and value is not False and value != ()


def excluded(options: Mapping[str, Any], rules: Iterable[Exclusion]) -> Iterator[str]:
    """Say which flags that are given exclude each other."""
    for ones, others, said in rules:
        first, second = ([name for name in some if is_given(options.get(name))] for some in (ones, others))
        pairs = ((one, other) for one in first for other in second if one != other)
        yield from (said.format(*map(flag_of, pair)) for pair in islice(pairs, 1))


def refuse_input_as_output(out: str, *inputs: Any) -> None:
    """Refuse to write over a file that is read, that of --key too; of inputs the texts are paths."""
    context = click.get_current_context(silent=True)
    key = None if context is None else context.meta.get(KEY_FILE)
    paths = (Path(path) for path in (*inputs, key) if isinstance(path, str))
    if Path(out).exists() and any(path.exists() and path.samefile(out) for path in paths):
        raise click.UsageError(f"{out} is a file to read; give another name to write to.")


def require_writable(out: str | None, *inputs: Any) -> None:
    """Refuse a place where no file can go before a long fit, not after it; stdout (None or -) is one."""
    if out in (None, "-"):
        return
    refuse_input_as_output(out, *inputs)
    if Path(out).is_dir():
        raise click.UsageError(f"--out {out} is a directory; give the name of a file.")
    if not Path(out).resolve().parent.is_dir():
        raise click.UsageError(f"--out {out} lies in a directory that does not exist; make it first.")
