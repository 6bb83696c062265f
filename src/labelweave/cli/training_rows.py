"""Read the rows to train on, from a file of any format."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from labelweave.cli.data_options import Options, given_options, table_columns, with_options
from labelweave.cli.messages import note
from labelweave.datasets import (
    LabeledData,
    TableColumns,
    TableVectorizer,
    detect_format,
    read_any,
    read_table,
)
from labelweave.datasets.table_files import raw_tables
from labelweave.labels import LabelMatrix

__all__ = ["read_training_rows", "vectorizer_options", "with_last_labels"]

_SEPARATORS = (",", ";", "|")


def _word_count(context: click.Context, parameter: click.Parameter, text: str | None) -> int | float | None:
    """Read a count of rows, or a share of them."""
    if text is None:
        return None
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a count, such as 2, nor a share, such as 0.01."
        ) from None


def vectorizer_options(command: Any) -> Any:
    """Add the flags that say how a table becomes features.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--min-df", metavar="NUMBER", callback=_word_count,
                     help="Table: in how many rows, or what share of them, a word must occur [1]."),
        click.option("--ngrams", type=click.IntRange(1), help="Table: the longest run of words [1]."),
        click.option("--missing-numeric", type=click.Choice(["error", "mean"]),
                     help="Table: what to do with a missing number [error]."),
    )(command)  # fmt: skip


def read_training_rows(path: str, options: Options) -> tuple[LabeledData, TableColumns | None]:
    """Read the rows to train on.

    options: the values of the command's flags.
    data: the rows; those of a table come with their vectorizer.
    columns: what the columns of the table were; None for other formats.
    """
    format = detect_format(path) if options["format"] == "auto" else options["format"]
    if format != "table":
        return read_any(path, format, **given_options(options)), None
    columns = table_columns(options)
    if columns.labels is None:
        raise click.UsageError("A table needs --labels or --label-column to say what its labels are.")
    if not columns.are_resolved:
        columns = columns.resolved(next(raw_tables(path)))
    roles = {"labels": columns.labels, "label_separator": columns.label_separator, "id": columns.id}
    data = read_table(path, _vectorizer(columns, options), **roles)
    has_one = options["one_class"] or options["class_paths"]
    if isinstance(columns.labels, str) and columns.label_separator is None and not has_one:
        _note_uncut_cells(columns.labels, [str(name) for name in np.asarray(data.label_names)])
    return data, columns


def _note_uncut_cells(column: str, names: list[str]) -> None:
    """Say so if cells that were each taken as one label look like lists."""
    for separator in _SEPARATORS:
        lists = [name for name in names if separator in name]
        parts = {part.strip() for name in names for part in name.split(separator)}
        if 4 * len(lists) >= len(names) and len(parts) < len(names):
            note(
                f"each cell of column {column!r} is taken as one label, such as {lists[0][:40]!r}; if cells "
                f"list several, give --label-separator {separator!r}."
            )
            return


def _vectorizer(columns: TableColumns, options: Options) -> TableVectorizer:
    return TableVectorizer(
        columns.text,
        columns.categorical,
        columns.numeric,
        min_df=options["min_df"] or 1,
        ngram_range=(1, options["ngrams"] or 1),
        missing_numeric=options["missing_numeric"] or "error",
    )


def with_last_labels(Y: LabelMatrix, n_labels: int) -> LabelMatrix:
    """Add the last labels of an svmlight file, which does not mention those that no row has.

    n_labels: how many labels there are.
    Returns (n, max(L, n_labels): the same, with labels that no row has.
    Shapes: Y (n, L).
    """
    positives = Y.positives.copy()
    positives.resize(len(Y), max(n_labels, Y.n_labels))
    return LabelMatrix(positives)
