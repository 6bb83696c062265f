"""The program ``labelweave``: its commands, and the format of its errors.

Commands are imported once their flags are parsed, to keep ``--help`` fast.  Invalid arguments or files print
one line on stderr and exit with status 2.
"""

from __future__ import annotations

import io
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from labelweave.app.cli.messages import did_you_mean, in_flags, note

_COMMANDS = (
    "fit", "cross-validate", "decide", "predict", "evaluate", "report", "queries", "label", "audit",
    "inspect", "convert", "demo",
)  # fmt: skip
_FITTING = ("fit", "cross-validate")
_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_TERMINATED = 143  # 128 + SIGTERM
_BAD_INPUT = 2


class _Program(click.Group):
    """A group that imports a command when it is called, and prints errors on one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        home = "labelweave.app.cli.fit" if cmd_name in _FITTING else "labelweave.app.cli.commands"
        command: click.Command = getattr(import_module(home), cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = {name: self.get_command(ctx, name) for name in _COMMANDS}
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(100)) for name, one in found.items() if one])

    def main(self, *args: Any, **options: Any) -> Any:
        if sys.stdout is None:
            sys.stdout = _Closed()
        for stream in (sys.stdout, sys.stderr):  # files are UTF-8; a terminal may lack characters
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
        try:
            with _one_line_warnings(), _unwound_at_sigterm():
                code = super().main(*args, **{**options, "standalone_mode": False})
        except click.Abort:
            note("interrupted; nothing was written.")
            code = _INTERRUPTED
        except _Terminated:
            note("terminated; no file is incomplete.")
            code = _TERMINATED
        except click.ClickException as error:
            note(_with_hint(error))
            code = error.exit_code
        except (ValueError, OSError, ImportError, MemoryError) as error:
            note(_sentence(error))
            code = _BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)


class _Closed(io.TextIOBase):
    """Closed standard output, where every write raises."""

    def write(self, text: str) -> int:
        raise click.UsageError("Standard output is closed; the results need it, or --out.")


class _Terminated(BaseException):
    """SIGTERM arrived."""


def _send(number: int) -> None:
    """Send a signal to the main thread, which may be waiting."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


@contextmanager
def _unwound_at_sigterm() -> Iterator[None]:
    """Raise on SIGTERM, so that unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have handlers
        yield
        return

    def end(*_: object) -> None:
        raise _Terminated

    def send_again(lost: Any) -> None:  # as callbacks of C code, where loops are loaded, raise nothing
        signals = {_Terminated: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}
        if lost.exc_type in signals:
            threading.Timer(0.01, _send, [signals[lost.exc_type]]).start()
        else:
            hook(lost)

    hook, sys.unraisablehook = sys.unraisablehook, send_again
    earlier = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)
        sys.unraisablehook = hook


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show warnings for users on one line, and no others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # the command line itself checks feature names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        said = set[str]()  # a file may be read more than once

        def show(message: Any, *_: Any, **__: Any) -> None:
            sentence = _sentence(message)
            if sentence not in said:
                said.add(sentence)
                note(f"warning: {sentence}")

        warnings.showwarning = show
        yield


def _sentence(error: Warning | Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror}."
    if isinstance(error, MemoryError):
        return f"there is too little memory ({error})." if str(error) else "there is too little memory."
    return " ".join(in_flags(error).split())


def _with_hint(error: click.ClickException) -> str:
    message = " ".join(error.format_message().replace("a valid integer range", "an integer").split())
    wrong = re.search(r"(?:No such command|:) '([^']*)'(?: is not one of (.*))?\.$", message)
    if wrong is not None:
        message += did_you_mean(wrong[1], re.findall(r"'([^']*)'", wrong[2]) if wrong[2] else _COMMANDS)
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message} Try '{context.command_path} --help'."


@click.group(cls=_Program, invoke_without_command=True)
@click.version_option(package_name="labelweave", message="labelweave %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Classification with related labels.

    DATA is a table (.csv, .tsv, .jsonl, .parquet) of texts, categories, numbers
    and vectors, or a file of Mulan (.arff), Clus (hierarchical .arff), the
    Extreme Classification Repository (.txt) or svmlight (.svm); text files may
    be gzip-compressed.

    \b
    Examples:
      labelweave demo
      labelweave fit train.csv --text description --labels tags \\
          --label-separator , --out model.lw
      labelweave predict model.lw new.csv --top 3
      labelweave evaluate model.lw test.csv
      labelweave inspect model.lw --label "role::program"
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
