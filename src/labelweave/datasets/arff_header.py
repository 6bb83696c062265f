"""The header of an ARFF file: its relation and its attributes.

The format is that of WEKA (https://waikato.github.io/weka-wiki/formats_and_processing/arff/),
with the ``hierarchical`` attribute type of Clus.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from labelweave.datasets.data_file import DataFileError, PathLike, finite_number

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"({QUOTED}|[^\s{{]+)\s*(.*)$")
_CELL = re.compile(rf"[ \t]*({QUOTED}|[^,'\"]*?)[ \t]*(,|$)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN_NAME = re.compile(r"[^\s\\'\",{}%?@\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Attribute:
    """One column of an ARFF file, with the values of a nominal one or the nodes of a hierarchical one."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int = field(compare=False)

    @cached_property
    def is_binary(self) -> bool:
        """Whether the values are 0 and 1, in this order."""
        return self.values == ("0", "1")

    @cached_property
    def is_direct(self) -> bool:
        """Whether a cell holds its own number: a numeric attribute, or one of values 0, 1."""
        return self.kind == "numeric" or self.is_binary

    @cached_property
    def codes(self) -> dict[str, int]:
        """The position of each nominal value."""
        return {value: code for code, value in enumerate(self.values)}

    def parse(self, cell: str) -> float:
        """Read a cell: its number, the code of its nominal value, NaN for ``?``; or say what is allowed."""
        cell = cell.strip(" \t")
        if cell == "?":
            return math.nan
        if self.kind == "numeric":
            return finite_number(cell)
        value = unquoted(cell)
        if value not in self.codes:
            shown = ", ".join(self.values[:10]) + (", ..." if len(self.values) > 10 else "")
            raise ValueError(f"one of {{{shown}}}")
        return float(self.codes[value])


@dataclass(frozen=True)
class ArffHeader:
    """The relation name, unquoted, and the attributes of an ARFF file."""

    relation: str
    attributes: tuple[Attribute, ...]
    line: int


def read_header(path: PathLike, lines: Iterator[tuple[int, str]]) -> ArffHeader:
    """Read the header, leaving the iterator at the first line after ``@data``."""
    relation, attributes, number = "", dict[str, Attribute](), 0
    for number, line in lines:
        keyword, *rest = line.strip().split(None, 1) or [""]
        text = rest[0] if rest else ""
        match keyword.lower():
            case "@data":
                if not attributes:
                    raise DataFileError(path, None, "no attributes", "a line @attribute for every column")
                return ArffHeader(relation, tuple(attributes.values()), number)
            case "@relation":
                relation = unquoted(text)
            case "@attribute":
                found = _attribute(path, number, text)
                first = attributes.setdefault(found.name, found)
                if first is not found:
                    again = f"a second attribute named {found.name!r} (the first is on line {first.line})"
                    raise DataFileError(path, number, again, "distinct names")
            case other if other and not other.startswith("%"):
                known = "@relation, @attribute, @data or a comment"
                raise DataFileError(path, number, f"{_short(line)!r}", known)
    raise DataFileError(path, number, "the end of the file", "a line @data followed by the rows")


def _attribute(path: PathLike, line: int, text: str) -> Attribute:
    match = _NAME.match(text)
    if match is None:
        raise DataFileError(path, line, "an attribute without a name", "@attribute name type")
    name, kind = unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        body, brace, _ = kind[1:].rpartition("}")
        if not brace:
            raise DataFileError(path, line, "a nominal list that is not closed", "{value,value,...}")
        return Attribute(name, "nominal", _listed(path, line, body), line)
    word, _, rest = kind.split("%")[0].partition(" ")
    if word.lower() in ("numeric", "real", "integer") and not rest.strip():
        return Attribute(name, "numeric", (), line)
    if word.lower() == "hierarchical":
        return Attribute(name, "hierarchical", _listed(path, line, rest), line)
    known = "numeric, real, integer, a nominal list {a,b} or hierarchical"
    raise DataFileError(path, line, f"the type {_short(kind)!r} of attribute {name!r}", known)


def _listed(path: PathLike, line: int, text: str) -> tuple[str, ...]:
    values = [unquoted(cell) for cell in split_cells(path, line, text)]
    if "" in values or len(set(values)) < len(values):
        expected = "distinct values with commas between them"
        raise DataFileError(path, line, "an empty or repeated value", expected)
    return tuple(values)


def split_cells(path: PathLike, line: int, text: str) -> list[str]:
    """Split at the commas outside quotation marks, keeping the marks but not the blanks around cells."""
    if "'" not in text and '"' not in text:
        return [cell.strip(" \t") for cell in text.split(",")]
    cells, position = [], 0
    while match := _CELL.match(text, position):
        cells.append(match[1])
        position = match.end()
        if not match[2]:
            return cells
    raise DataFileError(path, line, f"{_short(text[position:])!r}", "quotation marks only around whole cells")


def unquoted(text: str) -> str:
    """Take the quotation marks and backslashes off a name or value."""
    text = text.strip()
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])


def quoted(name: str) -> str:
    """Write a name or value with quotation marks if it needs them."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, f"\\{letter}")
    return f"'{escaped}'"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."
