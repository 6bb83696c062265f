"""Incomplete Cholesky factors of kernel matrices, the pivots drawn at random or the largest first.

``K ~ G G^T`` with few columns, of which only the active rows' columns of K are ever
computed (Seeger 2008, section 7.4.3).  Pivots are chosen some at a time.  Random ones are
proposals that are accepted with the odds of drawing them one by one (Epperly, Tropp and Webber,
"Embrace rejection", 2024); the entries between proposals settle that before any column is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import StreamedGram

_ORDERS = ("random", "greedy")
_CANDIDATES = 128  # pivots that are proposed at once
_GREEDY_SHARE = 0.5  # of the largest residual, that a pivot has at least
_ROUNDING = 1e-10  # of the largest diagonal entry; a smaller residual is no pivot


@dataclass(frozen=True)
class Pivoting:
    """How an incomplete factor is made.

    rank: the largest number of columns.
    order: whether pivots are drawn with odds proportional to the diagonal that is left, or each has at least
        half of its largest entry.
    tolerance: the share of the trace that may be left; fewer columns are made if they suffice.
    Raises ValueError if a value is out of range.
    """

    rank: int
    order: str = "random"
    tolerance: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"rank is {self.rank}; a low-rank kernel matrix needs at least 1 column.")
        if self.order not in _ORDERS:
            raise ValueError(f"order is {self.order!r}; pivots are taken in the order 'random' or 'greedy'.")
        if not 0 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance is {self.tolerance}; the share of the trace left must be at least 0 and below 1."
            )


@dataclass(frozen=True)
class IncompleteFactor:
    """An incomplete factor G of a kernel matrix K.

    factor (n, r): G; its rows at the pivots, in their order, are lower triangular.
    active_rows (r,): the pivots, in the order in which they were taken.
    left (n,): the diagonal of ``K - G G^T``, at least 0.
    """

    factor: Array
    active_rows: npt.NDArray[np.int64]
    left: npt.NDArray[np.float64]


def incomplete_cholesky(source: GramSource, pivoting: Pivoting, workers: Workers) -> IncompleteFactor:
    """Factorise a positive semi-definite matrix incompletely.

    pivoting: how many pivots, and which.
    Returns the factor; of fewer columns than allowed if nothing but rounding is left.
    """
    growing = _GrowingFactor(source, pivoting, workers)
    generator = np.random.default_rng(pivoting.seed)
    while growing.is_wanted():
        if pivoting.order == "random":
            candidates = _drawn(growing.odds(), generator)
            thresholds = generator.random(len(candidates))
        else:
            candidates, thresholds = growing.largest(), None
        growing.extend(candidates, thresholds)
    return growing.finished()


def _drawn(odds: Array, generator: np.random.Generator) -> Array:
    count = min(_CANDIDATES, int(np.count_nonzero(odds)))
    return generator.choice(len(odds), count, p=odds / odds.sum())


class _GrowingFactor:
    """A factor that gets columns, some at a time."""

    def __init__(self, source: GramSource, pivoting: Pivoting, workers: Workers) -> None:
        self.source, self.workers = source, workers
        self.streamed = StreamedGram(source, 0.0, np.float64, workers)
        self.left = source.diagonal().astype(np.float64)
        self.smallest_pivot = _ROUNDING * self.left.max(initial=0.0)
        self.enough = pivoting.tolerance * self.left.sum()
        self.factor = np.empty((source.n_rows, min(pivoting.rank, source.n_rows)))
        self.active = np.empty(self.factor.shape[1], np.int64)
        self.is_open = np.ones(source.n_rows, dtype=bool)
        self.rank = 0

    def odds(self) -> Array:
        """Give the diagonal that is left, 0 where it is rounding."""
        return np.where(self.is_open & (self.left > self.smallest_pivot), self.left, 0.0)

    def largest(self) -> Array:
        """Give the rows of which most is left, the first one first among equals."""
        odds = self.odds()
        return np.argsort(-odds, kind="stable")[: min(_CANDIDATES, np.count_nonzero(odds))]

    def is_wanted(self) -> bool:
        """Tell whether another column may be added and would matter."""
        left = self.odds().sum() if self.rank < self.factor.shape[1] else 0.0
        return bool(left > self.enough)

    def extend(self, candidates: Array, thresholds: Array | None) -> None:
        """Add the columns of those candidates that are accepted."""
        known = self.factor[candidates, : self.rank]
        corner = self.source.block(candidates, candidates, np.float64) - known @ known.T
        self.is_open[candidates[corner.diagonal() <= self.smallest_pivot]] = False
        room = self.factor.shape[1] - self.rank
        accepted, triangle = _accepted(corner, self.smallest_pivot, thresholds, room)
        if len(accepted):
            self._append(candidates[accepted], triangle)

    def _append(self, pivots: Array, triangle: Array) -> None:
        """Add the columns of some pivots whose residual block is triangle triangle^T."""
        new = slice(self.rank, self.rank + len(pivots))
        columns, known = self.streamed.columns(pivots), self.factor[pivots, : self.rank].copy()

        def one(rows: slice) -> None:
            residual = columns[rows] - self.factor[rows, : self.rank] @ known.T
            solved = sl.solve_triangular(triangle, residual.T, lower=True, check_finite=False).T
            self.factor[rows, new] = self._bounded(solved, rows)

        self.workers.each(one, panels(len(columns)))
        # at pivots the values are known, free of rounding
        self.factor[self.active[: self.rank], new] = 0
        self.factor[pivots, new] = triangle
        self.active[new] = pivots
        self.rank = new.stop
        self.is_open[pivots] = False

    def _bounded(self, solved: Array, rows: slice) -> Array:
        """Take the squares of new entries off what is left; they cannot be more than that.

        They are more only if the matrix is not quite positive semi-definite, as one in single
        precision: its errors would grow without bound.
        """
        squares = np.einsum("ij,ij->i", solved, solved)
        limit = np.maximum(self.left[rows], 0.0) + self.smallest_pivot
        over = squares > limit
        solved[over] *= np.sqrt(limit[over] / squares[over])[:, None]
        self.left[rows] -= np.minimum(squares, limit)
        return solved

    def finished(self) -> IncompleteFactor:
        """Give the factor, with the diagonal that is left computed anew."""
        factor = self.factor[:, : self.rank]
        if self.rank < self.factor.shape[1]:
            factor = factor.copy()
        left = self.source.diagonal() - np.einsum("ij,ij->i", factor, factor)
        left[self.active[: self.rank]] = 0
        return IncompleteFactor(factor, self.active[: self.rank].copy(), np.maximum(left, 0.0))


def _accepted(corner: Array, smallest: float, thresholds: Array | None, room: int) -> tuple[list[int], Array]:
    """Choose pivots among candidates.

    Candidate k is accepted in its turn if its residual is above ``thresholds[k]`` of what it was; without
    thresholds, the largest residual comes next as long as it is a fair share of the first one.
    """
    corner = corner.copy()
    before = corner.diagonal().copy()
    factor, accepted = np.zeros_like(corner), list[int]()
    for turn in range(len(corner)):
        chosen = turn if thresholds is not None else int(np.argmax(corner.diagonal()))
        share = _GREEDY_SHARE * before.max() if thresholds is None else thresholds[turn] * before[turn]
        if corner[chosen, chosen] > max(smallest, share) and len(accepted) < room:
            column = corner[:, chosen] / np.sqrt(corner[chosen, chosen])
            column[accepted] = 0
            corner -= np.outer(column, column)
            factor[:, len(accepted)] = column
            accepted.append(chosen)
    return accepted, factor[accepted, : len(accepted)]
