"""Classifiers inside one another, the one that decides outside, the one that scores inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import PerLabel, RowsByClasses
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.calibrated_label import CalibratedLabelClassifier
from labelweave.decisions.label_scores import decision_level

__all__ = ["chosen_classes", "innermost", "layers", "ranking_offsets", "with_probabilities"]


def layers(classifier: Any) -> list[Any]:
    """List a fitted classifier and those it is around."""
    found = [classifier]
    while isinstance(found[-1], DecisionClassifier):
        found.append(found[-1].estimator_)
    return found


def innermost(classifier: Any) -> Any:
    """Give the classifier inside wrappers that decide."""
    return layers(classifier)[-1]


def with_probabilities(classifier: Any) -> Any | None:
    """Give what has the probabilities of a classifier: label sets with a guarantee leave them as they are.

    Returns the outermost layer with ``predict_proba``.
    """
    return next((layer for layer in layers(classifier) if hasattr(layer, "predict_proba")), None)


def ranking_offsets(classifier: Any) -> PerLabel:
    """Give what is added to the scores of labels to rank them.

    classifier: fitted, with many labels a row.
    Returns the thresholds that scores have been lessened by, the least of them 0.
    """
    total = np.zeros(len(classifier.label_names_))
    for layer in layers(classifier):
        if isinstance(layer, CalibratedLabelClassifier):  # whose probabilities rank labels
            break
        total = total + getattr(layer, "thresholds_", 0.0)
        if isinstance(layer, DecisionClassifier) and decision_level(layer.estimator_, layer.response_method):
            break  # thresholds inside are none of probabilities
    return np.asarray(total - total.min())


def chosen_classes(
    classifier: Any, values: RowsByClasses, predict: Callable[[], npt.NDArray[Any]]
) -> npt.NDArray[np.intp]:
    """Choose one class a row by the classifier's rule.

    classifier: fitted, with one class a row.
    values: the scores or probabilities of n rows.
    predict: gives the classes that the classifier predicts for these rows; called where values alone do not
        tell.
    Shapes: result (n,).
    """
    rule = getattr(classifier, "decision", "most_probable")
    if rule == "most_probable" and classifier._form.kind == "multiclass":
        return np.asarray(values.argmax(axis=1))
    # of two classes the second may need another probability than 1/2
    place = {str(name): number for number, name in enumerate(classifier.classes_)}
    return np.array([place[str(name)] for name in predict()], np.intp)
