"""Flags that say how to read a data file, and their values in the words of the readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from labelweave.cli.messages import flag_of
from labelweave.datasets.any_file import FORMATS
from labelweave.datasets.table_columns import TableColumns

__all__ = [
    "Options",
    "column_options",
    "file_options",
    "given_options",
    "label_column_options",
    "table_columns",
    "with_options",
]

Options = dict[str, Any]
Command = TypeVar("Command", bound=Callable[..., Any])

_FILE_FLAGS = {"xml": "xml", "n_labels": "n_labels", "labels_at": "labels"}
_FILE_FLAGS |= {name: name for name in ("n_features", "zero_based")}
_TABLE_FLAGS = (
    *("labels", "label_column", "label_separator", "id"),
    *("text", "categorical", "numeric", "drop"),
    *("min_df", "ngrams", "missing_numeric"),
)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Put several flags together.

    *options: what click.option gives, in the order of the help.
    Returns A decorator that adds them all.
    """

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def file_options(command: Command) -> Command:
    """Add the flags of all formats.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--format", type=click.Choice(["auto", *FORMATS]), default="auto",
                     help="Format of DATA; found by name and first lines."),
        click.option("--xml", metavar="FILE", help="Mulan: file of label names [name.xml beside name.arff]."),
        click.option("--n-labels", type=click.IntRange(1), help="Mulan, svmlight: number of labels."),
        click.option("--labels-at", type=click.Choice(["start", "end"]),
                     help="Mulan with --n-labels: whether labels are the first or the last columns [end]."),
        click.option("--n-features", type=click.IntRange(1), help="svmlight: number of features."),
        click.option("--zero-based/--one-based", default=None,
                     help="svmlight: where features count from [0 if there is a feature 0]."),
    )(command)  # fmt: skip


def label_column_options(command: Command) -> Command:
    """Add the flags that name the labels and the identifiers of a table.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--labels", metavar="COLUMN", help="Table: the column that lists the labels of a row."),
        click.option("--label-separator", metavar="TEXT", help="Table: what stands between those labels."),
        click.option("--label-column", metavar="COLUMN", multiple=True,
                     help="Table: a column of 0 and 1 for one label; repeat."),
        click.option("--id", metavar="COLUMN", help="Table: the column that names the rows."),
    )(command)  # fmt: skip


def column_options(command: Command) -> Command:
    """Add the flags that say which columns of a table are features.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    kinds = {
        "text": "text, weighted as tf-idf; repeat",
        "categorical": "categories; repeat",
        "numeric": "numbers, standardised; repeat",
        "drop": "left out when no kind is given; repeat",
    }
    options = [
        click.option(f"--{kind}", metavar="COLUMN", multiple=True, help=f"Table: {what}.")
        for kind, what in kinds.items()
    ]
    return with_options(*options)(command)


def given_options(options: Options) -> Options:
    """Give the flags of file formats other than tables, in the words of the readers.

    options: the values of all flags.
    Raises click.UsageError if a flag of tables is set.
    """
    wrong = next((flag for flag in _TABLE_FLAGS if options.get(flag)), None)
    if wrong is not None:
        raise click.UsageError(f"{flag_of(wrong)} goes with tables only, and this file is none.")
    found = {reader: options.get(flag) for flag, reader in _FILE_FLAGS.items()}
    return {name: value for name, value in found.items() if value is not None}


def table_columns(options: Options) -> TableColumns:
    """Say what the columns of a table are.

    options: the values of all flags.
    Returns the columns that were named.
    Raises click.UsageError if labels are described in two ways, or a a flag of another format is set.
    """
    wrong = next((flag for flag in _FILE_FLAGS if options.get(flag) is not None), None)
    if wrong is not None:
        raise click.UsageError(f"{flag_of(wrong)} does not go with a table.")
    if options.get("labels") and options.get("label_column"):
        raise click.UsageError("--labels and --label-column are two ways to name labels; give one of them.")
    kinds = {kind: options.get(kind) or None for kind in ("text", "categorical", "numeric", "drop")}
    return TableColumns(
        labels=options.get("labels") or options.get("label_column") or None,
        label_separator=options.get("label_separator"),
        id=options.get("id"),
        **kinds,
    )
