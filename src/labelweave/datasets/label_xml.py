"""The XML file that names the labels of a Mulan ARFF file.

Labels are ``<label name="...">`` elements inside ``<labels>``; where they are
nested, the outer label is the parent of the inner one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from labelweave.datasets.data_file import DataFileError, PathLike, read_blocks, replaced_file

__all__ = ["LabelTree", "read_label_xml", "write_label_xml"]

_NAMESPACE = "http://mulan.sourceforge.net/labels"


@dataclass
class LabelTree:
    """The labels of an XML file.

    lines: the line of every label, in the order of the file.
    parents: pairs (parent, child); empty where no label is nested.
    """

    lines: dict[str, int] = field(default_factory=dict)
    parents: list[tuple[str, str]] = field(default_factory=list)


def read_label_xml(path: PathLike) -> LabelTree:
    """Read the names and the nesting of the labels.

    Raises DataFileError if the file is no such XML file.
    """
    reader = _LabelReader(Path(path))
    content = b"".join(block for _, block in read_blocks(path))
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        found = f"broken XML ({expat.ErrorString(error.code)})"
        raise DataFileError(path, error.lineno, found, "a whole <labels> document") from None
    except DataFileError:
        raise
    except (LookupError, ValueError) as error:
        raise DataFileError(path, None, f"an encoding that cannot be read ({error})", "UTF-8") from None
    if not reader.tree.lines:
        raise DataFileError(path, None, "no labels", 'elements <label name="..."/>')
    return reader.tree


class _LabelReader:
    """Follow the elements with a stack of the open labels."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = LabelTree()
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self._open: list[str] = []

    def _start(self, tag: str, attributes: dict[str, Any]) -> None:
        if tag.rsplit(" ", maxsplit=1)[-1] != "label":
            return
        line, name = self.parser.CurrentLineNumber, attributes.get("name")
        if not name:
            raise DataFileError(self.path, line, "a label without a name", '<label name="...">')
        if name in self.tree.lines:
            raise DataFileError(self.path, line, f"a second label {name!r}", "distinct names")
        self.tree.lines[name] = line
        if self._open:
            self.tree.parents.append((self._open[-1], name))
        self._open.append(name)

    def _end(self, tag: str) -> None:
        if tag.rsplit(" ", maxsplit=1)[-1] == "label":
            self._open.pop()


def write_label_xml(path: PathLike, names: Iterable[str], parents: Iterable[tuple[str, str]] = ()) -> None:
    """Write label names, nested by their parents.

    parents: pairs (parent, child) of a forest.
    """
    children: dict[str, list[str]] = {}
    inner = set()
    for parent, child in parents:
        children.setdefault(parent, []).append(child)
        inner.add(child)
    with replaced_file(path) as stream:
        stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{_NAMESPACE}">\n')
        for name in names:
            if name not in inner:
                stream.writelines(_elements(name, children))
        stream.write("</labels>\n")


def _elements(top: str, children: dict[str, list[str]]) -> Iterable[str]:
    """Give the lines of a label and everything under it, without recursion for deep trees."""
    waiting = [(top, False)]
    while waiting:
        name, close = waiting.pop()
        if close:
            yield "</label>\n"
            continue
        yield f"<label name={quoteattr(name)}>\n"
        waiting.append((name, True))
        waiting.extend((child, False) for child in reversed(children.get(name, [])))
