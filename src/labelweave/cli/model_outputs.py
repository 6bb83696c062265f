"""What a model says of rows: scores, probabilities, one class a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.cli.model_rows import Model, classifier_of
from labelweave.decisions import layers
from labelweave.estimators import TableModel
from labelweave.inference.map import MapResult

__all__ = [
    "best_labelings",
    "chosen_classes",
    "has_one_class_a_row",
    "has_probabilities",
    "probabilities_of",
    "ranking_offsets",
    "scores_of",
]

Array = npt.NDArray[Any]


def has_one_class_a_row(model: Model) -> bool:
    """Say whether the model picks one class a row.

    Parameters
    ----------
    model : TableModel or classifier
        The model.

    Returns
    -------
    bool
        Whether it does.
    """
    return classifier_of(model)._form.kind != "labels"


def has_probabilities(model: Model) -> bool:
    """Say whether the model gives probabilities.

    Parameters
    ----------
    model : TableModel or classifier
        The model.

    Returns
    -------
    bool
        Whether it does.
    """
    return layers.with_probabilities(classifier_of(model)) is not None


def scores_of(model: Model, X: Any) -> Array:
    """Score rows.

    Parameters
    ----------
    model : TableModel or classifier
        The model.
    X : DataFrame or array of n rows
        The rows, in the form the model takes.

    Returns
    -------
    ndarray of shape (n, L)
        The scores, two columns for two classes as well.
    """
    scores = model.decision_function(X)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def ranking_offsets(model: Model) -> Array:
    """Give what is added to the scores of labels to rank them.

    Parameters
    ----------
    model : TableModel or classifier
        The model.

    Returns
    -------
    ndarray of shape (L,) or (1,)
        The thresholds that scores have been lessened by where every label has its own, otherwise 0.
    """
    return np.zeros(1) if has_one_class_a_row(model) else layers.ranking_offsets(classifier_of(model))


def probabilities_of(model: Model, X: Any) -> Array:
    """Compute the probabilities of classes or labels.

    Parameters
    ----------
    model : TableModel or classifier
        The model.
    X : DataFrame or array of n rows
        The rows, in the form the model takes.

    Returns
    -------
    ndarray of shape (n, L)
        The probabilities.

    Raises
    ------
    ValueError
        If the model gives none.
    """
    source = layers.with_probabilities(classifier_of(model))
    if source is None:
        raise ValueError(
            f"The model is a {type(classifier_of(model)).__name__}, which gives scores and no probabilities; "
            "fit one with --model kernel-logistic, or with --calibrate."
        )
    return np.asarray(source.predict_proba(_features(model, X)))


def _features(model: Model, X: Any) -> Any:
    return model.vectorizer.transform(X) if isinstance(model, TableModel) else X


def best_labelings(model: Model, X: Any) -> MapResult:
    """Find the best label sets of a model with a graph of labels.

    Parameters
    ----------
    model : TableModel or classifier
        The model.
    X : DataFrame or array of n rows
        The rows, in the form the model takes.

    Returns
    -------
    MapResult
        The label sets with their certificates.
    """
    found: MapResult = classifier_of(model).predict_map(_features(model, X))
    return found


def chosen_classes(model: Model, X: Any, values: Array) -> npt.NDArray[np.intp]:
    """Choose one class a row by the model's rule.

    Parameters
    ----------
    model : TableModel or classifier
        One with one class a row.
    X : DataFrame or array of n rows
        The rows, in the form the model takes.
    values : ndarray of shape (n, C)
        Their scores or probabilities.

    Returns
    -------
    ndarray of int, shape (n,)
        Class numbers.
    """
    return layers.chosen_classes(classifier_of(model), values, lambda: model.predict(X))
