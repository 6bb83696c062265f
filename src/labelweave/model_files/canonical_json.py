"""Plain data as JSON text, one text for one value, and back exactly.

The text is ASCII without spaces, dictionaries in their own order.  Standard JSON has no infinities and no
NaN, so these are written ``{"__float__": "inf"}``, ``"-inf"`` or ``"nan"``; a dictionary that has the key
``"__float__"`` itself is wrapped once, ``{"__float__": {...}}``.  Text that :func:`to_json` would not have
written (repeated keys, spaces, other spellings of a number) is refused.
"""

from __future__ import annotations

import json
import math
from typing import Any

from labelweave.model_files.errors import ModelFileError

__all__ = ["from_json", "to_json"]

_FLOAT = "__float__"
_NON_FINITE = ("inf", "-inf", "nan")
_DEEPEST = 100
_LONGEST_INTEGER_BITS = 4096


def to_json(value: Any, where: str = "state") -> str:
    """Write plain data as JSON text.

    value: the data, nested at most 100 deep.
    where: what to call it in errors.
    Raises TypeError if something else is inside, naming where it is.
    Raises ValueError if it is nested too deeply or an integer has more than 4,096 bits.
    """
    return json.dumps(_spelled(value, where, 0), allow_nan=False, separators=(",", ":"))


def from_json(text: str, where: str = "state") -> Any:
    """Read back what :func:`to_json` wrote.

    where: what to call it in errors.
    Raises ModelFileError if :func:`to_json` cannot have written this text.
    """
    try:
        value = _restored(json.loads(text))
        same = to_json(value, where) == text
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"its {where} is not readable JSON ({error}).") from None
    if not same:
        raise ModelFileError(f"its {where} is JSON that labelweave does not write.")
    return value


def _spelled(value: Any, where: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError(
            f"{where[:80]}... is nested more than {_DEEPEST} deep, or contains itself; flatten it."
        )
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return _checked_integer(value, where)
    if kind is float:
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if kind is list:
        return [_spelled(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if kind is dict:
        return _spelled_dict(value, where, depth)
    raise TypeError(
        f"{where} is of type {kind.__name__}; allowed are None, bool, int, float, str, list and dict. "
        "Pass it through `encode` first, which also takes arrays, tuples and registered objects."
    )


def _checked_integer(value: int, where: str) -> int:
    if value.bit_length() > _LONGEST_INTEGER_BITS:
        raise ValueError(
            f"{where} is an integer of {value.bit_length()} bits; at most {_LONGEST_INTEGER_BITS} are kept."
        )
    return value


def _spelled_dict(value: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
    for key in value:
        if type(key) is not str:
            raise TypeError(
                f"{where} has the key {key!r} of type {type(key).__name__}; keys must be str. "
                "Store keys and values as two lists."
            )
    spelled = {key: _spelled(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    return {_FLOAT: spelled} if _FLOAT in spelled else spelled


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _FLOAT not in value:
        return {key: _restored(item) for key, item in value.items()}
    wrapped = value[_FLOAT]
    if isinstance(wrapped, dict):
        return {key: _restored(item) for key, item in wrapped.items()}
    if wrapped not in _NON_FINITE:
        raise ValueError(f"{wrapped!r} is not one of {', '.join(_NON_FINITE)}")
    return float(wrapped)
