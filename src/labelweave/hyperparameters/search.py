"""Learning hyper-parameters: a quasi-Newton search for the least cross-validation loss.

SciPy's L-BFGS-B does the search.  Where the inner fits fail, as they can at extreme values, the
value there is not known (Seeger 2008, section 4).  The search is then told that the criterion rises
along the step as fast as it had promised to fall, which makes its line search come back: the
failed step is a bracket on the right.  Inner fits start from the last success.

A search is a function of its evaluations alone, so it is taken up again by reading those of an
earlier run from a log: they come back with the same bits, and the search goes on behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from labelweave.array_types import Array
from labelweave.hyperparameters.cross_validation import Evaluation, MeanCriterion
from labelweave.hyperparameters.priors import Box, PriorFamily
from labelweave.solvers.frame import State

_MOST_STARTS, _MOST_FAILURES = 20, 7
_WORSE = 1.01  # times the best loss: the search does not go on to where it is higher
_FAR = 1e8
# how far the first search goes, in logarithms of parameters: classes with few rows there may end anywhere
_REACH_OF_FIRST = 4.0
_NEARBY = 2.0  # how far a later search goes at a time
_MOST_MOVES = 5
_SHORT_STEP = 0.3


class SearchRecord(NamedTuple):
    """One evaluation of the criterion.

    time: seconds of all evaluations so far.
    value: the mean held-out loss; NaN where the inner fits failed.
    slope: the largest entry of the gradient.
    gap: the relative duality gap of the inner fits.
    stage: the number of the stage, for a search in stages; values of different stages are not comparable, as
        each may have its own rows and hyper-parameters.
    """

    evaluation: int
    time: float
    value: float
    slope: float
    gap: float
    products: float
    stage: int = 1


@dataclass(frozen=True, kw_only=True)
class SearchState(State):
    """The log of a search: every theta with its evaluation, and the inner states after the last one."""

    thetas: tuple[Array, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    inner_states: tuple[Array | None, ...] = ()


State.plain_with(Evaluation)


class EvaluationLog:
    """Evaluates criteria, and notes it; reads evaluations of an earlier run instead of making them again."""

    def __init__(
        self, earlier: SearchState | None = None, note: Callable[[SearchState], None] | None = None
    ) -> None:
        self.state, self.note = earlier or SearchState(), note
        self.position = 0

    def __call__(self, criterion: Callable[[Array], Evaluation], theta: Array) -> Evaluation:
        state, here = self.state, self.position
        self.position += 1
        if here < state.rounds and np.array_equal(state.thetas[here], theta):
            if self.position == state.rounds and isinstance(criterion, MeanCriterion):
                criterion.start_from(state.inner_states)
            return state.evaluations[here]
        found = criterion(theta)
        self.state = SearchState(
            rounds=self.position,
            thetas=(*state.thetas[:here], theta.copy()),
            evaluations=(*state.evaluations[:here], found),
            inner_states=criterion.inner_states if isinstance(criterion, MeanCriterion) else (),
        )
        if self.note is not None:
            self.note(self.state)
        return found


@dataclass(frozen=True)
class LearnedParameters:
    """The end of a search; its trace has every evaluation, those of earlier stages first."""

    theta: Array
    value: float
    status: str
    trace: list[SearchRecord]

    def followed_by(self, later: LearnedParameters) -> LearnedParameters:
        """Join the result of a search that went on where this one ended.

        Returns the better point, the end of the second search and the trace of both.
        """
        best = later if later.value < self.value else self
        return LearnedParameters(best.theta, best.value, later.status, _joined(self.trace, later.trace))

    def after(self, earlier: list[SearchRecord], stage: int) -> LearnedParameters:
        """Put the trace of earlier stages before that of this one, which has the given number."""
        own = [record._replace(stage=stage) for record in self.trace]
        return replace(self, trace=_joined(earlier, own))


def _joined(first: list[SearchRecord], second: list[SearchRecord]) -> list[SearchRecord]:
    """Count evaluations and seconds of one search on from those of another."""
    if not first:
        return second
    number, seconds = first[-1].evaluation, first[-1].time
    return first + [
        record._replace(evaluation=record.evaluation + number, time=record.time + seconds)
        for record in second
    ]


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    max_iter: the largest number of evaluations.
    tol: a step that lowers the mean held-out loss by a smaller share ends the search.
    first_step: the length of the first step, in logarithms of parameters.
    on_record: gets every record; a true result ends the search.
    log: makes the evaluations; by default a new one.
    """

    max_iter: int = 50
    tol: float = 1e-4
    first_step: float = 1.0
    on_record: Callable[[SearchRecord], bool] | None = None
    log: EvaluationLog | None = None


def learn(
    criterion: Callable[[Array], Evaluation],
    start: Array,
    bounds: Box,
    settings: SearchSettings | None = None,
    *,
    retreat: Callable[[Array], Array] | None = None,
) -> LearnedParameters:
    """Minimise the criterion.

    retreat: gives easier hyper-parameters to start from where the fits fail; the box moves along.
    Raises ValueError if the fits fail wherever the search starts.
    """
    settings = SearchSettings() if settings is None else settings
    search = _Search(criterion, settings)
    try:
        search.first(start, retreat)
        status = _minimise(search, _moved(bounds, search.known()[0] - start), settings)
    except _LimitReachedError:
        status = "iteration_limit"
    except (_EndOfSearchError, KeyboardInterrupt):
        status = "interrupted"
    if search.best is None:
        return LearnedParameters(np.array(start, np.float64), np.nan, status, search.trace)
    return LearnedParameters(search.best[0], search.best[1].value, status, search.trace)


def _moved(bounds: Box, step: Array) -> list[tuple[float, float]]:
    """Move a box; sides that are open become far ones, for SciPy takes other first steps without a box."""
    return [
        (-_FAR if low is None else low + by, _FAR if high is None else high + by)
        for (low, high), by in zip(bounds, step.tolist(), strict=True)
    ]


def _minimise(search: _Search, box: list[tuple[float, float]], settings: SearchSettings) -> str:
    """Search from the best point that was evaluated first."""
    start, _ = search.known()
    value, gradient = search(start)
    # SciPy's tolerance is absolute for values below 1
    limits = {
        "ftol": settings.tol * min(1.0, abs(value)),
        "gtol": 1e-4 * float(np.abs(gradient).max(initial=0.0)),
        "maxiter": settings.max_iter,
        "maxfun": settings.max_iter,
        "maxls": 5,
    }
    found = minimize(search, start, method="L-BFGS-B", jac=True, bounds=box, options=limits)
    return {0: "converged", 1: "iteration_limit"}.get(found.status, "stalled")


class _LimitReachedError(Exception):
    """As many evaluations were made as are allowed."""


class _EndOfSearchError(Exception):
    """A caller asked to end the search."""


class _Search:
    """The criterion as SciPy calls it."""

    def __init__(self, criterion: Callable[[Array], Evaluation], settings: SearchSettings) -> None:
        self.criterion, self.settings = criterion, settings
        self.log = settings.log or EvaluationLog()
        self.factor = 0.0
        self.last: tuple[Array, Evaluation] | None = None
        self.trace: list[SearchRecord] = []
        self.best: tuple[Array, Evaluation] | None = None

    def first(self, start: Array, retreat: Callable[[Array], Array] | None) -> None:
        """Evaluate where the search starts; if that fails, go on to easier points while they are better."""
        theta, failures = np.array(start, np.float64), 0
        for _ in range(_MOST_STARTS):
            found = self._evaluate(theta)
            failures += not found.converged
            if self._has_started(found) or retreat is None or failures > _MOST_FAILURES:
                break
            theta = retreat(theta)
        if self.best is None:
            raise ValueError(
                "The fits to the folds did not converge at the first hyper-parameters; scale the features, "
                "start from a smaller scale, or give hyperparameters='fixed'."
            )

    def _has_started(self, found: Evaluation) -> bool:
        is_first = len(self.trace) == 1
        return found.converged and (is_first or found.value > _WORSE * self.known()[1].value)

    def known(self) -> tuple[Array, Evaluation]:
        """Give the best point met."""
        assert self.best is not None, "the search ends if the first evaluation fails"
        return self.best

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Give value and gradient, scaled so that the first step has its length."""
        found = self._evaluate(theta)
        if not self.factor:
            self.factor = self.settings.first_step / max(float(np.linalg.norm(found.gradient)), 1e-12)
        value, gradient = (found.value, found.gradient) if found.converged else self._bracket(theta)
        return self.factor * value, self.factor * gradient

    def _evaluate(self, theta: Array) -> Evaluation:
        for met in (self.last, self.best):
            if met is not None and np.array_equal(theta, met[0]):
                return met[1]  # SciPy begins where the scaling was found
        if len(self.trace) >= self.settings.max_iter:
            raise _LimitReachedError
        found = self.log(self.criterion, theta)
        if not (np.isfinite(found.value) and np.isfinite(found.gradient).all()):
            found = found._replace(converged=False)
        self.last = theta.copy(), found
        if found.converged and (self.best is None or found.value < self.best[1].value):
            self.best = theta.copy(), found
        largest = float(np.abs(found.gradient).max(initial=0.0))
        seconds = found.time + (self.trace[-1].time if self.trace else 0.0)
        number = len(self.trace) + 1
        self.trace.append(SearchRecord(number, seconds, found.value, largest, found.gap, found.products))
        if self.settings.on_record is not None and self.settings.on_record(self.trace[-1]):
            raise _EndOfSearchError
        return found

    def _bracket(self, theta: Array) -> tuple[float, Array]:
        """Pretend that the criterion rises along the failed step as it had promised to fall."""
        known, at = self.known()
        promised = abs(float(at.gradient @ (theta - known)))
        return at.value + promised, -at.gradient


@dataclass(frozen=True)
class StagedSearch:
    """Searches one after the other, from cheap ones to that of the whole family on all rows.

    Hyper-parameters that are apart are first learned as if they were tied, and with many rows on a part of
    them.  That costs little, and many hyper-parameters find a good optimum from there.

    family: the priors, or coarser ones in earlier stages.
    make: makes the criterion of a family and of rows.
    part, whole: the rows of a first stage, None for no such stage, and all.
    start: hyper-parameters to begin with, where an earlier search ended; earlier stages are then left out.
    """

    family: PriorFamily
    make: Callable[[PriorFamily, Any], MeanCriterion]
    part: Any
    whole: Any
    settings: SearchSettings
    start: Array | None = None

    def stages(self) -> list[tuple[PriorFamily, Any]]:
        """List families and rows of the searches, the cheap ones first."""
        families = [self.family]
        while self.start is None and (coarse := families[0].coarser()) is not None:
            families.insert(0, coarse)
        stages = [(family, self.whole) for family in families]
        has_part = self.start is None and self.part is not None
        return [(families[0], self.part), *stages] if has_part else stages

    def run(self) -> tuple[LearnedParameters, MeanCriterion, Any]:
        """Search; gives the end, the last criterion and its rows."""
        learned: LearnedParameters | None = None
        criterion: MeanCriterion | None = None
        met: Any = None
        for stage, (family, rows) in enumerate(self.stages(), 1):
            states = criterion.inner_states if criterion is not None and met is rows else None
            criterion, met = self.make(family, rows), rows
            if states is not None:
                criterion.start_from(states)
            learned = self._stage(criterion, learned, stage, is_whole=rows is self.whole)
            if learned.status == "interrupted" or self._left(learned.trace) < 1:
                break
        assert criterion is not None, "there is at least one stage"
        assert learned is not None, "and it has an end"
        return replace(learned, theta=_carried(self.family, learned.theta)), criterion, met

    def _stage(
        self, criterion: MeanCriterion, last: LearnedParameters | None, stage: int, *, is_whole: bool
    ) -> LearnedParameters:
        family, trace = criterion.family, [] if last is None else last.trace
        theta = self.start if last is None else last.theta
        first_step = 1.0 if theta is None else _SHORT_STEP
        start = family.start if theta is None else _carried(family, theta)
        if theta is None and is_whole:
            box = family.bounds
        else:
            box = _around(start, family.bounds, _NEARBY if is_whole else _REACH_OF_FIRST)
        found = self._search(criterion, start, box, first_step, trace)
        if is_whole:
            found = self._moved_on(criterion, found, box, first_step, trace)
        return found.after(trace, stage)

    def _left(self, *traces: list[SearchRecord]) -> int:
        return self.settings.max_iter - sum(map(len, traces))

    def _search(
        self,
        criterion: MeanCriterion,
        start: Array,
        box: Box,
        first_step: float,
        *traces: list[SearchRecord],
    ) -> LearnedParameters:
        settings = replace(self.settings, max_iter=self._left(*traces), first_step=first_step)
        return learn(criterion, start, box, settings, retreat=criterion.family.retreated)

    def _moved_on(
        self,
        criterion: MeanCriterion,
        learned: LearnedParameters,
        box: Box,
        first_step: float,
        trace: list[SearchRecord],
    ) -> LearnedParameters:
        """Search on while the result lies on the edge of the box."""
        bounds = criterion.family.bounds
        for _ in range(_MOST_MOVES):
            is_done = learned.status != "converged" or self._left(trace, learned.trace) < 1
            if is_done or not _is_at_edge(learned.theta, box, bounds):
                break
            box = _around(learned.theta, bounds, _NEARBY)
            later = self._search(criterion, learned.theta, box, first_step, trace, learned.trace)
            learned = learned.followed_by(later)
        return learned


def _carried(family: PriorFamily, theta: Array) -> Array:
    """Give a family's hyper-parameters from its own or those of a coarser form."""
    coarse = None if len(theta) == len(family.start) else family.coarser()
    return theta if coarse is None else family.from_coarser(_carried(coarse, theta))


def _around(start: Array, box: Box, reach: float) -> Box:
    """Keep to the neighbourhood of a point, so that no step leads far off."""
    return [
        (
            value - reach if low is None else max(low, value - reach),
            value + reach if high is None else min(high, value + reach),
        )
        for value, (low, high) in zip(start.tolist(), box, strict=True)
    ]


def _is_at_edge(theta: Array, box: Box, widest: Sequence[tuple[float | None, float | None]]) -> bool:
    """Tell whether a point lies on a side of a box that could be moved out."""
    return any(
        side is not None and side != limit and abs(value - side) < 1e-6
        for value, sides, limits in zip(theta.tolist(), box, widest, strict=True)
        for side, limit in zip(sides, limits, strict=True)
    )
