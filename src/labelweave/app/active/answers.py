"""Files of annotators' answers: a table with one line per answer, read at once, written line by line.

The columns are ``id`` (the row's name in the data file, else its number from zero), ``label`` and
``answer``: yes, no or unknown, and empty without an answer or after undoing one.  The last line of an
entry counts.
"""

from __future__ import annotations

import csv
import errno
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.datasets.csv_files import DELIMITERS
from labelweave.datasets.data_file import DataFileError, PathLike, decoded, require_file
from labelweave.datasets.table_files import escaped, raw_tables
from labelweave.decisions.label_text import with_unobserved
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import as_text

COLUMNS = ("id", "label", "answer")
YES, NO, UNKNOWN, NOTHING = "yes", "no", "unknown", ""
_MEANINGS = {
    **dict.fromkeys(("yes", "y", "1", "1.0", "true", "+1"), YES),
    **dict.fromkeys(("no", "n", "0", "0.0", "false", "-1", "-1.0"), NO),
    **dict.fromkeys(("unknown", "?"), UNKNOWN),
    "": NOTHING,
}


class Answer(NamedTuple):
    """An answer about an entry: "yes", "no", "unknown", or "" for none."""

    row: str
    label: str
    said: str


def read_answers(path: PathLike) -> list[Answer]:
    """Read all answers of a file, in their order.

    Raises DataFileError if a column is missing or an answer is another word.
    """
    path = Path(path)
    if path.suffix.lower() == ".csv" and len(path.read_bytes().strip().splitlines()) == 1:
        return []  # a header alone
    table = next(raw_tables(path))
    absent = [name for name in COLUMNS if name not in table.columns]
    if absent:
        raise DataFileError(path, 1, f"no column {absent[0]!r}", f"the columns {', '.join(COLUMNS)}")
    rows, labels, cells = (table.columns[name] for name in COLUMNS)
    found = []
    for place, (row, label, cell) in enumerate(zip(rows, labels, cells, strict=True)):
        said = _MEANINGS.get(UNKNOWN if cell is None else as_text(cell).strip().lower())
        if said is None:
            raise table.error(place, "answer", f"{as_text(cell)[:40]!r}", "yes, no, unknown or nothing")
        found.append(Answer(as_text(row), as_text(label), said))
    return found


def last_answers(answers: Iterable[Answer]) -> dict[tuple[str, str], str]:
    """Return the last answer of every entry that has one."""
    found = {(one.row, one.label): one.said for one in answers}
    return {entry: said for entry, said in found.items() if said != NOTHING}


def with_answers(Y: LabelMatrix, ids: Any, path: PathLike) -> LabelMatrix:
    """Add the answers of a file to the labels of some rows; labels that only answers name come last.

    ids: the names of the rows; None for numbers from zero.
    Raises DataFileError if a row is unknown, or two rows have the same name.
    """
    said = last_answers(read_answers(path))
    Y = with_more_labels(Y, [label for _, label in said])
    return merged(Y, row_places(ids, len(Y), path), said, path)


def with_more_labels(Y: LabelMatrix, more: Sequence[str]) -> LabelMatrix:
    """Append labels that do not exist yet, as unobserved."""
    names = Y.words
    there = set(names)
    added = [name for name in dict.fromkeys(more) if name not in there]
    return with_unobserved(Y, np.array([*names, *added])) if added else Y


def row_places(ids: Any, n_rows: int, path: PathLike) -> dict[str, int]:
    names = [str(name) for name in (range(n_rows) if ids is None else ids)]
    places = {name: place for place, name in enumerate(names)}
    if len(places) < n_rows:
        twice = next(name for place, name in enumerate(names) if places[name] != place)
        raise DataFileError(path, None, f"two rows named {twice!r}", "unique row names")
    return places


def merged(
    Y: LabelMatrix, places: dict[str, int], answers: dict[tuple[str, str], str], path: PathLike
) -> LabelMatrix:
    """Add answers to labels; answers of "unknown" become unobserved entries."""
    names = Y.words
    columns = {name: column for column, name in enumerate(names)}
    for row, label in answers:
        if row not in places:
            raise DataFileError(path, None, f"an answer about the row {row!r}", "a row of the data")
        if label not in columns:
            raise DataFileError(path, None, f"an answer about the label {label!r}", "a label of the data")
    at = np.array([(places[row], columns[label]) for row, label in answers], np.intp).reshape(-1, 2)
    said = np.array(list(answers.values()), object)
    told, yes, known = (
        sp.csr_array((np.ones(len(part), np.int8), (part[:, 0], part[:, 1])), shape=Y.shape)
        for part in (at, at[said == YES], at[said != UNKNOWN])
    )
    positives = Y.positives - Y.positives.multiply(told) + yes
    flips = (
        None if Y.flip_probabilities is None else Y.flip_probabilities - Y.flip_probabilities.multiply(told)
    )
    if Y.observed is None and (said != UNKNOWN).all():
        return LabelMatrix(positives, None, Y.names, flips)
    observed = sp.csr_array(np.ones(Y.shape, np.int8)) if Y.observed is None else abs(Y.observed)
    return LabelMatrix(positives, observed - observed.multiply(told) + known, Y.names, flips)


class AnswerFile:
    """A file of answers to append to; each is on disk before :meth:`add` returns.

    An incomplete last line gets its line end if it reads as an answer, and is removed otherwise, as a killed
    process leaves it.
    Raises DataFileError if the file holds no answers, and leaves it as it is.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        text = self._text()
        first = text.removeprefix("\ufeff").lstrip("\r\n").partition("\n")[0].rstrip("\r")
        self._delimiter = max(DELIMITERS, key=first.count)
        self._header = self._cells(first) or list(COLUMNS)
        if not set(COLUMNS) <= set(self._header):
            found = f"the columns {', '.join(map(repr, self._header))}"
            raise DataFileError(self.path, 1, found, f"a file of answers, with {', '.join(COLUMNS)}")
        whole = self._with_ended_lines(text)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(self.path, flags, 0o600)
        if len(whole) > len(text):
            os.write(self._file, b"\n")
        else:
            os.ftruncate(self._file, len(whole.encode("utf-8")))
        if not whole:
            self._write(self._header)

    def _text(self) -> str:
        if self.path.suffix.lower() != ".csv":
            expected = "a .csv file for answers"
            raise DataFileError(self.path, None, "a name that does not end in .csv", expected)
        if not self.path.exists():
            return ""
        require_file(self.path)
        text = decoded(self.path, 1, self.path.read_bytes())
        bare = text.strip("\ufeff\r\n")
        return "" if ",".join(COLUMNS).startswith(bare) else text  # killed before the first answer

    def _with_ended_lines(self, text: str) -> str:
        if text.endswith("\n"):
            return text
        last = begin = text.rfind("\n") + 1
        while text.count('"', 0, begin) % 2:  # the line is inside a quoted cell
            begin = text.rfind("\n", 0, begin - 1) + 1
        cells = self._cells(text[begin:])
        said = dict(zip(self._header, cells, strict=False)).get("answer", "").strip().lower()
        is_answer = len(cells) == len(self._header) and said in _MEANINGS and not text.count('"') % 2
        if text and (is_answer or last == 0):
            return text + "\n"
        if begin < last:
            expected = "a line end after every answer, and closed quotation marks"
            raise DataFileError(self.path, None, "a last line without its end", expected)
        return text[:last]

    def _cells(self, record: str) -> list[str]:
        try:
            return next(csv.reader(io.StringIO(record, newline=""), delimiter=self._delimiter), [])
        except csv.Error:  # cells that are not answers
            return [record]

    def add(self, answer: Answer) -> None:
        said = dict(zip(COLUMNS, map(escaped, answer), strict=True))
        self._write([said.get(name, "") for name in self._header])

    def _write(self, cells: Sequence[str]) -> None:
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerow(cells)
        line, size = text.getvalue().encode("utf-8"), os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)  # so that the next answer starts a line
            raise

    def close(self) -> None:
        os.close(self._file)
