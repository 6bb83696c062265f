"""What is around every fit: checks, callbacks, progress, Ctrl-C, and the state before if it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave.estimators.progress import as_before_if_refused
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.arrays import Workers, refuse_lazy
from labelweave.foundation.costs import warn_caller
from labelweave.foundation.interrupts import ON_INTERRUPT, UNDER_WAY, FitUnderWay, goes_into_interrupt
from labelweave.foundation.sklearn_compat import _fit_context, callbacks_of, with_callbacks

_Method = TypeVar("_Method", bound=Callable[..., Any])


def warn_of_end(message: str) -> None:
    """Warn that a fit ended early, unless KeyboardInterrupt will say so."""
    said = ParameterMessage(message)
    if not goes_into_interrupt(said):
        warn_caller(said, ConvergenceWarning)


def fit_method(fit: _Method) -> _Method:
    """Check parameters before a fit, end callbacks and raise KeyboardInterrupt after it.

    The linear algebra library has one thread a product meanwhile, so that no result depends on their number.
    """
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(fit))

    @wraps(fit)
    def fit_and_raise(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_lazy_arguments(arguments, options)
        is_part = hasattr(self, "_parent_callback_ctx")  # of a search of scikit-learn's
        with (
            as_before_if_refused(self),
            _raised_at_the_end(is_part=is_part),
            Workers().running(),
            _shown(self),
        ):
            return checked(self, *arguments, **options)

    return cast(_Method, fit_and_raise)


def meta_fit_method(fit: _Method) -> _Method:
    """Check parameters before a fit of estimators inside, and end callbacks after it."""
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=False)(fit))

    @wraps(fit)
    def shown_fit(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_lazy_arguments(arguments, options)
        with as_before_if_refused(self), _shown(self):
            return checked(self, *arguments, **options)

    return cast(_Method, shown_fit)


def _refuse_lazy_arguments(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    for name, value in [*zip(("X", "y", "sample_weight"), arguments, strict=False), *options.items()]:
        refuse_lazy(value, name)


@contextmanager
def _shown(estimator: Any) -> Iterator[None]:
    """Show the progress of a fit, if the estimator is verbose."""
    verbose = int(estimator.verbose) if isinstance(estimator.verbose, (Integral, np.bool_)) else 0
    if verbose < 1:  # or no number, which the fit refuses
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
    """Raise KeyboardInterrupt at the end of a fit that noted one; a fit within another leaves that to it.

    is_part: whether a search called the fit, which is to end in any case.
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
