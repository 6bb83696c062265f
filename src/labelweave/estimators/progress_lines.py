"""The progress of a fit as lines, through scikit-learn's callbacks: what ``verbose`` writes to stderr.

The name of a subtask is the kind of step that ended: a step of the duality gap, which is in the callback's
metadata; an evaluation of the cross-validated loss (unneeded ones end at once when the final fit starts);
a round; a fit to a fold; a member of an automatic model.  Some solvers report estimates
between two measurements of the gap.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

Write = Callable[[str], None]

_PART = " of a part"
_QUIET_SECONDS = 2.0
_QUIET_SHARE = 0.2  # of the time so far, which limits the output of long fits
_SHORTEST_WAIT = 0.1
_ENOUGH = 0.2  # share of the steps after which the remaining time is shown


def _to_stderr(line: str) -> None:
    if sys.stderr is not None:  # None where a program has no console
        sys.stderr.write(f"labelweave: {line}\n")
        sys.stderr.flush()


def is_whole_fit(context: Any) -> bool:
    """Distinguish the fit of an estimator, also inside another one, from its subtasks."""
    outer = context.parent
    return outer is None or getattr(outer, "estimator_name", "") != getattr(context, "estimator_name", "")


class FitCallback:
    """The hooks of scikit-learn's callbacks, which do nothing."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin a task."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        """End a task."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit."""


class GapCallback(FitCallback):
    """Count the subtasks of a fit; subclasses show what they stand for."""

    def __init__(self, title: str, n_fits: int = 1) -> None:
        self.title, self.n_fits, self.fit_number = title, n_fits, 0
        self.steps: int | None = 1  # None if unknown
        self.most_learned, self.most_fits = 0, 0
        self._begin()

    def _begin(self) -> None:
        self.counts, self.task, self.gap = Counter[str](), "", 1.0
        self.begun = time.monotonic()

    @property
    def done(self) -> int:
        return self.counts.total()

    @property
    def heading(self) -> str:
        """The title, and the number of the fit among several."""
        return self.title if self.n_fits == 1 else f"{self.title} {self.fit_number} of {self.n_fits}"

    @property
    def state(self) -> str:
        """How far learning is, the approximate relative duality gap, or the current round."""
        number, most = self.counts[self.task], ""
        match self.task:
            case "":
                return ""
            case "duality gap" | "duality gap of a part":
                where = " on a part of the rows" if self.task.endswith(_PART) else ""
                return f"gap about {self.gap:.1e}{where}"
            case "cross-validation":
                if number >= self.most_learned:  # all, or the rest was skipped
                    return "at the end of learning"
                return f"learning {number} of at most {self.most_learned}"
            case "fit to a fold":
                most = "" if self.steps is None else f" of at most {self.most_fits}"
                return f"fit {number}{most} to folds"
        return self._counted_state()

    def _counted_state(self) -> str:
        """Return the current round, or the step of all where steps have names of their own."""
        if self.task != "round" and self.steps:
            return f"{self.task}, step {self.done} of {self.steps}{self._time_left()}"
        most = self.steps and f" of at most {self.steps - self.most_learned - self.most_fits}"
        return f"{self.task} {self.counts[self.task]}{most or ''}"

    def _time_left(self) -> str:
        spent = time.monotonic() - self.begun
        left = spent / self.done * ((self.steps or 0) - self.done)
        is_early = spent < _QUIET_SECONDS or self.done < _ENOUGH * (self.steps or 0)
        return "" if is_early else f", about {left:.0f} s left"

    def setup(self, estimator: Any, context: Any) -> None:
        self.fit_number += 1
        self._begin()
        self.most_learned = getattr(estimator, "_most_learned", 0)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if is_whole_fit(context):
            self.steps = context.max_subtasks
            self.most_fits = estimator._most_fits() or 0 if hasattr(estimator, "_most_fits") else 0

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        if not is_whole_fit(context):
            self.task = context.task_name
            self.counts[self.task] += 1
            if metadata is not None:
                self.gap = metadata.get("gap", self.gap)
            self.show()

    def show(self) -> None:
        """Show how far the fit is."""


class GapLines(GapCallback):
    """Write a line every few seconds, where stderr is a file; nothing for quick fits.

    Lines are written also without progress; seconds count from the first fit.
    """

    def __init__(
        self,
        title: str = "fitting",
        seconds: float | None = None,
        n_fits: int = 1,
        write: Write | None = None,
    ) -> None:
        super().__init__(title, n_fits)
        self.seconds = _QUIET_SECONDS if seconds is None else seconds
        self.write = write or _to_stderr

    def setup(self, estimator: Any, context: Any) -> None:
        self.ended = threading.Event()
        super().setup(estimator, context)
        if self.n_fits == 1 or self.fit_number == 1:
            self.started = self.last = time.monotonic()
        threading.Thread(target=self._keep_showing, args=(self.ended,), daemon=True).start()

    def _keep_showing(self, ended: threading.Event) -> None:
        while not ended.wait(max(self._pause(), _SHORTEST_WAIT)):
            self.show()

    def _pause(self) -> float:
        return max(self.seconds, _QUIET_SHARE * (self.last - self.started))

    def show(self) -> None:
        now = time.monotonic()
        if now - self.last >= self._pause():
            self.last = now
            self.write(f"{self.heading}, {now - self.started:.0f} s{self.state and ': '}{self.state}")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.ended.set()


class FitLines(GapLines):
    """What ``verbose`` writes: lines during a fit, of every step on request, and one at its end."""

    def __init__(self, title: str, *, is_every: bool) -> None:
        super().__init__(title)
        self.is_every = is_every

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        if self.is_every:
            self.last = -math.inf
        super().on_fit_task_end(estimator, context, metadata=metadata)

    def teardown(self, estimator: Any, context: Any) -> None:
        super().teardown(estimator, context)
        status = getattr(estimator, "status_", "").replace("_", " ")
        seconds = time.monotonic() - self.started
        self.write(f"{self.title}, {seconds:.1f} s: {status or 'ended'}")
