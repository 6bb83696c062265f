"""Global configuration of fits, and Ctrl-C.

Code that catches KeyboardInterrupt to keep the best model so far notes it here; the fit raises it at its end,
so that one Ctrl-C also ends loops over fits: searches, cross-validation, meta-estimators.
With ``on_interrupt="keep"`` the fit ends as if it had reached its limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from labelweave.foundation.arguments import checked

_CHOICES = ("raise", "keep")
ON_INTERRUPT: ContextVar[str] = ContextVar("on_interrupt", default="raise")
USUAL_BUDGET = 2000.0  # megabytes
BUDGET: dict[str, float] = {}  # "megabytes", if set, for the process and all its threads


@checked
def set_config(*, on_interrupt: str | None = None, memory_budget: float | str | None = None) -> None:
    """Set options of later fits; None keeps the current value.

    Parameters
    ----------
    on_interrupt : {"raise", "keep"} or None, default=None
        The effect of Ctrl-C.  In both cases the estimator keeps the best model so far.  "raise", the initial
        value, then raises KeyboardInterrupt, which ends the caller of the fit.  "keep" returns from the fit
        with a ConvergenceWarning instead; a search of scikit-learn still ends.
    memory_budget : float, "auto" or None, default=None
        Megabytes for kernel matrices, their factors, caches and panels, and on a cluster for the rows of one
        worker; arrays of rows x labels are not included.  Larger matrices are recomputed in parts.
        "auto", the initial value, is 2,000 for :class:`MaxMarginClassifier` and on a cluster, and 8,000 for
        :class:`KernelLogisticClassifier` and :class:`LowRankClassifier`.

    Raises
    ------
    ValueError
        If a value is invalid.

    See Also
    --------
    config_context : The same for a block of code.
    """
    if on_interrupt is not None:
        if on_interrupt not in _CHOICES:
            raise ValueError(f"on_interrupt is {on_interrupt!r}; pass 'raise' or 'keep'.")
        ON_INTERRUPT.set(on_interrupt)
    if memory_budget is not None:
        is_word, value = isinstance(memory_budget, str), memory_budget
        if value != "auto" and (is_word or isinstance(value, bool) or not float(value) > 0):
            raise ValueError(f"memory_budget is {memory_budget!r}; pass megabytes above 0, or 'auto'.")
        BUDGET.clear()
        BUDGET.update({} if is_word else {"megabytes": float(value)})


@contextmanager
@checked
def config_context(
    *, on_interrupt: str | None = None, memory_budget: float | str | None = None
) -> Iterator[None]:
    """Set options of the fits in a block of code.

    Parameters
    ----------
    on_interrupt : {"raise", "keep"} or None, default=None
        See :func:`set_config`.
    memory_budget : float, "auto" or None, default=None
        See :func:`set_config`.

    Yields
    ------
    None
        Nothing; the previous values are restored after the block.

    Examples
    --------
    >>> import labelweave
    >>> with labelweave.config_context(on_interrupt="keep", memory_budget=500.0):
    ...     model = labelweave.MaxMarginClassifier().fit([[0.0], [1.0]], [[0], [1]])
    """
    before = ON_INTERRUPT.get(), BUDGET.get("megabytes", "auto")
    set_config(on_interrupt=on_interrupt, memory_budget=memory_budget)
    try:
        yield
    finally:
        set_config(on_interrupt=before[0], memory_budget=before[1])


@dataclass
class FitUnderWay:
    """The state of a running fit: whether it raises interrupts, noted ones, and the message at its end."""

    raises: bool
    was_interrupted: bool = False
    message: str = ""


UNDER_WAY: ContextVar[FitUnderWay | None] = ContextVar("fit", default=None)


class PartInterrupted(KeyboardInterrupt):
    """A part of a fit ended early, by Ctrl-C or a callback."""


def note_interrupt(caught: KeyboardInterrupt) -> None:
    """Note an interrupt that was caught to keep the best model so far."""
    fit = UNDER_WAY.get()
    if fit is not None and not isinstance(caught, PartInterrupted):
        fit.was_interrupted = True


def was_interrupted() -> bool:
    fit = UNDER_WAY.get()
    return fit is not None and fit.was_interrupted


def goes_into_interrupt(message: str) -> bool:
    """Return whether this fit will end with KeyboardInterrupt, which then has the message."""
    fit = UNDER_WAY.get()
    if fit is None or not (fit.raises and fit.was_interrupted):
        return False
    fit.message = message
    return True
