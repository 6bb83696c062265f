"""One class a row: read it, with a taxonomy or without, known in whole, in part or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from labelweave.labels import Taxonomy

__all__ = ["ClassTargets", "read_classes"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ClassTargets:
    """The class of every row.

    Parameters
    ----------
    classes : ndarray of shape (C,)
        The classes: the distinct entries of y, or leaves of the taxonomy.
    codes : ndarray of int, shape (n,)
        The class of each row; any it may have where it is not known for certain.
    is_observed : ndarray of bool, shape (n,)
        Whether anything is known of the row.
    partial : ndarray of int, shape (k,)
        Rows of which an inner node of the taxonomy is known.
    allowed : ndarray of bool, shape (k, C)
        The classes under that node.
    """

    classes: Array
    codes: Array
    is_observed: Array
    partial: Array
    allowed: Array


def read_classes(y: Any, taxonomy: Taxonomy | None = None) -> ClassTargets:
    """Read one class a row.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes; None or NaN where unobserved.  With a taxonomy the names of its nodes.
    taxonomy : Taxonomy or None, default=None
        The classes are its leaves that y names, or that lie under an inner node that y names.

    Returns
    -------
    ClassTargets
        The classes.

    Raises
    ------
    ValueError
        If y has less than two classes, or names what is no node; the row is given.
    """
    y = column_or_1d(y, warn=True)
    missing = _missing(y)
    known = y[~missing]
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if known.dtype.kind != "O":
        check_classification_targets(known)
    if taxonomy is None:
        return _flat(known, missing)
    return _leaves(known, missing, taxonomy)


def _missing(y: Array) -> Array:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "O":
        return np.array([entry is None or entry != entry for entry in y], dtype=bool)
    return np.zeros(len(y), bool)


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
        shown = f"one class only, {classes[0]!r}" if len(classes) else "no class that is observed"
        raise ValueError(f"y has {shown}; a classifier needs at least 2 classes.")


def _leaves(known: Array, missing: Array, taxonomy: Taxonomy) -> ClassTargets:
    rows = np.flatnonzero(~missing)
    names = np.array([_name(entry) for entry in known], dtype=object)
    for row, name in zip(rows, names, strict=True):
        if name not in taxonomy:
            raise ValueError(
                f"y at row {row} is {name!r}, which is no node of the taxonomy; give the name of a leaf, of an "
                "inner node if no more is known, or None."
            )
    targets = list(dict.fromkeys(names))
    below = taxonomy.under(targets, taxonomy.leaves).toarray() > 0
    kept = np.flatnonzero(below.any(axis=0))
    leaves = [taxonomy.leaves[leaf] for leaf in kept]
    allowed = below[[targets.index(name) for name in names]][:, kept]
    is_partial = allowed.sum(axis=1) > 1
    codes = np.zeros(len(missing), np.intp)
    codes[rows] = allowed.argmax(axis=1)
    classes = _as_given(leaves, known)
    _require_two(classes)
    return ClassTargets(classes, codes, ~missing, rows[is_partial], allowed[is_partial])


def _name(entry: Any) -> str:
    """Write a class as the taxonomy names it: 3.0 as 3."""
    return str(int(entry)) if isinstance(entry, (float, np.floating)) and entry == int(entry) else str(entry)


def _as_given(leaves: list[str], known: Array) -> Array:
    """Give the leaves the type that y has, where each is an entry of y."""
    if known.dtype.kind in "OU":
        return np.array(leaves, dtype=object if known.dtype.kind == "O" else None)
    values = {_name(entry): entry for entry in known.tolist()}
    if all(leaf in values for leaf in leaves):
        return np.array([values[leaf] for leaf in leaves], dtype=known.dtype)
    return np.array(leaves)
