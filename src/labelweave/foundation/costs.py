"""Warnings about expensive choices, with an estimate, before the work starts."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import EfficiencyWarning

from labelweave.foundation.arguments import ParameterMessage

MULTIPLICATIONS = 2e10  # per second, in products of dense matrices on one thread
_LONG = 60.0
_LARGE = 4e9
_UNITS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def warn_of_time(what: str, seconds: float, remedy: str) -> None:
    """Warn of work that is expected to take more than a minute, estimated to an order of magnitude."""
    if seconds > _LONG:
        name, size = next((unit for unit in _UNITS if seconds > unit[1]), _UNITS[-1])
        message = f"{what} takes about {seconds / size:.2g} {name}; {remedy}"
        warn_caller(ParameterMessage(message), EfficiencyWarning)


def warn_of_memory(what: str, n_bytes: float, remedy: str, least: float | None = None) -> None:
    """Warn of memory above a limit, by default 4 GB."""
    if n_bytes > (_LARGE if least is None else least):
        message = f"{what} takes about {n_bytes / 1e9:.2g} GB of memory; {remedy}"
        warn_caller(ParameterMessage(message), EfficiencyWarning)


def warn_of_hard_margins(C: float, most: float, n_rows: int, tol: float) -> None:
    """Warn of a C so large that rounding of margins changes the objective."""
    message = (
        f"`C={C:g}` for {n_rows} rows is so large that, by rounding, "
        f"a fit may use up `max_iter` and not meet `tol={tol:g}`; `C={most:.0e}` is as good as a hard "
        "margin"
    )
    warn_caller(ParameterMessage(message), EfficiencyWarning)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this library, even through scikit-learn."""
    frame, level, inside = sys._getframe(2), 3, ("labelweave", "sklearn", "contextlib")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in inside:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
