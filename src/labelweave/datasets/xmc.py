"""Text files of the Extreme Classification Repository.

The first line is ``rows features labels``; every other line is a row, ``label,label,... feature:value
feature:value ...``, all indices from zero.  A row without labels begins with a blank.  Source:
http://manikvarma.org/downloads/XC/XMLRepository.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.csr_parts import csr_from_counts
from labelweave.datasets.data_file import (
    DataFileError,
    PathLike,
    decoded,
    read_blocks,
    refuse_open_end,
    replaced_file,
)
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.xmc_block import ParsedRows, parse_block
from labelweave.labels import LabelMatrix

__all__ = ["read_xmc", "write_xmc"]


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
