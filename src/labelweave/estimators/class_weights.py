"""Weights of classes, as scikit-learn has them: factors of the weights of rows, or of labels' entries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.targets import TargetForm, weights_of_entries
from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.labels import LabelMatrix
from labelweave.model_files import ModelFileError

SignFactors: TypeAlias = tuple[PerLabel, PerLabel]
"""What the losses of positive and of negative entries are multiplied with, (L,) each."""

_SIGNS = {0: 0, -1: 0, 1: 1}
_NO_WEIGHT = 1e-12  # of the weight of all rows: rounding of a difference


def weights_by_class(
    class_weight: Any, labels: LabelMatrix, form: TargetForm, weights: PerRow
) -> tuple[PerRow, SignFactors | None]:
    """Weight rows by their class where there are three or more, else entries by their sign.

    A row known to an inner node of a taxonomy has the mean weight of the classes below, one whose class is
    known by probabilities the expected weight.
    weights (n,): those of the rows, by which "balanced" counts.
    Raises ValueError if a weight is no finite number from 0 on, or is for what is no class.
    """
    factors = class_factors(class_weight, form, counts_by_class(labels, weights))
    return weighted_by_factors(factors, labels, form, weights)


def class_factors(class_weight: Any, form: TargetForm, counts: tuple[PerLabel, PerLabel]) -> Array:
    """Give the factors of classes, (C,), or of negative and positive entries, (2, L).

    counts: the weights of the rows in which each label is positive, and negative.
    Raises ValueError as :func:`weights_by_class` does.
    """
    positive, negative = counts
    if form.kind == "multiclass":
        return _balanced(positive) if _is_balanced(class_weight) else _by_class(class_weight, form.classes)
    if _is_balanced(class_weight):
        return _balanced(np.stack([negative, positive]))
    if form.kind == "binary":
        return _by_class(class_weight, form.classes)[:, None]
    return np.stack([_of_label(given) for given in _a_label_each(class_weight, len(positive))], axis=1)


def weighted_by_factors(
    factors: Array, labels: LabelMatrix, form: TargetForm, weights: PerRow
) -> tuple[PerRow, SignFactors | None]:
    """Weight rows, or say how to weight entries by their sign; see :func:`weights_by_class`."""
    if form.kind == "multiclass":
        return weights * _factors_of_rows(factors, labels), None
    return weights, (factors[1], factors[0])


def entries_by_sign(labels: LabelMatrix, factors: SignFactors, entries: Any) -> RowsByLabels:
    """Write out the weights of all entries, (n, L): factors by sign times weights of their own, if any."""
    table: RowsByLabels = np.where(labels.to_signs() > 0, *factors)
    return table if entries is None else table * weights_of_entries(np.ones(len(labels)), entries)


def class_weight_state(class_weight: Any) -> Any:
    """Give weights of classes as model files have them, whose dictionaries have texts as keys."""
    if isinstance(class_weight, Mapping):
        return {"classes": list(class_weight), "weights": [float(value) for value in class_weight.values()]}
    if isinstance(class_weight, list | tuple):
        return [class_weight_state(given) for given in class_weight]
    return class_weight


def class_weight_of_state(state: Any) -> Any:
    """Make weights of classes again.

    Raises ModelFileError if these cannot be any.
    """
    if isinstance(state, list):
        return [class_weight_of_state(given) for given in state]
    if not isinstance(state, dict):
        return state
    classes, weights = state.get("classes"), state.get("weights")
    if not (isinstance(classes, list) and isinstance(weights, list) and len(classes) == len(weights)):
        raise ModelFileError("its parameters.class_weight has no weight a class.")
    try:
        return dict(zip(classes, weights, strict=True))
    except TypeError:  # a list as a class
        raise ModelFileError("its parameters.class_weight names what is no class.") from None


def _is_balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str)  # a constraint leaves "balanced" alone


def counts_by_class(labels: LabelMatrix, weights: PerRow) -> tuple[PerLabel, PerLabel]:
    """Sum the weights of the rows in which each label is positive, and negative."""
    # corrections for flips may expect less than none
    positive = np.maximum(np.asarray(labels.expected_positives.T @ weights, np.float64), 0.0)
    observed: Any = weights.sum() if labels.observed is None else abs(labels.observed).T @ weights
    negative = observed - positive
    return positive, np.where(negative > _NO_WEIGHT * observed, negative, 0.0)


def _balanced(counts: Array) -> Array:
    """Give all rows / (classes x rows of the class); 1 to what no row has.

    Shapes: counts (classes,) or (2, L).
    """
    there = counts > 0
    mean = counts.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return np.where(there, mean / np.where(there, counts, 1.0), 1.0)


def _factors_of_rows(factors: Array, labels: LabelMatrix) -> PerRow:
    expected = labels.expected_positives
    found = np.asarray(expected @ factors)
    if labels.observed is None:
        return found
    observed = sp.csr_array(abs(labels.observed), dtype=np.float64)
    n_open = np.maximum(len(factors) - observed.sum(axis=1), 1)
    mean = (factors.sum() - observed @ factors) / n_open
    return np.where(np.diff(expected.indptr) > 0, found, mean)


def _by_class(class_weight: Any, classes: Array) -> Array:
    """Look every class up; one that is not named has the weight 1, as in scikit-learn."""
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight is a list, which is for many labels a row, but y has one class a row; give a "
            'dict of classes, or "balanced".'
        )
    names = classes.tolist()
    strange = [key for key in class_weight if key not in names]
    if strange and not all(name in class_weight for name in names):  # a fold may be without a class
        raise ValueError(
            f"class_weight names {strange[0]!r}, which is no class of y; the classes are "
            f"{', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''}."
        )
    return np.array([_checked(class_weight.get(name, 1.0), repr(name)) for name in names])


def _a_label_each(class_weight: Any, n_labels: int) -> list[Any]:
    if isinstance(class_weight, Mapping):
        return [class_weight] * n_labels
    if len(class_weight) != n_labels or not all(isinstance(given, Mapping) for given in class_weight):
        raise ValueError(
            f"class_weight is a list of {len(class_weight)} entries; with many labels give one dict, such as "
            f'{{0: 1.0, 1: 5.0}}, for all of them, a list of {n_labels} dicts, or "balanced".'
        )
    return list(class_weight)


def _of_label(given: Mapping[Any, Any]) -> Array:
    """Give the weights of negative and positive entries."""
    strange = [key for key in given if key not in _SIGNS]
    if strange or (0 in given and -1 in given):
        raise ValueError(
            f"class_weight of a label has the keys {', '.join(map(repr, given))}; with many labels they are "
            "1 for positive and 0 (or -1) for negative entries."
        )
    factors = np.ones(2)
    for key, value in given.items():
        factors[_SIGNS[key]] = _checked(value, repr(key))
    return factors


def _checked(value: Any, name: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(f"class_weight of {name} is {value!r}; weights are finite numbers from 0 on.")
    return float(value)
