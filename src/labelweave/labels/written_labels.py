"""Labels in text cells: lists in brackets, objects, names with a separator.

A cell that is unambiguous by itself, such as ``['red', 'green']``, is parsed anywhere.  What only many cells
together show, such as commas between labels, is detected once and stored as a separator.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from labelweave.foundation.frames import TRUTH
from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.label_names import as_text

PLACES = "[0,1]"
"""The separator of cells that hold 0 or 1 for each label, as ``[0, 1, 0]``."""

WEIGHTS = "a:0.9"
"""The doubt of cells that have numbers behind names, as ``a:0.9, b (10 %)``."""

OPENING = frozenset(" [{(<'\"")
"""What a list begins with, or blanks before it; or it ends with a bracket."""

_NAMED_BY = ("name", "label", "title", "tag", "value", "text", "id")  # the first key all objects have
_PLAIN = (str, int, float)
_CLOSED_BY = {"[": "]", "{": "}", "(": ")", "<": ">", "'": "'", '"': '"'}
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NAME = rf"(?:{_QUOTED}|-?(?:0|[1-9]\d*)(?:\.\d*)?)"
_FLAGS = re.ASCII | re.DOTALL
_LIST = re.compile(rf"[\[{{(]\s*(?:{_NAME}\s*(?:,\s*{_NAME}\s*)*,?\s*)?[\]}})]", _FLAGS)
_NUMPY = re.compile(rf"\[\s*{_NAME}(?:\s+{_NAME})+\s*\]", _FLAGS)
_BARE = re.compile(rf"(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))+", _FLAGS)
_CALL = re.compile(r"(?:frozenset|set|tuple|list|(?:np\.)?array|c)\((.*?)(?:,\s*dtype=[^()]*)?\)", _FLAGS)
# reprs of Python objects, as dict_keys(['a']), Index(['a'], dtype='object') and <QuerySet ['a']>
_SHOWN = re.compile(
    r"(?:[A-Za-z_][\w.]*\((?:<[^<>]*>,\s*)?|<\w+[>\s])\s*([\[({].*?[\])}])\s*"
    r"(?:(?:,\s*\w+=[^=]*)*[)>]|Length: \d+.*)", _FLAGS)  # fmt: skip
_SCALAR = re.compile(
    rf"{_QUOTED}|[bu]({_QUOTED})|[A-Za-z_][\w.]*\(({_QUOTED})\)|np\.\w+\(([-+.\w]+)\)", _FLAGS
)
_BEGIN = re.compile(r"""[\[(]\s*['"]""", re.ASCII)
_OBJECT = re.compile(rf"\{{\s*(?:{_QUOTED}|\d+)\s*:|[\[(]\s*[{{\[(].*['\"\d]", _FLAGS)
_WRAPPED = re.compile(r"\w\(|\b[bu]['\"]")
_STRING = re.compile(_QUOTED, _FLAGS)
_WEIGHTED = re.compile(r"[^\W\d].*?(?:\s-|\s*[:=(*])\s*(?:[01]?\.\d+|1|\d+(?:\.\d+)?\s?%)\)?", re.DOTALL)
_BEHIND = re.compile(r"\s*[,;|\n]\s*|(?<=[\d%)])\s+(?=[^\W\d])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIGN = r"(?:-?1|0)(?:\.0*)?"
_ROW = re.compile(rf"[\[({{]?\s*{_SIGN}(?:(?:\s*[,;|]\s*|\s+){_SIGN})+\s*[\])}}]?", re.ASCII)
_AROUND_ROW = re.compile(r"['\"]|\A(?:np\.)?(?:array|tensor)\(|(?:,\s*dtype=[^()]*)?\)\Z")

# prefixes of list items, the first too: increasing numbers, and bullets
_ITEMS = {f"1{sign}": re.compile(rf"(?:\A|[\s;,])\s*\(?\d+{re.escape(sign)}\s*(?=[^\d\s])") for sign in ".):"}
_ITEMS |= {f"\n{sign}": re.compile(rf"(?:\A|\n)\s*{re.escape(sign)}") for sign in "-*+•·–"}
_RARE = (*"；、，•¦‖\x1f", "<br>", "<br/>")  # rare in names, as are the next ones
_STRONG = (*_ITEMS, ",\n", ";\n", "\n", "\t", ";#", ";", "|||", "||", "|", "//", *_RARE)
_SIGNS, _WORDS = "^~#@%*=$§", (" - ", " – ", " — ", " and ", " or ", " und ", " et ", " y ")
_DIVIDERS = ("->", "=>", ">>", ">", "›", "→", "»", "::", "|", "\\", "/", "--")  # of paths, and of labels
_WEAK = (*(2 * sign for sign in _SIGNS), *_DIVIDERS, *_SIGNS, *"·+&:", *_WORDS, " ")
_BEFORE = ("#", "@")  # prefixes of names, such as hashtags, the first too
SEPARATORS = (*dict.fromkeys((";#", *_BEFORE, *_STRONG, ",", *_WEAK)),)
_OF_NUMBERS = frozenset(("/", ":", "+", "*", "=", "//", " - ", " – ", " — "))  # also in numbers, as in dates
_OF_PATHS = frozenset((*_DIVIDERS, ":"))
_PATH_SIGNS = {
    **{sign: rf"\s*{re.escape(sign)}\s*" for sign in _DIVIDERS},
    ":": r":(?=\S)",
    ".": r"(?<=[^\d\s])\.(?=\S)|(?<=\S)\.(?=[^\d\s])",
}
_CODE = re.compile(r"[A-Za-z]?\d+(?:\.\w+)*")
_NOTHING = frozenset({"", "?", "na", "nan", "none", "null", "[]", "{}", "()", "set()"})
_MOST_CELLS = 20_000
_FEW, _MANY = 3, 10  # cells with a separator


def written_list(text: str) -> list[str] | None:
    """Parse a list of quoted names and numbers, or of objects; None if a text is no such list.

    Accepts lists of Python, JSON and NumPy, sets and tuples, with or without brackets: ``'red', 'green'``.
    Raises ValueError if a text begins like one and is malformed.
    """
    if not text or (text[0] not in "[{('\"<" and text[-1] != ")"):
        return None
    shown = None if text[0] in "[{(" else _SHOWN.fullmatch(text)
    if shown is not None:
        text = shown[1]
    elif text[-1] == ")" and (called := _CALL.fullmatch(text)) is not None:
        text = f"[{called[1]}]"
    elif text[0] in "'\"" and _STRING.fullmatch(text):  # of doubly encoded JSON
        with suppress(ValueError):
            return written_list(_read(text).strip())
    is_closed = _is_in_brackets(text)
    if is_closed and _WRAPPED.search(text):
        text = _SCALAR.sub(lambda one: str(one[one.lastindex or 0]), text)
    if is_closed and _NUMPY.fullmatch(text):
        text = f"[{','.join(one[0] for one in re.finditer(_NAME, text[1:-1], _FLAGS))}]"
    elif is_closed and _LIST.fullmatch(text) and (text[0] != "(" or text == "()" or re.search("['\"]", text)):
        text = f"[{text[1:-1]}]"
    elif _BARE.fullmatch(text):
        text = f"[{text}]"
    elif not is_closed or not _OBJECT.match(text):
        if is_closed and (_BEGIN.match(text) or (shown is not None and text[0] != "(")):
            raise ValueError("a list of quoted names separated by commas")
        return None
    names = names_of(_read(text))
    if any(map(_SURROGATE.search, names)):
        raise ValueError("names without half of a surrogate pair")
    return names


def is_list(text: str) -> bool:
    """Return whether a cell is a list by itself, valid or malformed."""
    try:
        return written_list(text.strip()) is not None
    except ValueError:  # which its parser reports
        return True


def _is_in_brackets(text: str) -> bool:
    return len(text) > 1 and text[0] in "[{(" and text[-1] == _CLOSED_BY[text[0]]


def _read(text: str) -> Any:
    """Parse a JSON or Python literal."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escape sequences
            return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError("quoted names without broken escapes") from None


def names_of(value: Any) -> list[str]:
    """Return the label names in a list or an object of JSON or Python.

    For an object they are its values, or its keys if the values are numbers or yes and no.
    Raises ValueError if the names are ambiguous.
    """
    given = [*value.values()] if isinstance(value, Mapping) else [*value]
    are_shares = all(isinstance(one, (int, float)) and 0 <= one <= 1 for one in given)
    if are_shares and any(one % 1 for one in given):
        raise ValueError("names, or 0 and 1 for each; for probabilities use one column per label")
    if given and all(isinstance(one, (list, tuple)) and [*map(type, one)] == [str, int] for one in given):
        value = dict(given)  # as the items of an object
    entries = _entries_of(value) if isinstance(value, Mapping) else given
    if any(isinstance(entry, Mapping) for entry in entries):
        fields = [*map(_lower, entries)]
        key = next((key for key in _NAMED_BY if all(type(one.get(key)) in _PLAIN for one in fields)), "")
        entries = [one.get(key) for one in fields]
    if not all(type(entry) in _PLAIN and not is_missing(entry) for entry in entries):
        raise ValueError("a list of names, or of objects with a name, label, title or id")
    return [*map(as_text, entries)]


def _lower(entry: Any) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in entry.items()} if isinstance(entry, Mapping) else {}


def _entries_of(value: Mapping[Any, Any]) -> list[Any]:
    """Return the label entries of an object: itself if it has a name, its values or its keys."""
    values, lower = [*value.values()], _lower(value)
    if any(type(lower.get(key)) in _PLAIN[:2] for key in _NAMED_BY[:3]) or [*lower] == ["id"]:
        return [value]
    signs: list[Any] = [TRUTH.get(str(one).strip().lower(), one) for one in values]
    if all(isinstance(one, (int, float)) for one in signs):
        return [key for key, sign in zip(value, signs, strict=True) if sign > 0]
    if {*map(type, values)} == {type(None)}:
        return [*value]
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


@cache
def _pattern(separator: str) -> tuple[str, str, str]:
    """Split a separator into the opening of a cell or a name, the text between names, and the closing."""
    first, last = separator[0], separator[-1]
    if separator in SEPARATORS:
        return "", separator, ""
    if separator[:2] + separator[-2:] == '[""]':
        return '["', separator[2:-2], '"]'
    if len(separator) > 2 and _CLOSED_BY.get(first) == last:
        return first, separator[1:-1], last
    return (last, separator, first) if last != first == _CLOSED_BY.get(last) else ("", separator, "")


def is_plain(separator: str | None) -> bool:
    """Return whether cells are only split at a plain text."""
    return separator not in (None, PLACES, *_ITEMS, *_BEFORE) and not _pattern(str(separator))[0]


def names_in(text: str, separator: str | None) -> list[str]:
    """Return the names in the text of a cell, split unless it is a list by itself.

    separator: a pair such as ``><`` removes the brackets at both ends, one in brackets, ``[,]``, those of
        cells, and one in quotes, ``','``, those of names; with both, ``[","]``, it splits the names of lists.
    """
    if text[:1] in OPENING or text[-1:] == ")":
        listed = written_list(text)
        if listed is not None:
            return names_inside([name.strip() for name in listed], separator)
    return [text][: len(text)] if separator is None or separator == PLACES else _cut(text, separator)


def names_inside(listed: list[str], separator: str | None) -> list[str]:
    """Return the names of a list, some of which may be lists by themselves, or be split."""
    between = _pattern(separator)[1] if separator is not None and separator[:2] == '["' else None
    if between is None and not any("'" in name or '"' in name for name in listed):
        return listed
    lists = [written_list(name) if re.search("['\"]", name) else None for name in listed]
    cut = [[name] if between is None else _cut(name, between) for name in listed]
    pairs = zip(lists, cut, strict=True)
    return [*chain.from_iterable(parts if names is None else names for names, parts in pairs)]


def _cut(text: str, separator: str) -> list[str]:
    opened, between, closed = _pattern(separator)
    if between in _ITEMS:
        marks = ["".join(filter(str.isdigit, mark)) for mark in _ITEMS[between].findall(text)]
        count_up = not any(marks) or marks == [str(place) for place in range(1, len(marks) + 1)]
        parts = _ITEMS[between].split(text) if count_up and _ITEMS[between].match(text) else [text]
        return [name for part in parts if (name := part.strip())]
    if not opened:
        around = " \t\r\n,;" if between in _BEFORE else None
        return [name for part in text.split(between) if (name := part.strip(around))]
    if opened not in "'\"":
        text = text.removeprefix(opened).removesuffix(closed)
    parts = text.split(between)
    if len(between) == 1 and re.search("['\"]", text):
        parts = re.findall(rf"((?:{_QUOTED}|[^{re.escape(between)}'\"]|['\"])+)", text)
        parts = [re.sub(r"""^\s*(['"])(.*)\1\s*$""", r"\2", part) for part in parts]
    return [name for part in parts if (name := part.strip())]


def places_of(cell: Any) -> list[float] | None:
    """Parse 0 or 1 per label, in a text or a list; None for anything else."""
    if isinstance(cell, str):
        text = _AROUND_ROW.sub("", cell.strip().lower())
        text = re.sub("[a-z]+", lambda word: str(TRUTH.get(word[0], word[0])), text)
        cell = [*map(float, re.findall(_SIGN, text))] if _ROW.fullmatch(text) else None
    elif isinstance(cell, (list, tuple)) and {*map(type, cell)} == {str}:
        return places_of(",".join(cell))
    if not isinstance(cell, (list, tuple)) or len(cell) < 2 or not {*map(type, cell)} <= {int, float, bool}:
        return None
    return [*map(float, cell)] if {*cell} <= {0, 1} or {*cell} <= {-1, 1} else None


def are_places(cells: Sequence[Any]) -> bool:
    """Return whether all cells hold 0 or 1 for each of the same number of labels."""
    return (
        bool(cells) and bool(places_of(cells[0])) and len({len(places_of(cell) or ()) for cell in cells}) == 1
    )


class Layout(NamedTuple):
    """How cells of text write labels.

    separator: the text between them; None if each cell is one label.
    example: a cell with a separator.
    doubt: a character in unsplit cells, which may be a separator, also of paths.
    """

    separator: str | None
    example: str = ""
    doubt: str | None = None
    is_path: bool = False

    def words(self, where: str) -> str | None:
        """Describe how cells, such as "the cells of column 'tags'", are split; None if they are not."""
        such = f"such as {self.example[:40]!r}"
        if self.separator is None:
            sign = self.doubt and _pattern(self.doubt)[1]
            seem = "look like paths" if self.is_path else f"may be lists with {sign!r} between labels"
            seem = "have numbers behind names" if sign == WEIGHTS else seem
            return self.doubt and f"{where} {seem}, {such}, and are not split"
        if self.separator == PLACES:
            return f"{where} hold 0 or 1 for each label, {such}, and are read as columns"
        opened, between, closed = _pattern(self.separator)
        around = f" inside {opened!r} and {closed!r}" if opened and between[0] != closed else ""
        return f"{where} list labels, {such}, and are split at {between!r}{around}"


def in_halves(n_rows: int) -> list[slice]:
    """Return the first half of the rows and the second."""
    return [slice(n_rows // 2), slice(n_rows // 2, None)]


def found_layout(parts: Sequence[Iterable[str]]) -> Layout:
    """Detect how text cells write labels, from parts that repeat in other cells.

    parts: the cells of the first and second half of the rows; the result must hold in both.
    """
    whole = _distinct(chain.from_iterable(parts))
    found = _layout(whole) if whole else Layout(None)
    if found is None:
        return layout_inside(parts)
    halves = map(_distinct, parts if found.separator in SEPARATORS else ())
    said = {_evidence(half, str(found.separator))[:3] for half in halves}
    return found if said <= {"for", "few"} else Layout(None, found.example, found.separator)


def layout_inside(parts: Sequence[Iterable[Any]]) -> Layout:
    """Detect likewise what separates names within one entry of a list, as in ``["a, b"]``.

    parts: the cells of both halves, lists or lists as text; others are ignored.
    """
    names = [*map(_inside, parts)]
    sign, example, doubt, _ = found_layout(names)
    if sign in SEPARATORS and (sign in _STRONG or sign not in _OF_PATHS):  # such names are more likely paths
        return Layout(f'["{sign}"]', example)
    is_said = doubt in (*_STRONG, ",") and sum(str(doubt) in name for name in chain(*names)) >= _FEW
    return Layout(None, example, f'["{doubt}"]') if is_said or doubt == WEIGHTS else Layout(None)


def _inside(cells: Iterable[Any]) -> dict[str, None]:
    """Return the names in cells that are lists."""
    lists = list[Iterable[Any]]()
    for cell in cells:
        if isinstance(cell, str):
            with suppress(ValueError):
                lists.append(written_list(cell.strip()) or ())
        elif isinstance(cell, (list, tuple, set, frozenset)):
            lists.append(cell)
    return dict.fromkeys(name for name in chain.from_iterable(lists) if isinstance(name, str))


def _distinct(cells: Iterable[str]) -> list[str]:
    names = dict.fromkeys(cell.strip() for cell in cells)
    kept = [name for name in names if name.lower() not in _NOTHING]
    return kept[:: -(-len(kept) // _MOST_CELLS) or 1]


def _layout(names: Sequence[str]) -> Layout | None:
    """Detect how distinct cells write labels, regardless of halves; None if they are lists."""
    if are_places(names):
        return Layout(PLACES, names[0])
    bare, quotes = [*filter(_BARE.fullmatch, names)], {name[0] + name[-1] for name in names}
    if bare and len(quotes) == 1:
        return Layout(",".join(quotes.pop()), min(bare))
    are_lists = [*map(is_list, names)]
    if any(are_lists) and (all(are_lists) or not all(map(_is_in_brackets, names))):
        return None
    return _weighted(names) or _in_brackets(names) or _separated(names)


def _weighted(names: Sequence[str]) -> Layout | None:
    """Detect weights or probabilities after most names, which are neither names nor removed."""
    found = [name for name in names if all(map(_WEIGHTED.fullmatch, _BEHIND.split(name.strip("[]{}"))))]
    is_fraction = any("." in name or "%" in name for name in found)
    return Layout(None, found[0], WEIGHTS) if is_fraction and 2 * len(found) > len(names) else None


def _in_brackets(names: Sequence[str]) -> Layout | None:
    """Detect lists in brackets with unquoted names, and names that are each in brackets."""
    opened = next((name[0] for name in names if name[0] in "[{(<"), "")
    closed = _CLOSED_BY.get(opened, "")
    inside = [name for name in names if opened and name[0] == opened and name[-1] == closed]
    if 2 * len(inside) < len(names) or not inside:
        return None
    if pairs := [name for name in inside if closed + opened in name]:
        return Layout(closed + opened, min(pairs)) if len(inside) == len(names) else None
    if opened == "<" or any("," in name for name in {*names} - {*inside}):
        return None
    bare = [name[1:-1] for name in inside]
    is_cut = any("," in name for name in bare) and (opened != "(" or _evidence(bare, ",") == "for")
    separator = "," if is_cut else _separated(bare).separator
    example = min((name for name in inside if separator and separator in name), default="")
    return Layout(f"{opened}{separator}{closed}", example) if separator else None


def _separated(names: Sequence[str]) -> Layout:
    doubt, every = Layout(None), "\0".join(names)
    for separator in filter(every.__contains__, SEPARATORS):
        said = _evidence(names, separator)
        if said == "for" or (said.endswith(("unclear", "path")) and doubt.doubt is None):
            example = min(name for name in names if separator in name)
            if said == "for":
                return Layout(separator, example)
            doubt = Layout(None, example, separator, said == "path")
    return doubt


def _evidence(names: Sequence[str], separator: str) -> str:
    """Return the evidence on a separator: for or against labels, unclear, of paths, or in few cells.

    Parts of lists repeat in other lists, and at other positions: first, later, alone.  First words of
    two-word names, such as "New", do not appear later, and parts of paths stay below their parents.
    """
    lists, is_strong = [name for name in names if separator in name], separator in _STRONG
    if not lists:
        return "against"
    if len(lists) < (0.1 if separator == "," else 0.15 if is_strong else 0.25) * len(names) or _is_of_names(
        lists, separator
    ):
        return "against"
    found = [parts for name in lists if len(parts := _cut(name, separator)) > 1]
    if not found:
        return "against"
    alone = {*names} - {*lists}
    if separator in _ITEMS or separator in _BEFORE:
        alone = {parts[0] for name in names if len(parts := _cut(name, separator)) == 1}
    counts = Counter(part for parts in found for part in {*parts}) + Counter(alone)
    every, below = [*chain.from_iterable(found)], [part for parts in found for part in parts[1:]]
    first, later = {parts[0] for parts in found} | alone, {*below} | alone
    pairs = {pair for parts in found for pair in pairwise(parts)}
    again = sum(counts[part] > 1 for part in every) / len(every)
    moving_later = sum(part in first for part in below) / len(below)
    moving = min(moving_later, sum(parts[0] in later for parts in found) / len(found))
    n_above = Counter(part for _, part in pairs if counts[part] > 1)
    is_tree = sum(count == 1 for count in n_above.values()) >= 0.8 * len(n_above)
    if separator in _OF_PATHS and moving_later <= 0.05 and is_tree and again >= 0.2:
        return "path" if len(found) >= _FEW else "few"
    n_lists, share_again, share_moving = _least(separator, len(found))
    if len(found) >= n_lists and again >= share_again and moving >= share_moving:
        return "for"
    is_long = separator == "," and len(every) >= _FEW * len(found)
    share = 0.25 if separator == " " else 0.15
    may_be = "unclear" if is_strong or is_long or (moving >= share and again >= share + 0.1) else "against"
    return f"few, {may_be}" if len(found) < n_lists else may_be


def _least(separator: str, n_lists: int) -> tuple[int, float, float]:
    """Return the required number of lists, share of repeated parts, and share at other positions."""
    others = (_FEW, 0.35, 0.2) if n_lists >= _MANY else (_FEW, 0.7, 0.3)
    known = {",": (1, 0.3, 0.15 if n_lists >= _MANY else 0.25), " ": (_FEW + 1, 0.8, 0.4)}
    return (1, 0.2, 0.0) if separator in _STRONG else known.get(separator, others)


def _is_of_names(lists: Sequence[str], separator: str) -> bool:
    """Return whether a separator is part of names: in URLs, dates, times, "C++" and the like."""
    if separator in " ," or (separator in _STRONG and separator != "//"):
        return False
    parts = [[part.strip() for part in name.split(separator)] for name in lists]
    if separator in _BEFORE and not any(some[0] for some in parts):
        parts = [some[1:] for some in parts]
    n_open = sum("" in some for some in parts)
    n_numbers = sum(all(map(str.isdigit, some)) for some in parts if separator in _OF_NUMBERS)
    return any("://" in name for name in lists) or 10 * n_open > len(lists) or 2 * n_numbers > len(lists)


def path_divider(names: Sequence[str]) -> re.Pattern[str]:
    """Detect the separator of paths such as "Food > Dairy" and "food/dairy"; by default a slash."""
    are_codes = all(map(_CODE.fullmatch, names))
    best, most = re.compile("/"), 0
    for sign, pattern in _PATH_SIGNS.items():
        divider = re.compile(r"\." if sign == "." and are_codes else pattern)
        paths = [parts for name in names if len(parts := divider.split(name)) > 1]
        firsts = [parts[0] for parts in paths]
        is_shared = len({*firsts, *names}) < len(firsts) + len(names) or (len(names) == 1 and sign != ".")
        if is_shared and all(part.strip() for parts in paths for part in parts) and len(paths) > most:
            best, most = divider, len(paths)
    return best
