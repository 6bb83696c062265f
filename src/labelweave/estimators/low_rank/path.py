"""Cross-validation of rank and lambda along a warm-started path.

In every fold the path goes from the strongest penalty to the weakest, and at each from the largest rank to
the smallest.  The largest rank goes on from the labels' factor of the last penalty, a smaller rank from
the leading columns of the next larger one.  What the rows alone set is made once a fold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from labelweave.array_types import Array
from labelweave.estimators.low_rank.fit import (
    FittedFactors,
    LowRankData,
    LowRankSettings,
    ReadyRows,
    fit_factors,
)
from labelweave.estimators.low_rank.label_starts import first_label_factor
from labelweave.problems.low_rank_factors import LowRankFactors
from labelweave.solvers import Status

__all__ = ["LowRankPath", "PathChoice", "continued", "penalty_grid"]


_DECADES = 4.0  # between the strongest penalty and the weakest
_STRONGEST_RIDGE = 100.0  # times the mean squared length of a row
_DEAD = 1e-3  # times the longest column: shorter ones start anew


@dataclass(frozen=True)
class PathChoice:
    """What the path goes through.

    penalties: the lambdas, descending; or how many, to be found from the first fold's rows.
    extra: one lambda more, where they are found.
    held_out (n, folds): which rows each fold holds out.
    """

    ranks: list[int]
    penalties: list[float] | int
    extra: float | None
    held_out: Array


class LowRankPath:
    """The path.

    settings: how to fit; rank and lambda are the path's.
    score: from a fold's model, its held-out rows and its training rows to a score, greater is better.
    on_fit: called after every fit; a true result ends the path.
    scores, seconds, rounds (folds, penalties, ranks): of every fit; NaN where there was none.
    is_interrupted: whether the path ended early.
    best_factor (L, k): the labels' factor of the best model of the last fold.
    """

    def __init__(
        self,
        data: LowRankData,
        settings: LowRankSettings,
        choice: PathChoice,
        score: Callable[[FittedFactors, Array, Array], float],
        on_fit: Callable[[], bool],
    ) -> None:
        self.data, self.choice, self.score, self.on_fit = data, choice, score, on_fit
        self.settings = replace(settings, rank=choice.ranks[0], on_round=lambda record: False)
        self.penalties: list[float] = [] if isinstance(choice.penalties, int) else choice.penalties
        self._make_tables()
        self.is_interrupted = False
        self.best_factor: Array | None = None

    def _make_tables(self) -> None:
        shape = self.choice.held_out.shape[1], len(self.penalties), len(self.choice.ranks)
        self.scores, self.seconds, self.rounds = (np.full(shape, np.nan) for _ in range(3))

    def run(self) -> None:
        """Go through it; an interrupt ends it, unless nothing is known yet.

        Raises KeyboardInterrupt if no model was scored before the interrupt.
        """
        try:
            for fold in range(self.choice.held_out.shape[1]):
                self._fold(fold)
                if self.is_interrupted:
                    break
        except KeyboardInterrupt:
            self.is_interrupted = True
        if self.is_interrupted and np.isnan(self.scores).all():
            raise KeyboardInterrupt

    def _fold(self, fold: int) -> None:
        held, kept = (
            np.flatnonzero(part) for part in (self.choice.held_out.T[fold], ~self.choice.held_out.T[fold])
        )
        ready = ReadyRows(self.data.rows(kept), self.settings, is_kept=True)
        if isinstance(self.choice.penalties, int) and not self.penalties:
            share = float(self.data.weights.sum()) / max(float(self.data.weights[kept].sum()), 1e-300)
            self.penalties = penalty_grid(ready, self.choice.penalties, share, self.choice.extra)
            self._make_tables()
        starts = _Starts(ready, self.settings)
        self.best_factor, best = None, -np.inf
        for i, penalty in enumerate(self.penalties):
            for j, rank in enumerate(self.choice.ranks):
                fitted = self._fit(ready, starts, (fold, i, j), rank, penalty)
                if self.is_interrupted:
                    return
                self.scores[fold, i, j] = self.score(fitted, held, kept)
                mean = float(self.scores[: fold + 1, i, j].mean())
                if mean > best:
                    self.best_factor, best = fitted.label_factor, mean
                if self.on_fit():
                    self.is_interrupted = True
                    return

    def _fit(
        self, ready: ReadyRows, starts: _Starts, place: tuple[int, int, int], rank: int, penalty: float
    ) -> FittedFactors:
        settings = replace(self.settings, rank=rank, regularization=penalty)
        begin = time.perf_counter()
        start = None if ready.is_exact(settings) else starts.at(rank)
        fitted = fit_factors(ready.data, settings, start, ready)
        starts.note(fitted.label_factor)
        self.is_interrupted = fitted.status is Status.INTERRUPTED
        if not self.is_interrupted:
            self.seconds[place], self.rounds[place] = time.perf_counter() - begin, len(fitted.trace)
        return fitted


class _Starts:
    """The labels' factors from which fits go on."""

    def __init__(self, ready: ReadyRows, settings: LowRankSettings) -> None:
        self.ready, self.settings = ready, settings
        self.first: Array | None = None
        self.widest: Array | None = None
        self.last: Array | None = None

    def at(self, rank: int) -> Array:
        """Give a start of some rank."""
        if self.first is None:
            data, settings = self.ready.data, self.settings
            self.first = first_label_factor(
                data.labels, settings.rank, settings.start, settings.seed, data.weights
            )
        known = self.widest if rank == self.settings.rank else self.last
        return self.first[:, :rank] if known is None else continued(known, self.first, rank)

    def note(self, factor: Array) -> None:
        """Keep the factor of a fit."""
        self.last = factor
        if factor.shape[1] == self.settings.rank:
            self.widest = factor


def continued(known: Array, first: Array, rank: int) -> Array:
    """Make a start from the factor of another fit.

    known (L, k): the labels' factor, the most important column first.
    first (L, at least rank): where a fit starts otherwise.
    Returns (L, rank): the leading columns; those that are there no more, or are near 0, come from ``first``.
    """
    start = np.array(first[:, :rank], np.float64)
    lengths = np.linalg.norm(known[:, :rank], axis=0)
    alive = np.flatnonzero(lengths > _DEAD * lengths.max(initial=0.0))
    start[:, alive] = known[:, alive]
    return start


def penalty_grid(ready: ReadyRows, count: int, share: float, extra: float | None) -> list[float]:
    """Find lambdas from the data: four decades, evenly in the logarithm.

    For the trace norm the largest is the spectral norm of ``Phi^T D`` with D the slopes of the losses at 0:
    from there on nothing but 0 is left.  For the ridge penalty it is a hundred times the mean
    squared length of a row.

    count: how many, at least 1.
    share: how much more all rows weigh.
    """
    length = 0.0
    if ready.settings.penalty == "trace_norm":
        zero = np.zeros((ready.data.labels.n_labels, 1), ready.settings.dtype)
        pair = LowRankFactors(
            ready.entries, ready.factor_map, "trace_norm", 1.0, zero, ready.settings.workers
        )
        length = share * pair.slope_length()
    if not (0 < length < np.inf):
        weight = float(ready.data.weights.mean()) or 1.0
        length = _STRONGEST_RIDGE * weight * (ready.mean_square or 1.0)
    found = np.geomspace(length, length / 10**_DECADES, count).tolist()
    return sorted({*found, *([] if extra is None else [extra])}, reverse=True)
