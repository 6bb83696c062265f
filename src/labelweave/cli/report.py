"""``labelweave report``: one HTML page about a model and how well it does on labelled rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from labelweave.cli.flags import DataFlags, file_options, label_column_options, unknown_label_option
from labelweave.cli.messages import note, size_of, with_flags
from labelweave.cli.model_rows import open_model, read_labeled_rows, truth_of, unknown_labels
from labelweave.datasets import LabeledData
from labelweave.model_files import read_model_file

__all__ = ["report"]

_QUIET_SECONDS = 2.0


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--out", "-o", metavar="FILE", required=True, help="Where the page goes (.html).")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@click.option("--weakest", type=click.IntRange(0), default=20, show_default=True,
              help="The most weak labels to look into.")  # fmt: skip
@click.option("--examples", type=click.IntRange(0), default=6, show_default=True,
              help="The most rows to show with all their labels.")  # fmt: skip
@unknown_label_option
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@label_column_options
@file_options
def report(model: str, data: str, out: str, title: str | None, quiet: bool, **options: Any) -> None:
    """Write a page about a model and how well it does on a data file.

    The HTML page says what the model is, its certificate, the metrics, which labels
    are weak and why, how labels hang together, and shows rows with the words or
    features that pushed their labels up or down (linear models).  The file needs
    no other one, no network and no scripts.

    \b
    Examples:
      labelweave report tags.lw test.csv --out report.html
      labelweave report bibtex.lw bibtex-test.arff --weakest 50 --out report.html
    """
    from labelweave.report import ReportOptions, write_report

    loaded, source = open_model(model), DataFlags.of(options)
    rows = read_labeled_rows(loaded, data, source)
    settings = ReportOptions(
        title=title or f"{Path(model).name} on {Path(data).name}",
        facts=_file_facts(model, data, rows),
        weakest=options["weakest"],
        examples=options["examples"],
        unknown_labels=unknown_labels(source),
    )
    y = truth_of(loaded, rows)
    tell = None if quiet else _Progress()
    try:
        write_report(loaded, rows.X, y, out, row_names=rows.row_ids, options=settings, on_progress=tell)
    except ValueError as error:
        raise ValueError(with_flags(error)) from None
    if not quiet:
        note(f"the report is in {out}, {size_of(out)}.")


def _file_facts(model: str, data: str, rows: LabeledData) -> dict[str, str]:
    versions = read_model_file(model, verify=False).versions
    return {
        "Model file": f"{Path(model).name}, {size_of(model)}",
        "Saved by": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "Data": f"{Path(data).name}, {len(rows)} rows",
    }


class _Progress:
    """Say what is being done, every other second at most."""

    def __init__(self) -> None:
        self.started = self.last = time.monotonic()

    def __call__(self, words: str) -> None:
        now = time.monotonic()
        if now - self.last >= _QUIET_SECONDS:
            self.last = now
            note(f"{words}, {now - self.started:.0f} s")
