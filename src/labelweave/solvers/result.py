"""How a solver ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["SolverResult", "Status"]


class Status(Enum):
    """Why a solver stopped; the value tells the user what to try."""

    CONVERGED = "The relative duality gap is within the tolerance."
    SETTLED = "The objective has stopped changing, by the solver's own rule; that is no certificate."
    ITERATION_LIMIT = (
        "The iteration limit was reached before the relative duality gap met the tolerance; raise max_iter, "
        "scale the features, or regularise more."
    )
    STALLED = (
        "Rounding kept the relative duality gap from falling to the tolerance; use double precision if it "
        "was single, or a larger tol."
    )
    INDEFINITE = (
        "The objective of the result lies below its own lower bound, which a positive semi-definite kernel "
        "rules out; check the kernel."
    )
    HANDED_OVER = "Another solver is expected to be faster from here on."
    INTERRUPTED = (
        "The fit was interrupted; the model is the best one so far, with the duality gap it reached."
    )


@dataclass(frozen=True)
class SolverResult:
    """The end of a run: why it stopped, and every check on the way.

    trace: every check of the duality gap, the last one at the result.
    answer: what was solved for, as the problem gives it.
    """

    status: Status
    n_iter: int
    trace: list[Any]
    answer: Any = None

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        """The relative duality gap at the result."""
        return float(self.trace[-1].gap)

    def followed_by(self, later: SolverResult) -> SolverResult:
        """Join the result of a run that went on where this one stopped.

        Returns the end of the second run, with the trace of both.
        """
        rounds, seconds = self.n_iter, self.trace[-1].time
        moved = [
            record._replace(iteration=record.iteration + rounds, time=record.time + seconds)
            for record in later.trace
        ]
        return SolverResult(later.status, rounds + later.n_iter, self.trace + moved)
