"""Nested classifiers: meta-classifiers around the one that scores, and descriptions of them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.decisions.base import layers
from labelweave.decisions.conformal_label import ConformalLabelClassifier
from labelweave.decisions.hierarchical import HierarchicalClassifier
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.foundation.array_types import PerLabel, RowsByClasses, RowsByLabels
from labelweave.labels import Taxonomy
from labelweave.metrics.known_labels import label_probabilities, label_scores

_SHARES = {
    "false_negatives": "a row's true labels that are not predicted",
    "false_discoveries": "a row's predicted labels that are wrong",
}


def innermost(classifier: Any) -> Any:
    return layers(classifier)[-1]


def taxonomy_of(classifier: Any) -> Taxonomy | None:
    """Return the taxonomy of a model, used in predictions or for its label covariance."""
    inner = innermost(classifier)
    found = next(filter(None, (getattr(layer, "taxonomy_", None) for layer in layers(classifier))), None)
    if not found and isinstance(inner, (KernelLogisticClassifier, MaxMarginClassifier)):
        found = inner.label_covariance
    return found if isinstance(found, Taxonomy) else None


def with_probabilities(classifier: Any) -> Any | None:
    """Return the outermost layer with probabilities: conformal label sets do not change them."""
    return next((layer for layer in layers(classifier) if hasattr(layer, "predict_proba")), None)


class Shown(NamedTuple):
    """The labels to show: one number per label and row, its kind, and whether the label is predicted.

    word: "probability", where the classifier has probabilities, or "score".
    numbers, predicted (n, L)
    """

    word: str
    numbers: RowsByLabels
    predicted: npt.NDArray[np.bool_]


def shown_labels(classifier: Any, X: Any) -> Shown:
    """Return for the labels of rows the number to sort by and to compare with thresholds."""
    has_probabilities, limits = hasattr(classifier, "predict_proba"), shown_thresholds(classifier)
    ask = label_probabilities if has_probabilities else label_scores
    numbers = ask(classifier, X, len(classifier.label_names_))
    if limits is not None and (has_probabilities or not limits.any()):
        predicted = numbers > limits
    else:  # rules over whole rows, or rounding in a subtraction
        predicted = np.concatenate([block > 0 for block in classifier._deciding_blocks(X)])
    return Shown("probability" if has_probabilities else "score", numbers, predicted)


def shown_thresholds(classifier: Any) -> PerLabel | None:
    """Return the thresholds of these numbers; None where label sets do not use thresholds."""
    has_probabilities = hasattr(classifier, "predict_proba")
    if getattr(classifier, "_enforces", False) or isinstance(classifier, HierarchicalClassifier):
        return None  # the inner classifier may have thresholds of its own
    if classifier._form.columns is not None:
        return None
    own = getattr(classifier, "thresholds_", None)
    if own is not None:
        return np.asarray(own if has_probabilities else own - np.min(own))
    by_row = has_probabilities or hasattr(classifier, "k_")
    return None if by_row else np.zeros(len(classifier.label_names_))


def chosen_classes(
    classifier: Any, values: RowsByClasses, predict: Callable[[], npt.NDArray[Any]]
) -> npt.NDArray[np.intp]:
    """Choose one class per row by the classifier's rule, from n rows of scores or probabilities.

    predict: returns the classifier's predictions of these rows; called only where values do not suffice.
    """
    rule = getattr(classifier, "decision", "most_probable")
    if rule == "most_probable" and classifier._form.one_of is not None:
        return np.asarray(values.argmax(axis=1))
    # of two classes the second may have another threshold than 1/2
    place = {str(name): number for number, name in enumerate(classifier.classes_)}
    return np.array([place[str(name)] for name in predict()], np.intp)


def guarantee_words(classifier: Any) -> str | None:
    """Return the guarantee of a classifier's label sets; None without one."""
    if not isinstance(classifier, ConformalLabelClassifier):
        return None
    # settings of the fit; a loaded model has the parameters that it was saved with
    settings: Any = SimpleNamespace(
        **{**classifier.get_params(deep=False), **vars(classifier).get("_guaranteed", {})}
    )
    if settings.cv not in (None, "prefit"):
        return None  # there is no proven guarantee with folds
    share = f"the expected share of {_SHARES[settings.control]}"
    if classifier._one_of is not None:
        share = "the probability that the class is not in the set"
    share += f" is at most {settings.level:g}"
    is_mean = settings.guarantee == "expectation"
    how = "on average" if is_mean else f"with probability {settings.confidence:g}"
    rows = f"for rows like the {classifier.n_calibration_rows_} calibration rows"
    return f"{rows} {share}, {how} over draws of the calibration rows"


def layer_words(classifier: Any) -> list[tuple[Any, str]]:
    """Describe what each layer around the one that scores has chosen, the outermost first."""
    around = layers(classifier)[:-1]
    return [(layer, layer._words(layer is not classifier)) for layer in around]
