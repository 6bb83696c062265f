"""How a solver ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from labelweave.solvers.trace import TraceRecord

__all__ = ["SolverResult", "Status"]


class Status(Enum):
    """Why a solver stopped; the value tells the user what to try."""

    CONVERGED = "The relative duality gap is within the tolerance."
    ITERATION_LIMIT = (
        "The iteration limit was reached before the relative duality gap met the tolerance; raise max_iter, "
        "scale the features, or lower C."
    )
    INTERRUPTED = (
        "The fit was interrupted; the model is the best one so far, with the duality gap it reached."
    )


@dataclass(frozen=True)
class SolverResult:
    """The end of a run: why it stopped, and every check on the way.

    Parameters
    ----------
    status : Status
        Why the solver stopped.
    n_iter : int
        Rounds done.
    trace : list of TraceRecord
        Every check of the duality gap, the last one at the result.
    """

    status: Status
    n_iter: int
    trace: list[TraceRecord]

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        """The relative duality gap at the result."""
        return self.trace[-1].gap
