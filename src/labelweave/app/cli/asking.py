"""``labelweave queries`` and ``label``: which labels to annotate next, as a table to fill in or a page.

The table is for ``fit --answers``; the page is served to this machine only.
"""

from __future__ import annotations

import csv
import secrets
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.active import Queries, suggest_queries
from labelweave.app.active.answers import (
    UNKNOWN,
    last_answers,
    merged,
    read_answers,
    row_places,
    with_more_labels,
)
from labelweave.app.cli.answer_files import opened
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import note, refuse_input_as_output, require_writable, visible
from labelweave.app.cli.model_rows import (
    classifier_of,
    features_of,
    has_one_class_a_row,
    open_model,
    read_pool_rows,
)
from labelweave.app.cli.table_roles import cut_where_listed
from labelweave.app.label_page import LabelSession, label_app
from labelweave.datasets import LabeledData, read_any, read_table_columns
from labelweave.datasets.table_files import escaped, raw_tables
from labelweave.datasets.table_reading import table_features
from labelweave.features.feature_matrix import column_means, filled

_LONGEST_TEXT = 2000
_HEADER = ("id", "label", "answer", "probability", "informs", "text")
_HOST = "127.0.0.1"
_QUICK_ENTRIES = 200_000  # whose first questions take a second or two
_MOST_SHOWN = 100  # features to show of a row without text

TextOf = Callable[[int], str]


def queries(flags: DataFlags) -> None:
    model, data, out, answers = flags.model, flags.data, flags.out, flags.answers
    require_writable(out, model, data, answers, flags.xml, *(flags.vectors or ()))
    loaded = open_model(model, flags.key)
    if has_one_class_a_row(loaded):
        said = "queries is for many labels per row, but this model predicts one class per row."
        raise click.UsageError(said)
    rows = read_pool_rows(loaded, data, flags)
    known = closed = rows.Y
    if answers is not None:
        said_of = last_answers(read_answers(answers))
        places = row_places(rows.row_ids, len(rows), answers)
        known = merged(rows.Y, places, said_of, answers)
        # answers of "unknown" are not asked again
        asked = {entry: "no" if one == UNKNOWN else one for entry, one in said_of.items()}
        closed = merged(rows.Y, places, asked, answers)
    features, how = features_of(loaded, rows.X), {"strategy": flags.strategy, "random_state": flags.seed}
    found = suggest_queries(classifier_of(loaded), features, flags.count, closed, **how)
    with opened(out) as stream:
        # names must be matched exactly later, and no terminal shows this file
        lines = _lines(found, rows, visible if stream is sys.stdout else str)
        csv.writer(stream, lineterminator="\n").writerows([_HEADER, *lines])
        stream.flush()
    left = known.shape[0] * known.n_labels - int(known.observed_counts().sum())
    if not len(found):
        note(f"every entry of {data} is known or was asked about; nothing is left to ask.")
    elif out not in (None, "-"):
        note(
            f"{len(found)} of {left} unknown entries are in {out}; fill in the column 'answer' with yes, no "
            "or unknown, and pass the file to labelweave fit with --answers."
        )


def _lines(found: Queries, rows: LabeledData, shown: Callable[[str], str]) -> Iterator[list[str]]:
    names = np.arange(len(rows)) if rows.row_ids is None else rows.row_ids
    for place, (row, label) in enumerate(found):
        numbers = [f"{found.probabilities[place]:.3f}", str(found.informs[place])]
        text = _row_text(rows, row)[:_LONGEST_TEXT]
        cells = [escaped(shown(str(cell))) for cell in (names[row], label, text)]
        yield [*cells[:2], "", *numbers, cells[2]]


def _row_text(rows: LabeledData, row: int) -> str:
    """Return the text of a table's row; empty for rows of numbers."""
    if not hasattr(rows.X, "iloc"):
        return ""
    shown = {name: cell for name, cell in rows.X.iloc[row].items() if not isinstance(cell, np.ndarray)}
    cells = {str(name): str(cell) for name, cell in shown.items()}
    return next(iter(cells.values())) if len(cells) == 1 else "\n".join(f"{k}: {v}" for k, v in cells.items())


def label(flags: DataFlags) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        said = "The labeling page needs Starlette and uvicorn: install labelweave[app]."
        raise ImportError(said) from None
    data, new_label = flags.data, flags.new_label
    if not all(name.strip() for name in new_label):
        raise click.UsageError("--new-label is empty; pass the name of a label.")
    path = flags.answers or f"{Path(data).stem}.answers.csv"
    refuse_input_as_output(path, data)
    rows, text_of = _rows_to_label(data, flags, list(dict.fromkeys(new_label)))
    session = LabelSession(rows.X, rows.Y, path, ids=rows.row_ids, text_of=text_of)
    if rows.Y.shape[0] * rows.Y.n_labels > _QUICK_ENTRIES:
        note(f"{len(rows)} rows, {rows.Y.n_labels} labels; choosing the first questions.")
    token = secrets.token_urlsafe(24)
    try:
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((_HOST, flags.port))
            listening.listen()  # before the address is printed, so that early requests wait
            own = listening.getsockname()[1]
            app = label_app(session.start(), token, own, f"Labels of {Path(data).name}")
            note(f"label at http://{_HOST}:{own}/{token}/, Ctrl-C ends; answers go to {path}.")
            words: Any = {"lifespan": "off", "ws": "none", "access_log": False, "server_header": False}
            uvicorn.Server(uvicorn.Config(app, log_level="warning", **words)).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        session.close()
    answered = session.state()["answered"]
    note(f"{answered} answers are in {path}; pass them to labelweave fit with --answers {path}.")


def _rows_to_label(path: str, source: DataFlags, more: list[str]) -> tuple[LabeledData, TextOf]:
    """Read rows with their known labels, and return a function that shows a row."""
    text_of: TextOf
    if source.format_of(path) != "table":
        rows = read_any(path, source.format_of(path), **source.matrix_keywords())
        rows = replace(rows, X=filled(rows.X, column_means(rows.X)))
        text_of = _features_of(rows)
    else:
        place, source = source.beside(path)
        given = source.columns()
        if given.labels is None and not more:
            raise click.UsageError(
                "DATA has no labels; use --label-column or --labels for columns of the table, or --new-label "
                "for each new label."
            )
        if source.empty_labels is None:
            given = replace(given, empty_labels="unknown")
        table = next(raw_tables(place, no_header=given.no_header))
        columns = cut_where_listed(table, given, otherwise="").resolved(table)
        known: Any = (more if columns.labels is None else None, "error")
        rows = table_features(lambda: [table], columns, source.vectorizer(columns), known)
        shown = read_table_columns(place, replace(columns, labels=None))
        text_of = partial(_row_text, shown)
    return replace(rows, Y=with_more_labels(rows.Y, more)), text_of


def _features_of(rows: LabeledData) -> TextOf:
    """Show a row by its nonzero features, the largest first if there are many."""
    names = rows.feature_names

    def text_of(row: int) -> str:
        part = rows.X[[row]]
        values = np.asarray(part.toarray() if sp.issparse(part) else part).ravel()
        places = np.flatnonzero(values)
        if len(places) > _MOST_SHOWN:
            largest = np.argsort(-np.abs(values[places]), kind="stable")[:_MOST_SHOWN]
            places = np.sort(places[largest])
        return "\n".join(
            f"{place if names is None else names[place]} = {values[place]:g}" for place in places
        )

    return text_of
