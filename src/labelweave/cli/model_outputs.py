"""What a model says of rows: scores, probabilities, one class a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import PerLabel, RowsByClasses, RowsByLabels
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


def has_one_class_a_row(model: Model) -> bool:
    """Say whether the model picks one class a row."""
    return classifier_of(model)._form.kind != "labels"


def has_probabilities(model: Model) -> bool:
    """Say whether the model gives probabilities."""
    return layers.with_probabilities(classifier_of(model)) is not None


def scores_of(model: Model, X: Any) -> RowsByLabels:
    """Score rows.

    X: the rows, in the form the model takes.
    Returns the scores, two columns for two classes as well.
    """
    scores = model.decision_function(X)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def ranking_offsets(model: Model) -> PerLabel:
    """Give what is added to the scores of labels to rank them.

    Returns the thresholds that scores have been lessened by where every label has its own, otherwise 0.
    """
    return np.zeros(1) if has_one_class_a_row(model) else layers.ranking_offsets(classifier_of(model))


def probabilities_of(model: Model, X: Any) -> RowsByLabels:
    """Compute the probabilities of classes or labels.

    X: the rows, in the form the model takes.
    Raises ValueError if the model gives none.
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

    X: the rows, in the form the model takes.
    Returns the label sets with their certificates.
    """
    found: MapResult = classifier_of(model).predict_map(_features(model, X))
    return found


def chosen_classes(model: Model, X: Any, values: RowsByClasses) -> npt.NDArray[np.intp]:
    """Choose one class a row by the model's rule.

    model: one with one class a row.
    X: the rows, in the form the model takes.
    Shapes: result (n,).
    """
    return layers.chosen_classes(classifier_of(model), values, lambda: model.predict(X))
