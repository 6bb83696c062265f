"""Lists of labels that stand in a cell as text: ``['red', 'green']``, as pandas writes lists to CSV files."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from labelweave.labels.label_names import as_text

_NAME = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?"""
_LIST = re.compile(rf"\[\s*(?:(?:{_NAME})\s*(?:,\s*(?:{_NAME})\s*)*)?\]", re.ASCII | re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BEGIN = re.compile(r"""\[\s*['"]""", re.ASCII)


def written_list(text: str) -> list[str] | None:
    """Read a list of names in quotes and of numbers, of Python or JSON; None where a text is no such list.

    Raises ValueError if it begins like one and cannot be read, as NumPy's ``['red' 'green']`` does.
    """
    if not _LIST.fullmatch(text):
        if _BEGIN.match(text) and text.endswith("]"):
            raise ValueError("a list of names in quotes with commas between them")
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = _python_list(text)
    names = [*map(as_text, found)]
    if any(map(_SURROGATE.search, names)):
        raise ValueError("names without half a pair of surrogates, which is no character")
    return names


def _python_list(text: str) -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of backslashes that escape nothing
            return list(ast.literal_eval(text))
    except SyntaxError:
        raise ValueError("names in quotes without broken escapes") from None
