"""Decisions from the class probabilities of every row.

A decision should minimize the expected loss under the probabilities: for accuracy that is the most
probable class, for the loss on a taxonomy the class at the smallest expected distance, for parent accuracy a
child of the most probable parent (Seeger 2008, section 6.1 and footnote 11).  The model may also abstain
on a row (section 6.2).  Rows are processed in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import numbers_of
from labelweave.foundation.frames import column_labels
from labelweave.labels.class_probabilities import is_missing, probability_blocks, read_class_probabilities
from labelweave.labels.label_names import rows_by_name

Integers = npt.NDArray[np.intp]

_ROUNDING = 64 * np.finfo(np.float64).eps  # ties must not depend on the order of summation


@checked
def most_probable(probabilities: Any) -> Integers:
    """Choose the class with the largest probability.

    It has the highest expected accuracy and the highest expected reciprocal rank.

    Parameters
    ----------
    probabilities : DataFrame or array-like of shape (n, C)
        Probabilities of the classes; every row sums to 1.

    Returns
    -------
    ndarray of int, shape (n,)
        Column numbers; ties go to the lower one.

    Raises
    ------
    ValueError
        If a row is not a distribution.

    Examples
    --------
    >>> from labelweave.postprocessing import most_probable
    >>> most_probable([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]]).tolist()
    [1, 0]
    """
    return _by_row(read_class_probabilities(probabilities), lambda block: block.argmax(axis=1))


@checked
def least_expected_loss(probabilities: Any, losses: Any) -> Integers:
    """Choose the decision with the smallest expected loss, sum over c of P(c) losses[c, decision].

    For probabilities and errors see :func:`most_probable`.

    Parameters
    ----------
    losses : array-like of shape (C, D) or DataFrame by class
        The loss of each decision (column) for each true class (row); ``taxonomy.distances(classes)`` for the
        taxonomic loss.  Further columns are further decisions, such as to abstain at a fixed loss.

    Returns
    -------
    ndarray of int, shape (n,)
        Column numbers of ``losses``; ties, up to rounding, go to the lower one.

    Examples
    --------
    Classes 0 and 1 are close, 2 is far: deciding for 1 is never far wrong.

    >>> from labelweave.postprocessing import least_expected_loss
    >>> distances = [[0, 1, 2], [1, 0, 2], [2, 2, 0]]
    >>> least_expected_loss([[0.3, 0.31, 0.39], [0.1, 0.1, 0.8]], distances).tolist()
    [1, 2]
    """
    table = read_class_probabilities(probabilities)
    loss_table = _read_losses(_by_class(losses, probabilities, "losses"), table.shape[1])
    tolerance = _ROUNDING * float(np.abs(loss_table).max())

    def decide(block: Array) -> Array:
        expected = block.astype(np.float64) @ loss_table
        least = expected.min(axis=1, keepdims=True)
        return np.asarray((expected <= least + tolerance).argmax(axis=1))

    return _by_row(table, decide, loss_table.shape[1])


@checked
def best_parent(probabilities: Any, parent_of_class: Sequence[Any] | Array) -> Integers:
    """Choose the parent whose classes have the largest total probability, then its most probable class.

    This maximizes the expected parent accuracy (Seeger 2008, footnote 11).  For probabilities and errors see
    :func:`most_probable`.

    Parameters
    ----------
    parent_of_class : sequence of length C or Series by class
        The parent of every class, as ``taxonomy.parents_of(classes)`` returns them; a class without a parent,
        None or NaN, is its own group.

    Returns
    -------
    ndarray of int, shape (n,)
        Column numbers of the classes; ties between parents, up to rounding, go to the one with the first
        class, and ties within a parent to the first class.

    Examples
    --------
    Class 2 is the most probable class, but the parent of 0 and 1 is more probable than its parent.

    >>> from labelweave.postprocessing import best_parent
    >>> best_parent([[0.25, 0.35, 0.4]], ["cats", "cats", "dogs"]).tolist()
    [1]
    """
    table = read_class_probabilities(probabilities)
    parents = _by_class(parent_of_class, probabilities, "parent_of_class")
    groups = _group_numbers(parents, table.shape[1])
    membership = sp.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))

    def decide(block: Array) -> Array:
        masses = block.astype(np.float64) @ membership
        best = (masses >= masses.max(axis=1, keepdims=True) - _ROUNDING).argmax(axis=1)
        return np.asarray(np.where(groups == best[:, None], block, -1.0).argmax(axis=1))

    return _by_row(table, decide)


@checked
def rejected(
    probabilities: Any, *, confidence: float | None = None, fraction: float | None = None
) -> npt.NDArray[np.bool_]:
    """Return the rows on which to abstain because their largest probability is small.

    For probabilities and errors see :func:`most_probable`.

    Parameters
    ----------
    confidence : float or None, default=None
        Reject rows whose largest probability is below this, from 0 to 1; pass this or ``fraction``.
    fraction : float or None, default=None
        Reject this fraction of the rows, from 0 to 1: the least certain ones; ties go to the earlier row.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the model should abstain.

    Examples
    --------
    >>> from labelweave.postprocessing import rejected
    >>> probabilities = [[0.9, 0.1], [0.5, 0.5], [0.3, 0.7]]
    >>> rejected(probabilities, confidence=0.8).tolist()
    [False, True, True]
    >>> rejected(probabilities, fraction=1 / 3).tolist()
    [False, True, False]
    """
    if (confidence is None) == (fraction is None):
        given = (
            "Neither confidence nor fraction was"
            if confidence is None
            else "Both confidence and fraction were"
        )
        raise ValueError(f"{given} given; pass exactly one of them.")
    name, value = ("confidence", confidence) if fraction is None else ("fraction", fraction)
    if value is None or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is {value!r}; pass a number from 0 to 1.")
    table = read_class_probabilities(probabilities)
    largest = _by_row(table, lambda block: block.max(axis=1), dtype=table.dtype)
    if fraction is None:
        return np.asarray(largest < confidence)
    undecided = np.zeros(len(table), bool)
    undecided[np.argsort(largest, kind="stable")[: round(fraction * len(table))]] = True
    return undecided


def _by_row(
    table: Array, decide: Callable[[Array], Array], width: int = 0, dtype: npt.DTypeLike = np.intp
) -> Array:
    result = np.empty(len(table), dtype)
    for rows, block in probability_blocks(table, width):
        result[rows] = decide(block)
    return result


def _by_class(given: Any, probabilities: Any, what: str) -> Any:
    """Reorder the rows of a DataFrame or Series like the classes that name the probabilities' columns."""
    columns = column_labels(probabilities)
    return given if columns is None else rows_by_name(given, [str(name) for name in columns], what, "class")


def _read_losses(losses: Any, n_classes: int) -> npt.NDArray[np.float64]:
    table = numbers_of(losses, "losses").astype(np.float64)
    if table.ndim != 2 or len(table) != n_classes or table.shape[1] == 0:
        raise ValueError(
            f"losses has shape {table.shape} but there are {n_classes} classes; pass one row per true "
            "class and one column per decision."
        )
    if not np.isfinite(table).all():
        truth, decision = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"losses at row {truth}, column {decision} is {table[truth, decision]}; pass finite losses."
        )
    return table


def _group_numbers(parent_of_class: Sequence[Any] | Array, n_classes: int) -> Integers:
    is_list = isinstance(parent_of_class, Iterable) and getattr(parent_of_class, "ndim", 1) == 1
    parents = list(parent_of_class) if is_list else [parent_of_class]
    if not is_list or not all(isinstance(parent, Hashable) for parent in parents):
        raise ValueError("parent_of_class is not a list of names or numbers; pass one parent per class.")
    if len(parents) != n_classes:
        raise ValueError(
            f"parent_of_class has {len(parents)} entries but there are {n_classes} classes; pass one parent "
            "per class, None for a class without one."
        )
    # a tuple makes a group of its own, since no name equals it
    keys = [("class", k) if is_missing(parent) else parent for k, parent in enumerate(parents)]
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return np.asarray([number[key] for key in keys], np.intp)
