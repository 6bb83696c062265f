"""The frame of all solvers: ``solve(problem, state) -> (result, state)``.

A *problem* is data, loss and structure, with the few methods that its solver requires.  Solving changes only
its caches, which it can recompute.  A *state* is a frozen record of arrays, numbers and random streams.  A
*solver* defines the initial state, the effect of a round and the final certificate, and is immutable.  The
loop with its limit, clock, trace, callbacks and interrupts is implemented here, once.

A run that is stopped at a check and continued from its state has the same bits as an uninterrupted one: only
the state passes from one round to the next.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from numbers import Real
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from labelweave.foundation.config import note_interrupt

Problem = TypeVar("Problem")
AnyState = TypeVar("AnyState", bound="State")
OnCheck = Callable[[Any, Any], bool]
"""Gets every record with the state at it; a true result stops the run."""

_KIND = "kind of state"
_FORTRAN = "columns"


class Status(Enum):
    """Why a solver stopped; the value advises the user what to try."""

    CONVERGED = "The relative duality gap is within the tolerance."
    SETTLED = (
        "Further rounds hardly change the objective, but the relative duality gap does not certify it within "
        "the tolerance."
    )
    ITERATION_LIMIT = (
        "The iteration limit was reached before the relative duality gap met the tolerance; raise "
        "`max_iter`, scale the features, or regularize more."
    )
    STALLED = (
        "Rounding kept the relative duality gap above the tolerance; use dtype='float64', or a larger `tol`."
    )
    INDEFINITE = (
        "The objective is below its lower bound, so the kernel is not positive semi-definite; check the "
        "kernel."
    )
    HANDED_OVER = "Another solver is expected to be faster from here on."
    INTERRUPTED = "The fit was interrupted; the model is the best one so far, with its duality gap."


MEASURED = (Status.CONVERGED, Status.SETTLED, Status.HANDED_OVER)
"""Ends at a check, whose record is of the result."""


@dataclass(frozen=True)
class SolverResult:
    """The result of a run: why it stopped, and every check.

    trace: every check of the duality gap, the last one at the result.
    answer: the solution, as the problem returns it.
    """

    status: Status
    n_iter: int
    trace: list[TraceRecord]
    answer: Any = None

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        return float(self.trace[-1].gap)

    def followed_by(self, later: SolverResult) -> SolverResult:
        """Combine with the result of a run that continued this one; the trace is that of both."""
        rounds, seconds = self.n_iter, self.trace[-1].time
        moved = [
            record._replace(iteration=record.iteration + rounds, time=record.time + seconds)
            for record in later.trace
        ]
        return SolverResult(later.status, rounds + later.n_iter, self.trace + moved)


def relative_gap(primal: float, dual: float) -> float:
    """Return ``(primal - dual) / abs(primal)``, a bound of the relative suboptimality; 0/0 is 0."""
    difference = primal - dual
    if primal == 0:
        return 0.0 if difference == 0 else math.copysign(math.inf, difference)
    return difference / abs(primal)


class TraceRecord(NamedTuple):
    """The measurements at one check of a solver, or after one of its rounds; NaN where not available.

    ``pandas.DataFrame(trace).dropna(axis=1, how="all")`` converts a list of these to a table.

    time: seconds since the solver started.
    primal: objective at the current weights: an upper bound of the optimum.
    dual: dual objective: a lower bound of the optimum.
    gap: (primal - dual) / abs(primal), see :func:`relative_gap`.
    active_share: share of the variables that the last round visited, on average over its sweeps.
    n_cliques: cliques of the label graph.
    decrease: the relative decrease of the objective in a round; infinite in the first one.
    feature_iterations, label_iterations: of conjugate gradients, for the factors of features and of labels.
    """

    iteration: int = 0
    time: float = 0.0
    primal: float = np.nan
    dual: float = np.nan
    gap: float = np.nan
    active_share: float = np.nan
    n_cliques: float = np.nan
    decrease: float = np.nan
    feature_iterations: float = np.nan
    label_iterations: float = np.nan

    @classmethod
    def of(cls, primal: float, dual: float, **more: float) -> TraceRecord:
        """Make a record of objectives; the frame sets iteration and time."""
        return cls(0, 0.0, primal, dual, relative_gap(primal, dual), **more)

    @property
    def objective(self) -> float:
        return self.primal


@dataclass(frozen=True, kw_only=True)
class State:
    """The state of a run: subclasses add arrays, numbers, text, other states, and containers of these.

    A round may change the arrays of its input state in place: copy a state to keep it.

    rounds: the number of completed rounds.
    trace: every check so far.
    status: why the run ends here, in the state that callbacks receive at its last check.
    """

    rounds: int = 0
    trace: tuple[TraceRecord, ...] = field(default=(), repr=False)
    status: Status | None = None

    _kinds: ClassVar[dict[str, type[Any]]] = {f"{TraceRecord.__module__}.TraceRecord": TraceRecord}
    _items: ClassVar[dict[str, Any]] = {"status": Status}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        State.plain_with(cls)

    @classmethod
    def plain_with(cls, *kinds: type[Any]) -> None:
        """Register other tuples and dataclasses as parts of states in files."""
        State._kinds.update({_name(kind): kind for kind in kinds})

    def to_plain(self) -> dict[str, Any]:
        return _to_plain(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """Restore a state, with copied arrays in their original layout; ValueError for another kind."""
        state = _from_plain(plain)
        if not isinstance(state, cls):
            raise ValueError(f"The state is of type {type(state).__name__}; it must be a {cls.__name__}.")
        return state


class Round(NamedTuple, Generic[AnyState]):
    """The result of a round.

    state: after the round, with one more in ``rounds``.
    record: the measurements after it, without iteration and time; with a primal of NaN not kept in the trace.
    status: why to stop, or None.
    answer: the solution, if the round has computed it when it stops.
    """

    state: AnyState
    record: Any = None
    status: Status | None = None
    answer: Any = None


class Certificate(NamedTuple):
    """The final measurement of a run.

    record: objectives and gap of the answer.
    status: why the run ended, possibly corrected by the measurement.
    answer: the solution, as the problem returns it.
    """

    record: Any
    status: Status
    answer: Any = None


class Solver(ABC, Generic[Problem, AnyState]):
    """An algorithm in rounds.

    tol: the tolerance, usually of the relative duality gap.
    max_iter: the maximum number of rounds.
    """

    tol: float
    max_iter: int

    @abstractmethod
    def start(self, problem: Problem) -> AnyState:
        """Return the initial state."""

    @abstractmethod
    def round(self, problem: Problem, state: AnyState) -> Round[AnyState]:
        """Run one round."""

    @abstractmethod
    def certify(self, problem: Problem, state: AnyState, status: Status) -> tuple[Any, ...]:
        """Measure a state and return its ``Certificate``, or these parts as a tuple, without changing it.

        The record is None if the last one of the trace is of this state.
        """

    def state_template(self, problem: Problem, state: AnyState) -> State:
        """Return a state with the same shapes as any that a run may continue from."""
        return self.start(problem)

    def recover(self, problem: Problem, state: AnyState) -> AnyState:
        """Return a consistent state after an interrupted round, which can be certified and continued."""
        return state

    def solve(
        self, problem: Problem, state: AnyState | None = None, on_check: OnCheck | None = None
    ) -> tuple[SolverResult, AnyState]:
        """Run until convergence, the limit of rounds, a stall or an interrupt by the user.

        state: the state of an earlier run; by default the solver's start.
        """
        now = self.start(problem) if state is None else state
        clock = _Clock(now)
        status: Status | None = None
        answer: Any = None
        try:
            while status is None and now.rounds < self.max_iter:
                now, record, status, answer = checked_round(self, self.round(problem, now))
                if record is None:
                    continue
                record = clock.stamped(record, now.rounds)
                if not np.isnan(record.primal):
                    now = replace(now, trace=(*now.trace, record))
                if on_check is not None and on_check(record, replace(now, status=status)) and status is None:
                    status = Status.INTERRUPTED
        except KeyboardInterrupt as interrupt:
            note_interrupt(interrupt)
            status, now = Status.INTERRUPTED, self.recover(problem, now)
        status = status or Status.ITERATION_LIMIT
        if status in MEASURED:
            _refuse_no_number(now.trace)
            return SolverResult(status, now.rounds, list(now.trace), answer), now
        return self.ended(problem, now, status), now

    def ended(self, problem: Problem, state: AnyState, status: Status) -> SolverResult:
        last, verdict, answer = Certificate(*self.certify(problem, state, status))
        trace = list(state.trace)
        if last is not None and status not in MEASURED:
            trace.append(_Clock(state).stamped(last, state.rounds))
        if verdict is not Status.INTERRUPTED:
            _refuse_no_number(trace)
        return SolverResult(verdict, state.rounds, trace, answer)

    def stopped(self, problem: Problem, state: AnyState) -> SolverResult:
        """Return the result of a run stopped at a check, without its final measurement in the trace."""
        _, status, answer = Certificate(*self.certify(problem, state, Status.INTERRUPTED))
        return SolverResult(status, state.rounds, list(state.trace), answer)


def checked_round(solver: Any, found: Any) -> Round[Any]:
    """Raise a TypeError that names a part of a round of the wrong type."""
    what = f"{type(solver).__name__}.round returned"
    if not isinstance(found, Round):
        raise TypeError(
            f"{what} a {type(found).__name__}; it must return Round(state, record, status, answer)."
        )
    if not isinstance(found.state, State):
        raise TypeError(f"{what} a {type(found.state).__name__} as state; it must be a State.")
    if found.record is not None and not hasattr(found.record, "_replace"):
        raise TypeError(
            f"{what} a {type(found.record).__name__} as record; it must be a TraceRecord or None."
        )
    if found.status is not None and not isinstance(found.status, Status):
        raise TypeError(f"{what} {found.status!r} as status; it must be a Status or None.")
    return found


def _refuse_no_number(trace: Sequence[TraceRecord]) -> None:
    """Raise a ValueError if the objective of a run overflowed."""
    if trace and not math.isfinite(trace[-1].primal):
        raise ValueError(
            f"The objective is {trace[-1].primal} after {trace[-1].iteration} rounds, so nothing was "
            "learned; scale the features, the weights, or C or alpha, to usual sizes."
        )


class _Clock:
    """Seconds of solving, including earlier runs."""

    def __init__(self, state: State) -> None:
        self.begin = time.perf_counter() - (state.trace[-1].time if state.trace else 0.0)

    def stamped(self, record: Any, rounds: int) -> Any:
        return record._replace(iteration=rounds, time=time.perf_counter() - self.begin)


def rounds_foreseen(gaps: Sequence[float], tol: float) -> float:
    """Estimate the rounds to a gap from its decrease in the last half of the rounds so far."""
    least = np.minimum.accumulate(gaps)
    if least[-1] <= max(tol, 0.0):
        return 0.0
    half = len(least) // 2
    fall = np.log(least[half] / least[-1]) / max(len(least) - 1 - half, 1)
    return float(np.log(least[-1] / tol) / fall) if fall > 0 else np.inf


def _name(kind: type[Any]) -> str:
    """Return the full name of a class: one of a user's may have the short name of one of labelweave's."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _to_plain(value: Any) -> Any:
    parts: dict[str, Any] | None = None
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        # fields with defaults, such as NaN in trace records, get these again
        defaults: dict[str, Any] = getattr(value, "_field_defaults", {})
        parts = {name: part for name, part in value._asdict().items() if part is not defaults.get(name, ...)}
    elif isinstance(value, Status):
        parts = {"name": value.name}
    elif isinstance(value, np.random.Generator):
        parts = {"stream": dict(value.bit_generator.state)}
    if parts is not None:
        return {_KIND: _name(type(value)), **_to_plain(parts)}
    if isinstance(value, dict):
        return {name: _to_plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_to_plain(part) for part in value)
    if isinstance(value, np.ndarray) and value.flags.f_contiguous and not value.flags.c_contiguous:
        return {_FORTRAN: value.T}  # the last bits of sums and products depend on the layout
    return value


def _from_plain(plain: Any) -> Any:
    if isinstance(plain, dict) and _KIND in plain:
        return _made(plain[_KIND], {name: _from_plain(part) for name, part in plain.items() if name != _KIND})
    if isinstance(plain, dict) and plain.keys() == {_FORTRAN}:
        return np.array(plain[_FORTRAN]).T
    if isinstance(plain, dict):
        return {name: _from_plain(part) for name, part in plain.items()}
    if isinstance(plain, tuple | list):
        return type(plain)(_from_plain(part) for part in plain)
    return np.array(plain) if isinstance(plain, np.ndarray) else plain


def _made(kind: str, parts: dict[str, Any]) -> Any:
    if kind == _name(Status):
        return Status[parts["name"]]
    if kind == _name(np.random.Generator):
        generator = np.random.default_rng(0)
        generator.bit_generator.state = parts["stream"]
        return generator
    if kind not in State._kinds:
        raise ValueError(f"The kind of state {kind!r} does not exist.")
    made = State._kinds[kind]
    for name, default in getattr(made, "_field_defaults", {}).items():
        if isinstance(default, int | float) and not isinstance(parts.get(name, 0), Real):
            raise ValueError(f"The {name} of a {made.__name__} is not a number.")
    return made(**parts)
