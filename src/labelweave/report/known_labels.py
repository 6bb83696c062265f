"""The labels or classes of data, matched with those of a model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.metrics._class_values import as_text, read_values

__all__ = ["known_classes", "known_labels"]

Array = npt.NDArray[Any]
Unknown = Literal["error", "ignore"]

_REMEDY = "drop them, or pass over them with unknown_labels='ignore'"


def known_labels(Y: Any, names: list[str], unknown: Unknown) -> tuple[LabelMatrix, Array]:
    """Keep the labels that data and model share, and name them.

    Parameters
    ----------
    Y : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        The labels of the data; without names they are those of the model, in order.
    names : list of str
        The labels of the model.
    unknown : {"error", "ignore"}
        What to do with others.

    Returns
    -------
    labels : LabelMatrix of shape (n, k)
        Those that both have.
    columns : ndarray of int, shape (k,)
        Their numbers in the model.

    Raises
    ------
    ValueError
        If a label is unknown, none is known, or no row is known to have one.
    """
    labels = LabelMatrix.from_any(Y)
    columns = _columns(labels, names)
    strange = np.flatnonzero(columns < 0)
    if len(strange) and unknown == "error":
        label = strange[0] if labels.names is None else repr(str(labels.names[strange[0]]))
        raise ValueError(
            f"The label {label} is unknown to the model ({len(strange)} of {labels.n_labels} are); {_REMEDY}."
        )
    known = np.flatnonzero(columns >= 0)
    if not len(known):
        raise ValueError("No label of the data is known to the model, so there is nothing to report.")
    kept = labels.select_labels(known)
    _refuse_nothing(kept)
    named = LabelMatrix(kept.positives, kept.observed, [names[column] for column in columns[known]])
    return named, columns[known]


def _columns(labels: LabelMatrix, names: list[str]) -> Array:
    """Give the number that each label of the data has in the model, -1 for none."""
    if labels.names is None:
        every = np.arange(labels.n_labels)
        return np.where(every < len(names), every, -1)
    place = {name: column for column, name in enumerate(names)}
    return np.array([place.get(str(name), -1) for name in labels.names], np.intp)


def _refuse_nothing(labels: LabelMatrix) -> None:
    if not labels.observed_counts().any():
        raise ValueError("The labels of the data have no observed entry, so there is nothing to report.")
    if not labels.positives.nnz:
        raise ValueError(
            f"None of the {len(labels)} rows has a label; a report compares predictions with labels, so give "
            "data that have some."
        )


def known_classes(y: Any, names: list[str], taxonomy: Taxonomy | None, unknown: Unknown) -> Array:
    """Give the class of every row.

    Parameters
    ----------
    y : array-like of shape (n,), LabelMatrix, DataFrame or sparse matrix of shape (n, C)
        Classes, None or NaN where not known; or labels, of which a row has one, or those on one path of
        the taxonomy.
    names : list of str
        The classes of the model.
    taxonomy : Taxonomy or None
        Its tree.
    unknown : {"error", "ignore"}
        What to do with classes that are neither the model's nor above one of them.

    Returns
    -------
    ndarray of object, shape (n,)
        Names, None where the class is not known.

    Raises
    ------
    ValueError
        If a row has several classes or an unknown one, or none has any.
    """
    classes = _as_classes(y, names, taxonomy)
    given = {entry for entry in classes if entry is not None}
    strange = {entry for entry in given if entry not in names and not _is_above(entry, names, taxonomy)}
    wrong = np.array([entry in strange for entry in classes], bool)
    if wrong.any() and unknown == "error":
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"The class {classes[row]!r} of row {row} (counted from 0) is unknown to the model, as in "
            f"{wrong.sum()} of {len(classes)} rows; {_REMEDY}."
        )
    classes[wrong] = None
    if not any(entry in names for entry in given):
        raise ValueError("No row of the data has a class of the model, so there is nothing to report.")
    return classes


def _as_classes(y: Any, names: list[str], taxonomy: Taxonomy | None) -> Array:
    if not isinstance(y, LabelMatrix) and not sp.issparse(y) and np.ndim(y) == 1:
        entries = [as_text(entry) for entry in read_values(y, "y")]
        return np.array([*entries, None], object)[:-1]
    labels = LabelMatrix.from_any(y)
    counts = np.diff(labels.positives.indptr)
    several = np.flatnonzero(counts > 1)
    own = _class_words(labels, names)
    if len(several) and taxonomy is not None and set(own) <= set(taxonomy.nodes):
        return taxonomy.deepest(LabelMatrix(labels.positives, None, own))
    if len(several):
        raise ValueError(
            f"The row {several[0]} (counted from 0) has {counts[several[0]]} labels, but the model has one "
            "class a row; give one class a row."
        )
    classes = np.full(len(counts), None, object)
    classes[counts == 1] = np.array(own, object)[labels.positives.indices]
    return classes


def _class_words(labels: LabelMatrix, names: list[str]) -> list[str]:
    """Name the labels of data; numbers are places unless the model's classes are numbers themselves."""
    if labels.names is not None:
        return [str(name) for name in labels.names]
    if all(name.isdecimal() for name in names) or labels.n_labels > len(names):
        return [str(number) for number in range(labels.n_labels)]
    return names[: labels.n_labels]


def _is_above(name: str, names: list[str], taxonomy: Taxonomy | None) -> bool:
    return taxonomy is not None and name in taxonomy and taxonomy.under([name], names).nnz > 0
