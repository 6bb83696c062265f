"""Corrections for solves with a nearby operator: proximal gradient steps with momentum.

The operator A of a quadratic dual is replaced by ``H = N + r M``, for which solves are cheap; N is
near A, and M takes up what N leaves out.  The dual at V is then maximised as if it were

    <T + (H - A) Y, V> - 1/2 <V, H V>

around a point Y, which is a proximal gradient step in the metric H.  It raises the
dual whenever ``H >= A`` along the step, so r is raised to the largest Rayleigh quotient of
``A - N`` by M that a step has met: no eigenvalue needs to be known.  Y is V with the momentum of
Beck and Teboulle (2009), begun anew when the dual falls (O'Donoghue and Candes 2015).  A Y
follows from the A V at hand, so a round costs one product with A.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from labelweave.array_types import Array, RowsByLabels

__all__ = ["CorrectedSteps", "NearbyOperator"]


_MARGIN = 1.1


class NearbyOperator(Protocol):
    """What is asked of the operator ``H = N + rest M``."""

    @property
    def rest(self) -> float:
        """The weight of M."""

    def set_rest(self, rest: float) -> None:
        """Change the weight of M, for the solves to come."""

    def near_product(self, variables: RowsByLabels) -> RowsByLabels:
        """Compute ``N variables``."""

    def rest_product(self, variables: RowsByLabels) -> RowsByLabels:
        """Compute ``M variables``."""


class _Point(NamedTuple):
    variables: Array
    rest_part: Array
    left_out: Array
    """(A - N) variables."""

    def towards(self, other: _Point, share: float) -> _Point:
        """Give ``self + share (self - other)``."""
        if share == 0:
            return self
        variables, rest_part, left_out = (
            mine + share * (mine - theirs) for mine, theirs in zip(self, other, strict=True)
        )
        return _Point(variables, rest_part, left_out)


class CorrectedSteps:
    """The corrections of one run.

    start (n, L): V at the start, where it must be 0 or followed at once by :meth:`renew`.
    """

    def __init__(self, operator: NearbyOperator, start: Array) -> None:
        zero = np.zeros_like(start)
        self.operator = operator
        self.last = self.around = _Point(zero, zero, zero)
        self.dual, self.momentum = -np.inf, 1.0

    def renew(self, variables: RowsByLabels, scores: RowsByLabels, dual: float) -> RowsByLabels:
        """Take note of a step and give the correction for the next one.

        dual: the dual value at V.
        """
        operator = self.operator
        point = _Point(variables, operator.rest_product(variables), scores - operator.near_product(variables))
        self._raise_rest(point)
        share = self._next_share(fallen=dual < self.dual)
        self.around = point.towards(self.last, share)
        self.last, self.dual = point, dual
        return operator.rest * self.around.rest_part - self.around.left_out

    def _raise_rest(self, point: _Point) -> None:
        step = point.variables - self.around.variables
        size = _inner(step, point.rest_part - self.around.rest_part)
        met = _inner(step, point.left_out - self.around.left_out)
        if met > self.operator.rest * size and size > 0:
            self.operator.set_rest(_MARGIN * met / size)

    def _next_share(self, *, fallen: bool) -> float:
        before = 1.0 if fallen else self.momentum
        self.momentum = (1 + np.sqrt(1 + 4 * before * before)) / 2
        return 0.0 if fallen else float((before - 1) / self.momentum)


def _inner(left: Array, right: Array) -> float:
    return float((left * right).sum(dtype=np.float64))
