"""The max-margin dual when labels are independent: one weight block a label block.

The intercept is a constant feature, so its curvature couples all rows of a label
and makes plain coordinate ascent slow: 12 sweeps without an intercept become 25
with one (RCV1, gap 1e-3).  Seen as a variable b of its own, the saddle form

    max_beta min_b  D_0(beta) - b sum_i beta_i + b^2 / 2,      D_0: the dual without the constant feature,

lets the sweeps hold b fixed and move it between them by a Newton step on the
convex function of b that remains.  Its slope is b - sum(beta); its curvature is
1 + 1^T K_FF^-1 1 over the free rows F, bounded in practice by a share of
sum_F 1 / K_ii, the ``stiffness``, which is raised when b oscillates.  A label whose b
keeps oscillating, or holds up the rest (many free rows in few dimensions: the share is far
too large, and b all but stands still), goes back to the constant feature for good.
Any b and any feasible beta give a valid duality gap, so the certificate does not rest on this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave._loops.coordinate_ascent import sweep_independent
from labelweave._loops.wide_rows import WIDTH
from labelweave.array_types import Array
from labelweave.problems.margin_dual import MarginData, MarginDual

__all__ = ["IndependentMargins"]

_SWEEPS_WITH_CONSTANT_FEATURE = 3
_STIFFNESS = 0.15
_LARGEST_STIFFNESS = 10.0
_LARGEST_SHARE = 0.1  # of the duality gap of its block, that an intercept may have ...
_LAGGING_SWEEPS = 2  # ... in so many full sweeps


class _Intercept:
    """The intercepts of a block and how each of them is moved."""

    def __init__(self, used: bool, dtype: npt.DTypeLike) -> None:
        self.used = used
        self.value = np.zeros(WIDTH, dtype)
        self.share = np.full(WIDTH, float(used)).astype(dtype)
        self.stiffness = np.full(WIDTH, _STIFFNESS)
        self.slope = np.zeros(WIDTH)
        self.totals = np.zeros(WIDTH)
        self.free = np.zeros(WIDTH, dtype)
        self.curvature = np.ones(WIDTH)
        self.sweeps = 0
        self.lagging = np.zeros(WIDTH, np.int64)
        self.given_up = np.zeros(WIDTH, bool)

    def after_sweep(self, was_full: bool, met_gap: float) -> None:
        """Move the intercepts that are held fixed in sweeps."""
        if was_full:
            # slope^2 / 2 is an intercept's own share of the duality gap, beside the rows' shares
            self.lagging += (self.totals - self.value) ** 2 / 2 > _LARGEST_SHARE * met_gap
            self.given_up |= self.lagging > _LAGGING_SWEEPS
            self.curvature = self.free.astype(np.float64)
        self.free[:] = 0
        self.sweeps += 1
        if not self.used or self.sweeps < _SWEEPS_WITH_CONSTANT_FEATURE:
            return
        slope = self.totals - self.value
        self.learn_stiffness(slope)
        step = np.where(self.given_up, slope, slope / (1 + self.stiffness * self.curvature))
        self.value += step.astype(self.value.dtype)
        self.share[:] = self.given_up

    def learn_stiffness(self, slope: Array) -> None:
        turned = slope * self.slope < 0
        worse = turned & (np.abs(slope) > 0.7 * np.abs(self.slope))
        self.stiffness = np.where(worse, self.stiffness * 2, self.stiffness)
        self.given_up |= self.stiffness > _LARGEST_STIFFNESS
        self.slope = slope


class IndependentMargins(MarginDual):
    """The dual with R the identity; blocks can be swept at the same time."""

    blocks_are_independent = True

    def __init__(self, data: MarginData, dtype: npt.DTypeLike) -> None:
        super().__init__(data, dtype)
        self.n_blocks = len(self.label_blocks)
        self.row_gains = np.zeros((self.n_blocks, self.n_rows), self.dtype)
        d = data.features.shape[1]
        # one allocation, large enough for the system's large pages
        self.block_weights = np.zeros((self.n_blocks, d, WIDTH), self.dtype)
        self.block_intercepts = [_Intercept(data.intercept, self.dtype) for _ in self.label_blocks]

    def sweep(self, block: int, rows: Array, threshold: float) -> float:
        state, intercept = self.label_blocks[block], self.block_intercepts[block]
        gap = sweep_independent(
            rows, *self.rows, self.squared_norms, state.signs, state.beta, self.upper, state.margins,
            self.block_weights[block], intercept.value, intercept.share, intercept.used,
            intercept.totals, intercept.free, self.row_gains[block], threshold,
        )  # fmt: skip
        intercept.after_sweep(len(rows) == self.n_rows, gap)
        return float(gap)

    def gains(self, block: int) -> Array:
        return np.asarray(self.row_gains[block])

    def measure(self, block: int) -> tuple[float, float]:
        place = self.block_intercepts[block]
        sums = self.sums(self.label_blocks[block], self.block_weights[block], place.value)
        return self._values(sums, place.value.astype(np.float64), place.totals)

    def certify(self, block: int) -> tuple[float, float]:
        constants = self.block_intercepts[block].value.astype(np.float64)
        exact = self.exact(self.label_blocks[block])
        self.certified[block] = self.product(exact), constants
        sums = self.sums(exact, *self.certified[block])
        return self._values(sums, constants, exact.beta.sum(axis=0))

    def _values(self, sums: Array, constant: Array, total: Array) -> tuple[float, float]:
        """Put the objectives together from the sums, the intercepts and the sums of beta."""
        hinge, linear, quadratic = sums
        squared = quadratic - constant * total  # ||w||^2 without the intercept
        own = total**2 if self.data.intercept else 0.0
        primal = (squared + constant**2) / 2 + hinge
        dual = linear - (squared + own) / 2
        return float(primal.sum()), float(dual.sum())
