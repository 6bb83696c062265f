"""One typed record an outer iteration."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TraceRecord"]


class TraceRecord(NamedTuple):
    """What was known at one check of the duality gap.

    ``pandas.DataFrame(trace)`` turns a list of these into a table.

    time: seconds since the solver started.
    primal: objective at the current weights: an upper bound of the optimum.
    dual: dual objective: a lower bound of the optimum.
    gap: (primal - dual) / max(1, abs(primal)).
    active_share: share of the (row, label block) pairs that the last round's sweeps visited, on average.
    """

    iteration: int
    time: float
    primal: float
    dual: float
    gap: float
    active_share: float
