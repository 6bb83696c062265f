"""The journal of a fit: the state of each of its stages, in memory, and in a file if one is named.

A fit is a sequence of named stages ("part", "float32", "fold 3"), each of them a solver's run or a
search.  With the states of all stages a fit that was killed resumes where it stopped, with the same
bits: finished stages are read and not run again.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave import model_files
from labelweave.estimators.parameters import refuse_at_home
from labelweave.foundation import config
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.arrays import Workers, is_collection, refuse_lazy
from labelweave.foundation.arrays.homes import called_where_x_is
from labelweave.foundation.arrays.linear_algebra import is_foreign
from labelweave.foundation.costs import warn_caller
from labelweave.foundation.sklearn_compat import (
    _fit_context,
    callbacks_of,
    with_callbacks,
)
from labelweave.foundation.views import view
from labelweave.model_files import ModelContent, ModelFileError
from labelweave.model_files.schema import TEXT, Anything, Named, OneOf, Record, count
from labelweave.solvers import SolverResult, Status
from labelweave.solvers.frame import Solver, State
from labelweave.solvers.likeness import refuse_unlike

AnyState = TypeVar("AnyState", bound=State)

_SECONDS = 30.0  # between two writes
_KIND = "Checkpoint"


class Journal:
    """The states of the stages of one fit.

    path: the file, first written at the first check after 30 s; None for none.
    fingerprint: identifies the fit, by name; the file of another fit is rejected.
    within: the prefix of the names of stages and facts; not empty for a fit inside another one.
    Raises ModelFileError, a ValueError, if the file is no checkpoint, or one of other data or parameters, or
    if the fit cannot resume from it.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, fingerprint: Mapping[str, str] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = dict(fingerprint or {})
        self.states: dict[str, State] = {}
        self.facts: dict[str, Any] = {}
        self.ends: dict[str, str] = {}
        self.read: set[str] = set()  # stages that were read from the file
        self.written = time.monotonic()
        self.within = ""
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def part(self, name: str) -> Journal:
        """Return the journal of a fit inside this one, stored here under a name."""
        inner = copy.copy(self)
        inner.within = f"{self.within}{name}/"
        return inner

    def known(self, stage: str) -> State | None:
        return self.states.get(self.within + stage)

    def run(
        self,
        stage: str,
        solver: Solver[Any, AnyState],
        problem: Any,
        start: AnyState | None = None,
        on_check: Callable[..., bool] | None = None,
        made: Callable[[SolverResult, AnyState], Any] | None = None,
    ) -> tuple[SolverResult, AnyState]:
        """Solve, from the state of this stage in the file, or from ``start``, and store every check.

        on_check: receives every record, and the state, or a function that makes the model of it by ``made``.
        """

        def noting(record: Any, state: AnyState) -> bool:
            self.note(stage, state)
            if on_check is None or made is None:
                return on_check is not None and on_check(record, state)
            make = made
            return on_check(record, lambda: make(solver.stopped(problem, state), state))

        name, known = self.within + stage, cast(Any, self.known(stage))
        with self.going_on():
            if name in self.read:
                refuse_unlike(known, solver.state_template(problem, known))
            end = None if known is None else known.status or self.ends.get(name)
            if end is not None:
                return solver.ended(problem, known, Status[end] if isinstance(end, str) else end), known
            result, state = solver.solve(problem, known or start, noting)
            self.states[name] = state
            if result.status is not Status.INTERRUPTED:
                self.ends[name] = result.status.name
            return result, state

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Note on an error in a fit resumed from the file that the file may be the cause."""
        try:
            yield
        except ModelFileError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if not self.read:
                raise
            said = " ".join(str(error).split()).rstrip(".")
            why = f": the fit cannot resume from it ({said}); delete it, or use another file."
            raise _refusal(self.path, why) from error

    def recall(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a plain value that must be the same when the fit resumes, such as a random seed."""
        name = self.within + name
        if name not in self.facts:
            self.facts[name] = make()
        return self.facts[name]

    def note(self, stage: str, state: State) -> None:
        """Store the state of a stage; write the file if the last write was long ago."""
        self.states[self.within + stage] = state
        if self.path is not None and time.monotonic() - self.written >= _SECONDS:
            self.write()

    def forget(self, stage: str) -> None:
        """Drop a stage whose result is part of another one's state."""
        self.states.pop(self.within + stage, None)
        self.ends.pop(self.within + stage, None)

    def write(self) -> None:
        assert self.path is not None, "only a journal with a file is written"
        plain = {
            "fingerprint": self.fingerprint,
            "ends": self.ends,
            "facts": self.facts,
            "states": {stage: state.to_plain() for stage, state in self.states.items()},
        }
        arrays: dict[str, Any] = {}
        model_files.write_model_file(
            self.path, ModelContent(_KIND, model_files.encode(plain, arrays), arrays)
        )
        self.written = time.monotonic()

    def close(self, *, is_done: bool) -> None:
        """Remove the file of a finished fit; write that of an interrupted one."""
        if self.path is None or self.within:
            return
        if is_done:
            self.path.unlink(missing_ok=True)
        else:
            self.write()

    def _read(self, path: Path) -> None:
        try:
            content = model_files.read_model_file(path)
            if content.kind != _KIND:
                raise ModelFileError(f"it is a file of another kind ({content.kind}).")
            plain = model_files.decode(content.state, content.arrays)
            _CONTENT.check(plain, "checkpoint", {})
            states = {stage: _state_of(stage, state) for stage, state in plain["states"].items()}
        except ModelFileError as error:
            raise _refusal(path, f": {error} Use another file.") from error
        others = [what for what, mark in self.fingerprint.items() if plain["fingerprint"].get(what) != mark]
        if others:
            differ = f" belongs to another fit: {', '.join(others)} differ; repeat that fit, use "
            raise _refusal(path, f"{differ}another file, or delete this one.")
        self.ends, self.facts, self.states = plain["ends"], plain["facts"], states
        self.read = set(states)


_CONTENT = Record(
    {
        "fingerprint": Named(TEXT),
        "ends": Named(OneOf(tuple(Status.__members__))),
        "facts": Named(count()),
        "states": Named(Anything()),
    },
    {"stages that ended have states": lambda plain: plain["ends"].keys() <= plain["states"].keys()},
)


def _refusal(path: Path | None, why: str) -> ModelFileError:
    return ModelFileError(ParameterMessage(f"`checkpoint={str(path)!r}`{why}"))


def _state_of(stage: str, plain: Any) -> State:
    try:
        return State.from_plain(plain)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"its stage {stage!r} is not a state ({error}).") from error


def data_fingerprint(*values: Any) -> str:
    """Digest nested data: arrays by type, shape and bytes, the rest in model file format."""
    arrays: dict[str, Any] = {}
    text = json.dumps(model_files.encode(list(values), arrays), sort_keys=True)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        parts = (array.data, array.indices, array.indptr) if hasattr(array, "indptr") else (array,)
        for part in parts:
            digest.update(f"{name} {part.dtype.str} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"")
    return digest.hexdigest()


_STEPS_A_DECADE = 10
_Method = TypeVar("_Method", bound=Callable[..., Any])

Model = Callable[[], Any] | None  # makes the model fitted so far, where a callback needs it


class FitArguments(NamedTuple):
    """The arguments of a call of ``fit``."""

    X: Any
    y: Any
    sample_weight: Any = None


class _Metadata(dict[str, Any]):
    """Metadata of a task for callbacks: as a dict the arguments of a scorer, by name also record fields.

    ``ScoringMonitor`` passes ``**metadata`` to its scorers, which accept ``sample_weight`` but no ``gap``;
    ``metadata["gap"]`` and ``metadata.get("gap")`` read it from the record.
    """

    def __init__(self, sample_weight: Any, record: Any) -> None:
        super().__init__({} if sample_weight is None else {"sample_weight": sample_weight})
        self.record = record

    def __missing__(self, name: str) -> Any:
        if name in getattr(self.record, "_fields", ()):
            return getattr(self.record, name)
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Look up a name, also among the fields of the record."""
        try:
            return self[name]
        except KeyError:
            return default


class FitProgress:
    """Report a fit as subtasks: one per round, or ten per tenfold decrease of the gap.

    rounds: the maximum number of subtasks; None if unknown.
    tol: the gap at which the fit ends; subtasks then are steps of the gap, and rounds is ignored.
    searches: the most evaluations of a search that comes before the steps of the gap.
    """

    keep: Callable[[Any, Any], None] | None = None  # stores a model in a copy of the estimator

    def __init__(
        self,
        estimator: Any,
        arguments: FitArguments,
        rounds: int | None = None,
        *,
        tol: float | None = None,
        searches: int = 0,
    ) -> None:
        self.estimator, self.arguments = estimator, arguments
        self.searches, self.done = searches, 0
        self.steps = 0 if tol is None else max(1, math.ceil(-_STEPS_A_DECADE * math.log10(min(tol, 0.5))))
        most = rounds if tol is None else self.steps + searches
        self.context = estimator._init_callback_context(max_subtasks=most)
        self.context.call_on_fit_task_begin(estimator=estimator, **self._facts(None))

    def __call__(self, record: Any, model: Model = None) -> bool:
        """Record a round or a check of the gap, with its model; return whether a callback asks to stop."""
        if not self.steps:
            return self.subtask("round", record, model)
        while self.searches:  # the search ended early
            self.on_search(None)
        if math.isnan(record.primal):  # an estimate, which rounding may make too optimistic
            return False
        reached = int(-_STEPS_A_DECADE * math.log10(max(record.gap, 1e-300))) if record.gap < 1 else 0
        return self._advance(min(self.steps, reached), record, model)

    def on_search(self, record: Any) -> bool:
        """Record an evaluation of the cross-validated loss; return whether a callback asks to stop."""
        if self.steps and not self.searches:
            return False
        self.searches -= 1
        return self.subtask("cross-validation", record)

    def _advance(self, steps: int, record: Any, model: Model = None) -> bool:
        """Report the steps up to a number; only the last one has a model to score."""
        stop = False
        while self.done < steps:
            self.done += 1
            stop |= self.subtask("duality gap", record, model if self.done == steps else None)
        return stop

    def subtask(self, name: str, record: Any = None, model: Model = None) -> bool:
        """Report a subtask as done; return whether a callback asks to stop."""
        subtask, facts = self.context.subcontext(task_name=name), self._facts(record)
        subtask.call_on_fit_task_begin(estimator=self.estimator, **facts)
        attributes = partial(self._attributes, model) if self.keep and model else None
        end = subtask.call_on_fit_task_end
        return bool(end(estimator=self.estimator, reconstruction_attributes=attributes, **facts))

    def _attributes(self, model: Callable[[], Any]) -> dict[str, Any]:
        estimator = copy.copy(self.estimator)
        assert self.keep is not None, "there is a model only where a fit says how to keep it"
        self.keep(estimator, model())
        return vars(estimator)

    def close(self) -> None:
        """End the task; the estimator has all of its fitted attributes."""
        trace = getattr(self.estimator, "trace_", None)
        facts = self._facts(trace[-1] if trace else None)
        self.context.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes={}, **facts)

    def _facts(self, record: Any) -> dict[str, Any]:
        X, y, sample_weight = self.arguments
        return {"X": X, "y": y, "metadata": _Metadata(sample_weight, record)}


@contextmanager
def _as_before_if_refused(estimator: Any) -> Iterator[None]:
    """Restore an estimator if an error ends a fit, or Ctrl-C before there is a model to keep."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        made = vars(estimator).get("scorer_")
        has_model = made is not None and made is not before.get("scorer_")
        if isinstance(error, Warning) or (has_model and not isinstance(error, Exception)):
            raise
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def warn_of_end(message: str) -> None:
    """Warn that a fit ended early, unless KeyboardInterrupt will report it."""
    said = ParameterMessage(message)
    if not config.goes_into_interrupt(said):
        warn_caller(said, ConvergenceWarning)


def fit_method(fit: _Method) -> _Method:
    """Check parameters before a fit, end callbacks and raise KeyboardInterrupt after it.

    The linear algebra library uses one thread per product meanwhile, so that results do not depend on it.
    """
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(fit))
    return where_rows_are(cast(_Method, checked), _of_model)


@contextmanager
def _of_model(estimator: Any) -> Iterator[None]:
    refuse_at_home(estimator, "a device")
    is_part = hasattr(estimator, "_parent_callback_ctx")  # of a scikit-learn search
    with _raised_at_the_end(is_part=is_part), Workers().running(), _shown(estimator):
        yield


def meta_fit_method(fit: _Method) -> _Method:
    """Check parameters before a meta-estimator's fit, and end callbacks after it."""
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=False)(fit))
    return where_rows_are(cast(_Method, checked), _shown)


@contextmanager
def _shown(estimator: Any) -> Iterator[None]:
    verbose = getattr(estimator, "verbose", 0)
    if not isinstance(verbose, (Integral, np.bool_)) or verbose < 1:  # or not a number, which the fit rejects
        yield
        return
    from labelweave.estimators.progress_lines import FitLines

    others = callbacks_of(estimator)
    estimator.set_callbacks(*others, FitLines(type(estimator).__name__, is_every=int(verbose) > 1))
    try:
        yield
    finally:
        estimator.set_callbacks(*others)


@contextmanager
def _raised_at_the_end(*, is_part: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of a fit that caught one; a nested fit leaves this to the outer one.

    is_part: whether a search called the fit; the search ends in any case.
    """
    if config.UNDER_WAY.get() is not None:
        yield
        return
    fit = config.FitUnderWay(raises=is_part or config.ON_INTERRUPT.get() == "raise")
    config.UNDER_WAY.set(fit)
    try:
        yield
    finally:
        config.UNDER_WAY.set(None)
    if fit.raises and fit.was_interrupted:
        raise KeyboardInterrupt(fit.message)


@contextmanager
def interrupts_later() -> Iterator[list[KeyboardInterrupt]]:
    """Delay Ctrl-C to the end of a block, where it is noted and in the list; a second one is not delayed."""
    default, caught = signal.default_int_handler, list[KeyboardInterrupt]()
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not default:
        yield caught
        return

    def note(*_: object) -> None:
        signal.signal(signal.SIGINT, default)
        caught.append(KeyboardInterrupt())
        config.note_interrupt(caught[0])

    signal.signal(signal.SIGINT, note)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, default)


def where_rows_are(
    method: _Method, of_fit: Callable[[Any], AbstractContextManager[None]] | None = None
) -> _Method:
    """Dispatch a method by the type of its X: to implementations for collections, or to X's library.

    of_fit: what goes on around a fit of an estimator.
    """

    @wraps(method)
    def dispatched(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        if is_collection(X):
            return view("answer", method.__name__, self, X, *given, **named)
        if any(map(is_foreign, (X, *given, *named.values()))):
            return called_where_x_is(dispatched, refuse_at_home, self, X, *given, **named)
        if of_fit is None:
            return method(self, X, *given, **named)
        for name, value in [*zip(("y", "sample_weight"), given, strict=False), *named.items()]:
            refuse_lazy(value, name)
        with _as_before_if_refused(self), of_fit(self):
            return method(self, X, *given, **named)

    return cast(_Method, dispatched)
