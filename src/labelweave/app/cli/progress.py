"""The progress of a fit on stderr, through scikit-learn's callbacks."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from labelweave.app.cli.messages import console, note
from labelweave.decisions import ConformalLabelClassifier, HierarchicalClassifier, LabelTextClassifier
from labelweave.decisions.base import DecisionClassifier
from labelweave.estimators.held_out import count_parts
from labelweave.estimators.progress_lines import GapCallback, GapLines

_SECONDS_BETWEEN = 2.0


def show_progress(estimator: Any, n_rows: int, title: str = "fitting") -> Any:
    """Let an estimator, or one that decides on its scores, show the progress of its fits to so many rows."""
    stderr, n_fits = console(stderr=True), count_fits(estimator, n_rows)
    shown = (
        GapBar(stderr, title, n_fits) if stderr.is_terminal else GapLines(title, n_fits=n_fits, write=note)
    )
    unfitted_scorer(estimator).set_callbacks(shown)
    return estimator


class ReadLines:
    """Say how many rows of a table were read, in a line every few seconds."""

    def __init__(self, path: str, quiet: bool) -> None:
        self.path, self.quiet, self.last = path, quiet, time.monotonic()

    def __call__(self, number: int, n_rows: int) -> None:
        if not self.quiet and time.monotonic() - self.last >= _SECONDS_BETWEEN:
            self.last = time.monotonic()
            note(f"reading {self.path}, {('words', 'features')[number - 1]}: {n_rows:,} rows")


class GapBar(GapCallback):
    """Show a bar, for terminals; it vanishes at the end."""

    def __init__(self, on: Console, title: str = "fitting", n_fits: int = 1) -> None:
        super().__init__(title, n_fits)
        self.on = on

    def setup(self, estimator: Any, context: Any) -> None:
        super().setup(estimator, context)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        self.bar = Progress(*columns, TimeElapsedColumn(), console=self.on, transient=True)
        self.bar.add_task(self.heading, total=None, state="")
        self.bar.start()

    def show(self) -> None:
        self.bar.update(TaskID(0), total=self.steps, completed=self.done, state=self.state)

    def teardown(self, estimator: Any, context: Any) -> None:
        self.bar.stop()


def unfitted_scorer(estimator: Any) -> Any:
    """Give the classifier that scores and takes callbacks, before a fit."""
    while isinstance(estimator, DecisionClassifier) and estimator.estimator is not None:
        estimator = estimator.estimator
    return estimator


def count_fits(estimator: Any, n_rows: int) -> int:
    """Count the fits of the classifier that scores: one a held-out part and one of all rows."""
    if not isinstance(estimator, DecisionClassifier):
        return 1
    if isinstance(estimator, HierarchicalClassifier | LabelTextClassifier):
        return count_fits(estimator.estimator, n_rows)
    inner, cv, share = estimator.estimator, estimator.cv, estimator.validation_fraction
    if cv is None and isinstance(estimator, ConformalLabelClassifier):  # no fit of all rows
        return count_fits(inner, n_rows - round(float(share) * n_rows))
    parts = count_parts(share, n_rows) if cv is None else int(cv)
    held = 1 / parts if parts > 1 else 0.2 if share == "auto" else float(share)
    return parts * count_fits(inner, n_rows - round(held * n_rows)) + count_fits(inner, n_rows)
