"""Learning hyperparameters: a quasi-Newton search for the least cross-validated loss.

SciPy's L-BFGS-B does the search.  Where the inner fits fail, as they can at extreme values, the
value is unknown (Seeger 2008, section 4).  The search then gets a criterion that increases
along the step as fast as it was predicted to decrease, so its line search backtracks: the
failed step is an upper bracket.  Inner fits start from the last success.

A search depends only on its evaluations, so it is resumed by reading those of an
earlier run from a log: they are returned with the same bits, and the search continues after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.config import note_interrupt
from labelweave.problems.hyperparameters.cross_validation import CriterionValue, MeanCriterion
from labelweave.problems.hyperparameters.priors import PriorFamily
from labelweave.solvers.frame import State

_MOST_STARTS, _MOST_FAILURES = 20, 7
_WORSE = 1.01  # times the best loss: the search does not move to higher losses
_FAR = 1e8
# reach of the first search, in logarithms of parameters: classes with few rows may end anywhere in it
_REACH_OF_FIRST = 4.0
_NEARBY = 2.0  # reach of each later search
_MOST_MOVES = 5
_SHORT_STEP = 0.3


class SearchRecord(NamedTuple):
    """One evaluation of the criterion.

    time: seconds of all evaluations so far.
    value: the mean held-out loss; NaN where the inner fits failed.
    gradient: the largest entry of the gradient.
    gap: the relative duality gap of the inner fits.
    stage: in a search in stages; values of different ones are not comparable, as each may have its own rows.
    """

    evaluation: int
    time: float
    value: float
    gradient: float
    gap: float
    products: float
    stage: int = 1


@dataclass(frozen=True, kw_only=True)
class SearchState(State):
    """The log of a search: every theta with its evaluation, and the inner states after the last one."""

    thetas: tuple[Array, ...] = ()
    evaluations: tuple[CriterionValue, ...] = ()
    inner_states: tuple[Array | None, ...] = ()

    _items: ClassVar[dict[str, Any]] = {
        "thetas": np.ndarray, "evaluations": CriterionValue, "inner_states": np.ndarray | None,
    }  # fmt: skip


State.plain_with(CriterionValue)


class EvaluationLog:
    """Evaluations of criteria, of an earlier run first."""

    def __init__(
        self, earlier: SearchState | None = None, note: Callable[[SearchState], None] | None = None
    ) -> None:
        self.state, self.note = earlier or SearchState(), note
        self.position = 0
        if not self.state.rounds == len(self.state.thetas) == len(self.state.evaluations):
            raise ValueError("a log does not have one evaluation of each theta")

    def recalled(self, criterion: Callable[[Array], CriterionValue], theta: Array) -> CriterionValue | None:
        """Return the next evaluation of an earlier run; None where it has no more, or of another theta."""
        state, here = self.state, self.position
        self.position += 1
        if here >= state.rounds or not np.array_equal(state.thetas[here], theta):
            return None
        if self.position == state.rounds and isinstance(criterion, MeanCriterion):
            criterion.start_from(state.inner_states)
        return state.evaluations[here]

    def add(self, criterion: Callable[[Array], CriterionValue], theta: Array, found: CriterionValue) -> None:
        """Record an evaluation that was not recalled."""
        state, here = self.state, self.position - 1
        self.state = SearchState(
            rounds=self.position,
            thetas=(*state.thetas[:here], theta.copy()),
            evaluations=(*state.evaluations[:here], found),
            inner_states=criterion.inner_states if isinstance(criterion, MeanCriterion) else (),
        )
        if self.note is not None:
            self.note(self.state)


@dataclass(frozen=True)
class LearnedParameters:
    """The result of a search; its trace has every evaluation, those of earlier searches first.

    others: values and hyperparameters of the other fits that converged in the last stage, best first.
    """

    theta: Array
    value: float
    status: str
    trace: list[SearchRecord]
    others: Sequence[tuple[float, Array]] = ()


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search.

    max_iter: the maximum number of evaluations, including those of earlier searches.
    tol: a step that lowers the mean held-out loss by a smaller share ends the search.
    first_step: the length of the first step, in logarithms of parameters.
    on_record: receives every record; returning true ends the search.
    log: runs the evaluations; by default a new one.
    trace, stage: of earlier searches that this one continues, and its number among them.
    """

    max_iter: int = 50
    tol: float = 1e-4
    first_step: float = 1.0
    on_record: Callable[[SearchRecord], bool] | None = None
    log: EvaluationLog | None = None
    trace: Sequence[SearchRecord] = ()
    stage: int = 1


def learn(
    criterion: Callable[[Array], CriterionValue],
    start: Array,
    bounds: Array,
    settings: SearchSettings | None = None,
    *,
    retreat: Callable[[Array], Array] | None = None,
) -> LearnedParameters:
    """Minimize the criterion.

    bounds (p, 2): the box.
    retreat: returns safer hyperparameters to start from where the fits fail; the box moves along.
    Raises ValueError if the fits fail at every start.
    """
    search = _Search(criterion, settings or SearchSettings())
    try:
        search.first(start, retreat)
        moved = np.asarray(bounds) + (search.known().theta - start)[:, None]
        # without a box SciPy uses different first steps
        value, gradient = search(known := search.known().theta)
        # SciPy's tolerance is absolute for values below 1
        limits = {"ftol": search.settings.tol * min(1.0, abs(value)), "maxls": 5}
        limits["gtol"] = 1e-4 * float(np.abs(gradient).max(initial=0.0))
        box = np.clip(moved, -_FAR, _FAR)
        found = minimize(search, known, method="L-BFGS-B", jac=True, bounds=box, options=limits)
        status = "converged" if found.status == 0 else "stalled"
    except _EndOfSearchError as end:
        status = str(end)
    except KeyboardInterrupt as interrupt:
        note_interrupt(interrupt)
        status = "interrupted"
    if search.best is None:
        return LearnedParameters(np.array(start, np.float64), np.nan, status, search.trace)
    return LearnedParameters(search.best.theta, search.best.found.value, status, search.trace)


class _EndOfSearchError(Exception):
    """The evaluation limit was reached, or a caller requested the end of the search."""


class _Point(NamedTuple):
    theta: Array
    found: CriterionValue


class _Search:
    """The criterion as SciPy calls it."""

    def __init__(self, criterion: Callable[[Array], CriterionValue], settings: SearchSettings) -> None:
        self.criterion, self.settings = criterion, settings
        self.log = settings.log or EvaluationLog()
        self.factor = 0.0
        self.last: _Point | None = None
        self.best: _Point | None = None
        self.trace = list(settings.trace)

    def first(self, start: Array, retreat: Callable[[Array], Array] | None) -> None:
        """Evaluate the start; if that fails, retreat to safer points while they improve."""
        theta, failures = np.array(start, np.float64), 0
        for turn in range(_MOST_STARTS):
            found = self._evaluate(theta)
            has_started = found.converged and (turn == 0 or found.value > _WORSE * self.known().found.value)
            failures += not found.converged
            if has_started or retreat is None or failures > _MOST_FAILURES:
                break
            theta = retreat(theta)
        if self.best is None:
            raise ParameterError(
                "The fits to folds did not converge at the initial hyperparameters; scale the features, use "
                "a smaller `scale`, or pass `hyperparameters='fixed'`."
            )

    def known(self) -> _Point:
        assert self.best is not None, "the search ends if the first evaluation fails"
        return self.best

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return value and gradient, scaled so that the first step has its length."""
        found = self._evaluate(theta)
        if not self.factor:
            self.factor = self.settings.first_step / max(float(np.linalg.norm(found.gradient)), 1e-12)
        value, gradient = (found.value, found.gradient) if found.converged else self._bracket(theta)
        return self.factor * value, self.factor * gradient

    def _evaluate(self, theta: Array) -> CriterionValue:
        for met in (self.last, self.best):
            if met is not None and np.array_equal(theta, met.theta):
                return met.found  # SciPy starts where the scaling was determined
        settings, trace = self.settings, self.trace
        if len(trace) >= settings.max_iter:
            raise _EndOfSearchError("iteration_limit")
        found = self.log.recalled(self.criterion, theta)
        if found is None:
            found = self.criterion(theta)
            self.log.add(self.criterion, theta, found)
        if not (np.isfinite(found.value) and np.isfinite(found.gradient).all()):
            found = found._replace(converged=False)
        self.last = _Point(theta.copy(), found)
        if found.converged and (self.best is None or found.value < self.best.found.value):
            self.best = self.last
        number, seconds = (trace[-1].evaluation, trace[-1].time) if trace else (0, 0.0)
        largest = float(np.abs(found.gradient).max(initial=0.0))
        record = SearchRecord(
            number + 1, found.time + seconds, found.value, largest, found.gap, found.products, settings.stage
        )
        trace.append(record)
        if settings.on_record is not None and settings.on_record(record):
            raise _EndOfSearchError("interrupted")
        return found

    def _bracket(self, theta: Array) -> tuple[float, Array]:
        """Return values as if the criterion increased along the failed step as fast as it should decrease."""
        known, found = self.known()
        return found.value + abs(float(found.gradient @ (theta - known))), -found.gradient


@dataclass(frozen=True)
class StagedSearch:
    """Searches in stages, from cheap ones to that of the whole family on all rows.

    Separate hyperparameters are first learned as if they were tied, and with many rows on a part of
    them.  This is cheap, and from there a search with many hyperparameters finds a good optimum.

    family: the priors, or coarser ones in earlier stages.
    make: creates the criterion of a family and of rows.
    part, whole: the rows of a first stage, None for no such stage, and all.
    start: initial hyperparameters, where an earlier search ended; earlier stages are then skipped.
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
        learned: LearnedParameters | None = None
        criterion: MeanCriterion | None = None
        met: Any = None
        for stage, (family, rows) in enumerate(self.stages(), 1):
            states = criterion.inner_states if criterion is not None and met is rows else None
            try:
                made = self.make(family, rows)
                if states is not None:
                    made.start_from(states)
                later = self._stage(made, learned, stage, is_whole=rows is self.whole)
            except KeyboardInterrupt as interrupt:
                if learned is None:
                    raise
                note_interrupt(interrupt)
                learned = replace(learned, status="interrupted")
                break
            criterion, met, learned = made, rows, later
            if learned.status == "interrupted" or len(learned.trace) >= self.settings.max_iter:
                break
        assert criterion is not None, "there is at least one stage"
        assert learned is not None, "and it has an end"
        learned = replace(learned, others=self._others(learned))
        return replace(learned, theta=_carried(self.family, learned.theta)), criterion, met

    def _others(self, learned: LearnedParameters) -> list[tuple[float, Array]]:
        if self.settings.log is None:
            return []
        state, last = self.settings.log.state, learned.trace[-1].stage
        met = zip(state.thetas, state.evaluations, learned.trace, strict=False)
        found = [
            (one.value, _carried(self.family, theta))
            for theta, one, record in met
            if record.stage == last and one.converged and not np.array_equal(theta, learned.theta)
        ]
        return sorted(found, key=lambda item: item[0])

    def _stage(
        self, criterion: MeanCriterion, last: LearnedParameters | None, stage: int, *, is_whole: bool
    ) -> LearnedParameters:
        """Search, and on all rows continue while the result lies on the edge of the box."""
        family, theta = criterion.family, self.start if last is None else last.theta
        settings = replace(
            self.settings,
            stage=stage,
            trace=[] if last is None else last.trace,
            first_step=1.0 if theta is None else _SHORT_STEP,
        )
        start = family.start if theta is None else _carried(family, theta)
        box = family.bounds
        if theta is not None or not is_whole:
            box = _around(start, box, _NEARBY if is_whole else _REACH_OF_FIRST)
        learned = learn(criterion, start, box, settings, retreat=family.retreated)
        for _ in range(_MOST_MOVES if is_whole else 0):
            try:
                is_done = learned.status != "converged" or len(learned.trace) >= settings.max_iter
                if is_done or not _is_at_edge(learned.theta, box, family.bounds):
                    break
                box = _around(learned.theta, family.bounds, _NEARBY)
            except KeyboardInterrupt as interrupt:
                note_interrupt(interrupt)
                return replace(learned, status="interrupted")
            settings = replace(settings, trace=learned.trace)
            later = learn(criterion, learned.theta, box, settings, retreat=family.retreated)
            best = later if later.value < learned.value else learned
            learned = LearnedParameters(best.theta, best.value, later.status, later.trace)
        return learned


def _carried(family: PriorFamily, theta: Array) -> Array:
    """Return a family's hyperparameters from its own or those of a coarser form."""
    coarse = None if len(theta) == len(family.start) else family.coarser()
    return theta if coarse is None else family.from_coarser(_carried(coarse, theta))


def _around(start: Array, bounds: Array, reach: float) -> Array:
    """Restrict the box to the neighborhood of a point, so that no step goes too far."""
    return np.asarray(np.clip(start[:, None] + [-reach, reach], bounds[:, :1], bounds[:, 1:]))


def _is_at_edge(theta: Array, box: Array, bounds: Array) -> bool:
    """Whether a point lies on a side of a box that could be moved outwards."""
    return bool(((box != bounds) & (np.abs(theta[:, None] - box) < 1e-6)).any())
