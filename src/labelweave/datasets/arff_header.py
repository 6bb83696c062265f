"""The header of an ARFF file: its relation and its attributes.

The format is that of WEKA (https://waikato.github.io/weka-wiki/formats_and_processing/arff/),
with the ``hierarchical`` attribute type of Clus.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from labelweave.datasets.data_file import DataFileError, PathLike, finite_number

# possessive quantifiers: no backtracking, so the time is linear in the length of a line
QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_NAME = re.compile(rf"({QUOTED}|[^\s{{]++)\s*+(.*+)")
_CELL = re.compile(rf"[ \t]*+({QUOTED}|[^,'\"]*+)[ \t]*+(,|\Z)")
_YES_AND_NO = (("1", "0"), ("1.0", "0.0"), ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"))
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_NOMINAL = re.compile(rf"\{{((?:{QUOTED}|[^'\"}}])*+)\}}")
# bounds and weights of attributes, and comments, are ignored, as in WEKA
_TYPE = re.compile(
    r"(?:(numeric|real|integer|int|float|double|continuous)|(string|date))\b"
    r"(?!\s*\w)[^\[({%]*(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\})?\s*(?:%.*)?",
    re.IGNORECASE,
)
_WORD = re.compile(rf"{QUOTED}|[^\s,'\"]++")
_PLAIN_NAME = re.compile(r"[^\s\\'\",{}%?@\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Attribute:
    """One column of an ARFF file, with the values of a nominal one or the nodes of a hierarchical one."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int = field(compare=False)

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """Return the numbers of the nominal values if they are 0 and 1, or yes and no; otherwise None."""
        words = [value.lower() for value in self.values]
        yes = next((pair[0] for pair in _YES_AND_NO if words and set(words) <= set(pair)), None)
        return None if yes is None else tuple(float(word == yes) for word in words)

    @cached_property
    def is_binary(self) -> bool:
        return self.values == ("0", "1")

    @cached_property
    def is_direct(self) -> bool:
        """Whether cells hold numbers: a numeric attribute, or one with the values 0 and 1."""
        return self.kind == "numeric" or self.is_binary

    @cached_property
    def codes(self) -> dict[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    def parse(self, cell: str) -> float:
        """Parse a cell: its number, the code of its nominal value, or NaN for ``?``."""
        cell = cell.strip(" \t")
        if cell == "?":
            return math.nan
        if self.kind == "numeric":
            return finite_number(cell)
        if self.kind == "text":
            return 0.0
        value = unquoted(cell)
        if value not in self.codes:
            shown = ", ".join(self.values[:10]) + (", ..." if len(self.values) > 10 else "")
            raise ValueError(f"one of {{{shown}}}")
        return float(self.codes[value])


@dataclass(frozen=True)
class ArffHeader:
    """The relation name, unquoted, and the attributes of an ARFF file.

    line: the line of ``@data``.
    relation_line: the line of the relation; 0 without one.
    outputs: the attributes that KEEL's line ``@outputs`` names.
    repeated: pairs of columns with the same name in the file; the second is renamed here.
    """

    relation: str
    attributes: tuple[Attribute, ...]
    line: int
    relation_line: int = 0
    repeated: tuple[tuple[int, int], ...] = ()
    outputs: tuple[str, ...] = ()


def read_header(path: PathLike, lines: Iterator[tuple[int, str]]) -> ArffHeader:
    """Read the header, leaving the iterator at the first line after ``@data``."""
    relation, relation_line, attributes, number, outputs = "", 0, list[Attribute](), 0, list[str]()
    for number, line in lines:
        keyword, *rest = line.strip().split(None, 1) or [""]
        text = rest[0] if rest else ""
        match keyword.lower():
            case "@data":
                if not attributes:
                    raise DataFileError(path, None, "no attributes", "one line @attribute per column")
                distinct, repeated = _distinct(attributes)
                return ArffHeader(relation, distinct, number, relation_line, repeated, tuple(outputs))
            case "@relation":
                relation, relation_line = unquoted(text), number
            case "@attribute":
                attributes.append(_attribute(path, number, text))
            case "@inputs" | "@input":
                continue
            case "@outputs" | "@output":
                outputs += map(unquoted, split_cells(path, number, text))
            case other if other and not other.startswith("%"):
                known = "@relation, @attribute, @data or a comment"
                raise DataFileError(path, number, f"{line[:40]!r}", known)
    raise DataFileError(path, number, "the end of the file", "a line @data followed by the rows")


def _distinct(attributes: list[Attribute]) -> tuple[tuple[Attribute, ...], tuple[tuple[int, int], ...]]:
    """Rename attributes with duplicate names; return also the pairs of columns with the same name."""
    taken, first, repeated = {attribute.name for attribute in attributes}, dict[str, int](), []
    numbers = count(2)
    for column, attribute in enumerate(attributes):
        earlier = first.setdefault(attribute.name, column)
        if earlier == column:
            continue
        copies = (f"{attribute.name} ({number})" for number in numbers)
        name = next(copy for copy in copies if copy not in taken)
        taken.add(name)
        attributes[column] = replace(attribute, name=name)
        repeated.append((earlier, column))
    return tuple(attributes), tuple(repeated)


def warn_of_repeated(path: PathLike, header: ArffHeader) -> None:
    if header.repeated:
        last = header.attributes[header.repeated[-1][1]]
        said = f"{len(header.repeated)} attributes repeat names of others; the last is {last.name!r} here"
        warnings.warn(f"{path}:{last.line}: {said}", UserWarning, stacklevel=2)


def _attribute(path: PathLike, line: int, text: str) -> Attribute:
    match = _NAME.match(text)
    if match is None:
        raise DataFileError(path, line, "an attribute without a name", "@attribute name type")
    name, kind = unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        closed = _NOMINAL.match(kind)
        body = kind[1:].rpartition("}")[0] if closed is None else closed[1]
        if "}" not in kind:
            raise DataFileError(path, line, "a nominal list without a closing brace", "{value,value,...}")
        return Attribute(name, "nominal", _listed(path, line, body), line)
    known_type = _TYPE.fullmatch(kind)
    if known_type is not None:
        return Attribute(name, "numeric" if known_type[1] else "text", (), line)
    word, _, rest = kind.split("%")[0].partition(" ")
    if word.lower() == "hierarchical":
        return Attribute(name, "hierarchical", _listed(path, line, rest), line)
    known = "numeric, real, integer, string, date, a nominal list {a,b} or hierarchical"
    raise DataFileError(path, line, f"the type {kind[:40]!r} of attribute {name!r}", known)


def _listed(path: PathLike, line: int, text: str) -> tuple[str, ...]:
    values = [unquoted(cell) for cell in split_cells(path, line, text)]
    if "" in values:
        raise DataFileError(path, line, "an empty value", "values separated by commas")
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) < len(values):
        said = f"{len(values) - len(distinct)} of {len(values)} listed values are duplicates, and count once"
        warnings.warn(f"{path}:{line}: {said}", UserWarning, stacklevel=2)
    return distinct


def split_cells(path: PathLike, line: int, text: str) -> list[str]:
    """Split at commas outside quotation marks; keep the marks and strip the spaces around cells."""
    if "'" not in text and '"' not in text:
        return [cell.strip(" \t") for cell in text.split(",")]
    cells, position = [], 0
    while match := _CELL.match(text, position):
        cells.append(match[1].rstrip(" \t"))
        position = match.end()
        if not match[2]:
            return cells
    raise DataFileError(path, line, repr(text[position:][:40]), "quotation marks around whole cells only")


def row_cells(path: PathLike, line: int, text: str, width: int) -> list[str]:
    """Split a row at commas, or also at tabs and spaces where that yields the expected number of cells."""
    cells, fault = list[str](), None
    try:
        cells = split_cells(path, line, text)
    except DataFileError as error:
        fault = error
    words = [] if len(cells) == width else _WORD.findall(text)
    if len(words) == width:
        return words
    if fault is not None:
        raise fault
    if len(cells) != width:
        raise DataFileError(path, line, f"a row of {len(cells)} cells", f"{width}, one per column")
    return cells


def unquoted(text: str) -> str:
    """Remove the quotation marks and backslashes from a name or value."""
    text = text.strip()
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])


def quoted(name: str) -> str:
    """Quote a name or value if necessary."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, f"\\{letter}")
    return f"'{escaped}'"
