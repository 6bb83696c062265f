"""Weights of rows and entries: class weights as in scikit-learn, and uncertain targets.

Losses handle uncertain targets exactly, or as weights of the more likely sign.
The loss of a target q is q loss(1) + (1 - q) loss(-1).  Where the losses of both signs differ by the score,
as for the logistic and the squared loss, it is the loss of the more likely sign plus a multiple of
the score (``losses.entry_losses.GradedEntryLoss``), convex for every q.  Hinges have ``|2 q - 1|`` times the
loss of the more likely sign: a bound on the expected extra cost of the other decision.  Problem, dual and
certificate are then those of weighted entries, and for the structured margin those of costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.labels import LabelMatrix
from labelweave.labels.flip_rates import corrected_targets, read_flip_rates
from labelweave.labels.label_names import weights_of_entries
from labelweave.labels.targets import TargetForm
from labelweave.metrics._inputs import row_observed_counts
from labelweave.metrics.top_k import propensities_of_counts
from labelweave.model_files import ModelFileError

SignFactors: TypeAlias = tuple[PerLabel, PerLabel]
"""What the losses of positive and of negative entries are multiplied with, (L,) each."""

_SIGNS = {0: 0, -1: 0, 1: 1}
_NO_WEIGHT = 1e-12  # of the weight of all rows: rounding of a difference
RATES_OF_CLASSES = (
    "flip_rates are for many labels per row, but y has one class per row; pass a table with one column per "
    "class."
)


def weights_by_class(
    class_weight: Any, labels: LabelMatrix, form: TargetForm, weights: PerRow
) -> tuple[PerRow, SignFactors | None]:
    """Weight rows by their class where there are three or more, else entries by their sign.

    A row labeled with an inner node of a taxonomy has the mean weight of the classes below, one with
    class probabilities the expected weight.
    weights (n,): the row weights, by which "balanced" counts.
    Raises ValueError if a weight is not a finite number from 0 on, or belongs to no class.
    """
    factors = class_factors(class_weight, form, counts_by_class(labels, weights))
    return weighted_by_factors(factors, labels, form, weights)


def class_factors(class_weight: Any, form: TargetForm, counts: tuple[PerLabel, PerLabel]) -> Array:
    """Return the factors of classes, (C,), or of negative and positive entries, (2, L).

    counts: the weights of the rows in which each label is positive, and negative.
    Raises ValueError as :func:`weights_by_class`.
    """
    positive, negative = counts
    if form.one_of is not None:
        return _balanced(positive) if _is_balanced(class_weight) else _by_class(class_weight, form.classes)
    if _is_balanced(class_weight):
        return _balanced(np.stack([negative, positive]))
    if form.is_pair:
        return _by_class(class_weight, form.classes)[:, None]
    return np.stack([_of_label(given) for given in _a_label_each(class_weight, len(positive))], axis=1)


def weighted_by_factors(
    factors: Array, labels: LabelMatrix, form: TargetForm, weights: PerRow
) -> tuple[PerRow, SignFactors | None]:
    """Weight rows, or return weights of entries by sign; see :func:`weights_by_class`."""
    if form.one_of is not None:
        return weights * _factors_of_rows(factors, labels), None
    return weights, (factors[1], factors[0])


def entries_by_sign(labels: LabelMatrix, factors: SignFactors, entries: Any) -> RowsByLabels:
    """Return the weights of all entries as an array, (n, L): factors by sign times entry weights, if any."""
    table: RowsByLabels = np.where(labels.to_signs() > 0, *factors)
    return table if entries is None else table * weights_of_entries(np.ones(len(labels)), entries)


def class_weight_state(class_weight: Any) -> Any:
    """Convert class weights for a model file, whose dictionaries have text keys."""
    if isinstance(class_weight, Mapping):
        return {"classes": list(class_weight), "weights": [float(value) for value in class_weight.values()]}
    if isinstance(class_weight, list | tuple):
        return [class_weight_state(given) for given in class_weight]
    return class_weight


def class_weight_of_state(state: Any) -> Any:
    """Restore class weights; raise ModelFileError if they are invalid."""
    if isinstance(state, list):
        return [class_weight_of_state(given) for given in state]
    if not isinstance(state, dict):
        return state
    classes, weights = state.get("classes"), state.get("weights")
    if not (isinstance(classes, list) and isinstance(weights, list) and len(classes) == len(weights)):
        raise ModelFileError("its parameters.class_weight does not have one weight per class.")
    try:
        return dict(zip(classes, weights, strict=True))
    except TypeError:  # a list as a class
        raise ModelFileError("its parameters.class_weight names something that is not a class.") from None


def _is_balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str)  # a constraint allows only "balanced"


def counts_by_class(labels: LabelMatrix, weights: PerRow) -> tuple[PerLabel, PerLabel]:
    """Sum the weights of the rows in which each label is positive, and negative."""
    # corrections for flips may expect less than zero
    positive = np.maximum(np.asarray(labels.expected_positives.T @ weights, np.float64), 0.0)
    observed: Any = weights.sum() if labels.observed is None else abs(labels.observed).T @ weights
    negative = observed - positive
    return positive, np.where(negative > _NO_WEIGHT * observed, negative, 0.0)


def _balanced(counts: Array) -> Array:
    """Return all rows / (classes x rows of the class), for counts (classes,) or (2, L); 1 for empty ones."""
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
    """Look up the weight of each class; a class without one has weight 1, as in scikit-learn."""
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight is a list, which is for many labels per row, but y has one class per row; use a "
            'dict of classes, or "balanced".'
        )
    names = classes.tolist()
    strange = [key for key in class_weight if key not in names]
    if strange and not all(name in class_weight for name in names):  # a fold may lack a class
        raise ValueError(
            f"class_weight names {strange[0]!r}, which is not a class of y; the classes are "
            f"{', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''}."
        )
    return np.array([_checked(class_weight.get(name, 1.0), repr(name)) for name in names])


def _a_label_each(class_weight: Any, n_labels: int) -> list[Any]:
    if isinstance(class_weight, Mapping):
        return [class_weight] * n_labels
    if len(class_weight) != n_labels or not all(isinstance(given, Mapping) for given in class_weight):
        raise ValueError(
            f"class_weight is a list of {len(class_weight)} entries; for many labels pass one dict, such as "
            f'{{0: 1.0, 1: 5.0}}, for all of them, a list of {n_labels} dicts, or "balanced".'
        )
    return list(class_weight)


def _of_label(given: Mapping[Any, Any]) -> Array:
    strange = [key for key in given if key not in _SIGNS]
    if strange or (0 in given and -1 in given):
        raise ValueError(
            f"class_weight of a label has the keys {', '.join(map(repr, given))}; for many labels use 1 for "
            "positive and 0 (or -1) for negative entries."
        )
    factors = np.ones(2)
    for key, value in given.items():
        factors[_SIGNS[key]] = _checked(value, repr(key))
    return factors


def _checked(value: Any, name: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(f"class_weight of {name} is {value!r}; weights must be finite and >= 0.")
    return float(value)


def corrected_by(flip_rates: Any, labels: LabelMatrix) -> LabelMatrix:
    """Replace labels by targets that correct for flips at known rates.

    flip_rates: a pair, or "propensity" for labels that are only missed, with rates by the formula of Jain et
        al. (2016).
    """
    counts = rows_with_labels(labels), labels.positive_counts()
    return corrected_targets(labels, *rates_by(flip_rates, *counts, labels.words))


def rows_with_labels(labels: LabelMatrix) -> int:
    return int(np.count_nonzero(row_observed_counts(labels)))


def rates_by(
    flip_rates: Any, n_rows: int, positives: PerLabel, names: Sequence[str]
) -> tuple[PerLabel, PerLabel]:
    """Return the rates of both kinds of flips, as :func:`corrected_by` reads them.

    n_rows: rows with any observed label; positives (L,): rows that have each label; names: of the labels.
    """
    if isinstance(flip_rates, str):
        return 1.0 - propensities_of_counts(n_rows, positives), np.zeros(len(positives))
    missed, false = read_flip_rates(flip_rates, names)
    if np.isnan(missed).any() or np.isnan(false).any():
        raise ValueError(
            "flip_rates has a part that is None; pass both shares, such as those of "
            "labelweave.noise.find_label_errors estimates."
        )
    return missed, false


def corrected_like(estimator: Any, labels: LabelMatrix) -> LabelMatrix:
    """Replace labels by the targets that an estimator, or the one inside it, derives from them."""
    while hasattr(estimator, "estimator"):
        estimator = estimator.estimator
    rates = getattr(estimator, "flip_rates", None)
    return labels if rates is None else corrected_by(rates, labels)


def sure_weights(labels: LabelMatrix, entries: Any) -> RowsByLabels | sp.coo_array | None:
    """Multiply the weights of entries, 1 where not stored, by ``|2 q - 1|`` of their targets."""
    flips = labels.flip_probabilities
    if flips is None:
        return entries
    if entries is not None and not sp.issparse(entries):
        return np.asarray(entries * (1.0 - 2.0 * flips.toarray()))
    less = sp.csr_array(-2.0 * flips)  # weights minus 1, so that what is not stored is 0
    if entries is not None:
        own = sp.csr_array(entries)
        own.sum_duplicates()
        own.data -= 1.0
        less = sp.csr_array(own + less + own.multiply(less))
    found = sp.coo_array(less)
    found.data += 1.0
    return found
