"""Labels as cells of text write them: lists in brackets, objects, names with a separator between them.

What one cell shows by itself, as ``['red', 'green']`` does, is read wherever it stands.  What only many cells
show together, that commas stand between labels, is found once and kept as a separator.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple

from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.label_names import as_text

PLACES = "[0,1]"
"""The separator of cells that hold 0 or 1 for each label, as ``[0, 1, 0]``."""
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
"""What stands for 1 and 0 in columns of one label, in lower case."""
NAMED_BY = ("name", "label", "title", "tag", "value", "text", "id")
"""What names a label that is an object; the first that all have."""

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NAME = rf"{_QUOTED}|-?(?:0|[1-9]\d*)(?:\.\d*)?"
_COMMAS = rf"\s*(?:(?:{_NAME})\s*(?:,\s*(?:{_NAME})\s*)*,?\s*)?"
_LIST = re.compile(rf"[\[{{(]{_COMMAS}[\]}})]", re.ASCII | re.DOTALL)
_NUMBERS = re.compile(r"\([-+\d.,\s]+\)")  # of places
_BEGINNINGS = frozenset("[{('\"fstlnaIc")
_NUMPY = re.compile(rf"\[\s*(?:{_NAME})(?:\s+(?:{_NAME}))+\s*\]", re.ASCII | re.DOTALL)
_BARE = re.compile(rf"(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))+", re.ASCII | re.DOTALL)
_CALL = re.compile(
    r"(?:frozenset|set|tuple|list|(?:np\.)?array|Index|c)\((.*?)(?:,\s*dtype=[^()]*)?\)", re.DOTALL
)
_BEGIN = re.compile(r"""[\[({]\s*['"]""", re.ASCII)
_OBJECT = re.compile(r"\{\s*['\"\d].*:|[\[(]\s*[{\[(]", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNCLEAR = "a list of names, or of objects with a name, label, title or id"

_CLOSED_BY = {"[": "]", "{": "}", "(": ")", "<": ">", "'": "'", '"': '"'}
_SIGN = r"(?:-?1|0)(?:\.0*)?"
_ROW = re.compile(rf"[\[(]?\s*{_SIGN}(?:(?:\s*[,;|]\s*|\s+){_SIGN})+\s*[\])]?", re.ASCII)
_STRONG = ("\n", "\t", ";", "||", "|", "//", "\x1f", "；", "、", "，", "｜")  # seldom in a name
_WEAK = ("::", "/", ">", "+", "&", ":", " ")
_OF_PATHS = ("/", ">", "::", "|", ":")  # that paths have as well
_PATH_SIGNS = {
    **{sign: rf"\s*{re.escape(sign)}\s*" for sign in ("->", ">>", ">", "→", "»", "::", "|", "\\", "/", "--")},
    ":": r":(?=\S)",
    ".": r"(?<=[^\d\s])\.(?=\S)|(?<=\S)\.(?=[^\d\s])",
}
_NUMBERED = re.compile(r"[A-Za-z]?\d+(?:\.\w+)*")
SEPARATORS = (*_STRONG[:8], ",", *_STRONG[8:], *_WEAK)
_NOTHING = frozenset({"", "?", "na", "nan", "none", "null", "[]", "{}", "()", "set()"})
_MOST_CELLS = 20_000
_LEAST_SHARE = {True: 0.15, False: 0.25}  # of cells with a separator that is seldom in a name, and others
_MANY = 10  # cells with a separator, which say more
_FEW = 3  # cells with a separator, of which fewer say nothing


def written_list(text: str) -> list[str] | None:
    """Read a list of names in quotes and of numbers, or of objects; None where a text is no such list.

    Lists of Python, JSON and NumPy, sets and tuples are read, in brackets or none: ``'red', 'green'``.
    Raises ValueError if a text begins like one and cannot be read.
    """
    if not text or text[0] not in _BEGINNINGS:
        return None
    called = _CALL.fullmatch(text) if text[-1] == ")" else None
    if called is not None:
        inner = called[1].strip()
        text = inner if inner[:1] in ("[", "{", "(") else f"[{inner}]"
    found: Any = None
    if _NUMPY.fullmatch(text):
        found = _plain(f"[{','.join(one[0] for one in re.finditer(_NAME, text[1:-1], re.DOTALL))}]")
    elif is_in_brackets(text) and _LIST.fullmatch(text) and not _NUMBERS.fullmatch(text):
        found = _plain(f"[{text[1:-1]}]")
    elif _BARE.fullmatch(text):
        found = _plain(f"[{text}]")
    elif _OBJECT.match(text) and text[-1] in "]})":
        found = _plain(text, is_sure=False)
        if found is None:
            return None
    elif _BEGIN.match(text) and is_in_brackets(text) and text[0] != "{":
        raise ValueError("a list of names in quotes with commas between them")
    if found is None:
        return None
    names = names_of(found)
    if any(map(_SURROGATE.search, names)):
        raise ValueError("names without half a pair of surrogates, which is no character")
    return names


def _plain(text: str, *, is_sure: bool = True) -> Any:
    """Read what JSON or Python write."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of backslashes that escape nothing
            return ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        if is_sure:
            raise ValueError("names in quotes without broken escapes") from None
        return None


def is_in_brackets(text: str) -> bool:
    return len(text) > 1 and text[0] in "[{(" and text[-1] == _CLOSED_BY[text[0]]


def names_of(value: Any) -> list[str]:
    """List the names of labels that a list or an object of JSON or Python holds.

    Of an object they are its values, or its keys where the values are numbers or say yes and no.
    Raises ValueError if it is not clear what the names are.
    """
    if isinstance(value, Mapping):
        return _names_of_object(value)
    entries = sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)
    if not any(isinstance(entry, Mapping) for entry in entries):
        return [*map(_name, entries)]
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise ValueError(_UNCLEAR)
    key = _naming_key(entries)
    if key is None:
        raise ValueError(_UNCLEAR)
    return [_name(_lower(entry)[key]) for entry in entries]


def _name(entry: Any) -> str:
    if isinstance(entry, (str, int, float)) and not isinstance(entry, bool) and not is_missing(entry):
        return as_text(entry).strip()
    raise ValueError(_UNCLEAR)


def _lower(entry: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in entry.items()}


def _naming_key(entries: Sequence[Mapping[Any, Any]], keys: Sequence[str] = NAMED_BY) -> str | None:
    """Find what names each of several objects."""
    lower = [*map(_lower, entries)]
    named = (key for key in keys if all(isinstance(entry.get(key), (str, int, float)) for entry in lower))
    return next(named, None)


def _names_of_object(value: Mapping[Any, Any]) -> list[str]:
    values = list(value.values())
    key = _naming_key([value], NAMED_BY[:3]) or ("id" if [*_lower(value)] == ["id"] else None)
    if key is not None and isinstance(_lower(value)[key], (str, int)):
        return [_name(_lower(value)[key])]
    if all(isinstance(one, str) for one in values):
        truth = [TRUTH.get(one.strip().lower()) for one in values]
        if None in truth or not values:
            return [name for one in values if (name := one.strip())]
        return [_name(key) for key, is_there in zip(value, truth, strict=True) if is_there]
    if all(one is None for one in values):
        return [*map(_name, value)]
    if all(isinstance(one, (int, float)) for one in values):
        if any(one % 1 for one in values) and all(0 <= one <= 1 for one in values):
            raise ValueError("names, or 0 and 1 for each; probabilities go in a column a label")
        return [_name(key) for key, count in value.items() if count > 0]
    if all(isinstance(one, Mapping) for one in values) or (len(values) == 1 and isinstance(values[0], list)):
        return names_of(values[0] if isinstance(values[0], list) else values)
    raise ValueError(_UNCLEAR)


class _Pattern(NamedTuple):
    """A separator, and what stands around cells or names, if anything."""

    opened: str
    between: str
    closed: str


@lru_cache(maxsize=64)
def _pattern(separator: str) -> _Pattern:
    first, last = separator[0], separator[-1]
    if len(separator) > 2 and _CLOSED_BY.get(first) == last:  # [,] and ','
        return _Pattern(first, separator[1:-1], last)
    if len(separator) == 2 and _CLOSED_BY.get(last) == first and first != last:  # ><
        return _Pattern(last, separator, first)
    return _Pattern("", separator, "")


def cut(text: str, separator: str) -> list[str]:
    """Cut the text of a cell into names, none of them empty.

    separator: a pair such as ``><`` takes the brackets at both ends off, one in brackets, ``[,]``, those of
    cells, and one in quotes, ``','``, those of names.
    """
    opened, between, closed = _pattern(separator)
    text = text.strip()
    if opened and opened not in "'\"":
        text = text.removeprefix(opened).removesuffix(closed)
    if opened and '"' in text and len(between) == 1:
        parts = [one[0] for one in re.finditer(rf"(?:{_QUOTED}|[^{re.escape(between)}'\"]|['\"])+", text)]
    else:
        parts = text.split(between) if between != " " else text.split()
    names = [part.strip() for part in parts]
    if opened:
        names = [_bare(name) for name in names]
    return [name for name in names if name]


def _bare(name: str) -> str:
    """Take quotes off a name."""
    return name[1:-1].strip() if len(name) > 1 and name[0] in "'\"" and name[-1] == name[0] else name


def places_of(cell: Any) -> list[float] | None:
    """Read 0 or 1 for each label, in a text or a list; None where it is something else."""
    if isinstance(cell, str):
        text = cell.strip().lower().replace("true", "1").replace("false", "0")
        cell = [*map(float, re.findall(_SIGN, text))] if _ROW.fullmatch(text) else None
    if not isinstance(cell, (list, tuple)) or len(cell) < 2:
        return None
    is_row = all(isinstance(one, (int, float)) for one in cell) and set(cell) <= {0, 1, -1}
    return None if not is_row or {0, -1} <= set(cell) else [*map(float, cell)]


class Layout(NamedTuple):
    """How cells of text write labels.

    separator: what stands between them; None where each is one label.
    example: a cell with a separator.
    doubt: None if all is clear; else what stands in cells that are taken whole, and why.
    """

    separator: str | None
    example: str = ""
    doubt: str | None = None
    is_path: bool = False

    def words(self, where: str) -> str | None:
        """Say what was done with cells, in the words of the command line; None where there is nothing to say.

        where: the cells, such as "the cells of column 'tags'".
        """
        example = f"such as {self.example[:40]!r}"
        if self.separator == PLACES:
            return f"{where} hold 0 or 1 for each label, {example}, and are read as columns"
        if self.separator is not None:
            opened, between, closed = _pattern(self.separator)
            around = f" inside {opened!r} and {closed!r}" if opened and between[0] != closed else ""
            return f"{where} list labels, {example}, and are cut at {between!r}{around}"
        if self.doubt is None:
            return None
        seem = "look like paths" if self.is_path else f"may be lists with {self.doubt!r} between labels"
        return f"{where} {seem}, {example}, and each is taken as it stands"


def in_halves(n_rows: int) -> list[slice]:
    """Return all rows, the first half of them and the second."""
    return [slice(None), slice(n_rows // 2), slice(n_rows // 2, None)]


def found_layout(parts: Sequence[Iterable[str]]) -> Layout:
    """Find how cells of text write labels, by how parts of them come again in others.

    parts: the cells of all rows, of the first half and of the second; what both do not show is not taken.
    """
    whole, *halves = map(_distinct, parts)
    found = _layout(whole)
    if found.separator is None or found.separator not in SEPARATORS:
        return found
    said = {_evidence(half, found.separator) for half in halves}
    return found if said <= {"for", "few"} else Layout(None, found.example, found.separator)


def _distinct(cells: Iterable[str]) -> list[str]:
    names = dict.fromkeys(cell.strip() for cell in cells)
    kept = [name for name in names if name.lower() not in _NOTHING]
    step = -(-len(kept) // _MOST_CELLS) or 1
    return kept[::step]


def is_list(text: str) -> bool:
    """Say whether a cell is a list by itself, readable or not."""
    try:
        return written_list(text.strip()) is not None
    except ValueError:  # which its reader says
        return True


def _layout(names: Sequence[str]) -> Layout:
    """Find how distinct cells write labels, whatever halves of them show."""
    rows = [*map(places_of, names[:1])]
    if rows[:1] not in ([], [None]):
        rows = [*map(places_of, names)]
        if None not in rows and len({len(row) for row in rows if row}) == 1:
            return Layout(PLACES, names[0])
    quotes = {name[0] for name in names if name[0] in "'\"" and name[-1] == name[0]}
    if len(quotes) == 1 and all(name[0] in quotes for name in names) and any(map(_BARE.fullmatch, names)):
        return Layout(",".join([*quotes] * 2), min(filter(_BARE.fullmatch, names)))
    are_lists = [*map(is_list, names)]
    if any(are_lists) and (all(are_lists) or not all(map(is_in_brackets, names))):
        return Layout(None)
    return _in_brackets(names) or _separated(names)


def _in_brackets(names: Sequence[str]) -> Layout | None:
    """Find lists in brackets whose names are not quoted, and names in brackets of their own."""
    opened = next((name[0] for name in names if name[0] in "[{(<"), "")
    closed = _CLOSED_BY.get(opened, "")
    inside = [name for name in names if opened and name[0] == opened and name[-1] == closed]
    if len(inside) < len(names) / 2:
        return None
    pairs = [name for name in inside if re.search(rf"{re.escape(closed)}[\s,;]*{re.escape(opened)}", name)]
    if pairs:
        return Layout(closed + opened, min(pairs)) if len(inside) == len(names) else None
    bare = [name[1:-1] for name in inside]
    lists = [name for name in inside if "," in name]
    is_cut = opened in "[{" or (opened == "(" and _evidence(bare, ",") == "for")
    if is_cut and lists and lists == [name for name in names if "," in name]:
        return Layout(f"{opened},{closed}", min(lists))
    found = _separated(bare).separator if len(inside) == len(names) and opened != "<" else None
    return (
        None
        if found is None
        else Layout(f"{opened}{found}{closed}", min(name for name in inside if found in name))
    )


def _separated(names: Sequence[str]) -> Layout:
    doubts = list[Layout]()
    for separator in SEPARATORS:
        said = _evidence(names, separator)
        if said in ("for", "unclear", "path"):
            example = min(name for name in names if separator in name)
            if said == "for":
                return Layout(separator, example)
            doubts.append(Layout(None, example, separator, said == "path"))
    return doubts[0] if doubts else Layout(None)


Evidence = Literal["for", "against", "path", "unclear", "few"]


def _evidence(names: Sequence[str], separator: str) -> Evidence:
    """Say whether a separator stands between labels, or belongs to names such as "New York" and "and/or".

    Parts of lists come again in other lists, and at other places: first, later, alone.  What comes first in
    names of two words, such as "New", does not come later, and parts of paths stay below what is above them.
    """
    lists = [name for name in names if separator in name]
    if not lists or len(lists) < _LEAST_SHARE[separator in _STRONG] * len(names):
        return "against"
    if separator in ("//", *_WEAK) and _is_of_names(lists, separator):
        return "against"
    found = [parts for name in lists if len(parts := cut(name, separator)) > 1]
    alone = {name for name in names if separator not in name}
    counts = Counter(part for parts in found for part in set(parts)) + Counter(alone)
    first, later = {parts[0] for parts in found}, {part for parts in found for part in islice(parts, 1, None)}
    before = defaultdict[str, set[str]](set)
    for parts in found:
        for above, part in pairwise(parts):
            before[part].add(above)
    n_first, n_later = len(found), sum(map(len, found)) - len(found)
    if not n_later:
        return "against"
    again = sum(counts[part] > 1 for parts in found for part in parts) / (n_first + n_later)
    moving_first = sum(parts[0] in later or parts[0] in alone for parts in found) / n_first
    is_moving = (part in first or part in alone for parts in found for part in islice(parts, 1, None))
    moving_later = sum(is_moving) / n_later
    moving = min(moving_first, moving_later)
    repeated = [part for part in later if counts[part] > 1]
    n_below_one = sum(len(before[part]) == 1 for part in repeated)
    is_path = moving_later <= 0.05 and n_below_one >= 0.8 * len(repeated) and again >= 0.2
    return _judged(separator, len(found), again, moving, is_path=is_path)


def _is_of_names(lists: Sequence[str], separator: str) -> bool:
    """Say whether a sign is part of names: of addresses, dates, times, "C++" and the like."""
    if any("://" in name for name in lists):
        return separator != " "
    parts = [name.split(separator) for name in lists] if separator != " " else []
    n_open = sum(not all(part.strip() for part in some) for some in parts)
    n_numbers = sum(all(part.strip().isdigit() for part in some) for some in parts)
    return 10 * n_open > len(lists) or 2 * n_numbers > len(lists)


def _judged(separator: str, n_lists: int, again: float, moving: float, *, is_path: bool) -> Evidence:
    """Weigh how many parts come again, and how many of them at other places."""
    if is_path and separator in _OF_PATHS:
        return "path" if n_lists >= _FEW else "few"
    if separator in _STRONG:
        return "for" if again >= 0.2 else "unclear"
    if separator == ",":
        is_for = again >= 0.3 and moving >= (0.15 if n_lists >= _MANY else 0.25)
    elif separator == " ":
        is_for = n_lists > _FEW and again >= 0.8 and moving >= 0.4
    else:
        least = (0.2, 0.35) if n_lists >= _MANY else (0.3, 0.7)
        is_for = n_lists >= _FEW and moving >= least[0] and again >= least[1]
    if is_for:
        return "for"
    return "unclear" if moving >= 0.15 and again >= 0.25 else "few" if n_lists < _FEW else "against"


def path_divider(names: Sequence[str]) -> re.Pattern[str]:
    """Find what divides paths such as "Food > Dairy" and "food/dairy"; a slash where nothing shows it."""
    are_codes = all(map(_NUMBERED.fullmatch, names))
    best, most = re.compile("/"), 0
    for sign in _PATH_SIGNS:
        divider = re.compile(r"\." if sign == "." and are_codes else _PATH_SIGNS[sign])
        paths = [parts for name in names if len(parts := divider.split(name)) > 1]
        firsts = Counter(parts[0] for parts in paths)
        firsts.update(set(names) & set(firsts))
        is_shared = any(count > 1 for count in firsts.values()) or (len(names) == 1 and sign != ".")
        if is_shared and all(part.strip() for parts in paths for part in parts) and len(paths) > most:
            best, most = divider, len(paths)
    return best
