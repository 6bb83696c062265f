"""One class a row: read it, with a taxonomy or without, known in whole, in part or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from labelweave.array_types import Array, PerRow
from labelweave.labels import Taxonomy
from labelweave.sklearn_compat import is_pandas_na

__all__ = ["ClassTargets", "node_name", "read_classes"]


@dataclass(frozen=True)
class ClassTargets:
    """The class of every row.

    classes (C,): the classes, sorted: the distinct entries of y, or leaves of the taxonomy.
    codes: the class of each row; any it may have where it is not known for certain.
    is_observed: whether anything is known of the row.
    partial (k,): rows of which an inner node of the taxonomy is known.
    allowed (k, C): the classes under that node.
    """

    classes: Array
    codes: PerRow
    is_observed: PerRow
    partial: Array
    allowed: Array


def read_classes(y: Any, taxonomy: Taxonomy | None = None) -> ClassTargets:
    """Read one class a row.

    y (n,): classes; None or NaN where unobserved.  With a taxonomy the names of its nodes.
    taxonomy: the classes are its leaves that y names, or that lie under an inner node that y names.
    Raises ValueError if y has less than two classes, or names what is no node; the row is given.
    """
    y = column_or_1d(y, warn=True)
    missing = _missing(y)
    known = y[~missing]
    if len(known) == 0:
        raise ValueError(f"y has {len(y)} rows and no class that is observed; name at least 2 classes.")
    if known.dtype.kind == "O":
        known = _typed(known)
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if known.dtype.kind != "O":
        check_classification_targets(known)
    if taxonomy is None:
        return _flat(known, missing)
    return _leaves(known, missing, taxonomy)


def node_name(entry: Any) -> str:
    """Write a class as a taxonomy names it.

    Returns its text; a whole number without a point: 3.0 is 3.
    """
    is_whole = isinstance(entry, (float, np.floating)) and float(entry).is_integer()
    return str(int(entry)) if is_whole else str(entry)


def _missing(y: Array) -> Array:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "O":
        return np.array([_is_missing(entry) for entry in y], dtype=bool)
    return np.zeros(len(y), bool)


def _is_missing(entry: Any) -> bool:
    return entry is None or is_pandas_na(entry) or (isinstance(entry, Real) and bool(np.isnan(float(entry))))


def _typed(known: Array) -> Array:
    """Give numbers that came with None among them the type they have without."""
    if all(isinstance(entry, (Real, np.bool_)) for entry in known):
        return np.array(known.tolist())
    return known


def _flat(known: Array, missing: Array) -> ClassTargets:
    try:
        classes, found = np.unique(known, return_inverse=True)
    except TypeError:
        kinds = sorted({type(entry).__name__ for entry in known})
        raise ValueError(
            f"y mixes entries of the types {', '.join(kinds)}; give all classes as text or all as numbers."
        ) from None
    _require_two(classes)
    codes = np.zeros(len(missing), np.intp)
    codes[~missing] = found
    return ClassTargets(classes, codes, ~missing, np.empty(0, np.intp), np.empty((0, len(classes)), bool))


def _require_two(classes: Array) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}; a classifier needs at least 2 classes."
        )


def _leaves(known: Array, missing: Array, taxonomy: Taxonomy) -> ClassTargets:
    rows = np.flatnonzero(~missing)
    entries, which = np.unique([node_name(entry) for entry in known], return_inverse=True)
    _refuse_unknown(entries, which, rows, taxonomy)
    below = taxonomy.under(entries.tolist(), taxonomy.leaves).toarray() > 0
    kept = np.flatnonzero(below.any(axis=0))
    leaves = _as_given([taxonomy.leaves[leaf] for leaf in kept], known)
    classes, order = np.unique(leaves, return_index=True)
    _require_two(classes)
    below = below[:, kept[order]]
    is_partial = below.sum(axis=1)[which] > 1
    codes = np.zeros(len(missing), np.intp)
    codes[rows] = below.argmax(axis=1)[which]
    return ClassTargets(classes, codes, ~missing, rows[is_partial], below[which[is_partial]])


def _refuse_unknown(entries: Array, which: Array, rows: Array, taxonomy: Taxonomy) -> None:
    unknown = np.array([name not in taxonomy for name in entries.tolist()])[which]
    if unknown.any():
        first = int(unknown.argmax())
        raise ValueError(
            f"y at row {rows[first]} is {str(entries[which[first]])!r}, which is no node of the taxonomy; "
            "give the name of a leaf, of an inner node if no more is known, or None."
        )


def _as_given(leaves: list[str], known: Array) -> Array:
    """Give the leaves the type that y has, where their names allow it."""
    if known.dtype.kind in "OU":
        return np.array(leaves, dtype=object if known.dtype.kind == "O" else None)
    values = {node_name(entry): entry for entry in np.unique(known).tolist()}
    try:
        typed = np.array([values[leaf] if leaf in values else int(leaf) for leaf in leaves], known.dtype)
    except (ValueError, OverflowError):
        return np.array(leaves)
    return typed if [node_name(entry) for entry in typed] == leaves else np.array(leaves)
