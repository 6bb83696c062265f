"""Text files of the Extreme Classification Repository.

The first line is ``rows features labels``; every other line is a row, ``label,label,... feature:value
feature:value ...``, all indices from zero (http://manikvarma.org/downloads/XC/XMLRepository.html).  Blocks of
lines are parsed by scikit-learn or, with the same result or an exact error, line by line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from io import BytesIO
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets import data_file
from labelweave.datasets.csr_parts import csr_from_counts, joined, numbered_columns, numbered_targets, row_of
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData, refuse_missing
from labelweave.datasets.svmlight import indexed_value, whole_number
from labelweave.foundation.arguments import checked

_ROWS = re.compile(rb"(?:(?:\d++(?:,\d++)*+)?+(?: ++\d++:[-+.\deE]++)*+ *+\n)*+")  # of labels and features

Integers = npt.NDArray[np.int64]


@checked
def read_xmc(
    path: PathLike,
    dtype: npt.DTypeLike = np.float64,
    all_labels: bool = False,
    label_names: Sequence[Any] | None = None,
) -> LabeledData:
    """Read a file of the Extreme Classification Repository.

    The text is read in blocks, so memory use is little more than that of the result.

    Parameters
    ----------
    path : path-like
        The file, ``.gz`` or not.
    dtype : dtype, default=float64
        The type of the features, float32 or float64.
    all_labels : bool, default=False
        Whether the labels are all numbers below the number in the header; by default those that occur.
    label_names : sequence or None, default=None
        As in :func:`read_svmlight`.

    Returns
    -------
    LabeledData
        CSR features with sorted indices, and labels, whose names are their numbers.

    Raises
    ------
    DataFileError
        If the file is malformed or its number of rows differs from the header, naming the line.
    ValueError
        If ``dtype`` is another type.
    """
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind != "f":
        raise ValueError("dtype is not a floating type; pass numpy.float64 or numpy.float32.")
    blocks = data_file.read_blocks(path)
    _, block = next(blocks)
    first, _, body = block.partition(b"\n")
    n_rows, *limits = _header(path, data_file.decoded(path, 1, first))
    parts = [[np.empty(0, kind)] for kind in (np.int64, np.int32, dtype, np.int64, np.int32)]
    found, line = 0, 2
    for line, body in chain([(2, body)], blocks):  # noqa: B020 (the first body belongs to the first block)
        body = body if not body or body.endswith(b"\n") else body + b"\n"  # noqa: PLW2901
        *lines, rest = body.split(b"\n", n_rows - found)
        if lines:
            rows = body[: len(body) - len(rest)]
            parsed = parse_block(path, line, rows, (limits[0], limits[1]))
            found += len(parsed.feature_counts)
            for part, items in zip(parts, parsed, strict=True):
                part.append(_narrow(items, part[0].dtype))
        if rest.strip():
            expected = f"the end after the {n_rows} rows of the header"
            raise DataFileError(path, line + len(lines), "another row", expected)
    if found < n_rows:
        raise DataFileError(path, None, f"{found} rows", f"{n_rows}, as in the header")
    data_file.refuse_open_end(path, line)
    feature_counts, features, values, label_counts, labels = map(joined, parts)
    X = csr_from_counts(values, features, feature_counts, limits[0])
    names = range(limits[1]) if all_labels else label_names
    return LabeledData(X, numbered_targets(labels, label_counts, names))


def _header(path: PathLike, text: str) -> list[int]:
    words = text.split(None, 3)
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise DataFileError(path, 1, f"{text[:40]!r}", "a header of three integers: rows features labels")
    limits = {"rows": sys.maxsize, "features": data_file.MOST_FEATURES, "labels": data_file.MOST_LABELS}
    sizes = zip(limits.items(), words, strict=True)
    return [data_file.size_in_header(path, 1, what, word, most) for (what, most), word in sizes]


def _narrow(items: npt.NDArray[Any], kind: Any) -> npt.NDArray[Any]:
    """Convert indices to 32 bits where sufficient, and values to the requested type."""
    is_wide = kind == np.int32 and items.size and items.max() > np.iinfo(np.int32).max
    return items if is_wide else items.astype(kind, copy=False)


@checked
def write_xmc(data: LabeledData, path: PathLike) -> None:
    """Write rows as a file of the Extreme Classification Repository; see :func:`write_svmlight`."""
    refuse_missing(data)
    X = sp.csr_array(data.X).astype(float)
    X.sum_duplicates()
    positives = numbered_columns(data.Y)
    with data_file.replaced_file(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {positives.shape[1]}\n")
        for row in range(X.shape[0]):
            labels = ",".join(map(str, row_of(positives, row)[0]))
            features = " ".join(f"{column}:{value!r}" for column, value in zip(*row_of(X, row), strict=True))
            stream.write(f"{labels} {features}\n")


class ParsedRows(NamedTuple):
    """Rows as the pieces of two CSR matrices, indices sorted within a row."""

    feature_counts: Integers
    features: Integers
    values: npt.NDArray[np.float64]
    label_counts: Integers
    labels: Integers


def parse_block(path: PathLike, first_line: int, block: bytes, limits: tuple[int, int]) -> ParsedRows:
    r"""Parse lines that all end with ``\n``; limits are the numbers of features and labels."""
    block = block.replace(b"\r\n", b"\n")
    quick = parse_quickly(block, limits)
    return parse_carefully(path, first_line, block, limits) if quick is None else quick


def parse_quickly(block: bytes, limits: tuple[int, int]) -> ParsedRows | None:
    """Parse whole lines by scikit-learn; return None if anything is unusual, valid or not."""
    from sklearn.datasets import load_svmlight_file

    if not _ROWS.fullmatch(block):
        return None
    try:
        X, listed = load_svmlight_file(BytesIO(block), multilabel=True, zero_based=True, n_features=limits[0])
    except (ValueError, OverflowError):
        return None
    counts = np.array([len(row) for row in listed], np.int64)
    labels = np.fromiter(chain.from_iterable(listed), float)
    if len(listed) != block.count(b"\n") or labels.max(initial=-1) >= limits[1]:
        return None
    rows = np.repeat(np.arange(len(counts)), counts)
    labels = labels[np.lexsort((labels, rows))].astype(np.int64)
    is_repeated = (labels[1:] == labels[:-1]) & (rows[1:] == rows[:-1])
    if is_repeated.any() or not np.isfinite(X.data).all():
        return None
    return ParsedRows(np.diff(X.indptr), X.indices, X.data, counts, labels)


def parse_carefully(path: PathLike, first_line: int, block: bytes, limits: tuple[int, int]) -> ParsedRows:
    """Parse whole lines one at a time; limits are the numbers of features and labels."""
    lines = data_file.decoded(path, first_line, block).removesuffix("\n").split("\n")
    rows = [_line(path, first_line + offset, line, limits) for offset, line in enumerate(lines)]
    return ParsedRows(
        np.array([len(features) for _, features in rows], np.int64),
        np.array([feature for _, features in rows for feature, _ in features], np.int64),
        np.array([value for _, features in rows for _, value in features], np.float64),
        np.array([len(labels) for labels, _ in rows], np.int64),
        np.array([label for labels, _ in rows for label in labels], np.int64),
    )


def _line(
    path: PathLike, number: int, line: str, limits: tuple[int, int]
) -> tuple[list[int], list[tuple[int, float]]]:
    """Return the sorted labels, and features with their values, of a line."""
    features, labels = (range(limit) for limit in limits)
    words = line.split()
    has_labels = bool(words) and not line[0].isspace() and ":" not in words[0]
    texts = words.pop(0).split(",") if has_labels else []
    found = sorted(whole_number(path, number, "label index", text, labels) for text in texts)
    pairs = sorted(indexed_value(path, number, "feature index", word, features) for word in words)
    for what, items in (("label", found), ("feature", [feature for feature, _ in pairs])):
        twice = next((left for left, right in pairwise(items) if left == right), None)
        if twice is not None:
            raise DataFileError(path, number, f"the {what} {twice} more than once", "each once per row")
    return found, pairs
