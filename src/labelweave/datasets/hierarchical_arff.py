"""ARFF files with a class taxonomy, in the format of Clus.

The header lists the nodes of a tree by their paths, ``@attribute class hierarchical 1,1/2,1/2/3``; or the
edges of a graph, ``hierarchical root/a,root/b,a/c,b/c``, parent first.  A row ends with its node, or with
several joined by ``@``.  A row belongs to the nodes it names and to everything above them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from labelweave.datasets import data_file
from labelweave.datasets.arff_header import (
    ArffHeader,
    Attribute,
    quoted,
    read_header,
    row_cells,
    unquoted,
    warn_of_repeated,
)
from labelweave.datasets.arff_table import RowParser, data_lines, number_or_mark, row_weights, weight_mark
from labelweave.datasets.csr_parts import row_of, rows_of_labels
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.foundation.arguments import checked
from labelweave.labels import LabelMatrix, Taxonomy

_MOST_LEVELS = 100

Edges = tuple[tuple[str, str], ...]


@checked
def read_hierarchical_arff(path: PathLike, feature_names: Collection[str] | None = None) -> LabeledData:
    """Read a hierarchical ARFF file.

    Parameters
    ----------
    path : path-like
        The file, ``.gz`` or not, with dense rows.
    feature_names : collection of str or None, default=None
        As in :func:`read_mulan`, as are the features.

    Returns
    -------
    LabeledData
        The rows.  The labels are all nodes in the order of the header, named by their paths or, if it lists
        edges, as in the edges; ``parents`` holds the taxonomy.  A row's positives are the nodes it names with
        all their ancestors; a row whose class is ``?`` is unobserved.

    Raises
    ------
    DataFileError
        If the file is malformed, naming the line.

    Notes
    -----
    The header lists edges if every entry has two parts, as ``a/b``, and no row names a class by a path.
    """
    lines = data_file.numbered_lines(path)
    header = read_header(path, lines)
    warn_of_repeated(path, header)
    position = _class_position(path, header)
    features = header.attributes[:position] + header.attributes[position + 1 :]
    parser, classes, number = RowParser(path, features), list[tuple[int, str]](), 0
    weights = list[float]()
    for number, line, weight in data_lines(path, lines):
        if line.startswith("{"):
            raise DataFileError(path, number, "a sparse row", "dense rows in a hierarchical file")
        cells = row_cells(path, number, line, len(header.attributes))
        classes.append((number, cells.pop(position)))
        parser.add_cells(number, cells)
        weights.append(weight)
    data_file.warn_open_end(path, number)
    Y, parents = _labels(path, header.attributes[position], classes)
    X, names = parser.rows().features(np.arange(len(features)), feature_names)
    return LabeledData(X, Y, names, parents=parents, weights=row_weights(path, weights))


def _labels(
    path: PathLike, attribute: Attribute, classes: list[tuple[int, str]]
) -> tuple[LabelMatrix, Edges]:
    """Return the labels of the rows, closed under ancestors, and the edges between them."""
    are_edges = all(name.count("/") == 1 for name in attribute.values) and not any(
        "/" in cell for _, cell in classes
    )
    if are_edges:
        edges = tuple((name.partition("/")[0], name.partition("/")[2]) for name in attribute.values)
        names = tuple(dict.fromkeys(part for edge in edges for part in edge))
    else:
        names, edges = _tree(_listed_nodes(path, attribute))
    index = {name: position for position, name in enumerate(names)}
    rows = [_nodes(path, number, cell, index) for number, cell in classes]
    try:
        return Taxonomy(edges, names).with_ancestors(rows_of_labels(rows, names)), edges
    except ValueError as error:
        raise DataFileError(path, attribute.line, "no taxonomy", f"one ({str(error).rstrip('.')})") from None


def _class_position(path: PathLike, header: ArffHeader) -> int:
    found = [column for column, attribute in enumerate(header.attributes) if attribute.kind == "hierarchical"]
    if len(found) != 1:
        count = f"{len(found)} hierarchical attributes above @data"
        raise DataFileError(path, header.line, count, "exactly one")
    if len(header.attributes) == 1:
        raise DataFileError(
            path, header.line, "no feature above @data", "at least one besides the class attribute"
        )
    return found[0]


def _listed_nodes(path: PathLike, attribute: Attribute) -> tuple[str, ...]:
    """Return the nodes of the header; nodes too deep for their ancestors to fit into memory are refused."""
    deep = next((name for name in attribute.values if name.count("/") >= _MOST_LEVELS), None)
    if deep is not None:
        found = f"the class {deep[:40]!r}... of {deep.count('/') + 1} levels"
        raise DataFileError(path, attribute.line, found, f"at most {_MOST_LEVELS} levels")
    return attribute.values


def _tree(listed: Sequence[str]) -> tuple[tuple[str, ...], Edges]:
    """Return the nodes of the tree of listed paths, including unlisted ancestors, and its edges."""
    names = tuple(dict.fromkeys([*listed, *(above for path in listed for above in _path_upwards(path))]))
    return names, tuple((name.rpartition("/")[0], name) for name in names if "/" in name)


def _path_upwards(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]


def _nodes(path: PathLike, number: int, cell: str, index: Mapping[str, int]) -> list[int] | None:
    if cell == "?":
        return None
    names = [unquoted(name) for name in unquoted(cell).split("@")]
    unknown = next((name for name in names if name not in index), None)
    if unknown is not None:
        raise DataFileError(path, number, f"the class {unknown!r}", "a node that the header lists")
    return sorted({index[name] for name in names})


@checked
def write_hierarchical_arff(data: LabeledData, path: PathLike) -> None:
    """Write rows with a taxonomy as a hierarchical ARFF file.

    Parameters
    ----------
    data : LabeledData
        The rows, with ``parents`` and label names that are paths (``1``, ``1/2``, ``1/2/3``).
    path : path-like
        The file to write.

    Raises
    ------
    ValueError
        If the names are not such paths, or a row has no class, has a class
        without its ancestors, or is partially observed.
    """
    names = _written_names(data)
    X = np.asarray(data.X.toarray() if sp.issparse(data.X) else data.X, float)
    cells = _class_cells(data.Y, names)
    with data_file.replaced_file(path) as stream:
        stream.write("@relation labelweave\n\n")
        stream.writelines(f"@attribute {quoted(name)} numeric\n" for name in data.written_feature_names)
        stream.write(f"@attribute class hierarchical {','.join(names)}\n\n@data\n")
        for row, (features, cell) in enumerate(zip(X.tolist(), cells, strict=True)):
            written = ",".join([*map(number_or_mark, features), cell])
            stream.write(f"{written}{weight_mark(data, row)}\n")


def _written_names(data: LabeledData) -> list[str]:
    if data.parents is None or data.label_names is None:
        raise ValueError("A hierarchical ARFF file needs label names and parents; Mulan needs neither.")
    names = [str(name) for name in data.label_names]
    Taxonomy(data.parents, names).require_tree("A hierarchical ARFF file, as it is written,")
    nodes, edges = _tree(names)
    if list(nodes) != names or set(edges) != set(data.parents):
        raise ValueError(
            "The label names are not paths of the tree in parents; name each child parent/child, such as "
            "'1/2' under '1'."
        )
    bad = next((name for name in names if name != quoted(name) or "@" in name or "" in name.split("/")), None)
    if bad is not None:
        raise ValueError(f"The label name {bad!r} cannot be written: use no blanks, commas, quotes or '@'.")
    return names


def _class_cells(Y: LabelMatrix, names: list[str]) -> Iterator[str]:
    for row in range(len(Y)):
        positive = [names[node] for node in sorted(row_of(Y.positives, row)[0])]
        seen = Y.n_labels if Y.observed is None else int(Y.observed.indptr[row + 1] - Y.observed.indptr[row])
        if seen not in (0, Y.n_labels):
            raise ValueError(
                f"Row {row} is partially observed; a row of hierarchical ARFF is observed completely, or '?'."
            )
        if seen and not positive:
            raise ValueError(
                f"Row {row} has no positive label; a hierarchical ARFF row names at least one node."
            )
        above = {up: name for name in positive for up in _path_upwards(name)[1:]}
        if not above.keys() <= set(positive):
            child = next(name for up, name in above.items() if up not in positive)
            raise ValueError(f"Row {row} has the label {child!r} without all its ancestors.")
        yield "@".join(name for name in positive if name not in above) or "?"
