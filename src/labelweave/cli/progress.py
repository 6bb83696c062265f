"""The progress of a fit on stderr, through scikit-learn's callbacks.

The estimators report ten subtasks "duality gap" for each tenfold smaller gap, so their
number tells the gap.  Between two of its measurements some solvers report an estimate; the gap
that a fit ends with is measured.  Estimators that learn hyper-parameters report each evaluation
of their loss before, as a subtask "cross-validation"; where fewer were needed than
there could be, the rest are reported as done at once when the final fit begins.  A fit of a part of the
rows, by which thresholds are chosen, has subtasks of its own before the final ones.  Models of two factors
report rounds or epochs, whose number is all that is known of how far they are, and fits to folds before
them where rank and regularization are chosen.  Classifiers that decide on another one's scores fit it several
times, which are counted.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from labelweave.cli.messages import console, note
from labelweave.decisions import ConformalLabelClassifier
from labelweave.decisions.base import DecisionClassifier

__all__ = ["GapBar", "GapLines", "count_fits", "end_at_interrupts", "show_progress"]

_STEPS_A_DECADE = 10
_LEARNING = "cross-validation"
_ROUNDS = ("round", "epoch")
_PART = "duality gap of a part"
_FOLD_FIT = "fit to a fold"
_QUIET_SECONDS = 2.0
_QUIET_SHARE = 0.2  # of the time so far, so that long fits do not write pages
_SHORTEST_WAIT = 0.1


def show_progress(estimator: Any, title: str = "fitting") -> Any:
    """Let an estimator show the progress of its fits.

    estimator: one that takes callbacks, or one that decides on the scores of such a one.
    title: what stands before the bar.
    """
    stderr, n_fits = console(stderr=True), count_fits(estimator)
    shown = GapBar(stderr, title, n_fits) if stderr.is_terminal else GapLines(title, n_fits=n_fits)
    unfitted_scorer(estimator).set_callbacks(shown)
    return estimator


class _GapCallback:
    """Count the subtasks of a fit; subclasses show what they stand for."""

    def __init__(self, title: str, n_fits: int = 1) -> None:
        self.title, self.done = title, 0
        self.n_fits, self.fit_number = n_fits, 0
        self.steps: int | None = 1  # None where nobody knows
        self.learned, self.most_learned = 0, 0
        self.fits, self.most_fits = 0, 0
        self.parts = 0
        self.rounds = ""

    @property
    def heading(self) -> str:
        """The title, and which fit it is of several."""
        return self.title if self.n_fits == 1 else f"{self.title} {self.fit_number} of {self.n_fits}"

    @property
    def state(self) -> str:
        """How far learning is, or about where the relative duality gap is, or which round it is."""
        if self.rounds:
            most = self._at_most(self.steps, self.most_learned + self.most_fits)
            return f"{self.rounds} {self.done - self.learned - self.fits}{most}"
        if self.fits:
            return f"fit {self.fits}{self._at_most(self.steps and self.most_fits)} to folds"
        if self.done > self.learned:
            return self._gap_words(self.done - self.learned)
        if not self.learned:
            return ""
        if self.learned >= self.most_learned:  # all, or the rest at once
            return "at the end of learning"
        return f"learning {self.learned} of at most {self.most_learned}"

    def _gap_words(self, steps: int) -> str:
        is_part = steps == self.parts
        passed = steps if is_part else steps - self.parts
        where = " on a part of the rows" if is_part else ""
        return f"gap about {10 ** (-passed / _STEPS_A_DECADE):.1e}{where}"

    @staticmethod
    def _at_most(steps: int | None, others: int = 0) -> str:
        return "" if steps is None else f" of at most {steps - others}"

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""
        self.fit_number += 1
        self.done = self.learned = self.fits = self.parts = 0
        self.rounds = ""
        learns = getattr(estimator, "hyperparameters", "fixed") == "learn"
        self.most_learned = int(estimator.max_learning_iter) if learns else 0

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Learn how many steps there are."""
        if context.parent is None:
            self.steps = context.max_subtasks
            self.most_fits = estimator._most_fits() or 0 if hasattr(estimator, "_most_fits") else 0

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Count a step."""
        if context.parent is not None:
            self.done += 1
            self.learned += context.task_name == _LEARNING
            self.parts += context.task_name == _PART
            self.fits += context.task_name == _FOLD_FIT
            self.rounds = context.task_name if context.task_name in _ROUNDS else ""
            self.show()

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit."""

    def show(self) -> None:
        """Show how far the fit is."""


class GapBar(_GapCallback):
    """Show a bar, for terminals; it vanishes at the end.

    title: what stands before the bar.
    n_fits: how many fits are to come.
    """

    def __init__(self, on: Console, title: str = "fitting", n_fits: int = 1) -> None:
        super().__init__(title, n_fits)
        self.on = on
        self.bar: Progress | None = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Start the bar."""
        super().setup(estimator, context)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        self.bar = Progress(*columns, TimeElapsedColumn(), console=self.on, transient=True)
        self.bar.add_task(self.heading, total=None, state="")
        self.bar.start()

    def show(self) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(TaskID(0), total=self.steps, completed=self.done, state=self.state)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()


class GapLines(_GapCallback):
    """Write a line every few seconds, where stderr is a file; nothing for quick fits.

    Lines come also while nothing moves on, or a kernel matrix is factorised.

    title: what stands before the state.
    seconds: the least time between lines; by default two seconds.
    n_fits: how many fits are to come; seconds count from the first.
    """

    def __init__(self, title: str = "fitting", seconds: float | None = None, n_fits: int = 1) -> None:
        super().__init__(title, n_fits)
        self.seconds = _QUIET_SECONDS if seconds is None else seconds

    def setup(self, estimator: Any, context: Any) -> None:
        """Start the clock."""
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
        """Write a line if it is time to."""
        now = time.monotonic()
        if now - self.last >= self._pause():
            self.last = now
            note(f"{self.heading}, {now - self.started:.0f} s{self.state and ': '}{self.state}")

    def teardown(self, estimator: Any, context: Any) -> None:
        """Stop the clock."""
        self.ended.set()


def end_at_interrupts(estimator: Any) -> Any:
    """Let an interrupt of any fit end a classifier that decides, which needs them all.

    estimator: any that is not fitted; alone it keeps the best model so far.
    """
    if isinstance(estimator, DecisionClassifier):
        scorer = unfitted_scorer(estimator)
        scorer.set_callbacks(*getattr(scorer, "_skl_callbacks", []), _EndAtInterrupts())
    return estimator


def unfitted_scorer(estimator: Any) -> Any:
    """Give the classifier that scores, before a fit.

    estimator: it, or one that decides on its scores.
    Returns the one that takes callbacks.
    """
    while isinstance(estimator, DecisionClassifier):
        estimator = estimator.estimator
    return estimator


def count_fits(estimator: Any) -> int:
    """Count the fits of the classifier that scores.

    estimator: any that is not fitted.
    Returns 1 for one that scores itself; otherwise one a held-out part and one of all rows, times those of
        the estimator inside.
    """
    if not isinstance(estimator, DecisionClassifier):
        return 1
    inside = count_fits(estimator.estimator)
    if isinstance(estimator, ConformalLabelClassifier):  # no fit of all rows
        return inside
    return inside * (1 + (1 if estimator.cv is None else int(estimator.cv)))


class _EndAtInterrupts:
    """Interrupt the whole where a fit ended as interrupted."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin a task."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """End a task."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit."""
        ends = (getattr(estimator, name, "") for name in ("status_", "search_status_", "learning_status_"))
        if "interrupted" in ends:
            raise KeyboardInterrupt
