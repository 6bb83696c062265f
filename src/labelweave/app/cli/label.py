"""``labelweave label``: a page to label on, served to this machine alone."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.active.answers import with_more_labels
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.label_cells import cut_where_listed
from labelweave.app.cli.messages import note, refuse_input_as_output
from labelweave.app.cli.queries import row_text
from labelweave.app.label_page import LabelSession, label_app
from labelweave.datasets import LabeledData, read_any, read_table_columns
from labelweave.datasets.table_files import raw_tables
from labelweave.datasets.table_reading import table_features
from labelweave.features.feature_matrix import column_means, filled

_HOST = "127.0.0.1"
_QUICK_ENTRIES = 200_000  # whose first questions are there within a second or two
_MOST_SHOWN = 100  # features of a row without text

TextOf = Callable[[int], str]


def run(data: str, answers: str | None, new_label: tuple[str, ...], port: int, **options: Any) -> None:
    """Serve the page until Ctrl-C."""
    try:
        import uvicorn
    except ImportError:
        said = "The page to label on needs Starlette and uvicorn: install labelweave[app]."
        raise ImportError(said) from None
    if not all(name.strip() for name in new_label):
        raise click.UsageError("--new-label is empty; give the name of a label.")
    source, path = DataFlags.of(options), answers or f"{Path(data).stem}.answers.csv"
    refuse_input_as_output(path, data)
    rows, text_of = _read(data, source, list(dict.fromkeys(new_label)))
    session = LabelSession(rows.X, rows.Y, path, ids=rows.row_ids, text_of=text_of)
    if rows.Y.shape[0] * rows.Y.n_labels > _QUICK_ENTRIES:
        note(f"{len(rows)} rows, {rows.Y.n_labels} labels; choosing the first questions.")
    token = secrets.token_urlsafe(24)
    try:
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((_HOST, port))
            listening.listen()  # before the address is told, so that an early browser waits
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
    note(f"{answered} answers are in {path}; give them to labelweave fit with --answers {path}.")


def _read(path: str, source: DataFlags, more: list[str]) -> tuple[LabeledData, TextOf]:
    """Read rows with what is known of their labels, and how to show one."""
    if source.format_of(path) == "table":
        rows, text_of = _read_table(path, source, more)
    else:
        rows = read_any(path, source.format_of(path), **source.matrix_keywords())
        rows = replace(rows, X=filled(rows.X, column_means(rows.X)))
        text_of = _features_of(rows)
    return replace(rows, Y=with_more_labels(rows.Y, more)), text_of


def _read_table(path: str, source: DataFlags, more: list[str]) -> tuple[LabeledData, TextOf]:
    given = source.columns()
    if given.labels is None and not more:
        raise click.UsageError(
            "Say which labels there are: --label-column or --labels for columns of the table, or --new-label "
            "for each that has none."
        )
    if source.empty_labels is None:
        given = replace(given, empty_labels="unknown")
    table = next(raw_tables(path))
    columns = cut_where_listed(table, given, quiet=False, otherwise="").resolved(table)
    known: Any = (more, "error") if columns.labels is None else (None, "error")
    rows = table_features(table, columns, source.vectorizer(columns), known)
    shown = read_table_columns(path, replace(columns, labels=None))
    return rows, lambda row: row_text(shown, row)


def _features_of(rows: LabeledData) -> TextOf:
    """Show a row by its features that are not 0, the largest first where there are many."""
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
