"""The max-margin dual optimized by sweeps over rows, with labels that are independent or coupled by R.

**Coupled labels.**  All labels of an example are updated together, so there is one block.  The
weights Z = X^T B R of all labels are stored, in slabs of ``WIDTH`` labels.

**Independent labels** have one weight block per label block.  The intercept is a constant feature, so its
curvature couples all rows of a label and makes plain coordinate ascent slow: 12 sweeps without an intercept
become 25 with one (RCV1, gap 1e-3).  With it as a separate variable b, the saddle form

    max_beta min_b  D_0(beta) - b sum_i beta_i + b^2 / 2,      D_0: the dual without the constant feature,

lets the sweeps hold b fixed and update it between them by a Newton step on the
remaining convex function of b.  Its gradient is b - sum(beta); its curvature is
1 + 1^T K_FF^-1 1 over the free rows F, bounded in practice by a share of
sum_F 1 / K_ii, the ``stiffness``, which is raised when b oscillates.  A label whose b
keeps oscillating, or delays the others (many free rows in few dimensions: the share is far
too large, and b hardly changes), permanently returns to the constant feature.
Any b and any feasible beta have a valid duality gap, so the certificate does not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops import WIDTH
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.margin_dual import LabelBlock, MarginData, MarginDual, MarginPoint, OrderedRows
from labelweave.solvers.frame import State

_STIFFNESS = 0.15
_LARGEST_DENSE = 4096  # labels up to which R is dense: 64 MiB in float32


@dataclass(frozen=True)
class Moves:
    """The state of the intercept updates, arrays of shape (blocks, WIDTH) unless stated.

    share: 1 where the intercept follows every step of a sweep, 0 where it is held fixed.
    sweeps (blocks,): the number of sweeps.
    """

    share: Array
    stiffness: Array
    gradient: Array
    totals: Array
    free: Array
    curvature: Array
    lagging: Array
    given_up: Array
    sweeps: Array

    @classmethod
    def at_zero(cls, n_blocks: int, used: bool, dtype: npt.DTypeLike) -> Moves:
        shape = (n_blocks, WIDTH)
        return cls(
            share=np.full(shape, float(used)).astype(dtype),
            stiffness=np.full(shape, _STIFFNESS),
            gradient=np.zeros(shape),
            totals=np.zeros(shape),
            free=np.zeros(shape, dtype),
            curvature=np.ones(shape),
            lagging=np.zeros(shape, np.int64),
            given_up=np.zeros(shape, bool),
            sweeps=np.zeros(n_blocks, np.int64),
        )

    def of_block(self, block: int) -> tuple[Array, ...]:
        """Return the arrays of one block, in the order of the fields, without the last field."""
        return tuple(getattr(self, part.name)[block] for part in fields(self)[:-1])

    def copy(self) -> Moves:
        return Moves(*(getattr(self, part.name).copy() for part in fields(self)))


State.plain_with(Moves)


class IndependentMargins(MarginDual):
    """The dual with R the identity; blocks can be swept in parallel, and may keep zero weights at 0."""

    blocks_are_independent = True
    keeps_zeros = False

    def _at_zero(self) -> MarginPoint:
        moves = Moves.at_zero(self.n_blocks, self.data.intercept, self.dtype)
        return replace(super()._at_zero(), moves=moves)

    def follow(self, point: MarginPoint) -> None:
        for block, beta in enumerate(point.beta):
            point.weights[block] = self.around_known(beta, block)
            point.moves.totals[block] = beta.sum(axis=0, dtype=np.float64)

    def _begin_intercepts(self, point: MarginPoint) -> None:
        moves = point.moves
        if not self.data.intercept:
            return
        point.intercepts[:] = moves.totals
        from labelweave.foundation.loops.coordinate_ascent import SWEEPS_WITH_CONSTANT_FEATURE

        moves.share[:], moves.sweeps[:] = 0, SWEEPS_WITH_CONSTANT_FEATURE
        for number, (beta, block) in enumerate(zip(point.beta, self.label_blocks, strict=True)):
            is_free = (beta != 0) & (np.abs(beta) < self.bounds(block))
            moves.curvature[number] = np.maximum((1 / self.squared_norms) @ is_free, 1)

    def sweep(self, point: MarginPoint, block: int, rows: Array, threshold: float) -> float:
        from labelweave.foundation.loops.coordinate_ascent import sweep_independent, sweep_table

        labels, moves = self.label_blocks[block], point.moves
        common = (
            self.squared_norms, labels.signs, point.beta[block], labels.upper, labels.margins,
            point.weights[block], point.intercepts[block], moves.share[block], self.data.intercept,
            moves.totals[block], moves.free[block], point.gains[block], threshold,
        )  # fmt: skip
        if self.ordered.as_table:
            gap = sweep_table(rows, *self.rows, *common)
        else:
            gap = sweep_independent(rows, *self.rows, *common, self.keeps_zeros, self.data.squared or None)
        self._move_intercepts(point, block, len(rows) == self.n_rows, gap)
        return float(gap)

    def _move_intercepts(self, point: MarginPoint, block: int, was_full: bool, met_gap: float) -> None:
        from labelweave.foundation.loops.coordinate_ascent import move_intercepts

        moves = point.moves
        moves.sweeps[block] += 1
        sweeps, intercept = int(moves.sweeps[block]), self.data.intercept
        move_intercepts(point.intercepts[block], moves.of_block(block), sweeps, was_full, met_gap, intercept)

    def round(
        self, point: MarginPoint, block: int, orders: Array, run: int, hot_gain: float, idle_gain: float,
        mean_gain: float,
    ) -> tuple[float, float, int]:  # fmt: skip
        from labelweave.foundation.loops.coordinate_ascent import round_independent

        if self.ordered.as_table:  # a sweep over dense rows is long compared with Python's overhead
            return super().round(point, block, orders, run, hot_gain, idle_gain, mean_gain)
        labels, moves = self.label_blocks[block], point.moves
        data = *self.rows, self.squared_norms, labels.signs, labels.upper, labels.margins
        points = point.beta[block], point.weights[block], point.intercepts[block], point.gains[block]
        found: tuple[float, float, int] = round_independent(
            orders, run, hot_gain, idle_gain, mean_gain, data, points, moves.of_block(block),
            int(moves.sweeps[block]), self.data.intercept, self.keeps_zeros, self.data.squared or None,
        )  # fmt: skip
        moves.sweeps[block] += len(orders)
        return found

    def measure(self, point: MarginPoint, block: int) -> tuple[float, float]:
        value = point.intercepts[block]
        sums = self.sums(self.label_blocks[block], point.beta[block], point.weights[block], value)
        known = self.known_sums(block, point.beta[block])
        return totals_of(self._values(sums, value.astype(np.float64), point.moves.totals[block], known))

    def certify(self, point: MarginPoint, block: int) -> tuple[float, float]:
        return totals_of(self.exactly(point, block))

    def exactly(self, point: MarginPoint, block: int) -> tuple[Array, Array]:
        """Compute primal and dual value of each label as :meth:`certify` does, two of shape (WIDTH,)."""
        constants = point.intercepts[block].astype(np.float64)
        beta = self.exact_beta(point, block)
        self.certified[block] = self.around_known(beta, block), constants
        sums = self.sums(self.exact_blocks[block], beta, *self.certified[block])
        return self._values(sums, constants, beta.sum(axis=0), self.known_sums(block, beta))

    def _values(self, sums: Array, constant: Array, total: Array, known: Array) -> tuple[Array, Array]:
        hinge, linear, quadratic = sums
        own = np.stack([hinge, linear - known, quadratic - known])  # without the prior scores
        return objectives_of(own, constant, total, constant**2, total**2 if self.data.intercept else 0.0)


def objectives_of(
    sums: Array, constant: Array, total: Array, constant_norm: Any, total_norm: Any
) -> tuple[Array, Array]:
    """Combine primal and dual value of each label, two of shape (WIDTH,), from sums over rows.

    sums (3, WIDTH): of the hinge losses, beta * target and beta * score.
    constant, total (WIDTH,): the intercepts, and the sums of beta.
    constant_norm, total_norm: the squared norms of the intercepts and of those that beta implies, by R.
    """
    hinge, linear, quadratic = sums
    squared = quadratic - constant * total  # ||w||^2 without the intercept
    return (squared + constant_norm) / 2 + hinge, linear - (squared + total_norm) / 2


def totals_of(values: tuple[Array, Array]) -> tuple[float, float]:
    primal, dual = values
    return float(primal.sum()), float(dual.sum())


class CoupledMargins(MarginDual):
    """The dual with any label covariance."""

    blocks_are_independent = False

    def __init__(
        self, data: MarginData | OrderedRows, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> None:
        super().__init__(data, dtype, workers)
        self.bias: Any = self.dtype.type(self.data.intercept)
        self._sweep, self._structure = self._compiled_structure()

    def _compiled_structure(self) -> tuple[Callable[..., float], tuple[Array | int, ...]]:
        """Choose the loop for the covariance, and lay out its arrays in block order."""
        from labelweave.foundation.loops.coupled_ascent import sweep_dense_covariance, sweep_factor_covariance

        order, width = self.label_order, len(self.label_blocks) * WIDTH
        covariance = self.data.covariance.columns(order)
        if isinstance(covariance, FactorCovariance) and len(order) > _LARGEST_DENSE:
            factor = sp.csr_array(covariance.factor).astype(self.dtype)
            factor.resize(width, factor.shape[1])
            own = np.zeros(width, self.dtype)
            own[: len(order)] = covariance.own_variance
            arrays = (factor.indptr.astype(np.int64), factor.indices.astype(np.int64), factor.data)
            return sweep_factor_covariance, (own, *arrays, factor.shape[1])
        dense = np.zeros((width, width), self.dtype)
        dense[: len(order), : len(order)] = covariance.to_dense()
        return sweep_dense_covariance, (dense,)

    def follow(self, point: MarginPoint) -> None:
        for slab, (wide, constants) in enumerate(self._weights(list(point.beta))):
            point.weights[slab], point.intercepts[slab] = wide, constants

    def sweep(self, point: MarginPoint, block: int, rows: Array, threshold: float) -> float:
        return float(
            self._sweep(
                rows, *self.rows, self.squared_norms, self.signs, point.beta, self.upper, self.margins,
                point.weights, point.intercepts.reshape(-1), self.bias, *self._structure, point.gains[0],
                threshold,
            )
        )  # fmt: skip

    def measure(self, point: MarginPoint, block: int) -> tuple[float, float]:
        slabs = zip(point.weights, point.intercepts, strict=True)
        return self._values(self.label_blocks, list(point.beta), slabs)

    def certify(self, point: MarginPoint, block: int) -> tuple[float, float]:
        betas = [self.exact_beta(point, number) for number in range(len(self.label_blocks))]
        weights = self._weights(betas)
        self.certified = dict(enumerate(weights))
        return self._values(self.exact_blocks, betas, weights)

    def _weights(self, betas: list[Array]) -> list[tuple[Array, Array]]:
        """Compute X^T B R in double precision, one slab of labels at a time, and its constant row."""
        Z = self.data.covariance.matmul(self._products(betas))
        slabs: list[tuple[Array, Array]] = []
        for part in self.label_blocks:
            wide = np.zeros((len(Z), WIDTH))
            wide[:, : len(part.labels)] = Z[:, part.labels]
            own = wide[:-1] if self.known is None else wide[:-1] + self.known[len(slabs)]
            slabs.append((np.ascontiguousarray(own), float(self.bias) * wide[-1]))
        return slabs

    def _products(self, betas: Iterable[Array]) -> Array:
        """Compute X^T B, one row per feature with the constant one last, in double precision."""
        products = np.zeros((self.data.features.shape[1] + 1, self.data.labels.n_labels))
        for part, beta in zip(self.label_blocks, betas, strict=True):
            k = len(part.labels)
            products[:-1, part.labels] = self.product(beta)[:, :k]
            products[-1, part.labels] = float(self.bias) * beta.sum(axis=0)[:k]
        return products

    def _values(
        self, blocks: list[LabelBlock], betas: list[Array], slabs: Iterable[tuple[Array, Array]]
    ) -> tuple[float, float]:
        sums = [self.sums(block, beta, *slab) for block, beta, slab in zip(blocks, betas, slabs, strict=True)]
        known = sum(float(self.known_sums(number, beta).sum()) for number, beta in enumerate(betas))
        hinge, linear, quadratic = np.sum(sums, axis=(0, 2))
        squared = quadratic - known
        return float(squared / 2 + hinge), float(linear - known - squared / 2)


def make_margin_dual(data: MarginData, dtype: npt.DTypeLike, workers: Workers | None = None) -> MarginDual:
    if not data.covariance.is_diagonal:
        return CoupledMargins(data, dtype, workers)
    return IndependentMargins(OrderedRows(data, dtype, as_table=data.is_walked_as_table), dtype, workers)
