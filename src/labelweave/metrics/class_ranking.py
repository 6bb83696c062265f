"""Metrics of class probabilities that look at the whole row: rank of the true class, error against rejection.

Scores of Seeger (2008), sections 6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, Floats
from labelweave.metrics._class_rows import ClassRows, read_class_rows
from labelweave.metrics._inputs import mean_of_defined

__all__ = ["error_reject_curve", "mean_reciprocal_rank"]


def mean_reciprocal_rank(
    y_true: Any,
    probabilities: Any,
    classes: Sequence[Any] | Array | None = None,
    *,
    sample_weight: Any | None = None,
) -> float:
    """Compute the mean of 1 / rank of the true class among the classes by falling probability.

    Called precision by Seeger (2008, section 6.1).  Ties count against the model:
    the rank is the number of classes that are at least as probable as the true one.
    Rows whose class was not observed are left out.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes, None or NaN where not observed.
    probabilities : DataFrame or array-like of shape (n, C)
        Probabilities of the classes; every row sums to 1.
    classes : sequence of length C or None, default=None
        The class of each column, by default a frame's columns, else 0, 1, ...
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float
        The mean, above 0 and at most 1 (best).

    Raises
    ------
    ValueError
        If the shapes disagree, a row is no distribution, a truth is not among the
        classes or nothing was observed.

    Examples
    --------
    >>> from labelweave.metrics import mean_reciprocal_rank
    >>> mean_reciprocal_rank(["a", "b", None], [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5]], ["a", "b"])
    0.75
    """
    given = read_class_rows(y_true, probabilities, classes, sample_weight)
    return mean_of_defined(reciprocal_ranks(given), given.weights)


def reciprocal_ranks(given: ClassRows) -> Floats:
    """Compute 1 / rank of the true class of every row.

    given: the rows, each with one of the classes as its truth.
    Shapes: result (m,).
    """
    return np.asarray(1.0 / given.per_row(_worst_ranks))


def error_reject_curve(
    y_true: Any,
    probabilities: Any,
    classes: Sequence[Any] | Array | None = None,
    *,
    sample_weight: Any | None = None,
) -> tuple[Floats, Floats]:
    """Compute the error on the rows that are predicted as ever more uncertain rows are rejected.

    Rows are rejected in the order of their largest probability (Seeger 2008,
    section 6.2, figures 3 and 4), equally certain ones together; the prediction
    is the most probable class, ties going to the lower column.  Rows whose
    class was not observed are left out.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes, None or NaN where not observed.
    probabilities : DataFrame or array-like of shape (n, C)
        Probabilities of the classes; every row sums to 1.
    classes : sequence of length C or None, default=None
        The class of each column, by default a frame's columns, else 0, 1, ...
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    rejected_fraction : ndarray of float64, shape (points,)
        The share of rejected rows, by weight, rising from 0; below 1, for the last
        point keeps the most certain rows.
    error : ndarray of float64, shape (points,)
        The share of wrong predictions among the other rows.

    Raises
    ------
    ValueError
        If the shapes disagree, a row is no distribution, a truth is not among the
        classes or nothing was observed.

    Examples
    --------
    >>> from labelweave.metrics import error_reject_curve
    >>> probabilities = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]]
    >>> rejected_fraction, error = error_reject_curve([0, 0, 1, 1], probabilities)
    >>> rejected_fraction.tolist()
    [0.0, 0.25, 0.5, 0.75]
    >>> error.tolist()
    [0.25, 0.0, 0.0, 0.0]
    """
    given = read_class_rows(y_true, probabilities, classes, sample_weight)
    certainty = given.per_row(lambda block, _: block.max(axis=1))
    wrong = given.per_row(lambda block, codes: block.argmax(axis=1) != codes)
    levels, level_of_row = np.unique(certainty, return_inverse=True)
    weight = np.bincount(level_of_row, given.weights, minlength=len(levels))
    errors = np.bincount(level_of_row, given.weights * wrong, minlength=len(levels))
    # sums from the certain end, so that where no row is wrong the error is exactly 0
    kept, kept_errors = np.cumsum(weight[::-1])[::-1], np.cumsum(errors[::-1])[::-1]
    return np.maximum(0.0, 1.0 - kept / kept[0]), kept_errors / kept


def _worst_ranks(block: Array, codes: npt.NDArray[np.intp]) -> Array:
    own = np.take_along_axis(block, codes[:, None], axis=1)
    return np.asarray((block >= own).sum(axis=1))
