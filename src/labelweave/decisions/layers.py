"""Classifiers inside one another, those that decide around the one that scores, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import RowsByClasses
from labelweave.decisions.base import layers
from labelweave.decisions.calibrated_label import CalibratedLabelClassifier
from labelweave.decisions.conformal_label import ConformalLabelClassifier
from labelweave.decisions.tuned_threshold import TunedThresholdClassifier
from labelweave.inference import SigmoidCalibration

_SHARES = {
    "false_negatives": "a row's true labels that are not predicted",
    "false_discoveries": "a row's predicted labels that are wrong",
}
_OBJECTIVES = {"precision": "with precision {:g} and as many hits as can be",
               "recall": "with recall {:g} and as few predictions as can be"}  # fmt: skip


def innermost(classifier: Any) -> Any:
    """Give the classifier inside wrappers that decide."""
    return layers(classifier)[-1]


def with_probabilities(classifier: Any) -> Any | None:
    """Give the outermost layer with probabilities: guaranteed label sets leave them as they are."""
    return next((layer for layer in layers(classifier) if hasattr(layer, "predict_proba")), None)


def chosen_classes(
    classifier: Any, values: RowsByClasses, predict: Callable[[], npt.NDArray[Any]]
) -> npt.NDArray[np.intp]:
    """Choose one class a row by the classifier's rule, given n rows of scores or probabilities.

    predict: gives the classes that the classifier predicts for these rows; called where values alone do not
    tell.
    """
    rule = getattr(classifier, "decision", "most_probable")
    if rule == "most_probable" and classifier._form.kind == "multiclass":
        return np.asarray(values.argmax(axis=1))
    # of two classes the second may need another probability than 1/2
    place = {str(name): number for number, name in enumerate(classifier.classes_)}
    return np.array([place[str(name)] for name in predict()], np.intp)


def decision_words(classifier: Any, is_inside: bool = False) -> str:
    """Say what a classifier that decides has chosen, without what is inside."""
    if isinstance(classifier, TunedThresholdClassifier):
        return _tuned_words(classifier)
    if isinstance(classifier, CalibratedLabelClassifier):
        return _calibrated_words(classifier, is_inside)
    return (
        f"threshold {classifier.threshold_:.4g} on {classifier.n_calibration_rows_} calibration rows, "
        f"{classifier.control.replace('_', ' ')} {classifier.calibration_risk_:.4g} there"
    )


def _tuned_words(classifier: Any) -> str:
    value = f"{classifier.objective_value_:.4g}"
    where = "on all rows" if classifier.cv == "prefit" else "on held-out rows"
    aim = f"best for {classifier.objective}"
    if classifier.objective in _OBJECTIVES:
        aim = _OBJECTIVES[classifier.objective].format(classifier.target)
    aim += f", {value} {where}"
    if classifier.scope == "top_k":
        return f"the {classifier.k_} best labels of every row, {aim}"
    low, high = float(np.min(classifier.thresholds_)), float(np.max(classifier.thresholds_))
    if classifier.scope == "global":
        return f"the threshold {low:.4g}, {aim}"
    pooled = f", pooling {classifier.pooling_:g}" if getattr(classifier, "pooling_", 0) else ""
    return f"a threshold a label, from {low:.4g} to {high:.4g}{pooled}, {aim}"


def _calibrated_words(classifier: Any, is_inside: bool) -> str:
    pooled = ", rare labels lean on the others" if classifier.pooling else ""
    kind = "sigmoid" if isinstance(classifier.calibration_, SigmoidCalibration) else "isotonic"
    chosen = ", the better ones on held-out rows" if classifier.method == "auto" else ""
    maps = f"probabilities by {kind} maps{chosen}{pooled}"
    if is_inside:
        return maps
    sets = "more probable than 1/2" if classifier.decision == "half" else "of the greatest expected F1"
    return f"{maps}; label sets {sets}"


def guarantee_words(classifier: Any) -> str | None:
    """State what a classifier guarantees of its label sets; None if nothing."""
    if not isinstance(classifier, ConformalLabelClassifier):
        return None
    settings: Any = classifier
    share = f"the expected share of {_SHARES[settings.control]} is at most {settings.level:g}"
    is_mean = settings.guarantee == "expectation"
    how = "on average" if is_mean else f"with probability {settings.confidence:g}"
    rows = f"for rows like the {settings.n_calibration_rows_} calibration rows"
    return f"{rows} {share}, {how} over draws of the calibration rows"


def layer_words(classifier: Any) -> list[tuple[Any, str]]:
    """Say of all layers around the one that scores, the outermost first, what they have chosen."""
    around = layers(classifier)[:-1]
    return [(layer, decision_words(layer, layer is not classifier)) for layer in around]
