"""Output of predictions: JSON lines, CSV, TSV, Parquet; every format is written in blocks.

Cells of text tables that a spreadsheet would take for a formula are escaped.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click

from labelweave.app.cli.messages import json_text, short, visible
from labelweave.datasets.data_file import replaced_file
from labelweave.datasets.table_files import escaped
from labelweave.model_files.safe_file import replacing_file

Record = dict[str, Any]

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
             ".parquet": "parquet", ".pq": "parquet"}  # fmt: skip
_OTHERS = (".xlsx", ".xls", ".ods", ".feather", ".arrow", ".html", ".xml")  # no JSON lines
_LINES_AT_ONCE = 50_000
_TYPES = {"id": "string", "label": "string", "class": "string", "proven": "bool_"}


class Columns(NamedTuple):
    """The columns of an output table: those of its format, and one per label or column of classes."""

    fixed: list[str]
    labels: list[str]
    classes: Sequence[str] = ()


class Evaluation(NamedTuple):
    """An evaluation: notes on what is not counted, counts of rows and labels, and metrics.

    of_labels: computes the metrics of every label.
    """

    notes: list[str]
    counts: dict[str, int]
    metrics: dict[str, float]
    of_labels: Callable[[], list[Record]]


def chosen_format(out: str | None, wanted: str | None) -> str:
    """Return the requested format, else that of the file's suffix, else JSON lines.

    Raises click.UsageError if the suffix belongs to another format, or if Parquet lacks a file or pyarrow.
    """
    place = Path((out or "").removesuffix(".gz"))
    if wanted is None and place.suffix.lower() in _OTHERS:
        raise click.UsageError(
            f"--out {out} has the unknown suffix {place.suffix}; use .csv, .tsv, .jsonl or .parquet, or "
            "--output-format."
        )
    format = wanted or _SUFFIXES.get(place.suffix.lower(), "jsonl")
    if format == "parquet":
        if out is None:
            raise click.UsageError("Parquet needs a file; add --out FILE.parquet.")
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise click.UsageError(
                f"{out} needs pyarrow, which is not installed; install labelweave[app], or use a file "
                "name that ends in .csv, .tsv or .jsonl."
            ) from None
    return format


def opened(out: str | None) -> AbstractContextManager[TextIO]:
    """Open a file that appears once it is complete, or stdout (None or -)."""
    return nullcontext(sys.stdout) if out in (None, "-") else replaced_file(str(out))


def write_answers(records: Iterable[Record], columns: Columns, out: str | None, format: str) -> None:
    if format == "parquet" and out is not None:
        _write_parquet(records, columns, out)
        return
    with opened(out) as stream:
        if format in _DELIMITERS:
            _write_lines(stream, [[*columns.fixed, *columns.labels, *columns.classes]], _DELIMITERS[format])
            _write_lines(stream, _lines(records), _DELIMITERS[format])
        else:
            stream.writelines(json_text(record) + "\n" for record in records)
        stream.flush()


def write_csv(records: Sequence[Record]) -> None:
    """Write a CSV table to stdout, one line per record."""
    _write_lines(sys.stdout, [list(records[0]), *([*record.values()] for record in records)], ",")


def _write_lines(stream: TextIO, lines: Iterable[list[Any]], delimiter: str) -> None:
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerows(map(_cell, line) for line in lines)


def _lines(records: Iterable[Record]) -> Iterator[list[Any]]:
    """Yield the lines of the table: one per label of a record, or one per record."""
    for record in records:
        name, labels = record.pop("id"), record.pop("labels", None)
        probabilities = record.pop("probabilities", {})
        classes = record.pop("classes", {})
        cells = [*record.values(), *probabilities.values(), *classes.values()]
        if labels is None:
            yield [name, *cells]
        else:
            yield from ([name, *entry.values(), *cells] for entry in labels or [{"label": None, "n": None}])


def _cell(value: Any) -> Any:
    """Write booleans in lower case and undefined values as empty cells, and escape formulas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):
        return ""
    return escaped(visible(value)) if isinstance(value, str) else value


def _write_parquet(records: Iterable[Record], columns: Columns, out: str) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    fields = [(name, getattr(pa, _TYPES.get(name, "float64"))()) for name in columns.fixed]
    fields += [(name, pa.float64()) for name in columns.labels]
    schema = pa.schema([*fields, *((name, pa.string()) for name in columns.classes)])
    lines = ([str(name), *cells] for name, *cells in _lines(records))
    with replacing_file(out) as file, ParquetWriter(file, schema) as writer:
        while block := list(islice(lines, _LINES_AT_ONCE)):
            cells = zip(*block, strict=True)
            arrays = [pa.array(column, kind) for column, kind in zip(cells, schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def label_rows(names: Sequence[str], observed: Any, counts: Any, more: Mapping[str, Any]) -> list[Record]:
    """Return the counts of every label, whole ones as integers, and their ratios.

    counts: has positive, predicted, hits, precision, recall and f1; more: further ratios.
    """
    whole = {"observed": observed, "positive": counts.positive, "predicted": counts.predicted,
             "found": counts.hits}  # fmt: skip
    shares = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1, **more}
    return [
        {"label": name}
        | {what: int(v[k]) if float(v[k]).is_integer() else short(v[k]) for what, v in whole.items()}
        | {what: short(values[k]) for what, values in shares.items()}
        for k, name in enumerate(names)
    ]
