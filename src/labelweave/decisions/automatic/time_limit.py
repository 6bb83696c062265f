"""Members with a time limit: the seconds of a task's last run predict whether the next ends in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from labelweave.decisions.automatic.members import Members, grow
from labelweave.decisions.automatic.plan import ROWS_TO_CROSS_FIT
from labelweave.decisions.automatic.table import Member, TrainingTable
from labelweave.foundation.config import PartInterrupted

# of the combination that follows: table entries per second, and how often few rows are processed
_ENTRIES, _PARTS, _LEAST_SECONDS = 2e5, 5, 0.5


def maker_of(table: TrainingTable, given: dict[str, Any], begin: float, seconds: float | None) -> Members:
    return Members(table, given=given) if seconds is None else TimedMembers(table, given, begin, seconds)


class TimeIsUp(PartInterrupted):
    """A member and the combination would not be complete before the time limit."""

    status = "time_limit"


class TimedMembers(Members):
    """Fits the first member, and others that can be complete and combined within a number of seconds."""

    trees_a_task = 25

    def __init__(self, table: TrainingTable, given: dict[str, Any], begin: float, seconds: float) -> None:
        super().__init__(table, given=given)
        parts = _PARTS if len(table.targets) <= ROWS_TO_CROSS_FIT else 1
        self._combination = _LEAST_SECONDS + table.targets.size * parts / _ENTRIES
        self._until, self._begin = begin + seconds, (time.perf_counter(), time.process_time())
        self._seconds, self._has_one = dict[Any, float](), False

    def make(self, name: str) -> Member:
        member = super().make(name)
        self._has_one = True
        return member

    def submit(self, function: Callable[..., Any], *given: Any, step: str = "") -> Any:
        begin, spent = time.perf_counter(), time.process_time() - self._begin[1]
        slowness = max(1.0, (begin - self._begin[0]) / max(spent, 1e-3))  # where other processes use the CPUs
        ends = begin + self._seconds.get(function, 0.0) + slowness * self._combination
        if self._has_one and ends > self._until:
            raise TimeIsUp
        is_part = function is grow and sum(given[-2:]) % self.trees_a_fold  # of a step that counts once
        found = super().submit(function, *given, step="" if is_part else step)
        self._seconds[function] = time.perf_counter() - begin
        return found
