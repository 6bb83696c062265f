"""The loosest tolerance of a peer that reaches a relative duality gap, found in few runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np


class Measured(Protocol):
    """A run at a tolerance."""

    @property
    def tolerance(self) -> float:
        """The program's own tolerance."""

    @property
    def gap(self) -> float:
        """The relative duality gap that it gave."""


Run = TypeVar("Run", bound=Measured)


class ToleranceSearch(Generic[Run]):
    """The runs of one program, each made once.

    series: its tolerances, from the loosest to the tightest.
    train: makes the run at a tolerance.
    per_gap: A guess of tolerance over gap, for the first run.
    """

    def __init__(self, series: Sequence[float], train: Callable[[float], Run], per_gap: float = 5.0) -> None:
        self.series, self.train, self.per_gap = list(series), train, per_gap
        self._runs: dict[float, Run] = {}

    @property
    def runs(self) -> list[Run]:
        """All runs, from the loosest tolerance to the tightest."""
        return [self._runs[tolerance] for tolerance in sorted(self._runs, reverse=True)]

    def at(self, tolerance: float) -> Run:
        """Run at a tolerance, unless that was done.

        tolerance: the program's own.
        """
        if tolerance not in self._runs:
            self._runs[tolerance] = self.train(tolerance)
        return self._runs[tolerance]

    def loosest(self, gap: float) -> Run | None:
        """Find the loosest tolerance of the series whose gap is small enough.

        The gap is about proportional to the tolerance, which foretells where to look; both the
        tolerance found and the next looser one are run.

        gap: the relative gap to reach.
        Returns: the run; ``None`` if even the tightest tolerance misses.
        """
        known = {self.series.index(tolerance): run for tolerance, run in self._runs.items()}
        reaching = min((i for i, run in known.items() if run.gap <= gap), default=len(self.series))
        missing = max((i for i, run in known.items() if run.gap > gap and i < reaching), default=-1)
        while missing + 1 < reaching:
            last = min(reaching, len(self.series)) - 1
            position = int(np.clip(self._foretold(gap), missing + 1, last))
            if self.at(self.series[position]).gap <= gap:
                reaching = position
            else:
                missing = position
        return self.at(self.series[reaching]) if reaching < len(self.series) else None

    def _foretold(self, gap: float) -> int:
        wanted = self.per_gap * gap
        if self._runs:
            nearest = min(self._runs.values(), key=lambda run: abs(np.log(run.gap / gap)))
            wanted = nearest.tolerance * gap / nearest.gap
        return int(np.searchsorted(-np.array(self.series), -wanted))

    def from_tolerance(self, gap: float, start: float) -> Run | None:
        """Find the first tolerance, from a given one on, whose gap is small enough.

        gap: the relative gap to reach.
        start: A tolerance of the series.
        Returns: the run; ``None`` if even the tightest tolerance misses.
        """
        tail = self.series[self.series.index(start) :]
        return next((run for run in map(self.at, tail) if run.gap <= gap), None)
