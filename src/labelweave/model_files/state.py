"""Convert nested Python state to plain data plus arrays, and back, without pickle.

``encode`` replaces what JSON cannot represent by dictionaries with marker keys, which
``docs/model_file_format.md`` lists.  Each value has exactly one JSON text and back: ASCII without spaces,
dictionaries in their own order.  Text that :func:`to_json` would not have written is refused.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from labelweave.model_files.packed_arrays import is_array_name
from labelweave.model_files.safe_file import ModelFileError
from labelweave.model_files.storable import checked_state, made_of_state, registered_class, storable_name

T = TypeVar("T")

_KEYS = {
    "__array__": {"__array__"},
    "__tuple__": {"__tuple__"},
    "__scalar__": {"__scalar__", "value"},
    "__object__": {"__object__", "state"},
    "__dict__": {"__dict__"},
    "__objects__": {"__objects__"},
    "__slice__": {"__slice__"},
    "__dtype__": {"__dtype__"},
    "__type__": {"__type__"},
}
_MARKERS = _KEYS.keys()
_DEEPEST = 30  # a level may take three of the 100 levels of the JSON text
_SCALAR_TYPES = ("|b1", "|i1", "|u1", *(f"<{kind}{size}" for kind in "iuf" for size in (2, 4, 8)), "<U")
_DTYPE_KINDS = "biufO"
_FLOAT = "__float__"
_NON_FINITE = ("inf", "-inf", "nan")
_DEEPEST_JSON = 100
_LONGEST_INTEGER_BITS = 4096


def encode(value: Any, arrays: dict[str, Any]) -> Any:
    """Convert nested state to plain data and store its arrays in ``arrays``, named after their places.

    Raises TypeError or ValueError, with the place, for other objects or too deep nesting.
    """
    return _Encoder(arrays, {id(array): name for name, array in arrays.items()}).encode(value, ())


@dataclass(frozen=True)
class _Encoder:
    arrays: dict[str, Any]
    names: dict[int, str]  # by the array's id

    def encode(self, value: Any, path: tuple[str, ...]) -> Any:
        if len(path) > _DEEPEST:
            raise ValueError(
                f"The state is nested more than {_DEEPEST} deep, or contains itself, at {'.'.join(path[:6])}."
            )
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind in (list, tuple):
            items = [self.encode(item, (*path, str(i))) for i, item in enumerate(value)]
            return items if kind is list else {"__tuple__": items}
        if kind is dict:
            return self._dict(value, path)
        marked = _marked(value)
        if marked is not None:
            return marked
        if isinstance(value, np.ndarray) or sp.issparse(value):
            return {"__array__": self._kept(value, path)}
        if isinstance(value, np.generic):
            raise TypeError(
                f"The number {_place(path)} is of dtype {value.dtype}, which cannot be stored; convert it."
            )
        try:
            name = storable_name(value)
        except TypeError as error:
            raise TypeError(f"{error} It was found {_place(path)}.") from None
        return {"__object__": name, "state": self._dict(checked_state(value), path)}

    def _dict(self, value: dict[Any, Any], path: tuple[str, ...]) -> dict[str, Any]:
        _check_keys(value, f"The dictionary {_place(path)}")
        plain = {key: self.encode(item, (*path, key)) for key, item in value.items()}
        return plain if _MARKERS.isdisjoint(plain) else {"__dict__": plain}

    def _kept(self, array: Any, path: tuple[str, ...]) -> str:
        if id(array) in self.names:
            return self.names[id(array)]
        wish = ".".join(path)
        wish = wish if is_array_name(wish) else "array"
        numbered = (f"{wish}_{count}" for count in itertools.count(2))
        name = next(name for name in itertools.chain([wish], numbered) if name not in self.arrays)
        self.arrays[name] = array
        self.names[id(array)] = name
        return name


def _marked(value: Any) -> dict[str, Any] | None:
    """Encode a NumPy number, a type, a slice or an array of plain objects; None for anything else."""
    if isinstance(value, np.generic):
        kind = "<U" if value.dtype.kind == "U" else value.dtype.newbyteorder("<").str
        return {"__scalar__": kind, "value": value.item()} if kind in _SCALAR_TYPES else None
    is_number = isinstance(value, type) and issubclass(value, (np.generic, bool, int, float))
    if (value is object or is_number or isinstance(value, np.dtype)) and np.dtype(value).kind in _DTYPE_KINDS:
        return {"__type__" if isinstance(value, type) else "__dtype__": np.dtype(value).str}
    if isinstance(value, slice):
        marker, entries = "__slice__", [value.start, value.stop, value.step]
    elif isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
        marker, entries = "__objects__", value.tolist()
    else:
        return None
    entries = [entry.item() if isinstance(entry, np.generic) else entry for entry in entries]
    return {marker: entries} if all(map(_is_entry, entries)) else None


def _place(path: tuple[str, ...]) -> str:
    return f"at {'.'.join(path)!r}" if path else "at the top"


def _check_keys(value: dict[Any, Any], where: str) -> None:
    for key in value:
        if type(key) is not str:
            raise TypeError(
                f"{where} has the key {key!r} of type {type(key).__name__}; keys must be str. "
                "Store keys and values as two lists."
            )


def decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Restore the output of :func:`encode`; refuse anything else."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    marker = next((key for key in value if key in _MARKERS), None)
    if marker is None:
        return {key: decode(item, arrays) for key, item in value.items()}
    if value.keys() != _KEYS[marker]:
        raise ModelFileError(f"its state has a malformed {marker} with the keys {', '.join(value)}.")
    try:
        return _decoded(marker, value, arrays)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"its state has a malformed {marker} ({error}).") from None


def _decoded(marker: str, value: dict[str, Any], arrays: Mapping[str, Any]) -> Any:
    content = value[marker]
    match marker:
        case "__tuple__":
            return tuple(decode(item, arrays) for item in content)
        case "__dict__":
            return {key: decode(item, arrays) for key, item in content.items()}
        case "__object__":
            return _decoded_object(content, decode(value["state"], arrays))
        case "__array__":
            if content not in arrays:
                raise ModelFileError(f"its state refers to the missing array {content!r}.")
            return arrays[content]
    return _unmarked(marker, content, value)


def _unmarked(marker: str, content: Any, value: dict[str, Any]) -> Any:
    if marker == "__scalar__":
        return _decoded_scalar(content, value["value"])
    if marker in ("__dtype__", "__type__"):
        dtype = np.dtype(content if type(content) is str else "V")
        if dtype.kind not in _DTYPE_KINDS:
            raise ModelFileError(f"its state has the type {content!r}.")
        return dtype if marker == "__dtype__" else object if dtype.kind == "O" else dtype.type
    if type(content) is not list or not all(map(_is_entry, content)):
        raise ModelFileError(f"its state has a malformed {marker}: not all entries are numbers and texts.")
    if marker == "__slice__":
        return slice(*content)
    found = np.empty(len(content), object)
    found[:] = content
    return found


def _is_entry(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _decoded_scalar(kind: str, value: Any) -> Any:
    if kind not in _SCALAR_TYPES:
        raise ModelFileError(f"its state has a scalar of the unknown type {kind!r}.")
    with np.errstate(all="ignore"):
        scalar = np.dtype(kind).type(value)
    plain = scalar.item()
    if type(plain) is not type(value) or repr(plain) != repr(value):
        raise ModelFileError(f"its state has a scalar of type {kind!r} with an invalid value.")
    return scalar


def _decoded_object(name: str, state: Any) -> Any:
    cls = registered_class(name)
    if cls is None:
        raise ModelFileError(
            f"it needs the class {name!r}, which is not registered; import the package that defines it, "
            "or install the labelweave the model was saved with."
        )
    try:
        return made_of_state(name, cls, state)
    except ModelFileError:
        raise
    except Exception as error:  # the class may be any, and so may the state in a file
        raise ModelFileError(f"{name} cannot be made from it ({type(error).__name__}: {error}).") from error


def to_json(value: Any, where: str = "state") -> str:
    """Encode plain data, nested at most 100 deep, as JSON text."""
    return json.dumps(_spelled(value, where, 0), allow_nan=False, separators=(",", ":"))


def from_json(text: str, where: str = "state") -> Any:
    try:
        value = _restored(json.loads(text))
        same = to_json(value, where) == text
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"its {where} is not readable JSON ({error}).") from None
    if not same:
        raise ModelFileError(f"its {where} is JSON that labelweave does not write.")
    return value


def _spelled(value: Any, where: str, depth: int) -> Any:
    if depth > _DEEPEST_JSON:
        raise ValueError(
            f"{where[:80]}... is nested more than {_DEEPEST_JSON} deep, or contains itself; flatten it."
        )
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        if value.bit_length() <= _LONGEST_INTEGER_BITS:
            return value
        raise ValueError(
            f"{where} is an integer of {value.bit_length()} bits; at most {_LONGEST_INTEGER_BITS} are kept."
        )
    if kind is float:
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if kind is list:
        return [_spelled(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if kind is dict:
        _check_keys(value, where)
        spelled = {key: _spelled(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
        return {_FLOAT: spelled} if _FLOAT in spelled else spelled
    raise TypeError(
        f"{where} is of type {kind.__name__}; allowed are None, bool, int, float, str, list and dict. "
        "Pass it through encode first, which also takes arrays, tuples and registered objects."
    )


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
