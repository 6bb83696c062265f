"""Text files of the Extreme Classification Repository.

The first line is ``rows features labels``; every other line is a row, ``label,label,... feature:value
feature:value ...``, all indices from zero.  A row without labels begins with a blank.  Source:
http://manikvarma.org/downloads/XC/XMLRepository.html

Whole lines are parsed in two ways.  The quick one treats a block as one array of bytes and gives up at
anything unusual; the careful one reads line by line: it returns the same arrays or says what is wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.csr_parts import csr_from_counts
from labelweave.datasets.data_file import (
    DataFileError,
    PathLike,
    decoded,
    finite_number,
    read_blocks,
    refuse_open_end,
    replaced_file,
)
from labelweave.datasets.labeled_data import LabeledData
from labelweave.labels import LabelMatrix

__all__ = ["parse_carefully", "parse_quickly", "read_xmc", "write_xmc"]


_DIGIT, _NUMBER_SIGN, _DELIMITER, _OTHER = range(4)
_KINDS = np.full(256, _OTHER, np.uint8)
_KINDS[list(b"0123456789")] = _DIGIT
_KINDS[list(b".eE+-")] = _NUMBER_SIGN
_KINDS[list(b" ,:\n")] = _DELIMITER
_TO_BLANKS = bytes.maketrans(b",:\n", b"   ")
_LONGEST_INDEX = 100
_BLANK, _COMMA, _COLON, _LINE_END = b" ,:\n"


def read_xmc(path: PathLike, dtype: npt.DTypeLike = np.float64) -> LabeledData:
    """Read a file of the Extreme Classification Repository.

    The text is read in blocks, so memory holds little more than the result.

    Parameters
    ----------
    path : path-like
        The file, ``.gz`` or not.
    dtype : dtype, default=float64
        The type of the features, float32 or float64.

    Returns
    -------
    LabeledData
        CSR features with sorted indices, and labels without names.

    Raises
    ------
    DataFileError
        If the file is malformed or holds fewer or more rows than its header says, naming the line.
    """
    blocks = read_blocks(path)
    _, block = next(blocks)
    header, body = _header(path, block)
    parts, line = _Parts(np.dtype(dtype)), 2
    for line, body in _bodies(body, blocks):  # noqa: B020 (the first body belongs to the first block)
        rows, rest = _split_after(body, header.n_rows - parts.n_rows)
        if rows:
            parts.add(parse_block(path, line, rows, (header.n_features, header.n_labels)))
        if rest.strip():
            extra = line + rows.count(b"\n")
            raise DataFileError(
                path, extra, "another row", f"the end after the {header.n_rows} rows of the header"
            )
    if parts.n_rows < header.n_rows:
        expected = f"{header.n_rows}, as the header says"
        raise DataFileError(path, None, f"{parts.n_rows} rows", expected)
    refuse_open_end(path, line)
    return parts.joined(header)


@dataclass(frozen=True)
class _Header:
    n_rows: int
    n_features: int
    n_labels: int


def _header(path: PathLike, block: bytes) -> tuple[_Header, bytes]:
    """Read the first line; give the rest of the block back."""
    first, _, body = block.partition(b"\n")
    text = decoded(path, 1, first).strip()
    words = text.split()
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise DataFileError(path, 1, f"{text[:40]!r}", "a header of three integers: rows features labels")
    return _Header(*map(int, words)), body


def _bodies(body: bytes, blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Give the blocks of rows with their first lines, every line closed."""
    yield 2, _closed(body)
    for line, block in blocks:
        yield line, _closed(block)


def _closed(block: bytes) -> bytes:
    return block + b"\n" if block and not block.endswith(b"\n") else block


def _split_after(block: bytes, n_lines: int) -> tuple[bytes, bytes]:
    """Split a block after so many lines."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    cut = 0 if n_lines == 0 else len(block) if len(ends) <= n_lines else int(ends[n_lines - 1]) + 1
    return block[:cut], block[cut:]


@dataclass
class _Parts:
    """The rows read so far, block by block, in small types."""

    dtype: np.dtype[Any]
    n_rows: int = 0
    feature_counts: list[npt.NDArray[Any]] = field(default_factory=list)
    features: list[npt.NDArray[Any]] = field(default_factory=list)
    values: list[npt.NDArray[Any]] = field(default_factory=list)
    label_counts: list[npt.NDArray[Any]] = field(default_factory=list)
    labels: list[npt.NDArray[Any]] = field(default_factory=list)

    def add(self, rows: ParsedRows) -> None:
        self.n_rows += len(rows)
        self.feature_counts.append(rows.feature_counts)
        self.features.append(_narrow(rows.features))
        self.values.append(rows.values.astype(self.dtype))
        self.label_counts.append(rows.label_counts)
        self.labels.append(_narrow(rows.labels))

    def joined(self, header: _Header) -> LabeledData:
        values = _emptied(self.values, self.dtype)
        X = csr_from_counts(values, _emptied(self.features), _emptied(self.feature_counts), header.n_features)
        labels = _emptied(self.labels)
        positives = csr_from_counts(
            np.ones(len(labels), np.int8), labels, _emptied(self.label_counts), header.n_labels
        )
        return LabeledData(X, LabelMatrix(positives))


def _narrow(indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    fits = not indices.size or indices.max() <= np.iinfo(np.int32).max
    return indices.astype(np.int32) if fits else indices


def _emptied(parts: list[npt.NDArray[Any]], dtype: Any = np.int32) -> npt.NDArray[Any]:
    """Join the parts and let go of them, so that only one copy stays."""
    joined = np.concatenate(parts) if parts else np.empty(0, dtype)
    parts.clear()
    return joined


def write_xmc(data: LabeledData, path: PathLike) -> None:
    """Write rows as a file of the Extreme Classification Repository.

    Reading it gives the same numbers; the format holds no names.

    Parameters
    ----------
    data : LabeledData
        The rows, all labels observed.
    path : path-like
        Where the file goes; ``.gz`` is compressed.

    Raises
    ------
    ValueError
        If a label is unobserved, which the format cannot say.
    """
    if data.Y.has_missing:
        raise ValueError("Y has unobserved labels, which this format cannot hold; write_mulan can.")
    X = sp.csr_array(data.X)
    X.sum_duplicates()
    positives = data.Y.positives
    with replaced_file(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {data.Y.n_labels}\n")
        for row in range(X.shape[0]):
            labels = positives.indices[positives.indptr[row] : positives.indptr[row + 1]].tolist()
            stream.write(f"{','.join(map(str, labels))} {_features(X, row)}\n")


def _features(X: sp.csr_array, row: int) -> str:
    span = slice(X.indptr[row], X.indptr[row + 1])
    pairs = zip(X.indices[span].tolist(), X.data[span].astype(float).tolist(), strict=True)
    return " ".join(f"{feature}:{value!r}" for feature, value in pairs)


@dataclass(frozen=True)
class ParsedRows:
    """Rows as the pieces of two CSR matrices, indices sorted within a row."""

    feature_counts: npt.NDArray[np.int64]
    features: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    label_counts: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.feature_counts)


def parse_block(path: PathLike, first_line: int, block: bytes, limits: tuple[int, int]) -> ParsedRows:
    r"""Parse whole lines.

    first_line: the number of the first line.
    block: lines that all end with ``\n``.
    limits: the numbers of features and labels.
    Raises DataFileError if a line is malformed.
    """
    block = block.replace(b"\r\n", b"\n")
    quick = parse_quickly(block, limits)
    return parse_carefully(path, first_line, block, limits) if quick is None else quick


def parse_quickly(block: bytes, limits: tuple[int, int]) -> ParsedRows | None:
    """Parse whole lines as one array of bytes, or give None if anything is unusual, wrong or not."""
    letters = np.frombuffer(block, np.uint8)
    kinds = _KINDS[letters]
    if (kinds == _OTHER).any():
        return None
    tokens = _Tokens.of(letters, kinds)
    numbers = _numbers(block)
    if not tokens.are_in_order(letters) or numbers is None or len(numbers) != len(tokens.starts):
        return None
    line_ends = np.flatnonzero(letters == _LINE_END)
    features = _Rows.of(tokens.starts[tokens.is_index], numbers[tokens.is_index], line_ends)
    labels = _Rows.of(tokens.starts[tokens.is_label], numbers[tokens.is_label], line_ends)
    values = numbers[tokens.is_value]
    if not (features.fit(limits[0]) and labels.fit(limits[1]) and np.isfinite(values).all()):
        return None
    values = values[features.order]
    return ParsedRows(features.counts, features.items, values, labels.counts, labels.items)


@dataclass(frozen=True)
class _Tokens:
    """The runs of number characters in a block: which are features, values, labels."""

    starts: npt.NDArray[np.intp]
    before: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    is_index: npt.NDArray[np.bool_]
    is_value: npt.NDArray[np.bool_]
    is_label: npt.NDArray[np.bool_]
    has_signs: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, letters: npt.NDArray[np.uint8], kinds: npt.NDArray[np.uint8]) -> _Tokens:
        inside = np.concatenate([[False], kinds != _DELIMITER, [False]])
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        starts, ends = edges[0::2], edges[1::2]
        around = np.concatenate([letters, [np.uint8(_LINE_END)]])
        # a token at the very beginning sees the line end put at position -1
        before, after = around[starts - 1], around[ends]
        is_index, is_value = after == _COLON, before == _COLON
        has_signs = np.zeros(len(starts), bool)
        has_signs[np.searchsorted(starts, np.flatnonzero(kinds == _NUMBER_SIGN), side="right") - 1] = True
        return cls(starts, before, after, is_index, is_value, ~(is_index | is_value), has_signs)

    def are_in_order(self, letters: npt.NDArray[np.uint8]) -> bool:
        """Check that colons join a feature to its value, and commas join labels at the line's beginning."""
        colons, commas = int((letters == _COLON).sum()), int((letters == _COMMA).sum())
        label_before, label_after = self.before[self.is_label], self.after[self.is_label]
        return bool(
            not (self.is_index & self.is_value).any()
            and self.is_index.sum() == self.is_value.sum() == colons
            and not (self.before[self.is_index] == _COMMA).any()
            and not (self.after[self.is_value] == _COMMA).any()
            and not (label_before == _BLANK).any()
            and (label_before == _COMMA).sum() == (label_after == _COMMA).sum() == commas
            and not self.has_signs[~self.is_value].any()
        )


@dataclass(frozen=True)
class _Rows:
    """Indices grouped by line and sorted within it."""

    counts: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    order: Any
    repeated: bool

    @classmethod
    def of(
        cls, starts: npt.NDArray[np.intp], numbers: npt.NDArray[np.float64], line_ends: npt.NDArray[np.intp]
    ) -> _Rows:
        counts = np.diff(np.searchsorted(starts, line_ends), prepend=0)
        rows = np.repeat(np.arange(len(counts)), counts)
        items = np.minimum(numbers, float(1 << 62)).astype(np.int64)
        same_row = rows[1:] == rows[:-1]
        order: Any = slice(None)
        if (same_row & (items[1:] <= items[:-1])).any():
            order = np.lexsort((items, rows))
            items = items[order]
        return cls(counts, items, order, bool((same_row & (items[1:] == items[:-1])).any()))

    def fit(self, limit: int) -> bool:
        """Check that the indices are distinct within a row and below the limit."""
        return not self.repeated and (not self.items.size or int(self.items.max()) < limit)


def _numbers(block: bytes) -> npt.NDArray[np.float64] | None:
    text = block.translate(_TO_BLANKS)
    if not text.strip():
        return np.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def parse_carefully(path: PathLike, first_line: int, block: bytes, limits: tuple[int, int]) -> ParsedRows:
    """Parse whole lines one at a time; limits are the numbers of features and labels."""
    lines = decoded(path, first_line, block).removesuffix("\n").split("\n")
    rows = [_Line(path, first_line + offset, limits).parse(line) for offset, line in enumerate(lines)]
    return ParsedRows(
        np.array([len(features) for _, features in rows], np.int64),
        np.array([feature for _, features in rows for feature, _ in features], np.int64),
        np.array([value for _, features in rows for _, value in features], np.float64),
        np.array([len(labels) for labels, _ in rows], np.int64),
        np.array([label for labels, _ in rows for label in labels], np.int64),
    )


@dataclass(frozen=True)
class _Line:
    """One line, where it stands and what its indices may be."""

    path: PathLike
    number: int
    limits: tuple[int, int]

    def parse(self, line: str) -> tuple[list[int], list[tuple[int, float]]]:
        words = line.split()
        with_labels = bool(words) and not line[0].isspace() and ":" not in words[0]
        labels = words[0].split(",") if with_labels else []
        return (
            self._distinct("label", sorted(self._index("label", label) for label in labels)),
            self._features(words[1:] if with_labels else words),
        )

    def _features(self, words: list[str]) -> list[tuple[int, float]]:
        pairs = sorted(self._pair(word) for word in words)
        self._distinct("feature", [feature for feature, _ in pairs])
        return pairs

    def _pair(self, word: str) -> tuple[int, float]:
        feature, colon, value = word.partition(":")
        try:
            if not colon:
                raise ValueError("'feature:value'")
            return self._index("feature", feature), finite_number(value)
        except DataFileError:
            raise
        except ValueError as error:
            raise DataFileError(self.path, self.number, repr(word[:40]), str(error)) from None

    def _index(self, what: str, text: str) -> int:
        limit = self.limits[what == "label"]
        is_integer = text.isascii() and text.isdigit() and len(text) < _LONGEST_INDEX
        if not is_integer or int(text) >= limit:
            found = f"the {what} index {text[:40]!r}"
            raise DataFileError(self.path, self.number, found, f"an integer from 0 to {limit - 1}")
        return int(text)

    def _distinct(self, what: str, items: list[int]) -> list[int]:
        for left, right in pairwise(items):
            if left == right:
                found = f"the {what} {left} more than once"
                raise DataFileError(self.path, self.number, found, f"each {what} once a row")
        return items
