"""Interior point steps for a box-constrained dual of low rank, one label at a time.

With ``A = G G^T``, G of few columns, and a box [0, u], the maximiser of ``<m, a> - 1/2 |G^T a|^2``
satisfies, with multipliers s and z of the two bounds,

    G G^T a - m - s + z = 0,     a s = 0,     (u - a) z = 0.

Newton steps on the products made equal to a falling mu (Mehrotra's predictor and corrector, SIAM Journal on
Optimization 2, 1992) cost one factorisation of ``I + G^T D^-1 G`` each (Ferris and Munson 2002),
D being ``s / a + z / (u - a)``.  Their number hardly depends on how ill-conditioned
the problem is, where first-order steps crawl: unscaled features, or a large C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.solvers.box_values import BoxTerms, dual_value, primal_value, relative_gap
from labelweave.solvers.local_end import LocalEnd

__all__ = ["interior_point", "interior_steps", "interior_work"]

Array = npt.NDArray[Any]

_USUAL_STEPS, _MOST_STEPS = 30, 100
_OVERHEAD = 100  # a step's operations on whole columns, in columns of the factor
_NEAREST, _TINY = 1e-16, 1e-100
_BACK_OFF = 0.995  # of the way to the boundary


def interior_point(factor: Array, margins: Array, bounds: Array, tol: float) -> Array:
    """Maximise the dual of one label.

    Parameters
    ----------
    factor : ndarray of float64, shape (n, r)
        G, each row times the sign of its label.
    margins : ndarray of float64, shape (n,)
        m.
    bounds : ndarray of float64, shape (n,)
        u, positive.
    tol : float
        The relative duality gap to reach.

    Returns
    -------
    ndarray of float64, shape (n,)
        a, strictly within its bounds.
    """
    state = _Interior(factor, margins, bounds)
    for _ in range(_MOST_STEPS):
        if state.gap() <= tol or not state.advance():
            break
    return state.point


def interior_steps(terms: BoxTerms, factor: Array, tol: float, allowance: float) -> LocalEnd | None:
    """Maximise the duals of all labels, which nothing couples.

    Parameters
    ----------
    terms : BoxTerms
        The problem, in double precision; one bound of every variable is 0.
    factor : ndarray of float64, shape (n, r)
        ``A = factor factor^T`` for every label.
    tol : float
        The relative duality gap to reach.
    allowance : float
        The operations that this may take.

    Returns
    -------
    LocalEnd or None
        The result; None if it would take more.
    """
    if interior_work(terms, factor) > allowance:
        return None
    boxed = np.zeros_like(terms.targets)
    for label in range(boxed.shape[1]):
        bounds = terms.upper[:, label] - terms.lower[:, label]
        rows = np.flatnonzero(bounds > 0)
        if not len(rows):
            continue
        signs = np.where(terms.upper[rows, label] > 0, 1.0, -1.0)
        margins = signs * terms.targets[rows, label]
        signed = signs[:, None] * factor[rows]
        boxed[rows, label] = signs * interior_point(signed, margins, bounds[rows], tol / 2)
    scores = factor @ (factor.T @ boxed)
    gap = relative_gap(primal_value(terms, boxed, scores), dual_value(terms, boxed, scores))
    return LocalEnd(boxed, boxed, terms.targets - scores, gap)


def interior_work(terms: BoxTerms, factor: Array) -> float:
    """Estimate the operations of :func:`interior_steps`.

    Parameters
    ----------
    terms : BoxTerms
        The problem.
    factor : ndarray of shape (n, r)
        Its factor.

    Returns
    -------
    float
        Operations.
    """
    n, rank = factor.shape
    entries = float(_USUAL_STEPS) * terms.targets.shape[1] * n
    return float(entries * rank * (rank + _OVERHEAD))


class _Interior:
    """The point a and its multipliers."""

    def __init__(self, factor: Array, margins: Array, bounds: Array) -> None:
        self.factor, self.margins, self.bounds = factor, margins, bounds
        self.point = bounds / 2
        slope = self.slope()
        scale = max(float(np.abs(slope).mean()), 1e-12)
        self.below = np.maximum(slope, 0) + scale
        self.above = np.maximum(-slope, 0) + scale

    def slope(self) -> Array:
        """Give G G^T a - m."""
        return np.asarray(self.factor @ (self.factor.T @ self.point) - self.margins)

    def gap(self) -> float:
        """Compute the relative duality gap at a."""
        weights = self.factor.T @ self.point
        square = float(weights @ weights)
        loss = float(self.bounds @ np.maximum(0, self.margins - self.factor @ weights))
        dual = float(self.margins @ self.point) - square / 2
        return relative_gap(square / 2 + loss, dual)

    def residual(self) -> Array:
        return np.asarray(self.slope() - self.below + self.above)

    def complementarity(self) -> float:
        return float(self.point @ self.below + (self.bounds - self.point) @ self.above)

    def advance(self) -> bool:
        """Take one step; false if no step could be taken."""
        room = self.room()
        weight = self.below / self.point + self.above / room
        scaled = self.factor / weight[:, None]
        inner = self.factor.T @ scaled
        inner[np.diag_indices(len(inner))] += 1
        try:
            system = sl.cho_factor(inner, lower=True, check_finite=False)
        except (np.linalg.LinAlgError, ValueError):
            return False
        residual = self.residual()
        mu = self.complementarity() / (2 * len(self.point))
        first = self.direction(system, scaled, weight, residual, 0.0, None)
        reach = self.reach(*first)
        after = self.products(first, reach) / (2 * len(self.point))
        step = self.direction(system, scaled, weight, residual, mu * (after / mu) ** 3, first)
        share = _BACK_OFF * self.reach(*step)
        if not (np.isfinite(share) and share > 1e-12):
            return False
        # rounding must not carry anything onto its bound
        self.point = np.maximum(self.point + share * step[0], _NEAREST * self.bounds)
        self.below = np.maximum(self.below + share * step[1], _TINY)
        self.above = np.maximum(self.above + share * step[2], _TINY)
        return True

    def room(self) -> Array:
        return np.asarray(np.maximum(self.bounds - self.point, _NEAREST * self.bounds))

    def direction(
        self, system: Any, scaled: Array, weight: Array, residual: Array, mu: float, first: Any
    ) -> tuple[Array, Array, Array]:
        """Solve for changes of a, s and z; the first direction corrects the second for its curvature."""
        room = self.room()
        curve = (0.0, 0.0) if first is None else (first[0] * first[1], -first[0] * first[2])
        low = (mu - curve[0]) / self.point - self.below
        high = (mu - curve[1]) / room - self.above
        right = -residual + low - high
        part = right / weight
        change = part - scaled @ sl.cho_solve(system, self.factor.T @ part, check_finite=False)
        below = low - self.below / self.point * change
        above = high + self.above / room * change
        return change, below, above

    def reach(self, change: Array, below: Array, above: Array) -> float:
        """Give the largest share of a step, at most 1, that keeps all within their bounds."""
        room = self.room()
        limits = [1.0]
        for value, move in (
            (self.point, change), (room, -change), (self.below, below), (self.above, above),
        ):  # fmt: skip
            down = move < 0
            if down.any():
                limits.append(float((value[down] / -move[down]).min()))
        return min(limits)

    def products(self, step: tuple[Array, Array, Array], share: float) -> float:
        change, below, above = (share * part for part in step)
        low = (self.point + change) @ (self.below + below)
        return float(low + (self.bounds - self.point - change) @ (self.above + above))
