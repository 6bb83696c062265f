"""The usual metrics of one model with one class a row in one table, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score

from labelweave.array_types import Array
from labelweave.labels import Taxonomy
from labelweave.metrics._class_rows import ClassRows, read_class_rows
from labelweave.metrics._class_values import NOT_A_CLASS, class_codes, read_predicted
from labelweave.metrics._inputs import mean_of_defined
from labelweave.metrics.class_ranking import reciprocal_ranks
from labelweave.metrics.logarithmic_loss import class_log_loss
from labelweave.metrics.taxonomic import parent_accuracy, taxonomic_loss

__all__ = ["class_summary"]


def class_summary(
    y_true: Any,
    probabilities: Any,
    classes: Sequence[Any] | Array | None = None,
    *,
    taxonomy: Taxonomy | None = None,
    y_pred: Any | None = None,
    sample_weight: Any | None = None,
) -> dict[str, float]:
    """Collect the usual metrics of class probabilities and of the classes predicted from them.

    Rows whose class was not observed are left out of all; with a taxonomy, rows
    whose truth is an inner node are left out of the accuracy and the mean
    reciprocal rank.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes, None or NaN where not observed; with a taxonomy also inner nodes.
    probabilities : DataFrame or array-like of shape (n, C)
        Probabilities of the classes; every row sums to 1.
    classes : sequence of length C or None, default=None
        The class of each column, by default a frame's columns, else 0, 1, ...
    taxonomy : Taxonomy or None, default=None
        A tree in which every class is a node.
    y_pred : array-like of shape (n,) or None, default=None
        Predicted classes, by default the most probable ones.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    dict of str to float
        "accuracy", "mean_reciprocal_rank" and "log_loss", with a taxonomy also
        "taxonomic_loss" and "parent_accuracy".  NaN where no row defines the metric.

    Raises
    ------
    ValueError
        If the shapes disagree, a row is no distribution, a truth is neither among
        the classes nor a node, a prediction is not among the classes or nothing was
        observed.

    Examples
    --------
    >>> from labelweave.metrics import class_summary
    >>> class_summary(["a", "b"], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"])["accuracy"]
    0.5
    """
    given = read_class_rows(y_true, probabilities, classes, sample_weight, taxonomy)
    predicted = _predicted_codes(given, y_pred)
    exact = given.of_known_class()
    table = {
        "accuracy": _accuracy(given, predicted),
        "mean_reciprocal_rank": mean_of_defined(reciprocal_ranks(exact), exact.weights),
        "log_loss": class_log_loss(given, taxonomy),
    }
    if taxonomy is None:
        return table
    names = [given.classes[code] for code in predicted]
    by_tree = {"taxonomic_loss": taxonomic_loss, "parent_accuracy": parent_accuracy}
    weights = given.weights
    return table | {
        name: metric(given.values, names, taxonomy, sample_weight=weights) for name, metric in by_tree.items()
    }


def _predicted_codes(given: ClassRows, y_pred: Any | None) -> npt.NDArray[np.intp]:
    """Number the predicted classes of the counted rows."""
    if y_pred is None:
        return given.per_row(lambda block, _: block.argmax(axis=1))
    values = read_predicted(y_pred, len(given.table))
    codes = class_codes(values, given.classes)
    other = np.flatnonzero(codes == NOT_A_CLASS)
    if len(other):
        raise ValueError(
            f"y_pred at row {other[0]} is {values[other[0]]!r}, which is not among the {len(given.classes)} "
            "classes; give one of them."
        )
    return codes[given.numbers]


def _accuracy(given: ClassRows, predicted: npt.NDArray[np.intp]) -> float:
    known = given.codes >= 0
    if not known.any():
        return float("nan")
    return float(accuracy_score(given.codes[known], predicted[known], sample_weight=given.weights[known]))
