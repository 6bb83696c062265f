"""Check the arguments of public functions against their annotations.

Numbers, words, flags, paths, lists of text and objects of this library are distinguished, so that an argument
of the wrong kind is refused in one sentence before anything else happens.  The functions that use ranges and
data check these.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])
Kind = tuple[Callable[[Any], bool], str]
"""A predicate for values of the kind, and the kind's name in messages."""

_MOST = 2**63  # the limit of integers in compiled code
_SHOWN = 60


class ArgumentError(ValueError, TypeError):
    """An argument of the wrong kind; both a ValueError and a TypeError."""


_PARAMETER = re.compile(r"(?<!['\"])`(\w+)(?:=([^`]*))?`(?!['\"])")  # quoted ones are data


class ParameterMessage(str):
    """A message with parameter names, as Python users read it; other interfaces can rename them.

    In the template parameters are in backticks, alone or with a value: ```C```, ```prune='small'```.

    text: the message for Python users if it differs from the template.
    """

    template: str

    def __new__(cls, template: str, text: str | None = None) -> Self:
        template = getattr(template, "template", template)
        given = _PARAMETER.sub(lambda found: found[0][1:-1], template) if text is None else text
        self = super().__new__(cls, given)
        self.template = template
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.template, str(self))

    def written(self, write: Callable[[str, str | None], str]) -> str:
        """Format the message with other names: of a parameter, and of its value or None."""
        return _PARAMETER.sub(lambda found: write(found[1], found[2]), self.template)


class ParameterError(ValueError):
    """Invalid parameters, with the template of a :class:`ParameterMessage` as the message."""

    def __init__(self, template: str) -> None:
        super().__init__(ParameterMessage(template))


def checked(function: F) -> F:
    """Check the arguments of a public function or constructor against its annotations."""
    if inspect.isclass(function):
        function.__init__ = checked(function.__init__)  # type: ignore[method-assign]
        return function
    signature = inspect.signature(function)

    @cache
    def kinds() -> dict[str, Kind]:
        found = {name: _kind_of(function, name) for name in signature.parameters}
        return {name: kind for name, kind in found.items() if kind is not None}

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}() {error}") from None
        for name, (is_one, words) in kinds().items():
            if name in given and not is_one(given[name]):
                value = given[name]
                raise ArgumentError(f"{name} is {shown(value)}; pass {words}{_limit(value)}.")
        return function(*args, **options)

    return call  # type: ignore[return-value]


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "AEIOaeio" else f"a {noun}"


def shown(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{_a(type(value).__name__)} of shape {value.shape}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a number with too many digits
        text = _a(type(value).__name__)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _is_number(value: Any) -> bool:
    if isinstance(value, Integral) or not isinstance(value, Real):
        return _is_whole(value)
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _is_whole(value: Any) -> bool:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and -_MOST <= int(value) < _MOST


def _limit(value: Any) -> str:
    is_large = isinstance(value, Integral) and not -_MOST <= int(value) < _MOST
    return " of at most 18 digits" if is_large else ""


def _is_list(value: Any) -> bool:
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return is_list and getattr(value, "ndim", 1) == 1


_SIMPLE: dict[Any, Kind] = {
    NoneType: (lambda value: value is None, "None"),
    bool: (
        lambda value: (
            isinstance(value, bool) or (str(getattr(value, "dtype", "")) == "bool" and value.shape == ())
        ),
        "True or False",
    ),
    int: (_is_whole, "an integer"),
    float: (_is_number, "a number"),
    str: (lambda value: isinstance(value, str), "text"),
    bytes: (lambda value: isinstance(value, bytes), "bytes"),
}
_NAMED: dict[Any, str] = {os.PathLike: "a path", Mapping: "a dictionary", dict: "a dictionary"}
_LISTS = (Sequence, Iterable, Collection, list, tuple, set)


def _kind_of(function: Callable[..., Any], name: str) -> Kind | None:
    """Return the kind of an annotation; None for annotations that are not checked."""
    annotation = function.__annotations__.get(name)
    if annotation is None or inspect.signature(function).parameters[name].kind in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ):
        return None
    holder = SimpleNamespace(__annotations__={name: annotation})
    try:
        return _kind(get_type_hints(holder, getattr(function, "__globals__", {}))[name])
    except NameError:  # a type imported only for mypy
        return None


def _kind(annotation: Any) -> Kind | None:
    origin, parts = get_origin(annotation), get_args(annotation)
    found: Kind | None = _SIMPLE.get(annotation)
    if origin is Literal:
        found = _one_of(parts)
    elif origin in (Union, UnionType):
        found = _any_of([_kind(part) for part in parts])
    elif inspect.isclass(origin or annotation) and found is None:
        found = _instance(origin or annotation, parts)
    return found


def _one_of(words: tuple[Any, ...]) -> Kind:
    """Return the kind of words; their reader refuses unknown words."""
    return (
        lambda value: isinstance(value, str) or (value is None and None in words),
        " or ".join(map(repr, words)),
    )


def _any_of(kinds: list[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    return lambda value: any(is_one(value) for is_one, _ in known), " or ".join(words for _, words in known)


def _instance(kind: type, parts: tuple[Any, ...]) -> Kind | None:
    if kind in _LISTS:
        element = next((_SIMPLE[part] for part in parts[:1] if part in _SIMPLE), None)
        if element is None:
            return _is_list, "a list"
        is_one, words = element

        def is_list_of(value: Any) -> bool:
            if isinstance(value, Iterator):  # checking the elements would consume it
                return kind is Iterable
            return _is_list(value) and all(map(is_one, value))

        return is_list_of, f"a list, each {words}"
    found = _NAMED.get(kind)
    if found is None and not kind.__module__.startswith("labelweave"):
        return None
    return lambda value: isinstance(value, kind), found or _a(kind.__name__)
