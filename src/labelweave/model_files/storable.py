"""Classes that a model file may hold, registered by name.

A name in a file is looked up among the registered classes and never imported:
a file can only reach code that already runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from labelweave.model_files.schema import Field, Record, Relations


class Storable(Protocol):
    """Interface of classes that model files can store."""

    def to_state(self) -> dict[str, Any]:
        """Return the state of the object: plain data, arrays, tuples, other storable objects."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild the object; arrays arrive read-only."""
        ...


class StoredParameters:
    """Base of classes stored as their constructor parameters, kept as attributes of the same names."""

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        return cls(**state)


class OwnParameters(StoredParameters):
    """Base of such classes that users write."""

    def __repr__(self) -> str:
        kept = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({kept})"


Class = TypeVar("Class", bound=type[Storable])

_CLASSES: dict[str, type[Storable]] = {}
_NAMES: dict[type, str] = {}
_SCHEMAS: dict[str, Record] = {}


def storable(
    name: str, fields: Mapping[str, Field] | None = None, relations: Relations | None = None
) -> Callable[[Class], Class]:
    """Register a class under a name, as a decorator.

    name: the name written into model files; keep it when the class is renamed.
    fields: the schema of its state by name; None if ``from_state`` checks the state itself.
    relations: consistency checks, see :class:`~labelweave.model_files.schema.Record`.
    """

    def register(cls: Class) -> Class:
        for method in ("to_state", "from_state"):
            if not callable(getattr(cls, method, None)):
                raise TypeError(f"{cls.__qualname__} has no method {method}; add it.")
        other = _CLASSES.get(name)
        # a module may be reloaded, for example in a notebook
        if other is not None and _address(other) != _address(cls):
            raise ValueError(f"The name {name!r} is taken by {'.'.join(_address(other))}; use another name.")
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
    """Return the name under which the class of an object, not a base class, is registered."""
    if type(value) not in _NAMES:
        methods = "" if hasattr(value, "to_state") else " and add to_state and from_state"
        raise TypeError(
            f"Objects of the class {type(value).__qualname__} cannot be stored; "
            f"register the class with @storable{methods}."
        )
    return _NAMES[type(value)]


def registered_class(name: str) -> type[Storable] | None:
    return _CLASSES.get(name)


def made_of_state(name: str, cls: type[Storable], state: Any) -> Any:
    """Create an object of a registered class after checking its state."""
    if name in _SCHEMAS:
        _SCHEMAS[name].check(state, name, {})
    return cls.from_state(state)


def checked_state(value: Any) -> dict[str, Any]:
    state = value.to_state()
    if type(state) is not dict:
        raise TypeError(
            f"{type(value).__qualname__}.to_state returned a {type(state).__name__}; it must return a dict."
        )
    return state
