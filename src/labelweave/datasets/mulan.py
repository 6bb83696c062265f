"""Multi-label ARFF files of Mulan and MEKA, dense and sparse.

Mulan names the labels in an XML file, ``<label name="...">`` inside ``<labels>``, possibly nested.  MEKA
states their number in the relation name, as in ``'scene: -C 6'``: the first six columns, with -6 the last
six.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets import data_file
from labelweave.datasets.arff_header import ArffHeader, quoted, read_header, warn_of_repeated
from labelweave.datasets.arff_table import number_or_mark, read_rows, weight_mark
from labelweave.datasets.csr_parts import row_of
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData, refuse_probabilities
from labelweave.foundation.arguments import ParameterError, checked
from labelweave.labels import Taxonomy

_MEKA_COUNT = re.compile(r"\s-[cC]\s++(-?\d++)", re.ASCII)
_BLOCK_ROWS = 1000
_WRITTEN_BLANKS = str.maketrans("\t\n\r", "   ")
_NAMESPACE = "http://mulan.sourceforge.net/labels"


@checked
def read_mulan(
    arff: PathLike,
    xml: PathLike | None = None,
    n_labels: int | None = None,
    labels: Literal["end", "start", "none"] = "end",
    feature_names: Collection[str] | None = None,
) -> LabeledData:
    """Read a multi-label ARFF file; ``xml``, ``n_labels`` or MEKA's ``-C`` specify the label columns.

    Parameters
    ----------
    arff : path-like
        The ARFF file, ``.gz`` or not; sparse rows become a CSR array, dense rows an ndarray.
    xml : path-like or None, default=None
        Mulan's file of label names; nested labels set ``parents``.
    n_labels : int or None, default=None
        The number of label columns, where there is no XML file.
    labels : {"end", "start", "none"}, default="end"
        Whether the labels are the last or the first columns; "none" reads no labels, for rows to predict.
    feature_names : collection of str or None, default=None
        For a test file: the feature names of the training file, in the order of the result.  Other attributes
        are dropped; by default nominal ones with a distinct value in every row, with a warning.

    Returns
    -------
    LabeledData
        The rows.  Labels keep the order of the ARFF file; ``?`` as a label is unobserved, as a number it is
        NaN in X.  A nominal feature becomes one 0/1 feature per value, named ``attribute=value``, unless the
        values are yes and no, or true and false; where it is ``?``, all its values are 0.

    Raises
    ------
    DataFileError
        If a file is malformed, naming file and line.
    ValueError
        If the label columns are unspecified or specified inconsistently.
    """
    if labels == "none" and (xml is not None or n_labels is not None):
        raise ValueError(
            "labels='none' cannot be combined with xml or n_labels, which name labels; leave them out."
        )
    lines = data_file.numbered_lines(arff)
    header = read_header(arff, lines)
    tree = None if xml is None else read_label_xml(xml)
    if labels == "none":
        is_label = np.zeros(len(header.attributes), bool)
    elif tree is None:
        is_label = _counted_labels(header, arff, n_labels, labels)
    else:
        is_label = _named_labels(header, arff, tree, n_labels)
    _refuse_repeated_labels(header, arff, is_label)
    rows = read_rows(arff, header.attributes, lines)
    Y = rows.labels(np.flatnonzero(is_label))
    X, names = rows.features(np.flatnonzero(~is_label), feature_names)
    parents = tuple(tree.parents) if tree is not None and tree.parents else None
    return LabeledData(X, Y, names, parents=parents, weights=rows.weights)


def _refuse_repeated_labels(header: ArffHeader, path: PathLike, is_label: npt.NDArray[np.bool_]) -> None:
    for first, second in header.repeated:
        if is_label[first] or is_label[second]:
            found = f"a second attribute named {header.attributes[first].name!r}, which is a label"
            expected = "distinct label names"
            raise DataFileError(path, header.attributes[second].line, found, expected)
    warn_of_repeated(path, header)


def _named_labels(
    header: ArffHeader, path: PathLike, tree: LabelTree, n_labels: int | None
) -> npt.NDArray[np.bool_]:
    names = [attribute.name for attribute in header.attributes]
    places = set(names)
    missing = next((label for label in tree.lines if label not in places), None)
    if missing is not None:
        expected = f"the name of an attribute of {path}"
        raise DataFileError(tree.path, tree.lines[missing], f"the label {missing!r}", expected)
    if n_labels not in (None, len(tree.lines)):
        raise ParameterError(
            f"`n_labels` is {n_labels} but {tree.path} names {len(tree.lines)} labels; leave it out."
        )
    return np.array([name in tree.lines for name in names])


def _counted_labels(
    header: ArffHeader, path: PathLike, n_labels: int | None, labels: Literal["end", "start"]
) -> npt.NDArray[np.bool_]:
    if labels not in ("end", "start"):
        raise ValueError(f"labels is {labels!r}; it must be 'end', 'start' or 'none'.")
    match = _MEKA_COUNT.search(header.relation)
    if n_labels is None and match is None and header.outputs:
        return np.array([attribute.name in header.outputs for attribute in header.attributes])
    if n_labels is None:
        if match is None:
            raise ParameterError(
                f"The label columns of {path} are unknown; name them in `labels`, pass `xml` or `n_labels`, "
                "or write '-C count' (MEKA) in its relation name or '@outputs name,...' (KEEL)."
            )
        digits = match[1].removeprefix("-")
        n_labels = data_file.size_in_header(
            path, header.relation_line, "labels", digits, data_file.MOST_LABELS
        )
        labels = "start" if digits == match[1] else "end"
    n_columns = len(header.attributes)
    if not 0 < n_labels < n_columns:
        raise ValueError(
            f"{n_labels} labels are requested of {path}, which has {n_columns} columns; at least one must be "
            "a feature."
        )
    columns = np.arange(n_columns)
    return columns < n_labels if labels == "start" else columns >= n_columns - n_labels


@checked
def write_mulan(data: LabeledData, arff: PathLike, xml: PathLike) -> None:
    """Write rows as a Mulan ARFF file and its XML file of label names.

    Reading them back returns the same numbers, names, labels and parents.

    Parameters
    ----------
    data : LabeledData
        The rows; a CSR X is written sparse, an ndarray dense.  Features and
        labels without names become ``feature_0`` ... and ``label_0`` ...
    arff : path-like
        The ARFF file to write.
    xml : path-like
        The XML file to write.

    Raises
    ------
    ValueError
        If a name cannot be written, or a feature and a label share one.
    """
    refuse_probabilities(data)
    features = data.written_feature_names
    names = range(data.Y.n_labels) if data.label_names is None else data.label_names
    labels = [f"label_{name}" if data.label_names is None else str(name) for name in names]
    _refuse_unwritable([*features, *labels])
    if data.parents:
        Taxonomy(data.parents).require_tree("A file of nested labels")
    with data_file.replaced_file(arff) as stream:
        stream.write("@relation labelweave\n\n")
        stream.writelines(f"@attribute {quoted(name)} numeric\n" for name in features)
        stream.writelines(f"@attribute {quoted(name)} {{0,1}}\n" for name in labels)
        stream.write("\n@data\n")
        stream.writelines(_sparse_rows(data) if sp.issparse(data.X) else _dense_rows(data))
    write_label_xml(xml, labels, data.parents or ())


def _refuse_unwritable(names: Sequence[str]) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"The name {twice!r} occurs twice among features and labels; rename one.")
    bad = next((n for n in names if n != n.strip() or not n.translate(_WRITTEN_BLANKS).isprintable()), None)
    if bad is not None:
        raise ValueError(f"The name {bad!r} has blanks around it or unprintable characters; rename it.")
    if "" in names:
        raise ValueError("A feature or label has an empty name; name it.")


def _dense_rows(data: LabeledData) -> Iterator[str]:
    X = np.asarray(data.X, float)
    for start in range(0, len(data), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        signs = data.Y[block].to_signs().tolist()
        for row, (features, marks) in enumerate(zip(X[block].tolist(), signs, strict=True), start):
            # -1 counts from the end: the "0"
            cells = [*map(number_or_mark, features), *("?10"[mark] for mark in marks)]
            yield ",".join(cells) + weight_mark(data, row) + "\n"


def _sparse_rows(data: LabeledData) -> Iterator[str]:
    X = sp.csr_array(data.X).astype(float)
    X.sum_duplicates()
    for row in range(X.shape[0]):
        marks = dict.fromkeys(row_of(data.Y.positives, row)[0], "1")
        if data.Y.observed is not None:
            unseen = set(range(data.Y.n_labels)).difference(row_of(data.Y.observed, row)[0])
            marks |= dict.fromkeys(unseen, "?")
        pairs = [f"{column} {number_or_mark(value)}" for column, value in zip(*row_of(X, row), strict=True)]
        pairs += [f"{X.shape[1] + label} {marks[label]}" for label in sorted(marks)]
        yield "{" + ",".join(pairs) + "}" + weight_mark(data, row) + "\n"


@dataclass
class LabelTree:
    """The labels of an XML file with their lines, in order, and pairs (parent, child) of nested ones."""

    path: PathLike
    lines: dict[str, int] = field(default_factory=dict)
    parents: list[tuple[str, str]] = field(default_factory=list)


def read_label_xml(path: PathLike) -> LabelTree:
    tree, opened, parser = LabelTree(path), list[str](), expat.ParserCreate(namespace_separator=" ")

    def start(tag: str, attributes: dict[str, Any]) -> None:
        if not _is_label(tag):
            return
        line, name = parser.CurrentLineNumber, attributes.get("name")
        if not name:
            raise DataFileError(path, line, "a label without a name", '<label name="...">')
        if name in tree.lines:
            raise DataFileError(path, line, f"a second label {name!r}", "distinct names")
        tree.lines[name] = line
        tree.parents.extend((above, name) for above in opened[-1:])
        opened.append(name)

    def end(tag: str) -> None:
        if _is_label(tag):
            opened.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        for _, block in data_file.read_blocks(path):
            parser.Parse(block, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        found = f"broken XML ({expat.ErrorString(error.code)})"
        raise DataFileError(path, error.lineno, found, "a complete <labels> document") from None
    except DataFileError:
        raise
    except (LookupError, ValueError) as error:
        raise DataFileError(path, None, f"an unreadable encoding ({error})", "UTF-8") from None
    if not tree.lines:
        raise DataFileError(path, None, "no labels", 'elements <label name="..."/>')
    return tree


def _is_label(tag: str) -> bool:
    return tag.rsplit(" ", maxsplit=1)[-1] == "label"


def write_label_xml(path: PathLike, names: Iterable[str], parents: Iterable[tuple[str, str]] = ()) -> None:
    """Write label names, nested by pairs (parent, child), iteratively, for deep trees."""
    children: dict[str, list[str]] = {}
    for parent, child in parents:
        children.setdefault(parent, []).append(child)
    inner = {child for below in children.values() for child in below}
    waiting = [(name, False) for name in reversed(list(names)) if name not in inner]
    with data_file.replaced_file(path) as stream:
        stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{_NAMESPACE}">\n')
        while waiting:
            name, is_done = waiting.pop()
            if is_done:
                stream.write("</label>\n")
                continue
            stream.write(f"<label name={quoteattr(name)}>\n")
            waiting.append((name, True))
            waiting.extend((child, False) for child in reversed(children.get(name, [])))
        stream.write("</labels>\n")
