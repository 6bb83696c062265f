"""Flags about data files, which most commands have, and the record of their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import click

from labelweave.app.cli.messages import KEY_FILE, flag_of
from labelweave.app.cli.standard_input import data_path

if TYPE_CHECKING:
    from labelweave.datasets import TableColumns, TableVectorizer

Command = TypeVar("Command", bound=Callable[..., Any])

WRITTEN = ("mulan", "hierarchical_arff", "xmc", "svmlight")  # formats of datasets, slow to import
_FORMATS = (*WRITTEN, "table")
_READERS = {"xml": "xml", "n_labels": "n_labels", "labels_at": "labels", "n_features": "n_features",
            "zero_based": "zero_based"}  # fmt: skip
_KINDS = {
    "text": "text, weighted as tf-idf; repeat",
    "categorical": "categories; repeat",
    "numeric": "numbers, standardised; repeat",
    "drop": "left out when no kind is given; repeat",
}
_SHORTEST_KEY, _LONGEST_KEY = 16, 4096  # bytes
_TABLE_FLAGS = ("labels", "label_column", "label_separator", "empty_labels", "id", *_KINDS, "min_df",
                "ngrams", "missing_numeric")  # fmt: skip


@dataclass(frozen=True)
class DataFlags:
    """How to read a data file; fields are called as their flags."""

    format: str = "auto"
    xml: str | None = None
    n_labels: int | None = None
    labels_at: str | None = None
    n_features: int | None = None
    zero_based: bool | None = None
    labels: str | None = None
    label_separator: str | None = None
    empty_labels: Literal["none", "unknown"] | None = None
    label_column: tuple[str, ...] = ()
    id: str | None = None
    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    min_df: int | float | None = None
    ngrams: int | None = None
    missing_numeric: Literal["error", "mean"] | None = None
    ignore_unknown_labels: bool = False
    answers: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Take what is about the data from the values of a command's flags."""
        return cls(**{field.name: options[field.name] for field in fields(cls) if field.name in options})

    def format_of(self, path: str) -> str:
        """Say which format a file has, by its look if no flag says it."""
        from labelweave.datasets import detect_format

        return detect_format(path) if self.format == "auto" else self.format

    def matrix_keywords(self) -> dict[str, Any]:
        """Give the flags of formats other than tables, in the words of the readers.

        Raises click.UsageError if a flag of tables is set.
        """
        wrong = next((flag for flag in _TABLE_FLAGS if getattr(self, flag)), None)
        if wrong is not None:
            raise click.UsageError(f"{flag_of(wrong)} goes with tables only, and this file is none.")
        found = {reader: getattr(self, flag) for flag, reader in _READERS.items()}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def unknown_labels(self) -> Literal["error", "ignore"]:
        """What to do with labels that the model does not know, in the words of the library."""
        return "ignore" if self.ignore_unknown_labels else "error"

    def columns(self) -> TableColumns:
        """Say what the columns of a table are.

        Raises click.UsageError if labels are described in two ways, or a flag of another format is set.
        """
        from labelweave.datasets import TableColumns

        wrong = next((flag for flag in _READERS if getattr(self, flag) is not None), None)
        if wrong is not None:
            raise click.UsageError(f"{flag_of(wrong)} does not go with a table.")
        if self.labels and self.label_column:
            said = "--labels and --label-column are two ways to name labels; give one of them."
            raise click.UsageError(said)
        return TableColumns(
            labels=self.labels or self.label_column or None,
            label_separator=self.label_separator,
            empty_labels=self.empty_labels or "none",
            id=self.id,
            **{kind: getattr(self, kind) or None for kind in _KINDS},
        )

    def vectorizer(self, columns: TableColumns) -> TableVectorizer:
        """Make what turns columns of a table into features; missing numbers get the mean without a flag."""
        from labelweave.datasets import TableVectorizer

        return TableVectorizer(
            columns.text, columns.categorical, columns.numeric, min_df=self.min_df or 1,
            ngram_range=(1, self.ngrams or 1), missing_numeric=self.missing_numeric or "mean",
        )  # fmt: skip


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Put several flags together, in the order of the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def reading(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Make the callback of a flag of what reads its value, where there is one."""
    return lambda context, parameter, value: None if value is None else read(value)


def plain_value(text: str) -> int | float | str:
    """Read a whole number, any number, or a word."""
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


def _word_count(text: str) -> int | float:
    """Read a count of rows, or a share of them."""
    count = plain_value(text)
    if not isinstance(count, str) and (count >= 1 if isinstance(count, int) else 0 < count <= 1):
        return count
    raise click.BadParameter(f"{text!r} is neither a count, such as 2, nor a share, such as 0.01.")


def _number(value: float) -> float:
    """Refuse NaN, which is in click's ranges."""
    if math.isnan(value):
        raise click.BadParameter("nan is no number.")
    return value


no_nan = reading(_number)
data_argument = click.argument("data", callback=data_path)

file_options = with_options(
    click.option("--format", type=click.Choice(["auto", *_FORMATS]), default="auto",
                 help="Format of DATA, which may be - for standard input; found by name and first lines."),
    click.option("--xml", metavar="FILE", help="Mulan: file of label names [name.xml beside name.arff]."),
    click.option("--n-labels", type=click.IntRange(1), help="Mulan, svmlight: number of labels."),
    click.option("--labels-at", type=click.Choice(["start", "end"]),
                 help="Mulan with --n-labels: whether labels are the first or the last columns [end]."),
    click.option("--n-features", type=click.IntRange(1), help="svmlight: number of features."),
    click.option("--zero-based/--one-based", default=None,
                 help="svmlight: where features count from [as in the model's training file; without a model "
                 "0 if there is a feature 0]."),
)  # fmt: skip

label_column_options = with_options(
    click.option("--labels", metavar="COLUMN", help="Table: the column that lists the labels of a row."),
    click.option("--label-separator", metavar="TEXT", help="Table: what stands between those labels."),
    click.option("--empty-labels", type=click.Choice(["none", "unknown"]),
                 help="Table: what a blank cell in the column of --labels says: the row has none, or nobody "
                 "knows them [none, or as the model was trained]."),
    click.option("--label-column", metavar="COLUMN", multiple=True,
                 help="Table: a column of 0 and 1 for one label, several as 'tag_*' or first..last; "
                 "repeat."),
    click.option("--id", metavar="COLUMN", help="Table: the column that names the rows."),
)  # fmt: skip

column_options = with_options(
    *(click.option(f"--{kind}", metavar="COLUMN", multiple=True, help=f"Table: {what}.")
      for kind, what in _KINDS.items()),
    click.option("--min-df", metavar="NUMBER", callback=reading(_word_count),
                 help="Table: in how many rows, or what share of them, a word must occur [1]."),
    click.option("--ngrams", type=click.IntRange(1), help="Table: the longest run of words [1]."),
    click.option("--missing-numeric", type=click.Choice(["error", "mean"]),
                 help="Table: what to do with a missing number [mean]."),
)  # fmt: skip


def _key(path: str) -> bytes:
    """Read the key that files are signed with."""
    with open(path, "rb") as file:
        key = file.read(_LONGEST_KEY + 1)
    if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        count = f"{len(key)} bytes" if len(key) <= _LONGEST_KEY else f"more than {_LONGEST_KEY} bytes"
        said = f"a key has {_SHORTEST_KEY} to {_LONGEST_KEY}, such as 32 random ones"
        raise click.BadParameter(f"{path} has {count}; {said}.")
    click.get_current_context().meta[KEY_FILE] = path
    return key


signing_option = click.option(
    "--key", metavar="FILE", callback=reading(_key),
    help="Sign the model with the bytes of this file, 32 random ones for example, which stays secret."
)  # fmt: skip
signed_option = click.option(
    "--key", metavar="FILE", callback=reading(_key),
    help="Refuse a model that was not saved with --key and a file of the same bytes."
)  # fmt: skip
answers_option = click.option(
    "--answers", metavar="FILE",
    help="Take these answers about single labels for known: lines id,label,answer (.csv), as of labelweave "
    "queries and labelweave label."
)  # fmt: skip
unknown_label_option = click.option(
    "--ignore-unknown-labels", is_flag=True, help="Pass over labels that the model does not know."
)
