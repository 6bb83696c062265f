"""Validation of a state from a file against the initial state of a run.

Every part must have the same class, every array the same type and shape, and be finite where the first one
is.  Compiled loops read such arrays without checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from labelweave.solvers.frame import MEASURED, State

_LAST_POSITION = 624  # NumPy reads its Mersenne Twister there without a check


def refuse_unlike(found: State, start: State) -> None:
    """Raise a ValueError, with the position, for a state that cannot follow another one.

    A class lists in ``_varies`` the parts whose arrays change in length or may be NaN, in ``_limits`` the
    range of the numbers in others, and in ``_items`` the classes of parts that are not None.
    """
    _check(found, start, "state")


def _check(found: Any, start: Any, where: str, *, varies: bool = False) -> None:
    if isinstance(found, tuple) and hasattr(found, "_asdict") and start is None:
        _check_numbers(found, where)
    if start is None:
        _check_finite(found, np.zeros(1), where)
    elif isinstance(start, np.ndarray):
        _check_array(found, start, where, varies=varies)
    elif isinstance(start, bool | int | float):
        _check_number(found, start, where)
    elif type(found) is not type(start):
        raise ValueError(f"its {where} is a {type(found).__name__} and no {type(start).__name__}")
    else:
        _check_parts(found, start, where)


def _check_parts(found: Any, start: Any, where: str) -> None:
    limits, varies = getattr(start, "_limits", {}), getattr(start, "_varies", ())
    if isinstance(start, list | tuple) and not hasattr(start, "_asdict"):
        if isinstance(start, list) and start and len(found) != len(start):
            raise ValueError(f"its {where} has {len(found)} parts, not {len(start)}")
        for number, part in enumerate(found):
            _check(part, start[0] if start else None, f"{where}[{number}]")
        return
    for name, kind in getattr(start, "_items", {}).items():
        items = getattr(found, name)
        is_many = type(items) is tuple and isinstance(getattr(start, name), tuple)
        listed = items if is_many else () if items is None else (items,)
        if not all(isinstance(item, kind) for item in listed):
            raise ValueError(f"its {where}.{name} is not of type {kind.__name__}")
    for name, part in _parts(start):
        place = f"{where}.{name}"
        _check(_part(found, name, place), part, place, varies=name in varies)
        if name in limits:
            least, most = limits[name]
            array = getattr(found, name)
            if array.size and not (array.min() >= least and array.max() <= most):
                raise ValueError(f"its {place} has numbers outside {least} to {most}")
    if isinstance(found, State):
        if not 0 <= getattr(found, "begun", 0) <= found.rounds:
            raise ValueError(f"its {where} has {found.rounds} rounds")
        if not all(hasattr(record, "iteration") for record in found.trace):
            raise ValueError(f"its {where}.trace is not a list of records")
        if found.status in MEASURED and not found.trace:
            raise ValueError(f"its {where} ended at a check, but its trace has none")


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif is_dataclass(value):
        yield from ((part.name, getattr(value, part.name)) for part in fields(value))
    elif hasattr(value, "_asdict"):
        yield from value._asdict().items()


def _part(found: Any, name: str, place: str) -> Any:
    if not isinstance(found, dict):
        return getattr(found, name)
    if name not in found:
        raise ValueError(f"its {place} is missing")
    return found[name]


def _check_array(found: Any, start: np.ndarray, where: str, *, varies: bool) -> None:
    if not isinstance(found, np.ndarray) or found.dtype != start.dtype or found.ndim != start.ndim:
        raise ValueError(f"its {where} is not an array of {start.dtype} of {start.ndim} dimension(s)")
    if varies:
        return
    if found.shape != start.shape:
        raise ValueError(f"its {where} has shape {found.shape}, not {start.shape}")
    _check_finite(found, start, where)


def _check_finite(found: Any, start: np.ndarray, where: str) -> None:
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f" or not np.isfinite(start).all():
        return
    if not np.isfinite(found).all():
        raise ValueError(f"its {where} has numbers that are not finite")


def _check_number(found: Any, start: Any, where: str) -> None:
    kind = bool if isinstance(start, bool) else Integral if isinstance(start, int) else Real
    if not isinstance(found, kind) or isinstance(found, bool) != isinstance(start, bool):
        raise ValueError(f"its {where} is a {type(found).__name__} and no {type(start).__name__}")
    if where.endswith(".stream.state.pos") and found not in range(_LAST_POSITION + 1):
        raise ValueError(f"its {where} is not a position of a random stream")


def _check_numbers(record: Any, where: str) -> None:
    """Raise a ValueError for records of measurements that are not numeric."""
    for name, value in record._asdict().items():
        _check_finite(value, np.zeros(1), f"{where}.{name}")
        if not isinstance(value, Real | tuple | np.ndarray):
            raise ValueError(f"its {where}.{name} is a {type(value).__name__}, not a number")
