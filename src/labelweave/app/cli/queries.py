"""``labelweave queries``: a table of entries to fill in, which ``fit --answers`` reads."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import click
import numpy as np

from labelweave.app.active import Queries, next_queries
from labelweave.app.active.answers import UNKNOWN, last_answers, merged, read_answers, row_places
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import note, require_writable, visible
from labelweave.app.cli.model_rows import (
    classifier_of,
    features_of,
    has_one_class_a_row,
    open_model,
    read_pool_rows,
)
from labelweave.datasets import LabeledData
from labelweave.datasets.data_file import replaced_file
from labelweave.datasets.table_files import escaped
from labelweave.labels import LabelMatrix

_LONGEST_TEXT = 2000
_HEADER = ("id", "label", "answer", "probability", "informs", "text")


def run(model: str, data: str, out: str | None, key: bytes | None, **options: Any) -> None:
    """Choose entries of a data file, and write a line for each."""
    require_writable(out, model, data, options["answers"], options["xml"])
    loaded = open_model(model, key)
    if has_one_class_a_row(loaded):
        said = "queries asks about many labels a row, and this model predicts one class a row."
        raise click.UsageError(said)
    rows = read_pool_rows(loaded, data, DataFlags.of(options))
    known, closed = _known(rows, options["answers"])
    found = next_queries(
        classifier_of(loaded), features_of(loaded, rows.X), options["count"], closed,
        strategy=options["strategy"], random_state=options["seed"],
    )  # fmt: skip
    _write(found, rows, out)
    left = known.shape[0] * known.n_labels - int(known.observed_counts().sum())
    if not len(found):
        note(f"every entry of {data} is known or was asked about; there is nothing to ask.")
    elif out not in (None, "-"):
        note(
            f"{len(found)} of {left} unknown entries are in {out}; fill in the column 'answer' with yes, no "
            "or unknown, and give it to labelweave fit with --answers."
        )


def _known(rows: LabeledData, path: str | None) -> tuple[LabelMatrix, LabelMatrix]:
    """Give what is known, and the same with what nobody could say as if it were, so that it is not asked."""
    if path is None:
        return rows.Y, rows.Y
    said = last_answers(read_answers(path))
    places = row_places(rows.row_ids, len(rows), path)
    known = merged(rows.Y, places, said, path)
    asked = {entry: "no" if one == UNKNOWN else one for entry, one in said.items()}
    return known, merged(rows.Y, places, asked, path)


def _write(found: Queries, rows: LabeledData, out: str | None) -> None:
    with nullcontext(sys.stdout) if out in (None, "-") else replaced_file(str(out)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_HEADER)
        # names have to come back as they are, where no terminal shows them
        writer.writerows(_lines(found, rows, visible if stream is sys.stdout else str))
        stream.flush()


def _lines(found: Queries, rows: LabeledData, shown: Callable[[str], str]) -> Iterator[list[str]]:
    names = np.arange(len(rows)) if rows.row_ids is None else rows.row_ids
    for place, (row, label) in enumerate(found):
        numbers = [f"{found.probabilities[place]:.3f}", str(found.informs[place])]
        text = row_text(rows, row)[:_LONGEST_TEXT]
        cells = [escaped(shown(str(cell))) for cell in (names[row], label, text)]
        yield [*cells[:2], "", *numbers, cells[2]]


def row_text(rows: LabeledData, row: int) -> str:
    """Write the columns of a row of a table out; nothing for rows of numbers."""
    if not hasattr(rows.X, "iloc"):
        return ""
    cells = {str(name): str(cell) for name, cell in rows.X.iloc[row].items()}
    return next(iter(cells.values())) if len(cells) == 1 else "\n".join(f"{k}: {v}" for k, v in cells.items())
