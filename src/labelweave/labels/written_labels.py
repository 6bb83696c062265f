"""Labels in text cells: lists in brackets, objects, names with a separator.

A cell that is unambiguous by itself, such as ``['red', 'green']``, is parsed anywhere.  What only many cells
together show, such as commas between labels, is detected once and stored as a separator.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.frames import TRUTH
from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.label_names import names_of

PLACES = "[0,1]"
"""The separator of cells that hold 0 or 1 for each label, as ``[0, 1, 0]``."""

WEIGHTS = "a:0.9"
"""The doubt of cells that have numbers behind names, as ``a:0.9, b (10 %)``."""

OPENING = frozenset(" [{(<'\"")
"""What a list begins with, or blanks before it; or it ends with a bracket."""

_BRACKETS = dict(zip("[{(<「『【〈《（［｛⟨〔", "]})>」』】〉》）］｝⟩〕", strict=True))
_CLOSED_BY = _BRACKETS | dict(zip("'\"`“„”‘‚’«»‹›", "'\"`”“”’‘’»«›‹", strict=True))
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NAME = rf"(?:{_QUOTED}|-?(?:0|[1-9]\d*)(?:\.\d*)?)"
_FLAGS = re.ASCII | re.DOTALL
_LIST = re.compile(rf"[\[{{(]\s*(?:{_NAME}\s*(?:,\s*{_NAME}\s*)*,?\s*)?[\]}})]", _FLAGS)
_NUMPY = re.compile(rf"\[\s*{_NAME}(?:\s+{_NAME})+\s*\]", _FLAGS)
_BARE = re.compile(rf"(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))+", _FLAGS)
_CALL = re.compile(
    r"(?:frozenset|set|tuple|list|(?:np\.)?array|c)\((.*?)(?:,\s*dtype=[^()]*)?\)"
    rf"|[A-Za-z_][\w.]*\(((?:{_QUOTED})(?:,\s*(?:{_QUOTED}))*)\)", _FLAGS)  # fmt: skip
# reprs of Python objects, as dict_keys(['a']), Index(['a'], dtype='object') and <QuerySet ['a']>
_SHOWN = re.compile(
    r"(?:[A-Za-z_][\w.]*\((?:<[^<>]*>,\s*)?|<\w+[>\s])\s*([\[({].*?[\])}])\s*"
    r"(?:(?:,\s*\w+=[^=]*)*[)>]|Length: \d+.*)", _FLAGS)  # fmt: skip
_SCALAR = re.compile(
    rf"{_QUOTED}|[bu]({_QUOTED})|[A-Za-z_][\w.]*\(({_QUOTED})\)|np\.\w+\(([-+.\w]+)\)", _FLAGS
)
_OPEN, _CLOSED = (f"[{re.escape(''.join(signs))}]" for signs in (_BRACKETS, _BRACKETS.values()))
_AROUND = re.compile(rf"([\w.]*{_OPEN})(.+)({_CLOSED})", re.DOTALL)  # the cell, as with a separator
_OPENED = re.compile(rf"[A-Za-z][\w.]*\(|{_OPEN}")
_SIGNS_AROUND, _ENDS = (f"[{re.escape(''.join(signs))}]+" for signs in (_CLOSED_BY, _CLOSED_BY.values()))
_OPENS = re.compile(rf"<\w+>(?=.*</)|({_SIGNS_AROUND[:-1]})\1*", re.DOTALL)  # a name
_EACH = re.compile(rf"(</\w+>|{_ENDS})(.*?)(<\w+>|{_SIGNS_AROUND})", re.DOTALL)
_BEGIN, _WRAPPED = re.compile(r"""[\[(]\s*['"]""", re.ASCII), re.compile(r"\w\(|\b[bu]['\"]")
_OBJECT = re.compile(rf"\{{\s*(?:{_QUOTED}|\d+)\s*:|[\[(]\s*[{{\[(].*['\"\d]", _FLAGS)
_ARROW = re.compile(rf"({_NAME})\s*=>", _FLAGS)  # of PHP, Perl and Ruby
_STRING, _SURROGATE = re.compile(_QUOTED, _FLAGS), re.compile("[\ud800-\udfff]")
_WEIGHTED = re.compile(r"[^\W\d].*?(?:\s-|\s*[:=(*])\s*(?:[01]?\.\d+|1|\d+(?:\.\d+)?\s?%)\)?", re.DOTALL)
_BEHIND = re.compile(r"\s*[,;|\n]\s*|(?<=[\d%)])\s+(?=[^\W\d])")
_SIGN = r"(?:[-+]?[01](?:\.0*)?(?:e[-+]?0+)?|nan)"
_ROW = re.compile(rf"[\[({{]?\s*{_SIGN}(?:(?:\s*[,;|]\s*|\s+){_SIGN})+\s*[\])}}]?", re.ASCII)
_CALLED = re.compile(r"(?:np\.)?[a-z]\w*\(([^()]*?)(?:,\s*[a-z]\w*=[^()]*)?\)|['\"]")
_BITS, _OF_PLACES = re.compile("[01]{3,}|[yn]{3,}|[tf]{3,}"), {int, float, bool, type(None)}
_WORD_SIGNS = {"na": "nan", "none": "nan", "null": "nan", **{word: str(sign) for word, sign in TRUTH.items()}}

# prefixes of list items, the first too: increasing numbers, and bullets
_ITEMS = {f"1{sign}": re.compile(rf"(?:\A|[\s;,])\s*\(?\d+{re.escape(sign)}\s*(?=[^\d\s])") for sign in ".):"}
_ITEMS |= {f"\n{sign}": re.compile(rf"(?:\A|\n)\s*{re.escape(sign)}") for sign in "-*+•·–"}
_RARE = (*"；、，•¦‖｜\x1e\x1f", "<br>", "<br/>", "<br />")  # rare in names, as are the next ones
_STRONG = (*_ITEMS, ",\n", ";\n", "\n", "\t", ";#", ";", "|||", "||", "|", "//", *_RARE)
_SIGNS, _WORDS = "^~#@%*=$§", (" - ", " – ", " — ", " and ", " or ", " und ", " et ", " y ")
DIVIDERS = ("->", "=>", ">>", ">", "›", "→", "»", "::", "|", "\\", "/", "--")  # of paths, and of labels
_WEAK = (*(2 * sign for sign in _SIGNS), *DIVIDERS, *_SIGNS, *"·+&:", *_WORDS, " ")
_BEFORE = ("#", "@")  # prefixes of names, such as hashtags, the first too
_FIRST = (";#", *_BEFORE, *_STRONG, ",")
SEPARATORS = (*dict.fromkeys((*_FIRST, *_WEAK)),)
_RUN = re.compile(r"\\[nrt]|[^\w\s'’]+|_+|[\u2028\u2029]")  # other signs that may be separators
_OF_NUMBERS = frozenset(("/", ":", "+", "*", "=", "//", " - ", " – ", " — "))  # also in numbers, as in dates
_OF_PATHS = frozenset((*DIVIDERS, ":"))
_OF_LISTS = frozenset(SEPARATORS) - (_OF_PATHS - {*_STRONG})  # others divide paths in them
_MIXED = (",", ";", "|", "、", "，", "；")  # that cells may have together, with words before the last label
_TOGETHER = (*_MIXED, " & ", " and ", " or ", " und ", " oder ", " et ", " ou ", " y ", " o ", " e ")
_NOTHING = frozenset({"", "?", "na", "nan", "none", "null", "[]", "{}", "()", "set()"})
_MOST_CELLS, _MOST_RUNS, _FEW, _MANY = 20_000, 6, 3, 10  # the last two are of cells with a separator
_SHARE_FREE = 0.35  # of lists, those of labels that are elsewhere alone, or first and last


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
        text = f"[{called[1] or called[2] or ''}]"
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
    elif is_closed and _ARROW.match(text[1:].lstrip()):
        text = "{" + _ARROW.sub(r"\1:", text[1:-1]) + "}"
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


@cache
def _pattern(separator: str) -> tuple[str, str, str]:
    """Split a separator into what opens a cell, or each name (``><``), stands between names, and closes."""
    if separator in SEPARATORS or signs_of(separator) is not None:
        return "", separator, ""
    if separator[:2] + separator[-2:] == '[""]':
        return '["', separator[2:-2], '"]'
    each, around = _EACH.fullmatch(separator), _AROUND.fullmatch(separator)
    if each is not None and each[1] == _closing(each[3]):
        return each[3], separator, each[1]
    if around is not None and _closing(around[1][-1]) == around[3]:
        return around[1], around[2], around[3]
    return "", separator, ""


def _closing(opened: str) -> str:
    """Return what closes some signs, such as ``</b>`` for ``<b>``."""
    return f"</{opened[1:]}" if opened[-1] == ">" else "".join(map(_CLOSED_BY.__getitem__, opened[::-1]))


@cache
def signs_of(separator: str) -> re.Pattern[str] | None:
    """Compile a separator that is a regular expression between slashes, as ``/,| and /``; else None."""
    if len(separator) < 3 or not separator[0] == separator[-1] == "/":
        return None
    try:
        return re.compile(separator[1:-1])
    except re.error:
        said = f"`label_separator` {separator!r} is no regular expression, as slashes say; correct it."
        raise ParameterError(said) from None


def is_plain(separator: str | None) -> bool:
    """Return whether cells are only split at a plain text."""
    is_text = separator is not None and separator not in (PLACES, *_ITEMS, *_BEFORE)
    return is_text and not _pattern(str(separator))[0] and signs_of(str(separator)) is None


def names_in(text: str, separator: str | None) -> list[str]:
    """Return the names in the text of a cell, split unless it is a list by itself.

    separator: a pair such as ``><`` removes the brackets at both ends, one in brackets, ``[,]``, those of
        cells, and one in quotes, ``','``, those of names; with both, ``[","]``, it splits the names of lists.
    """
    if (text[:1] in OPENING or text[-1:] == ")") and (listed := written_list(text)) is not None:
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
    if not opened and (signs := signs_of(between)) is not None:
        return [name for part in signs.split(text)[:: 1 + signs.groups] if (name := (part or "").strip())]
    if between in _ITEMS:
        marks = ["".join(filter(str.isdigit, mark)) for mark in _ITEMS[between].findall(text)]
        count_up = not any(marks) or marks == [str(place) for place in range(1, len(marks) + 1)]
        parts = _ITEMS[between].split(text) if count_up and _ITEMS[between].match(text) else [text]
        return [name for part in parts if (name := part.strip())]
    if not opened:
        around = " \t\r\n,;" if between in _BEFORE else None
        return [name for part in text.split(between) if (name := part.strip(around))]
    if between == separator:  # each name has the signs
        sign = re.escape(separator[len(closed) : -len(opened)].strip())
        parts = re.split(rf"(?<={re.escape(closed)})\s*{sign}\s*(?={re.escape(opened)})", text)
        parts = [part.strip().removeprefix(opened).removesuffix(closed) for part in parts]
        return [name for part in parts if (name := part.strip())]
    text = text.removeprefix(opened).removesuffix(closed).strip()
    if _pattern(between)[0] or signs_of(between) is not None:
        return _cut(text, between)
    parts = text.split(between)
    if len(between) == 1 and re.search("['\"]", text):
        parts = re.findall(rf"((?:{_QUOTED}|[^{re.escape(between)}'\"]|['\"])+)", text)
        parts = [re.sub(r"""^\s*(['"])(.*)\1\s*$""", r"\2", part) for part in parts]
    return [name for part in parts if (name := part.strip())]


def places_of(cell: Any) -> list[float] | None:
    """Parse 0 or 1 per label, NaN where unknown, in a text or a list; None for anything else."""
    if isinstance(cell, str):
        text = _CALLED.sub(r"\1", cell.strip().lower())
        text = ",".join(text) if _BITS.fullmatch(text) else text
        text = re.sub(r"(?:np\.)?([a-z]+)_?", lambda word: _WORD_SIGNS.get(word[1], word[1]), text)
        cell = [*map(float, re.findall(_SIGN, text))] if _ROW.fullmatch(text) else None
    elif isinstance(cell, (list, tuple)) and {*map(type, cell)} == {str}:
        return places_of(",".join(cell))
    if not isinstance(cell, (list, tuple)) or len(cell) < 2 or not {*map(type, cell)} <= _OF_PLACES:
        return None
    known = {one for one in cell if not is_missing(one)}
    are_signs = bool(known) and (known <= {0, 1} or known <= {-1, 1})
    return [math.nan if is_missing(one) else float(one) for one in cell] if are_signs else None


def are_places(cells: Sequence[Any]) -> bool:
    """Return whether all cells hold 0 or 1 for each of the same number of labels."""
    if not cells or not places_of(cells[0]) or len({len(places_of(cell) or ()) for cell in cells}) > 1:
        return False
    return not all(re.fullmatch("1[01]*", str(cell)) for cell in cells)  # which are numbers


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
        opened, between, closed = _pattern(self.separator or self.doubt or ",")
        shown = filter(signs.fullmatch, _TOGETHER) if (signs := signs_of(between)) else [between]
        said = " or ".join(map(repr, shown))
        if self.separator is None:
            seem = "look like paths" if self.is_path else f"may be lists with {said} between labels"
            seem = "have numbers behind names" if between == WEIGHTS else seem
            return self.doubt and f"{where} {seem}, {such}, and are not split"
        if self.separator == PLACES:
            return f"{where} hold 0 or 1 for each label, {such}, and are read as columns"
        around = f" inside {opened!r} and {closed!r}" if opened and between != self.separator else ""
        return f"{where} list labels, {such}, and are split at {said}{around}"


def in_halves(n_rows: int) -> list[slice]:
    return [slice(n_rows // 2), slice(n_rows // 2, None)]


def found_layout(parts: Sequence[Iterable[str]]) -> Layout:
    """Detect how text cells write labels, from parts that repeat in other cells.

    parts: the cells of the first and second half of the rows; the result must hold in both.
    """
    whole = _distinct(chain.from_iterable(parts))
    found = _layout(whole) if whole else Layout(None)
    if found is None:
        return layout_inside(parts)
    halves = map(_distinct, () if _pattern(found.separator or PLACES)[0] else parts)
    said = {_evidence(half, str(found.separator))[:3] for half in halves}
    return found if said <= {"for", "few"} else Layout(None, found.example, found.separator)


def layout_inside(parts: Sequence[Iterable[Any]]) -> Layout:
    """Detect likewise what separates names within one entry of a list, as in ``["a, b"]``.

    parts: the cells of both halves, lists or lists as text; others are ignored.
    """
    names = [*map(_inside, parts)]
    sign, example, doubt, _ = found_layout(names)
    if sign is not None and (sign in _OF_LISTS or signs_of(sign) is not None):
        return Layout(f'["{sign}"]', example)
    is_said = doubt in (*_STRONG, ",") and sum(str(doubt) in name for name in chain(*names)) >= _FEW
    return Layout(None, example, f'["{doubt}"]') if is_said or doubt == WEIGHTS else Layout(None)


def _inside(cells: Iterable[Any]) -> dict[str, None]:
    """Return the names in cells that are lists."""
    names = list[Any]()
    for cell in cells:
        with suppress(ValueError):
            listed = written_list(cell.strip()) if isinstance(cell, str) else cell
            names += listed if isinstance(listed, (list, tuple, set, frozenset)) else ()
    return dict.fromkeys(name for name in names if isinstance(name, str))


def _distinct(cells: Iterable[str]) -> list[str]:
    kept = [name for name in dict.fromkeys(map(str.strip, cells)) if name.lower() not in _NOTHING]
    return kept[:: -(-len(kept) // _MOST_CELLS) or 1]


def _layout(names: Sequence[str]) -> Layout | None:
    """Detect how distinct cells write labels, regardless of halves; None if they are lists."""
    if are_places(names):
        return Layout(PLACES, names[0])
    are_lists = [*map(is_list, names)]
    if names[0][0] in "'\"" and (marked := _marked(names)) is not None:
        return marked
    if any(are_lists) and (all(are_lists) or not all(map(_is_in_brackets, names))):
        return None
    return _weighted(names) or _marked(names) or _in_brackets(names) or _separated(names)


def _weighted(names: Sequence[str]) -> Layout | None:
    """Detect weights or probabilities after most names, which are neither names nor removed."""
    found = [name for name in names if all(map(_WEIGHTED.fullmatch, _BEHIND.split(name.strip("[]{}"))))]
    is_fraction = any("." in name or "%" in name for name in found)
    return Layout(None, found[0], WEIGHTS) if is_fraction and 2 * len(found) > len(names) else None


def _marked(names: Sequence[str]) -> Layout | None:
    """Detect names that are each between quotation marks or brackets, as ``'a', 'b'`` and ``<a><b>``."""
    begin = _OPENS.match(names[0])
    if begin is None:
        return None
    opened, closed = begin[0], _closing(begin[0])
    one = rf"{re.escape(opened)}.*?{re.escape(closed)}"
    found = [re.fullmatch(rf"{one}(?:(\s*[,;|/]?\s*){one})*", name, re.DOTALL) for name in names]
    signs = {each[1] for each in found if each is not None and each[1] is not None}
    if not signs or not all(found) or len({sign.strip() for sign in signs}) > 1:
        return None
    return Layout(f"{closed}{min(signs).strip() or min(signs)}{opened}", max(names, key=len))


def _in_brackets(names: Sequence[str]) -> Layout | None:
    """Detect lists in brackets with unquoted names, and names that are each in brackets."""
    opened = next((found[0] for found in map(_OPENED.match, names) if found is not None), "")
    closed = _CLOSED_BY.get(opened[-1:], "")
    inside = [name for name in names if opened and name.startswith(opened) and name[-1] == closed]
    if 2 * len(inside) < len(names) or not inside or any(closed + opened in name for name in inside):
        return None
    if opened == "<" or any("," in name for name in {*names} - {*inside}):
        return None
    bare = [name[len(opened) : -1].strip() for name in inside]
    is_cut = any("," in name for name in bare) and (opened[-1] != "(" or _evidence(bare, ",") == "for")
    marked = _marked([*filter(None, bare)] or [""])
    separator = marked.separator if marked else "," if is_cut else _separated(bare).separator
    return Layout(f"{opened}{separator}{closed}", max(inside, key=len)) if separator else None


def _separated(names: Sequence[str]) -> Layout:
    doubt = Layout(None)
    for separator in separators_in(names):
        found = _mixture(names, separator)
        said = _evidence(names, found)
        is_known = separator in SEPARATORS and doubt.doubt is None
        if said == "for" or (is_known and said.endswith(("unclear", "path"))):
            example = min(name for name in names if separator in name)
            if said == "for":
                return Layout(_widened(names, separator) if found == separator else found, example)
            doubt = Layout(None, example, separator, said == "path")
    return doubt


def separators_in(names: Sequence[str]) -> list[str]:
    """Return what may separate labels, the most likely first: known signs, and the most common others."""
    some = names[:: 1 + len(names) // 1000]
    runs = Counter(chain.from_iterable({*_RUN.findall(name)} for name in some))
    others = [run for run, _ in runs.most_common(_MOST_RUNS) if run not in SEPARATORS]
    return [*filter("\0".join(names).__contains__, dict.fromkeys((*_FIRST, *others, *_WEAK)))]


def _mixture(names: Sequence[str], separator: str) -> str:
    """Add signs and words between labels that are elsewhere alone, or first and last: ``a, b and c``."""
    cells = names[:: 1 + len(names) // 1000] if separator in _MIXED else ()
    found, every = [separator], "\0".join(cells)
    for sign in filter(every.__contains__, {*_TOGETHER} - {separator}):
        some = [_cut(cell, separator) for cell in cells]
        sides = {part: _cut(f" {part}", sign) for part in chain.from_iterable(some)}
        lists = {part: sides.pop(part) for part, parts in [*sides.items()] if parts != [part]}
        ends = [{parts[place] for parts in lists.values() if parts[1:]} for place in (0, -1)]
        inner = {part for parts in some for part in parts[:-1] if sign not in _MIXED}
        free = {*sides} | (ends[0] & ends[1])
        n_free = sum(free.issuperset(parts) for part, parts in lists.items() if part not in inner)
        if n_free >= max(2, _SHARE_FREE * len(lists)):
            found.append(sign)
    return together(found) if found[1:] else separator


def together(signs: Iterable[str] | str) -> str:
    """Return the separator at any of several signs and words, or of those that a text has."""
    return f"/{'|'.join(sign.replace('|', '[|]') for sign in _TOGETHER if sign in signs)}/"


def _widened(names: Sequence[str], separator: str) -> str:
    """Add signs to a separator that stand at all its places, such as the comma of ``a, and b``."""
    places = re.compile(rf"([^\w\s]*)\s*{re.escape(separator)}\s*([^\w\s]*)")
    found = chain.from_iterable(map(places.finditer, names))
    left, right = next(found).groups()
    if separator in _ITEMS or not left + right or any(one.groups() != (left, right) for one in found):
        return separator
    are_of_names = any((left and name.endswith(left)) or (right and name.startswith(right)) for name in names)
    return separator if are_of_names else f"{left}{separator}{right}"


def _evidence(names: Sequence[str], separator: str) -> str:
    """Return the evidence on a separator: for or against labels, unclear, of paths, or in few cells.

    Parts of lists repeat in other lists, and at other positions: first, later, alone.  First words of
    two-word names, such as "New", do not appear later, and parts of paths stay below their parents.
    """
    if (signs := signs_of(separator)) is not None:
        separator = next(filter(signs.fullmatch, _TOGETHER))
        names = [signs.sub(separator, name) for name in names]
    lists, is_strong = [name for name in names if separator in name], separator in _STRONG
    least = 0.1 if separator == "," else 0.15 if is_strong else 0.25
    if not lists or len(lists) < least * len(names) or _is_of_names(lists, separator):
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
    is_in_numbers = separator in _OF_NUMBERS or separator not in SEPARATORS
    n_numbers = sum(all(map(str.isdigit, some[1:])) for some in parts if is_in_numbers)
    return any("://" in name for name in lists) or 10 * n_open > len(lists) or 2 * n_numbers > len(lists)
