"""Single-label metrics: rank of the true class, error against rejection, and losses on a taxonomy.

Scores follow Seeger (2008), sections 6.1 and 6.2, and Cai and Hofmann (2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import hmean

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.labels import LabelMatrix, Taxonomy, read_class_columns
from labelweave.labels.class_columns import ClassColumns, labels_of_columns
from labelweave.metrics import _classes
from labelweave.metrics._classes import Classes, ClassRows
from labelweave.metrics._inputs import mean_of_defined, read_weights


@checked
def mean_reciprocal_rank(
    y_true: Any, probabilities: Any, classes: Classes = None, *, sample_weight: Any = None
) -> float:
    """Compute the mean reciprocal rank of the true class, with classes sorted by descending probability.

    Called precision by Seeger (2008, section 6.1).  Ties count against the model: the rank is the number of
    classes that are at least as probable as the true one.  For parameters and errors see :func:`log_loss`.

    Returns
    -------
    float
        The mean, above 0 and at most 1 (best).

    Examples
    --------
    >>> from labelweave.metrics import mean_reciprocal_rank
    >>> mean_reciprocal_rank(["a", "b", None], [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5]], ["a", "b"])
    0.75
    """
    given = _classes.read_class_rows(y_true, probabilities, classes, sample_weight)
    return mean_of_defined(reciprocal_ranks(given), given.weights)


def reciprocal_ranks(given: ClassRows) -> Floats:
    worst_ranks = given.per_row(
        lambda block, codes: (block >= np.take_along_axis(block, codes[:, None], axis=1)).sum(axis=1)
    )
    return np.asarray(1.0 / worst_ranks)


@checked
def column_accuracy_score(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> dict[str, float]:
    """Compute the accuracy of each column of classes, the share of observed cells predicted correctly.

    Parameters
    ----------
    y_true : DataFrame, array-like of shape (n, m) or LabelMatrix
        The true class of every column; None or NaN where unobserved.
    y_pred : DataFrame or array-like of shape (n, m)
        The predicted classes.  Two frames are matched by the names of their columns.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight per row, by default ones.

    Returns
    -------
    dict of str to float
        The accuracy by the name of the column, NaN for one without an observed cell.

    Raises
    ------
    ValueError
        If the numbers of rows or the columns differ.

    Examples
    --------
    >>> from labelweave.metrics import column_accuracy_score
    >>> column_accuracy_score([["a", 1], ["b", None]], [["a", 2], ["c", 2]])
    {'0': 0.5, '1': 0.0}
    """
    truth = y_true if isinstance(y_true, LabelMatrix) else read_class_columns(y_true)
    columns = truth.class_columns
    if columns is None:
        raise ValueError(
            "y_true has no columns of classes; pass a table of them, as read_class_columns does."
        )
    found = labels_of_columns(y_pred, columns)
    if len(found) != len(truth):
        raise ValueError(f"y_true has {len(truth)} rows but y_pred has {len(found)}; pass the same rows.")
    predicted = found.positives[:, : truth.n_labels]
    return column_accuracies(truth, predicted, columns, read_weights(sample_weight, truth))


def column_accuracies(
    truth: LabelMatrix, sets: Any, columns: ClassColumns, weights: Floats
) -> dict[str, float]:
    """Compute the accuracies of :func:`column_accuracy_score` from labels and label sets (n, L).

    Those of classes that the columns lack come last.
    """
    hits = sp.csr_array(truth.positives.multiply(sets))
    right, seen = (
        [weights @ (abs(table[:, part]).sum(axis=1) > 0) for part in columns.slices]
        for table in (hits, truth.observed_pattern())
    )
    with np.errstate(invalid="ignore"):
        return dict(zip(columns.names, np.divide(right, seen).tolist(), strict=True))


@checked
def error_reject_curve(
    y_true: Any, probabilities: Any, classes: Classes = None, *, sample_weight: Any = None
) -> tuple[Floats, Floats]:
    """Compute the error on the accepted rows as the most uncertain rows are rejected first.

    Rows are rejected in ascending order of their largest probability (Seeger 2008, section 6.2, figures 3
    and 4), ties together; the prediction is the most probable class, and ties go to the first column.
    For parameters and errors see :func:`log_loss`.

    Returns
    -------
    rejected_fraction : ndarray of float64, shape (points,)
        The fraction of rejected rows, by weight, from 0 upwards; the last point keeps the most certain rows.
    error : ndarray of float64, shape (points,)
        The fraction of wrong predictions among the accepted rows.

    Examples
    --------
    >>> from labelweave.metrics import error_reject_curve
    >>> probabilities = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]]
    >>> rejected_fraction, error = error_reject_curve([0, 0, 1, 1], probabilities)
    >>> rejected_fraction.tolist(), error.tolist()
    ([0.0, 0.25, 0.5, 0.75], [0.25, 0.0, 0.0, 0.0])
    """
    given = _classes.read_class_rows(y_true, probabilities, classes, sample_weight)
    certainty = given.per_row(lambda block, _: block.max(axis=1))
    wrong = given.per_row(lambda block, codes: block.argmax(axis=1) != codes)
    levels, level_of_row = np.unique(certainty, return_inverse=True)
    weight = np.bincount(level_of_row, given.weights, minlength=len(levels))
    errors = np.bincount(level_of_row, given.weights * wrong, minlength=len(levels))
    # summed from the most certain row on, so that the error is exactly 0 where no row is wrong
    kept, kept_errors = np.cumsum(weight[::-1])[::-1], np.cumsum(errors[::-1])[::-1]
    return np.maximum(0.0, 1.0 - kept / kept[0]), kept_errors / kept


@checked
def harmonic_mean_accuracy(
    y_true: Any, y_pred: Any, seen_classes: Any, *, sample_weight: Any = None
) -> float:
    """Compute the harmonic mean of the accuracies on seen and unseen classes.

    The measure of generalized zero-shot classification (Xian, Lampert, Schiele and Akata 2018): each accuracy
    is the mean over its classes of the weighted fraction of correct rows, predicted among all classes.  For
    the other parameters and errors see :func:`taxonomic_loss`.

    Parameters
    ----------
    seen_classes : array-like
        The classes of the training rows.

    Returns
    -------
    float
        The mean, from 0 to 1 (best); NaN if there is no row of a seen class, or none of an unseen one.

    Examples
    --------
    >>> from labelweave.metrics import harmonic_mean_accuracy
    >>> truth, predicted = ["cat", "cat", "dog", "yak"], ["cat", "dog", "dog", "yak"]
    >>> round(harmonic_mean_accuracy(truth, predicted, seen_classes=["cat", "dog"]), 3)
    0.857
    """
    truths = _classes.read_values(y_true, "y_true")
    predictions = _classes.read_predicted(y_pred, len(truths))
    weights = read_weights(sample_weight, truths)
    known = _classes.observed_rows(truths != None, weights)  # noqa: E711
    weights = weights[known]
    names, codes = np.unique([_classes.as_text(value) for value in truths[known]], return_inverse=True)
    predicted = np.array([_classes.as_text(value) for value in predictions[known]])
    shares = np.bincount(codes, (names[codes] == predicted) * weights) / np.bincount(codes, weights)
    seen = np.isin(
        names, [str(_classes.as_text(value)) for value in _classes.read_values(seen_classes, "seen_classes")]
    )
    if seen.all() or not seen.any():
        return float("nan")
    return float(hmean([shares[seen].mean(), shares[~seen].mean()]))


@checked
def taxonomic_loss(y_true: Any, y_pred: Any, taxonomy: Taxonomy, *, sample_weight: Any = None) -> float:
    """Compute the mean of half the path length between the true and the predicted node.

    It is 1 between two leaves of the same parent, and the number of levels up to the common ancestor between
    two leaves of equal depth.  A prediction m levels below a true inner node costs m / 2, whatever the node.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Names of nodes, None or NaN where not observed; such rows are ignored.
    y_pred : array-like of shape (n,)
        Names of nodes.
    taxonomy : Taxonomy
        The tree.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight per row, by default ones.

    Returns
    -------
    float
        The loss, in levels of the tree, at least 0 (best).

    Raises
    ------
    ValueError
        If the lengths differ, a name is not a node, a prediction is missing or nothing is observed.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import taxonomic_loss
    >>> pairs = [("all", "cat"), ("all", "dog"), ("dog", "poodle"), ("dog", "boxer")]
    >>> taxonomic_loss(["poodle", "poodle", None], ["boxer", "cat", "cat"], Taxonomy(pairs))
    1.25
    """
    truths, predictions, weights = _read_nodes(y_true, y_pred, taxonomy, sample_weight)
    true_names, rows = np.unique(truths, return_inverse=True)
    predicted_names, columns = np.unique(predictions, return_inverse=True)
    pairs, places = np.unique(rows * len(predicted_names) + columns, return_inverse=True)
    of_truth, of_prediction = np.divmod(pairs, len(predicted_names))
    distances = taxonomy._pair_distances(
        true_names[of_truth].tolist(), predicted_names[of_prediction].tolist()
    )
    return mean_of_defined(distances[places], weights)


@checked
def parent_accuracy(y_true: Any, y_pred: Any, taxonomy: Taxonomy, *, sample_weight: Any = None) -> float:
    """Compute the fraction of rows whose prediction has the same parent as the truth.

    A class without a parent is its own group.  A truth at an inner node counts if all leaves below it have
    the same parent; otherwise the row is ignored.  A prediction at an inner node follows the same rule, and
    is wrong if its leaves have several parents.  For parameters and errors see :func:`taxonomic_loss`.

    Returns
    -------
    float
        The fraction, from 0 to 1 (best); NaN if no row counts.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import parent_accuracy
    >>> pairs = [("all", "cat"), ("all", "dog"), ("dog", "poodle"), ("dog", "boxer")]
    >>> parent_accuracy(["poodle", "cat", "dog"], ["boxer", "boxer", "boxer"], Taxonomy(pairs))
    0.6666666666666666
    """
    truths, predictions, weights = _read_nodes(y_true, y_pred, taxonomy, sample_weight)
    parents = {str(name): _told_parent(str(name), taxonomy) for name in np.unique([*truths, *predictions])}
    right = [
        np.nan if parents[truth] is None else float(parents[truth] == parents[prediction])
        for truth, prediction in zip(truths, predictions, strict=True)
    ]
    return mean_of_defined(np.asarray(right, np.float64), weights)


def _told_parent(name: str, taxonomy: Taxonomy) -> str | None:
    """Return the common parent of all leaves below a node, or None; a leaf without one is its own group."""
    leaves = taxonomy.leaves_below(name)
    above = taxonomy.parents_of(leaves)
    parents = {leaf if parent is None else parent for leaf, parent in zip(leaves, above, strict=True)}
    return parents.pop() if len(parents) == 1 else None


def _read_nodes(
    y_true: Any, y_pred: Any, taxonomy: Taxonomy, sample_weight: Any
) -> tuple[Array, Array, Floats]:
    truths = _classes.read_values(y_true, "y_true")
    predictions = _classes.read_predicted(y_pred, len(truths))
    weights = read_weights(sample_weight, truths)
    seen = _classes.observed_rows(truths != None, weights)  # noqa: E711
    truths, predictions = as_nodes(truths, "y_true", taxonomy), as_nodes(predictions, "y_pred", taxonomy)
    return truths[seen], predictions[seen], weights[seen]


def as_nodes(values: Array, given: str, taxonomy: Taxonomy) -> Array:
    names = [_classes.as_text(value) for value in values]
    for row, name in enumerate(names):
        if name is not None and name not in taxonomy:
            raise ValueError(
                f"{given} at row {row} is {values[row]!r}, not a node of the taxonomy; pass names of "
                f"its {len(taxonomy)} nodes."
            )
    return np.asarray(names, dtype=object)
