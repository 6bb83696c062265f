"""Ctrl-C in a fit: the best model so far is kept in the estimator, and then KeyboardInterrupt is raised.

Whatever catches KeyboardInterrupt to keep what there is notes it here; the fit raises it at its end, so that
one Ctrl-C ends all that calls fits in a loop: searches, cross-validation, classifiers around others.  Users
who want the fit to end as if it had reached its limit say ``on_interrupt="keep"``.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class FitUnderWay:
    """A fit that is under way: whether it raises interrupts, met one, and what is to be said of its end."""

    raises: bool
    was_interrupted: bool = False
    message: str = ""


UNDER_WAY: ContextVar[FitUnderWay | None] = ContextVar("fit", default=None)


class PartInterrupted(KeyboardInterrupt):
    """A part of a fit ended early: by Ctrl-C, which was noted there, or as a callback asked for it."""


def note_interrupt(caught: KeyboardInterrupt) -> None:
    """Note what was caught to keep the best model so far."""
    fit = UNDER_WAY.get()
    if fit is not None and not isinstance(caught, PartInterrupted):
        fit.was_interrupted = True


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a block, and be noted; a second one does not wait."""
    default, is_main = signal.default_int_handler, threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not default:
        yield
        return

    def note(*_: object) -> None:
        signal.signal(signal.SIGINT, default)
        note_interrupt(KeyboardInterrupt())

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, default)


def was_interrupted() -> bool:
    fit = UNDER_WAY.get()
    return fit is not None and fit.was_interrupted


def goes_into_interrupt(message: str) -> bool:
    """Tell whether KeyboardInterrupt will come at the end of this fit; it then says the message."""
    fit = UNDER_WAY.get()
    if fit is None or not (fit.raises and fit.was_interrupted):
        return False
    fit.message = message
    return True
