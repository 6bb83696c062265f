"""``labelweave predict``: rows in, labels with scores out, block by block."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

import click
import numpy as np
import numpy.typing as npt

from labelweave.cli.data_options import file_options
from labelweave.cli.model_rows import Model, has_one_class_a_row, open_model, row_blocks, scores_of
from labelweave.datasets.data_file import replaced_file

__all__ = ["predict"]

Found = list[tuple[str, float]]


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--top", type=click.IntRange(1), help="Print so many labels a row, the best first.")
@click.option("--threshold", type=float, help="Print labels with scores above this [0, without --top].")
@click.option("--output-format", type=click.Choice(["jsonl", "tsv"]), default="jsonl", show_default=True,
              help="JSON lines, or a line of id, label and score for each label.")  # fmt: skip
@click.option("--out", "-o", metavar="FILE", help="Write to a file in place of stdout.")
@click.option("--id", metavar="COLUMN", help="Table: the column that names the rows.")
@file_options
def predict(model: str, data: str, output_format: str, out: str | None, **options: Any) -> None:
    """Predict the labels of the rows of a data file.

    Prints the labels with positive scores, the best first; rows without a name
    are numbered from zero.  A table needs the feature columns that the model
    was fitted to, and no labels.

    \b
    Examples:
      labelweave predict tags.lw new.jsonl --top 5
      labelweave predict tags.lw new.csv --threshold -0.5 --output-format tsv
      labelweave predict bibtex.lw bibtex-test.arff --out labels.jsonl
    """
    loaded = open_model(model)
    rows = _predictions(loaded, row_blocks(loaded, data, options), options["top"], options["threshold"])
    with _destination(out) as stream:
        if output_format == "jsonl":
            _write_json_lines(stream, rows)
        else:
            _write_tab_separated(stream, rows)
        stream.flush()


def _destination(out: str | None) -> AbstractContextManager[TextIO]:
    if out is None:
        return nullcontext(sys.stdout)
    return replaced_file(out)


def _predictions(
    model: Model, blocks: Iterable[Any], top: int | None, threshold: float | None
) -> Iterator[tuple[Any, Found]]:
    """Give every row's name and labels."""
    if top is None and threshold is None:
        top, threshold = (1, None) if has_one_class_a_row(model) else (None, 0.0)
    names = model.label_names_
    for block in blocks:
        for name, scores in zip(block.ids, scores_of(model, block.X), strict=True):
            labels = _chosen(scores, top, threshold)
            yield name, [(str(names[label]), float(f"{scores[label]:.6g}")) for label in labels]


def _chosen(scores: npt.NDArray[Any], top: int | None, threshold: float | None) -> npt.NDArray[np.intp]:
    """Pick labels, best first; ties go to the lower number."""
    candidates = np.arange(len(scores)) if threshold is None else np.flatnonzero(scores > threshold)
    return candidates[np.argsort(-scores[candidates], kind="stable")][:top]


def _write_json_lines(stream: TextIO, rows: Iterable[tuple[Any, Found]]) -> None:
    for name, found in rows:
        labels = [{"label": label, "score": score} for label, score in found]
        stream.write(json.dumps({"id": name, "labels": labels}, ensure_ascii=False) + "\n")


def _write_tab_separated(stream: TextIO, rows: Iterable[tuple[Any, Found]]) -> None:
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
    writer.writerow(["id", "label", "score"])
    for name, found in rows:
        writer.writerows([name, label, score] for label, score in found)
        if not found:
            writer.writerow([name, "", ""])  # a row without labels is still a row
