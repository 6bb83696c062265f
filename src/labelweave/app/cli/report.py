"""``labelweave report``: one HTML page about a model and how well it does on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import Waiting, note, require_writable, size_of
from labelweave.app.cli.model_rows import open_model, read_labeled_rows, truth_of
from labelweave.app.cli.pipeline_rows import as_taken
from labelweave.app.report import ReportOptions, write_report
from labelweave.model_files import read_model_file


def run(
    model: str, data: str, out: str, title: str | None, quiet: bool, key: bytes | None, **options: Any
) -> None:
    """Write a page about a model and how well it does on a data file."""
    require_writable(out, model, data, options["xml"])
    loaded, source = open_model(model, key), DataFlags.of(options)
    rows = read_labeled_rows(loaded, data, source)
    versions = read_model_file(model, verify=False, key=key).versions
    settings = ReportOptions(
        title=title or f"{Path(model).name} on {Path(data).name}",
        facts={
            "Model file": f"{Path(model).name}, {size_of(model)}",
            "Saved by": ", ".join(f"{name} {version}" for name, version in versions.items()),
            "Data": f"{Path(data).name}, {len(rows)} rows",
        },
        weakest=options["weakest"],
        examples=options["examples"],
        unknown_labels=source.unknown_labels,
    )
    y = truth_of(loaded, rows)
    tell = None if quiet else Waiting()
    write_report(
        loaded, as_taken(loaded, rows.X), y, out, row_names=rows.row_ids, options=settings, on_progress=tell
    )
    if not quiet:
        note(f"the report is in {out}, {size_of(out)}.")
