"""Read data files of any format, for the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from labelweave.datasets.data_file import DataFileError, PathLike, numbered_lines
from labelweave.datasets.hierarchical_arff import read_hierarchical_arff
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.mulan import read_mulan
from labelweave.datasets.svmlight import read_svmlight
from labelweave.datasets.table_columns import ColumnRoles
from labelweave.datasets.table_files import named_kind, table_kind
from labelweave.datasets.table_reading import read_table
from labelweave.datasets.vector_files import is_vector_file
from labelweave.datasets.xmc import read_xmc
from labelweave.foundation.arguments import ParameterMessage, checked

_READERS: dict[str, Callable[..., LabeledData]] = {
    "mulan": read_mulan,
    "hierarchical_arff": read_hierarchical_arff,
    "xmc": read_xmc,
    "svmlight": read_svmlight,
    "table": read_table,
}
FORMATS = tuple(_READERS)
NUMBERED = ("xmc", "svmlight")  # formats whose labels are numbers
_STEM_ENDINGS = ("-train", "-test", "-sparse", "-dense")
_SPREADSHEET_SUFFIXES = (".xlsx", ".xls", ".ods")
_SVMLIGHT_SUFFIXES = (".svm", ".svmlight", ".libsvm")


@checked
def detect_format(path: PathLike, labels: str | Sequence[str] | None = None) -> str:
    """Detect the format of a data file from its name and first lines.

    Parameters
    ----------
    path : path-like
        The file.
    labels : str, sequence of str or None, default=None
        Label columns; an ARFF file with label columns is a table, in which strings and dates are features.

    Returns
    -------
    {"mulan", "hierarchical_arff", "xmc", "svmlight", "table"}
        The format.

    Raises
    ------
    DataFileError
        If neither shows the format.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if named_kind(path) is not None:
        return "table"
    if suffix in _SVMLIGHT_SUFFIXES:
        return "svmlight"
    if suffix == ".arff":
        flat = "mulan" if labels in (None, "none") or not len(labels) else "table"
        return "hierarchical_arff" if _has_hierarchy(path) else flat
    if is_vector_file(path):
        expected = ParameterMessage("a table; pass vectors as `vectors`")
        raise DataFileError(path, None, "a file of vectors, which has no labels", expected)
    if suffix in _SPREADSHEET_SUFFIXES:
        raise DataFileError(path, None, "a spreadsheet", "one sheet, saved as CSV in UTF-8")
    return _by_content(path)


def _has_hierarchy(path: PathLike) -> bool:
    lines = (line.lower().split() for _, line in numbered_lines(path))
    header = takewhile(lambda words: words[:1] != ["@data"], lines)
    return any(words[:1] == ["@attribute"] and "hierarchical" in words[2:-1] for words in header)


def _by_content(path: PathLike) -> str:
    told = (line.partition("#")[0].split() for _, line in numbered_lines(path))
    lines = [*islice(filter(None, told), 2)] or [[""]]
    if any(line[0].lower() in ("@relation", "@attribute") for line in lines):
        return "hierarchical_arff" if _has_hierarchy(path) else "mulan"
    if len(lines[0]) == 3 and all(word.isdigit() for word in lines[0]):
        return "xmc"
    if all(":" in word for line in lines for word in line[1:]) and any(len(line) > 1 for line in lines):
        return "svmlight"
    if table_kind(path) is not None:
        return "table"
    expected = f"one of {', '.join(FORMATS)}; a table is called .csv, .tsv or .jsonl"
    raise DataFileError(path, 1, "a format that neither name nor first line reveals", expected)


@checked
def read_any(path: PathLike, format: str = "auto", **options: Any) -> LabeledData:
    """Read a data file of any format.

    Parameters
    ----------
    path : path-like
        The file.
    format : {"auto", "mulan", "hierarchical_arff", "xmc", "svmlight", "table"}, default="auto"
        The format; ``"auto"`` detects it.
    **options
        Options of the reader of that format, such as ``labels`` for tables.  A Mulan file without ``xml`` and
        ``n_labels`` uses ``name.xml`` next to ``name.arff``, ``name-train.arff``, ``name-test.arff``,
        ``name-sparse.arff`` or ``name-sparse-train.arff``.

    Returns
    -------
    LabeledData
        The rows.

    Raises
    ------
    DataFileError
        If the file is malformed or its format unknown.
    ValueError
        If the format or an option does not exist.
    """
    chosen = detect_format(path, options.get("labels")) if format == "auto" else format
    refuse_unknown_options(chosen, options)
    says_labels = "xml" in options or "n_labels" in options or options.get("labels") == "none"
    if chosen == "mulan" and not says_labels:
        options["xml"] = _xml_beside(Path(path))
    return _READERS[chosen](path, **options)


def _xml_beside(path: Path) -> Path | None:
    stem = path.name.removesuffix(".gz").removesuffix(".arff")
    names = {stem: None}
    for _ in range(2):
        names |= {name.removesuffix(ending): None for name in names for ending in _STEM_ENDINGS}
    return next((found for name in names if (found := path.with_name(f"{name}.xml")).is_file()), None)


def refuse_unknown_options(chosen: str, options: dict[str, Any]) -> None:
    """Raise ValueError for an unknown format, or for options that its reader does not take."""
    if chosen not in _READERS:
        raise ValueError(f"format is {chosen!r}; it must be 'auto' or one of {', '.join(FORMATS)}.")
    _, *known = inspect.signature(_READERS[chosen]).parameters
    if chosen == "table":
        known = [*known[:-1], *ColumnRoles.__annotations__]
    unknown = next((option for option in options if option not in known), None)
    if unknown is not None:
        raise ValueError(
            f"{unknown!r} is not an option of {chosen} files; use {', '.join(sorted(known)) or 'none'}."
        )
