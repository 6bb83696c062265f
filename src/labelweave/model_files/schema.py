"""The schema of a class in a model file: names and fields, checked before an object is created.

A class is registered with the fields of its state::

    @storable("LinearScorer", {"intercept_": Numbers("L"), "coef_": Numbers("L d"), "kernel": KERNEL})

A letter in a shape is a length that must be equal everywhere in the table, ``_`` any length.
Unknown names are refused, and so are numbers that are not finite or too large for products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, NoReturn, Protocol

import numpy as np
import scipy.sparse as sp

from labelweave.model_files.safe_file import ModelFileError

MULTIPLE, FREE = 1024, 2**25  # memory that a file may request, times its bytes, at least 32 MB
LARGEST = 1e100  # so that products of three numbers are finite
_LARGEST_SINGLE = 4e18  # in float32; above nanoseconds since 1970
_MOST = 2**31
MOST_LABELS = 2**22
_AT_ONCE = 2**20  # numbers checked together

Sizes = dict[str, int]
Relations = Mapping[str, Callable[[Any], bool]]

_checks_numbers: ContextVar[bool] = ContextVar("_checks_numbers", default=True)


@contextmanager
def unread_numbers() -> Iterator[None]:
    """Skip the numbers of float arrays inside; types and shapes are checked."""
    token = _checks_numbers.set(False)
    try:
        yield
    finally:
        _checks_numbers.reset(token)


def reads_numbers() -> bool:
    return _checks_numbers.get()


class Field(Protocol):
    """The allowed values of a name."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Raise a ModelFileError for a value that is not allowed; record and compare lengths by letter."""
        ...


def refuse(where: str, allowed: str) -> NoReturn:
    raise ModelFileError(f"its {where} is not {allowed}.")


def is_bounded(needed: int, stored: int) -> bool:
    """Return whether the memory is small relative to the stored bytes: see ``MULTIPLE`` and ``FREE``."""
    return needed <= max(FREE, MULTIPLE * stored)


def same_length(letter: str, length: int, where: str, sizes: Sizes) -> None:
    """Record the length of a letter, or compare it; ``_`` stands for any."""
    if letter == "_":
        return
    known = int(letter) if letter.isdigit() else sizes.setdefault(letter, length)
    if known != length:
        raise ModelFileError(f"its {where} has {length} where {known} are expected.")


@dataclass(frozen=True)
class Numbers:
    """An array of finite numbers.

    shape: the letters of its lengths, with spaces between.
    kinds: NumPy's codes of the allowed kinds of types.
    sparse: whether CSR and CSC arrays are allowed too.
    """

    shape: str
    kinds: str = "f"
    least: float = -LARGEST
    most: float = LARGEST
    infinite: bool = False
    may_be_nan: bool = False
    sparse: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        is_sparse = self.sparse and sp.issparse(value)
        numbers = value.data if is_sparse else value
        if not is_sparse and type(value) is not np.ndarray:
            refuse(where, "an array")
        is_wide = numbers.dtype.str == "<u8" and self.kinds == "iu"  # not compatible with signed integers
        if numbers.dtype.kind not in self.kinds or numbers.dtype.str == "<f2" or is_wide:
            refuse(where, f"an array of an allowed type ({numbers.dtype})")
        letters = self.shape.split()
        if len(value.shape) != len(letters):
            refuse(where, f"an array of {len(letters)} dimension(s)")
        for letter, length in zip(letters, value.shape, strict=True):
            same_length(letter, length, where, sizes)
        if numbers.dtype.kind != "f" or reads_numbers():
            self._check_range(numbers.reshape(-1), where)

    def _check_range(self, numbers: Any, where: str) -> None:
        largest = _LARGEST_SINGLE if numbers.dtype.str == "<f4" else np.inf
        least, most = max(self.least, -largest), min(self.most, largest)
        if self.infinite:
            least, most = -np.inf, np.inf
        for start in range(0, numbers.size, _AT_ONCE):
            block = numbers[start : start + _AT_ONCE]
            block = block[~np.isnan(block)] if self.may_be_nan else block
            if not block.size:
                continue
            if not (block.min() >= least and block.max() <= most):  # false for NaN
                refuse(where, f"all numbers from {least:g} to {most:g}")


def places(shape: str) -> Numbers:
    return Numbers(shape, "iu", 0, 2.0**62)


@dataclass(frozen=True)
class Texts:
    """An array of text."""

    shape: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not np.ndarray or value.dtype.kind != "U" or value.ndim != 1:
            refuse(where, "a list of texts")
        same_length(self.shape, len(value), where, sizes)


@dataclass(frozen=True)
class Number:
    """A finite number; optionally an integer, and the length of a letter."""

    least: float = -LARGEST
    most: float = LARGEST
    is_whole: bool = False
    letter: str = ""
    may_be_nan: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        value = value.item() if isinstance(value, np.number) else value  # the limits overflow float32
        is_number = isinstance(value, Integral if self.is_whole else Real) and not isinstance(value, bool)
        if not is_number:
            refuse(where, "an integer" if self.is_whole else "a number")
        if not (self.least <= value <= self.most or (self.may_be_nan and np.isnan(value))):
            refuse(where, f"a number from {self.least:g} to {self.most:g}")
        if self.letter:
            same_length(self.letter, int(value), where, sizes)


def count(letter: str = "", least: int = 0, most: float = _MOST) -> Number:
    return Number(least, most, is_whole=True, letter=letter)


MEASURED = Number(-np.inf, np.inf, may_be_nan=True)
"""A number that is reported and not computed with."""


@dataclass(frozen=True)
class OneOf:
    """One of some values, of the same type."""

    values: tuple[Any, ...]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not any(type(value) is type(one) and value == one for one in self.values):
            refuse(where, f"one of {', '.join(map(repr, self.values))}")


FLAG = OneOf((True, False))


@dataclass(frozen=True)
class Made:
    """A previously created object of a class; some of its attributes are lengths, by their letters."""

    kind: type | tuple[type, ...]
    lengths: Mapping[str, str] = field(default_factory=dict)

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, self.kind):
            kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
            refuse(where, f"an object of {' or '.join(kind.__name__ for kind in kinds)}")
        for letter, name in self.lengths.items():
            same_length(letter, getattr(value, name), where, sizes)


@dataclass(frozen=True)
class Text:
    """A text."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not str:
            refuse(where, "a text")


TEXT = Text()


class Anything:
    """A value that is checked where it is used."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        return


class Maybe:
    """None, or a value that one of some other fields allows."""

    def __init__(self, *fields: Field, none: bool = True) -> None:
        self.fields, self.none = fields, none

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if value is None and self.none:
            return
        for one in self.fields[:-1]:
            found = dict(sizes)
            try:
                one.check(value, where, found)
            except ModelFileError:
                continue
            sizes.update(found)
            return
        self.fields[-1].check(value, where, sizes)


LEAST_WIDTH, LARGEST_WIDTH = 5e-324, 1e300  # larger integers do not convert to float
WIDTH = Maybe(Number(LEAST_WIDTH, LARGEST_WIDTH), OneOf(("scale", "auto")), none=False)
"""The width of a kernel, or the rule that estimates it from data."""


@dataclass(frozen=True)
class Items:
    """A list or tuple of values that a field allows; optionally with the length of a letter."""

    item: Field
    letter: str = ""
    kind: type | tuple[type, ...] = list
    least: int = 0

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, self.kind):
            refuse(where, "a list")
        items: Any = value
        if len(items) < self.least:
            refuse(where, f"a list of {self.least} or more")
        if self.letter:
            same_length(self.letter, len(items), where, sizes)
        for number, one in enumerate(items):
            self.item.check(one, f"{where}[{number}]", sizes)


@dataclass(frozen=True)
class Names:
    """A list of texts that becomes an array, in which each is as wide as the longest."""

    letter: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        Items(TEXT, self.letter).check(value, where, sizes)
        lengths = [len(text) for text in value]
        if not is_bounded(4 * len(lengths) * max(lengths, default=0), sum(lengths) + len(lengths)):
            refuse(where, "a list of texts of about the same length")


@dataclass(frozen=True)
class Named:
    """A dictionary with any names and values that a field allows."""

    item: Field

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not dict:
            refuse(where, "a dictionary")
        for name, one in value.items():
            self.item.check(one, f"{where}.{name}", sizes)


@dataclass(frozen=True)
class Optional:
    """A field of a record whose name may be missing."""

    item: Field

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        self.item.check(value, where, sizes)


class Record:
    """A dictionary with exactly the names of some fields.

    relations: checks that get the dictionary and return whether its parts are consistent, by description.
    """

    def __init__(self, fields: Mapping[str, Field], relations: Relations | None = None) -> None:
        self.fields, self.relations = fields, relations or {}

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not dict:
            refuse(where, "a dictionary")
        unknown = next((name for name in value if name not in self.fields), None)
        if unknown is not None:
            raise ModelFileError(f"its {where} has {unknown!r}, which is not a known name.")
        for name, one in self.fields.items():
            if name in value:
                one.check(value[name], f"{where}.{name}", sizes)
            elif not isinstance(one, Optional):
                raise ModelFileError(f"its {where} has no {name!r}.")
        for said, holds in self.relations.items():
            if not holds(value):
                raise ModelFileError(f"its {where} is inconsistent: {said}.")


def stored_fields(cls: type) -> dict[str, Field]:
    tables = [vars(base).get("_stored", {}) for base in reversed(cls.__mro__)]
    return {name: one for table in tables for name, one in table.items()}
