"""Weights of the parts of label covariances, learned by the max-margin objective itself.

With ``R = sum_m w_m R_m`` the penalty is the least over all ways to share the weights out among the parts,

    1/2 tr(Z^T Z R^-1)  =  min over Z = sum_m Z_m of  sum_m 1/(2 w_m) tr(Z_m^T Z_m R_m^-1),

so the objective is convex in Z_m and w together.  Over weights that sum to 1 it is alternated: a fit at given
weights has ``Z_m = w_m X^T B R_m``, and the best weights for these are proportional to

    |Z_m| = w_m sqrt(q_m),    q_m = tr(B^T K B R_m).

The sum of weights bounds the penalty of the dual by its largest part, which certifies both at once:

    max_V  <T, V> - 1/2 max_m q_m(V),      V in the box of the dual.

With several kernels a part is a pair of a kernel and a covariance, ``sum_gm w_gm K_g (x) R_gm``; covariances
without learned weights add their ``q`` to all parts.  For kernels alone this is multiple kernel learning
(Rakotomamonjy et al., "SimpleMKL", Journal of Machine Learning Research 9, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelweave.estimators.journal import Journal
from labelweave.estimators.max_margin.fit import MarginFit, MarginTask
from labelweave.features.gram import choose_gram
from labelweave.foundation.array_types import Floats, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import WeightedCovariance
from labelweave.problems import MarginBox
from labelweave.solvers import Solver, SolverResult, Status, TraceRecord
from labelweave.solvers.frame import Certificate, Round, State

_MOST_ROUNDS = 200
_COARSEST = 0.1  # gap of the first fit
_SHARE = 0.3  # of the last gap, at which the next fit ends
_FINEST = 0.5  # of the tolerance: the rest is for the weights


@dataclass(frozen=True, kw_only=True)
class WeightsState(State):
    """What the next fit begins from: weights of all parts, dual variables (n, L), and its tolerance."""

    weights: Floats
    dual: RowsByLabels
    tol: float


class WeightedMargins:
    """The max-margin problem as a function of the weights.

    task: the rows to fit, with any weights.
    covariances: one per kernel; those of :class:`WeightedCovariance` are learned.
    """

    def __init__(
        self, task: MarginTask, covariances: Sequence[LabelCovariance], dual: RowsByLabels | None
    ) -> None:
        self.task, self.covariances, self.start = task, list(covariances), dual
        self.box = task.box()
        self.last: tuple[MarginFit, list[LabelCovariance]] | None = None
        sources = [task.source, *(source for source, _ in task.further)]
        budget, constant = 1e6 * task.settings.memory_budget, float(task.data.intercept)
        n_labels, workers = task.data.labels.n_labels, Workers(task.settings.n_threads)
        explicit = [task.explicit, *(None for _ in task.further)]
        self.grams = [
            choose_gram(source, features, n_labels, budget, workers, constant=constant)
            for source, features in zip(sources, explicit, strict=True)
        ]

    def first_weights(self) -> Floats:
        found = np.concatenate(
            [one.weights for one in self.covariances if isinstance(one, WeightedCovariance)]
        )
        return np.asarray(found / found.sum())

    def at(self, weights: Floats) -> list[LabelCovariance]:
        """Return the covariances with some weights of all their parts."""
        found, done = list(self.covariances), 0
        for number, one in enumerate(found):
            if isinstance(one, WeightedCovariance):
                found[number] = one.reweighted(weights[done : done + len(one.parts)])
                done += len(one.parts)
        return found

    def fit(self, state: WeightsState) -> tuple[MarginFit, TraceRecord, Floats]:
        """Fit at given weights; also return the objectives of both, and ``q`` of every part."""
        covariances, task = self.at(state.weights), self.task
        plain = [one.fixed if isinstance(one, WeightedCovariance) else one for one in covariances]
        settings = replace(task.settings, tol=state.tol, on_check=_never_stops)
        sources = (source for source, _ in task.further)
        task = replace(
            task, data=replace(task.data, covariance=plain[0]), settings=settings, journal=Journal(),
            further=tuple(zip(sources, plain[1:], strict=True)),
        )  # fmt: skip
        fitted = task.solve(state.dual)
        self.last = fitted, covariances
        dual = dual_of(fitted, self.box)
        squares, fixed = self._squares(dual)
        bound = float(np.vdot(self.box.targets, dual)) - (fixed + squares.max()) / 2
        return fitted, TraceRecord.of(fitted.result.trace[-1].primal, bound), squares

    def _squares(self, dual: RowsByLabels) -> tuple[Floats, float]:
        """Return q of the parts, and the sum of q of covariances without learned weights."""
        squares, fixed = list[float](), 0.0
        for gram, covariance in zip(self.grams, self.covariances, strict=True):
            product = gram.product(dual)
            if isinstance(covariance, WeightedCovariance):
                squares += [_square(product, part.matmul(dual)) for part in covariance.parts]
            else:
                fixed += _square(product, covariance.matmul(dual))
        return np.array(squares), fixed


def _square(product: RowsByLabels, coupled: RowsByLabels) -> float:
    return max(0.0, float(np.vdot(product, coupled)))


def dual_of(fitted: MarginFit, box: MarginBox) -> RowsByLabels:
    """Return the dual variables of a fit, within bounds that rounding may exceed."""
    dual = fitted.dual()
    assert dual is not None, "fits without dual variables are refused"
    return np.asarray(np.clip(dual, box.lower, box.upper))


class PartWeights(Solver[WeightedMargins, WeightsState]):
    """The alternation between fits and weights; its answer is the last fit with its covariances."""

    def __init__(self, tol: float, max_iter: int = _MOST_ROUNDS) -> None:
        self.tol, self.max_iter = tol, max_iter

    def start(self, problem: WeightedMargins) -> WeightsState:
        dual = np.zeros_like(problem.box.targets) if problem.start is None else problem.start
        return WeightsState(weights=problem.first_weights(), dual=dual, tol=max(_COARSEST, self._finest))

    @property
    def _finest(self) -> float:
        return _FINEST * self.tol

    def round(self, problem: WeightedMargins, state: WeightsState) -> Round[WeightsState]:
        fitted, record, squares = problem.fit(state)
        status = self._status(fitted.result.status, record, state.tol)
        now = replace(state, rounds=state.rounds + 1)
        if status is None:
            lengths = state.weights * np.sqrt(squares)
            weights = lengths / lengths.sum() if lengths.any() else state.weights
            tol = float(np.clip(_SHARE * record.gap, self._finest, state.tol))
            now = replace(now, weights=weights, dual=dual_of(fitted, problem.box), tol=tol)
        return Round(now, record, status, problem.last)

    def _status(self, of_fit: Status, record: TraceRecord, tol: float) -> Status | None:
        if of_fit is Status.INTERRUPTED:
            return of_fit
        if record.gap <= self.tol:
            return Status.CONVERGED
        has_failed = of_fit is not Status.CONVERGED and tol <= self._finest
        return of_fit if has_failed else None

    def certify(self, problem: WeightedMargins, state: WeightsState, status: Status) -> Certificate:
        if status is Status.INTERRUPTED and problem.last is not None:
            return Certificate(None, status, problem.last)
        _, record, _ = problem.fit(state)
        return Certificate(record, status, problem.last)


def fit_with_weights(
    task: MarginTask, covariances: Sequence[LabelCovariance], dual: RowsByLabels | None
) -> tuple[MarginFit, list[LabelCovariance]]:
    """Fit rows and weights; return the fit, with the certificate of both, and the covariances."""

    def made(result: SolverResult, state: Any) -> tuple[MarginFit, list[LabelCovariance]]:
        fitted, found = result.answer
        return replace(fitted, result=replace(result, answer=fitted.result.answer)), found

    problem, solver = WeightedMargins(task, covariances, dual), PartWeights(task.settings.tol)
    on_check = task.settings.on_check
    found: tuple[MarginFit, list[LabelCovariance]] = task.journal.model(
        "weights", solver, problem, None, on_check, made
    )
    return found


def _never_stops(record: Any, model: Any) -> bool:
    return False
