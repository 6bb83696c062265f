"""The frame of every fit: checks, callbacks, Ctrl-C, rollback after an error, progress."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from numbers import Integral
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, is_collection, numbers_of, refuse_lazy
from labelweave.foundation.arrays.homes import called_where_x_is, require_form
from labelweave.foundation.arrays.linear_algebra import HOME, is_foreign
from labelweave.foundation.config import ON_INTERRUPT, UNDER_WAY, FitUnderWay, goes_into_interrupt
from labelweave.foundation.costs import warn_caller
from labelweave.foundation.sklearn_compat import _fit_context, callbacks_of, with_callbacks
from labelweave.foundation.views import view

_STEPS_A_DECADE = 10
_LARGEST_WEIGHT = 1e100  # of a row: products of two stay finite
_Method = TypeVar("_Method", bound=Callable[..., Any])

Model = Callable[[], Any] | None  # makes the model fitted so far, where a callback needs it


class FitArguments(NamedTuple):
    """The arguments of a call of ``fit``."""

    X: Any
    y: Any
    sample_weight: Any = None


def given_weights(sample_weight: Any) -> Any:
    return None if sample_weight is None else numbers_of(sample_weight, "sample_weight")


def refuse_no_weight(weights: Array) -> None:
    """Reject row weights that are all 0, infinite, or so large that objectives overflow."""
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight is not finite; pass finite numbers >= 0.")
    largest = weights.max(initial=0.0)
    if largest > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight at row {weights.argmax()} is {largest:g}; weights must be at most "
            f"{_LARGEST_WEIGHT:g}."
        )
    if not (weights > 0).any():
        raise ValueError("sample_weight is 0 in every row; at least one row must have a positive weight.")


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
def as_before_if_refused(estimator: Any) -> Iterator[None]:
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
    if not goes_into_interrupt(said):
        warn_caller(said, ConvergenceWarning)


def fit_method(fit: _Method) -> _Method:
    """Check parameters before a fit, end callbacks and raise KeyboardInterrupt after it.

    The linear algebra library uses one thread per product meanwhile, so that results do not depend on it.
    """
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(fit))

    @wraps(fit)
    def fit_and_raise(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_lazy_arguments(arguments, options)
        if HOME.get() is not None:
            require_form(self)
        is_part = hasattr(self, "_parent_callback_ctx")  # of a scikit-learn search
        with (
            as_before_if_refused(self),
            _raised_at_the_end(is_part=is_part),
            Workers().running(),
            _shown(self),
        ):
            return checked(self, *arguments, **options)

    return cast(_Method, where_rows_are(fit_and_raise))


def meta_fit_method(fit: _Method) -> _Method:
    """Check parameters before a meta-estimator's fit, and end callbacks after it."""
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=False)(fit))

    @wraps(fit)
    def shown_fit(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_lazy_arguments(arguments, options)
        with as_before_if_refused(self), _shown(self):
            return checked(self, *arguments, **options)

    return cast(_Method, where_rows_are(shown_fit))


def _refuse_lazy_arguments(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    for name, value in [*zip(("X", "y", "sample_weight"), arguments, strict=False), *options.items()]:
        refuse_lazy(value, name)


@contextmanager
def _shown(estimator: Any) -> Iterator[None]:
    verbose = int(estimator.verbose) if isinstance(estimator.verbose, (Integral, np.bool_)) else 0
    if verbose < 1:  # or not a number, which the fit rejects
        yield
        return
    from labelweave.estimators.progress_lines import FitLines

    others = callbacks_of(estimator)
    estimator.set_callbacks(*others, FitLines(type(estimator).__name__, is_every=verbose > 1))
    try:
        yield
    finally:
        estimator.set_callbacks(*others)


@contextmanager
def _raised_at_the_end(*, is_part: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of a fit that caught one; a nested fit leaves this to the outer one.

    is_part: whether a search called the fit; the search ends in any case.
    """
    if UNDER_WAY.get() is not None:
        yield
        return
    fit = FitUnderWay(raises=is_part or ON_INTERRUPT.get() == "raise")
    UNDER_WAY.set(fit)
    try:
        yield
    finally:
        UNDER_WAY.set(None)
    if fit.raises and fit.was_interrupted:
        raise KeyboardInterrupt(fit.message)


def where_rows_are(method: _Method) -> _Method:
    """Dispatch a method by the type of its X: to implementations for collections, or to X's library."""

    @wraps(method)
    def dispatched(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        if is_collection(X):
            return view("answer", method.__name__, self, X, *given, **named)
        if any(map(is_foreign, (X, *given, *named.values()))):
            return called_where_x_is(method, self, X, *given, **named)
        return method(self, X, *given, **named)

    return cast(_Method, dispatched)
