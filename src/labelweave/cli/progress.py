"""The progress of a fit on stderr, through scikit-learn's callbacks.

The name of a subtask says what ended: a step of the duality gap, which the callback's metadata tell; an
evaluation of the cross-validation loss (those that were not needed end at once when the final fit begins);
a round or an epoch; a fit to a fold.  Some solvers report estimates between two measurements of the gap.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from labelweave.cli.messages import console, note
from labelweave.decisions import ConformalLabelClassifier
from labelweave.decisions.base import DecisionClassifier

_PART = " of a part"
_QUIET_SECONDS = 2.0
_QUIET_SHARE = 0.2  # of the time so far, so that long fits do not write pages
_SHORTEST_WAIT = 0.1


def show_progress(estimator: Any, title: str = "fitting") -> Any:
    """Let an estimator, or one that decides on its scores, show the progress of its fits."""
    stderr, n_fits = console(stderr=True), count_fits(estimator)
    shown = GapBar(stderr, title, n_fits) if stderr.is_terminal else GapLines(title, n_fits=n_fits)
    unfitted_scorer(estimator).set_callbacks(shown)
    return estimator


class _Callback:
    """The hooks of scikit-learn's callbacks, which do nothing."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin a task."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        """End a task."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit."""


class _GapCallback(_Callback):
    """Count the subtasks of a fit; subclasses show what they stand for."""

    def __init__(self, title: str, n_fits: int = 1) -> None:
        self.title, self.n_fits, self.fit_number = title, n_fits, 0
        self.steps: int | None = 1  # None where nobody knows
        self.most_learned, self.most_fits = 0, 0
        self._begin()

    def _begin(self) -> None:
        self.counts, self.task, self.gap = Counter[str](), "", 1.0

    @property
    def done(self) -> int:
        """How many steps were taken."""
        return self.counts.total()

    @property
    def heading(self) -> str:
        """The title, and which fit it is of several."""
        return self.title if self.n_fits == 1 else f"{self.title} {self.fit_number} of {self.n_fits}"

    @property
    def state(self) -> str:
        """How far learning is, or about where the relative duality gap is, or which round it is."""
        number, most = self.counts[self.task], ""
        match self.task:
            case "":
                return ""
            case "duality gap" | "duality gap of a part":
                where = " on a part of the rows" if self.task.endswith(_PART) else ""
                return f"gap about {self.gap:.1e}{where}"
            case "cross-validation":
                if number >= self.most_learned:  # all, or the rest at once
                    return "at the end of learning"
                return f"learning {number} of at most {self.most_learned}"
            case "fit to a fold":
                most = "" if self.steps is None else f" of at most {self.most_fits}"
                return f"fit {number}{most} to folds"
        if self.steps is not None:
            most = f" of at most {self.steps - self.most_learned - self.most_fits}"
        return f"{self.task} {number}{most}"

    def setup(self, estimator: Any, context: Any) -> None:
        self.fit_number += 1
        self._begin()
        learns = getattr(estimator, "hyperparameters", "fixed") == "learn"
        self.most_learned = int(estimator.max_learning_iter) if learns else 0

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.parent is None:
            self.steps = context.max_subtasks
            self.most_fits = estimator._most_fits() or 0 if hasattr(estimator, "_most_fits") else 0

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        if context.parent is not None:
            self.task = context.task_name
            self.counts[self.task] += 1
            if metadata is not None:
                self.gap = metadata.get("gap", self.gap)
            self.show()

    def show(self) -> None:
        """Show how far the fit is."""


class GapBar(_GapCallback):
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


class GapLines(_GapCallback):
    """Write a line every few seconds, where stderr is a file; nothing for quick fits.

    Lines come also while nothing moves on; seconds count from the first fit.
    """

    def __init__(self, title: str = "fitting", seconds: float | None = None, n_fits: int = 1) -> None:
        super().__init__(title, n_fits)
        self.seconds = _QUIET_SECONDS if seconds is None else seconds

    def setup(self, estimator: Any, context: Any) -> None:
        super().setup(estimator, context)
        if self.n_fits == 1 or self.fit_number == 1:
            self.started = self.last = time.monotonic()
        self.ended = threading.Event()
        threading.Thread(target=self._keep_showing, daemon=True).start()

    def _keep_showing(self) -> None:
        while not self.ended.wait(max(self._pause(), _SHORTEST_WAIT)):
            self.show()

    def _pause(self) -> float:
        return max(self.seconds, _QUIET_SHARE * (self.last - self.started))

    def show(self) -> None:
        now = time.monotonic()
        if now - self.last >= self._pause():
            self.last = now
            note(f"{self.heading}, {now - self.started:.0f} s{self.state and ': '}{self.state}")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.ended.set()


def unfitted_scorer(estimator: Any) -> Any:
    """Give the classifier that scores and takes callbacks, before a fit."""
    while isinstance(estimator, DecisionClassifier):
        estimator = estimator.estimator
    return estimator


def count_fits(estimator: Any) -> int:
    """Count the fits of the classifier that scores: one a held-out part and one of all rows."""
    if not isinstance(estimator, DecisionClassifier):
        return 1
    inside = count_fits(estimator.estimator)
    if isinstance(estimator, ConformalLabelClassifier):  # no fit of all rows
        return inside
    return inside * (1 + (1 if estimator.cv is None else int(estimator.cv)))
