"""Classes that a model file may hold, registered by name.

A name that stands in a file is looked up among the registered ones and never
imported: only code that already runs can be reached from a file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from labelweave.model_files.schema import Field, Record, Relations


class Storable(Protocol):
    """What a class needs to be kept in a model file."""

    def to_state(self) -> dict[str, Any]:
        """Give all that makes the object: plain data, arrays, tuples, other storable objects."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make the object again; arrays arrive read-only."""
        ...


class StoredParameters:
    """Base of classes that are stored as what their constructor takes and they keep under the same names."""

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make the object again; see :meth:`labelweave.model_files.Storable.from_state`."""
        return cls(**state)


Class = TypeVar("Class", bound=type[Storable])

_CLASSES: dict[str, type[Storable]] = {}
_NAMES: dict[type, str] = {}
_SCHEMAS: dict[str, Record] = {}


def storable(
    name: str, fields: Mapping[str, Field] | None = None, relations: Relations | None = None
) -> Callable[[Class], Class]:
    """Register a class under a name, as a decorator.

    name: the name written into model files; keep it when the class is renamed.
    fields: what its state has under each name; None where ``from_state`` checks that itself.
    relations: what must hold between them, see :class:`~labelweave.model_files.schema.Record`.
    """

    def register(cls: Class) -> Class:
        for method in ("to_state", "from_state"):
            if not callable(getattr(cls, method, None)):
                raise TypeError(f"{cls.__qualname__} has no method {method}; a storable class needs it.")
        other = _CLASSES.get(name)
        # a module may be loaded again, in a notebook for one
        if other is not None and _address(other) != _address(cls):
            raise ValueError(f"The name {name!r} is taken by {'.'.join(_address(other))}; choose another.")
        _CLASSES[name] = cls
        _NAMES[cls] = name
        if fields is not None:
            _SCHEMAS[name] = Record(fields, relations)
        return cls

    return register


def _address(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def is_registered(value: Any) -> bool:
    return type(value) in _NAMES


def storable_name(value: Any) -> str:
    """Tell under which name the class of an object, itself and no base of it, is registered."""
    if type(value) not in _NAMES:
        methods = "" if hasattr(value, "to_state") else " and give it to_state and from_state"
        raise TypeError(
            f"Objects of the class {type(value).__qualname__} cannot be stored; "
            f"register the class with @storable{methods}."
        )
    return _NAMES[type(value)]


def registered_class(name: str) -> type[Storable] | None:
    return _CLASSES.get(name)


def made_of_state(name: str, cls: type[Storable], state: Any) -> Any:
    """Make an object of a registered class, once its state is what the class allows."""
    if name in _SCHEMAS:
        _SCHEMAS[name].check(state, name, {})
    return cls.from_state(state)


def checked_state(value: Any) -> dict[str, Any]:
    state = value.to_state()
    if type(state) is not dict:
        raise TypeError(
            f"{type(value).__qualname__}.to_state gave a {type(state).__name__}; it must give a dict."
        )
    return state
