"""Multi-label svmlight files, read and written by scikit-learn and validated here.

A row is ``label,label,... feature:value feature:value ...`` with integer
labels, which are their names, or only the class -1 or 1.  The format holds no other names and no number of
rows.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.datasets import data_file
from labelweave.datasets.csr_parts import MOST_NUMBER, numbered_columns, numbered_targets, with_narrow_indices
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData, refuse_missing
from labelweave.foundation.arguments import ParameterMessage, checked
from labelweave.labels import LabelMatrix

_LONGEST_INDEX = 100
_QUERY = re.compile(rb"(?m:^)[^\n#]*?[ \t]qid:")  # of ranking, before the features
_SIGNS = ("-1", "1")  # of binary classification


@checked
def read_svmlight(
    path: PathLike,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    label_names: Sequence[Any] | None = None,
) -> LabeledData:
    """Read a multi-label svmlight file.

    Parameters
    ----------
    path : path-like
        The file, ``.gz`` or not.
    n_features : int or None, default=None
        The number of features; for a test file, that of the training file.
    n_labels : int or None, default=None
        The labels are all numbers from 0 to ``n_labels - 1``; by default the numbers that occur.
    zero_based : bool or "auto", default="auto"
        Whether features count from zero; ``"auto"`` is true if the file has a feature 0, and warns where
        ``n_features`` allows both.  For a test file, use the value of its training file.
    label_names : sequence or None, default=None
        Labels that come first, even if they do not occur, such as those of the training file; others that
        occur follow.

    Returns
    -------
    LabeledData
        CSR features and labels, whose names are their numbers, or -1 and 1 for two classes.
        ``first_feature`` is the index of the first feature.

    Raises
    ------
    DataFileError
        If the file is malformed, naming the line.
    """
    from sklearn.datasets import load_svmlight_file

    # scikit-learn silently accepts a file that is no text or is truncated
    last_line, n_queries, is_plain = 0, 0, True
    for _, block in data_file.read_blocks(path):
        last_line += block.count(b"\n")
        n_queries += len(_QUERY.findall(block)) if b"qid:" in block else 0
        is_plain &= b"_" not in block
    data_file.refuse_open_end(path, last_line + 1)
    if n_queries:
        said = f"{path}: the query of a row (qid) is ignored, in {n_queries} rows"
        warnings.warn(f"{said}; for groups of rows use a table", UserWarning, stacklevel=2)
    try:
        with data_file.opened(path) as stream:
            X, targets = load_svmlight_file(stream, multilabel=True, zero_based=True, dtype=np.float64)
    except (ValueError, OverflowError) as error:
        _locate_fault(path, n_features, n_labels, int(zero_based is False))
        found = f"what scikit-learn cannot read ({error})"
        raise DataFileError(path, None, found, "multi-label svmlight") from None
    labels = np.fromiter((label for row in targets for label in row), float)
    are_signs = n_labels in (None, 2) and bool((labels == -1).any() and (abs(labels) == 1).all())
    if are_signs and all(len(row) == 1 for row in targets):
        label_names, lowest = _SIGNS if label_names is None else label_names, -1
    else:
        label_names, lowest = label_names if n_labels is None else range(n_labels), 0
    limit = MOST_NUMBER if n_labels is None else n_labels
    first = _first_feature(path, X, n_features, zero_based)
    is_plain &= X.shape[1] - first <= (data_file.MOST_FEATURES if n_features is None else n_features)
    is_plain &= not X.nnz or X.indices.min() >= first
    is_plain &= bool(
        np.isfinite(X.data).all() and ((labels >= lowest) & (labels < limit) & (labels % 1 == 0)).all()
    )
    if not is_plain:
        _locate_fault(path, n_features, n_labels, first)
    if not len(targets):
        raise DataFileError(path, last_line, "no rows", "at least one row")
    shape = X.shape[0], max(1, X.shape[1] - first) if n_features is None else n_features
    X = with_narrow_indices(sp.csr_array((X.data, X.indices - first, X.indptr), shape=shape))
    X.eliminate_zeros()
    Y = numbered_targets(labels.astype(np.int64), [len(row) for row in targets], label_names)
    return LabeledData(X, Y, first_feature=first)


def _first_feature(
    path: PathLike, X: Any, n_features: int | None, zero_based: bool | Literal["auto"]
) -> int:  # fmt: skip
    """Return the index of the first feature: one if no feature is 0, unless it is specified.

    X: with one column per feature index, from 0.
    """
    if zero_based != "auto":
        return int(not zero_based)
    is_from_one = X.nnz > 0 and X.indices.min() > 0
    if is_from_one and n_features is not None and X.shape[1] <= n_features:
        said = (
            f"features may count from 0 or 1, as neither 0 nor {n_features} occurs; 1 is assumed, pass "
            "`zero_based` to choose"
        )
        warnings.warn(ParameterMessage(f"{path}: {said}"), UserWarning, stacklevel=3)
    return int(is_from_one)


def _locate_fault(path: PathLike, n_features: int | None, n_labels: int | None, first: int) -> None:
    """Read line by line to find the malformed one."""
    features = range(first, first + (data_file.MOST_FEATURES if n_features is None else n_features))
    labels = range(MOST_NUMBER if n_labels is None else n_labels)
    has_signs = has_others = False
    for number, line in data_file.numbered_lines(path):
        words = [word for word in line.partition("#")[0].split() if not word.startswith("qid:")]
        if words and ":" not in words[0]:
            own = words.pop(0)
            if own in ("-1", "+1") and n_labels in (None, 2) and not has_others:
                has_signs = True
            elif has_signs and own != "1":
                raise DataFileError(path, number, f"the label {own[:40]!r} in a file of -1 and +1", "-1 or 1")
            else:
                has_others |= own != "1"
                for label in own.split(","):
                    whole_number(path, number, "label", label, labels)
        previous = -1
        for word in words:
            feature, _ = indexed_value(path, number, "feature", word, features)
            if feature <= previous:
                found = f"the feature {feature} after the feature {previous}"
                raise DataFileError(path, number, found, "each feature once, in increasing order")
            previous = feature


def indexed_value(path: PathLike, line: int, what: str, word: str, allowed: range) -> tuple[int, float]:
    feature, colon, text = word.partition(":")
    try:
        value = data_file.finite_number(text) if colon else None
    except ValueError as error:
        raise DataFileError(path, line, repr(word[:40]), str(error)) from None
    if value is None:
        raise DataFileError(path, line, repr(word[:40]), "feature:value")
    return whole_number(path, line, what, feature, allowed), value


def whole_number(path: PathLike, line: int, what: str, text: str, allowed: range) -> int:
    value = int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_INDEX else -1
    if value not in allowed:
        expected = f"an integer from {allowed.start} to {allowed.stop - 1}"
        raise DataFileError(path, line, f"the {what} {text[:40]!r}", expected)
    return value


@checked
def write_svmlight(data: LabeledData, path: PathLike) -> None:
    """Write rows as a multi-label svmlight file with zero-based features and values of 16 digits.

    Labels are written as their names if all of these are whole numbers, else as their indices.

    Parameters
    ----------
    data : LabeledData
        The rows, all labels observed.
    path : path-like
        The file to write; ``.gz`` is compressed.

    Raises
    ------
    ValueError
        If a label is unobserved, which the format cannot represent.
    """
    from sklearn.datasets import dump_svmlight_file

    refuse_missing(data)
    X = _with_stated_zeros(sp.csr_array(data.X).astype(float), data.Y)
    with data_file.replaced_file(path) as stream:
        dump_svmlight_file(X, numbered_columns(data.Y), stream.buffer, multilabel=True)


def _with_stated_zeros(X: sp.csr_array, Y: LabelMatrix) -> sp.csr_array:
    """Store zeros in the first row, so that readers find the width, and in rows that would be empty."""
    empty = np.flatnonzero((np.diff(X.indptr) == 0) & (np.diff(Y.positives.indptr) == 0))
    rows = np.concatenate([[0, 0], empty])
    columns = np.concatenate([[0, X.shape[1] - 1], np.zeros(len(empty), int)])
    stored = X.tocoo()
    # scikit-learn's writer accepts only 32-bit indices
    rows = np.concatenate([stored.row, rows]).astype(np.int32)
    columns = np.concatenate([stored.col, columns]).astype(np.int32)
    data = np.concatenate([stored.data, np.zeros(len(columns) - stored.nnz)])
    return sp.csr_array(sp.coo_array((data, (rows, columns)), shape=X.shape))
