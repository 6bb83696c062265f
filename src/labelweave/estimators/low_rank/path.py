"""Cross-validation of rank and lambda along a warm-started path.

In every fold the path goes from the strongest penalty to the weakest, and at each from the largest rank to
the smallest.  The largest rank starts from the label factor of the last penalty, a smaller rank from
the leading columns of the next larger one.  What depends only on the rows is computed once per fold.

Of held-out rows only observed entries count.  Their scores are ``image @ factor^T``, with the
intercepts in a last column of the two, and are computed in blocks of rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.low_rank.fit import (
    FittedFactors,
    LowRankData,
    LowRankSettings,
    ReadyRows,
    fit_factors,
)
from labelweave.estimators.low_rank.starts import Start, continued
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.config import PartInterrupted
from labelweave.labels import LabelMatrix
from labelweave.metrics import average_auc, f1_score, precision_at_k
from labelweave.problems.label_entries import EntryWeights
from labelweave.problems.losses.entry_losses import EntryLoss
from labelweave.problems.low_rank_factors import RowsLoss
from labelweave.solvers import Round, Solver, State, Status, TraceRecord

_DECADES = 4.0  # between the strongest penalty and the weakest
_STRONGEST_RIDGE = 100.0  # times the mean squared length of a row
_SCORES_AT_ONCE = 16_000_000


@dataclass(frozen=True, kw_only=True)
class PathState(State):
    """The finished fits, fold by fold, penalty by penalty, rank by rank.

    scores, seconds, steps (folds, penalties, ranks): of every fit; NaN where there was none.
    widest, last (L, k): label factors of this fold's fits, of the largest rank and of any.
    best_factor (L, k): the label factor of the best model of this fold, and ``best`` the mean score of its
        rank and penalty.
    """

    penalties: tuple[float, ...]
    scores: Array
    seconds: Array
    steps: Array
    widest: Array | None = None
    last: Array | None = None
    best_factor: Array | None = None
    best: float = -np.inf


@dataclass
class PathFits:
    """The fits of a path.

    settings: how to fit; rank and lambda are the path's.
    ranks: descending.
    penalties: the lambdas, descending; or their number, to be found from the first fold's rows.
    extra: one more lambda, where they are found.
    held_out (n, folds): which rows each fold holds out.
    score: from a fold's model, its held-out rows and its training rows to a score; higher is better.
    """

    data: LowRankData
    settings: LowRankSettings
    ranks: list[int]
    penalties: list[float] | int
    extra: float | None
    held_out: Array
    score: Callable[[FittedFactors, Array, Array], float]

    def __post_init__(self) -> None:
        self.settings = replace(self.settings, rank=self.ranks[0], on_round=lambda *_: False)
        self._fold = -1

    def fold(self, number: int) -> None:
        if number != self._fold:
            held_out = self.held_out.T[number]
            self.held, self.kept = np.flatnonzero(held_out), np.flatnonzero(~held_out)
            self.ready = ReadyRows(self.data.rows(self.kept), self.settings, is_kept=True)
            self.first: Array | None = None
            self._fold = number

    def found_penalties(self) -> tuple[float, ...]:
        """Return the lambdas, found from the rows of the first fold where they are not given."""
        if not isinstance(self.penalties, int):
            return tuple(self.penalties)
        self.fold(0)
        weights = self.data.weights
        share = float(weights.sum()) / max(float(weights[self.kept].sum()), 1e-300)
        return tuple(penalty_grid(self.ready, self.penalties, share, self.extra))

    def start(self, state: PathState, rank: int) -> Start:
        if self.first is None:
            self.first = self.ready.first_factor(self.settings.rank)
        known = state.widest if rank == self.settings.rank else state.last
        return Start(self.first[:, :rank] if known is None else continued(known, self.first, rank))


class LowRankPath(Solver[PathFits, PathState]):
    """The path; every fit is a round, and while it runs a stage of its own in the journal."""

    tol, max_iter = 0.0, sys.maxsize

    def start(self, problem: PathFits) -> PathState:
        penalties = problem.found_penalties()
        shape = problem.held_out.shape[1], len(penalties), len(problem.ranks)
        scores, seconds, steps = (np.full(shape, np.nan) for _ in range(3))
        return PathState(penalties=penalties, scores=scores, seconds=seconds, steps=steps)

    def round(self, problem: PathFits, state: PathState) -> Round[PathState]:
        if state.rounds == state.scores.size:  # killed between the last fit and the end
            return Round(state, None, Status.CONVERGED)
        fold, i, j = place = np.unravel_index(state.rounds, state.scores.shape)
        problem.fold(int(fold))
        if i == j == 0:
            state = replace(state, widest=None, last=None, best_factor=None, best=-np.inf)
        begin, stage = time.perf_counter(), f"fit {state.rounds} of the path"
        rank, settings = problem.ranks[j], problem.settings
        settings = replace(settings, rank=rank, alpha=state.penalties[i])
        start = None if problem.ready.is_exact(settings) else problem.start(state, rank)
        fitted = fit_factors(problem.ready, settings, start, stage)
        if fitted.status is Status.INTERRUPTED:
            raise PartInterrupted
        state.seconds[place], state.steps[place] = time.perf_counter() - begin, len(fitted.trace)
        state.scores[place] = problem.score(fitted, problem.held, problem.kept)
        settings.journal.forget(stage)
        state = self._noted(problem, state, fitted, float(state.scores[: fold + 1, i, j].mean()))
        record = TraceRecord(primal=-float(state.scores[place]))
        return Round(state, record, Status.CONVERGED if state.rounds == state.scores.size else None)

    def _noted(self, problem: PathFits, state: PathState, fitted: FittedFactors, mean: float) -> PathState:
        factor = fitted.end.labels
        widest = factor if factor.shape[1] == problem.settings.rank else state.widest
        state = replace(state, rounds=state.rounds + 1, widest=widest, last=factor)
        return replace(state, best_factor=factor, best=mean) if mean > state.best else state

    def certify(self, problem: PathFits, state: PathState, status: Status) -> tuple[TraceRecord, Status]:
        return TraceRecord(), status


def penalty_grid(ready: ReadyRows, count: int, share: float, extra: float | None) -> list[float]:
    """Choose lambdas from the data: four decades, evenly spaced in the logarithm.

    For the trace norm the largest is the spectral norm of ``Phi^T D U``, D the gradients at scores of 0,
    which forces all weights to 0; for the ridge penalty a hundred times the mean squared length of a row.

    share: the factor by which all rows weigh more.
    """
    length = 0.0
    if ready.settings.penalty == "trace_norm":
        length = share * ready.largest_alpha()
    if not (0 < length < np.inf):
        weight = float(ready.data.weights.mean()) or 1.0
        length = _STRONGEST_RIDGE * weight * (ready.mean_square or 1.0)
    found = np.geomspace(length, length / 10**_DECADES, count).tolist()
    return sorted({*found, *([] if extra is None else [extra])}, reverse=True)


@dataclass(frozen=True)
class ScoreSettings:
    """What the scores depend on besides the model; negative entries may have their own weight in the loss."""

    loss: str | EntryLoss
    negative_weight: float
    threshold: float
    workers: Workers


@dataclass(frozen=True)
class HeldOutRows:
    """Rows, and their representation by a model.

    image (n, k + 1): the rows in the space of the factors, and a column of ones; then prior scores.
    factor (L, k + 1): the label factor, and the intercepts; then prior scores.
    """

    labels: LabelMatrix
    weights: PerRow
    image: Array
    factor: Array
    entry_factors: EntryWeights | None = None

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        for rows in panels(len(self.labels), max(1, _SCORES_AT_ONCE // max(1, len(self.factor)))):
            yield rows, self.image[rows] @ self.factor.T

    def observed_counts(self) -> PerRow:
        if self.labels.observed is None:
            return np.full(len(self.labels), self.labels.n_labels)
        return np.diff(self.labels.observed.indptr)


def held_out_score(scoring: str, rows: HeldOutRows, settings: ScoreSettings) -> float:
    """Compute the score of a model, higher is better; NaN if no observed entry has a weight."""
    if not (rows.weights * rows.observed_counts()).any():
        return float("nan")
    return SCORINGS[scoring](rows, settings)


def _minus_loss(rows: HeldOutRows, settings: ScoreSettings) -> float:
    weights = np.asarray(rows.weights, np.float64)
    loss = RowsLoss(rows.labels, weights, settings.loss, settings.negative_weight, factors=rows.entry_factors)
    entries = loss.entries(settings.workers)
    total = float(entries.values(rows.image, rows.factor).sum())
    return -total / float((weights * rows.observed_counts()).sum())


def _precision(k: int, rows: HeldOutRows, _: ScoreSettings) -> float:
    mass = rows.weights * (rows.observed_counts() > 0)
    k, total = min(k, rows.labels.n_labels), 0.0
    for part, scores in rows.blocks():
        if mass[part].any():
            share = precision_at_k(rows.labels[part], scores, k, sample_weight=rows.weights[part])
            total += share * float(mass[part].sum())
    return total / float(mass.sum())


def _average_auc(rows: HeldOutRows, _: ScoreSettings) -> float:
    weighted = np.flatnonzero(rows.weights)
    return float(average_auc(rows.labels[weighted], rows.image[weighted] @ rows.factor.T))


def _micro_f1(rows: HeldOutRows, settings: ScoreSettings) -> float:
    predicted = [sp.csr_array((scores > settings.threshold).astype(np.int8)) for _, scores in rows.blocks()]
    return float(f1_score(rows.labels, sp.vstack(predicted, format="csr"), sample_weight=rows.weights))


SCORINGS: dict[str, Callable[[HeldOutRows, ScoreSettings], float]] = {
    "loss": _minus_loss,
    "precision_at_1": partial(_precision, 1),
    "precision_at_3": partial(_precision, 3),
    "precision_at_5": partial(_precision, 5),
    "average_auc": _average_auc,
    "micro_f1": _micro_f1,
}
