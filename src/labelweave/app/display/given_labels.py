"""Inputs of displays: true labels, predictions and scores, always with a name for every label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, Floats, PerLabel, PerRow
from labelweave.foundation.arrays import numbers_of
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import has_many_labels
from labelweave.metrics._classes import NOT_A_CLASS, UNOBSERVED, class_codes, read_values
from labelweave.metrics._inputs import read_scores, read_targets

Names: TypeAlias = Sequence[str] | Array


def last_step(estimator: Any) -> Any:
    """Return the model, or the last step of a Pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def fitted_model(estimator: Any, probabilities_for: str | None = None) -> Any:
    """Return the model; NotFittedError if it is not fitted, TypeError if it lacks required probabilities."""
    model = last_step(estimator)
    check_is_fitted(model)
    if probabilities_for is not None and not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(model).__name__} has no predict_proba{probabilities_for}, or plot probabilities with "
            "from_predictions."
        )
    return model


def named_labels(
    Y: Any, other: Any = None, names: Sequence[Any] | Array | None = None, *, is_soft: bool = False
) -> LabelMatrix:
    """Read true labels; default names are those of a DataFrame or model, or numbers."""
    labels = read_targets(Y, is_soft=is_soft)
    if names is None and labels.names is None:
        found = _names_of(other) or []
        names = found if len(found) == labels.n_labels else labels.words
    return labels if names is None else LabelMatrix.from_any(labels, names_list(names))


def one_name_a_label(names: Sequence[Any] | Array, n_labels: int, kind: str) -> PerLabel:
    """Read label names for a graph or covariance; ValueError if there is not one per label."""
    found = names_list(names)
    if len(found) != n_labels:
        raise ValueError(
            f"{len(found)} label names were given for a {kind} of {n_labels} labels; pass one name per label."
        )
    return np.asarray(found, dtype=np.str_)


def names_list(names: Any) -> list[str]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise ValueError(f"The label names are {shown(names)}; pass a list of names, one per label.")
    return [str(name) for name in names]


def model_truth(estimator: Any, y: Any) -> LabelMatrix:
    """Read true labels as named columns; classes become labels, of two classes the second one."""
    model = fitted_model(estimator)
    if not has_many_labels(y):
        return one_hot(read_values(y, "y"), estimator.classes_, "y")
    labels = named_labels(y, model, is_soft=True)
    known, names = _names_of(model), labels.words
    # entirely different names are another naming scheme, not another order
    if known is not None and set(known) == set(names) and known != names:
        raise ValueError(
            f"Y has its labels in another order than the {type(model).__name__}: column 0 is "
            f"{names[0]!r} where the model has {known[0]!r}; pass them in the model's order."
        )
    return labels


def one_hot(values: PerRow, classes: Sequence[Any] | Array, given: str) -> LabelMatrix:
    """Convert classes to labels with their names; a row without a class is unobserved."""
    codes = class_codes(values, classes)
    unknown = np.flatnonzero(codes == NOT_A_CLASS)
    if len(unknown):
        raise ValueError(
            f"{given} at row {unknown[0]} is {values[unknown[0]]!r}, which is none of the {len(classes)} "
            f"classes ({len(unknown)} such rows); use one of them, or NaN where it was not observed."
        )
    seen, names = codes != UNOBSERVED, [str(name) for name in classes]
    shape, rows = (len(codes), len(names)), np.flatnonzero(seen)
    positives = sp.csr_array((np.ones(len(rows), np.int8), (rows, codes[rows])), shape=shape)
    observed = None if seen.all() else sp.csr_array(np.repeat(seen[:, None], len(names), axis=1))
    labels = LabelMatrix(positives, observed, names)
    return labels.select_labels([1]) if len(names) == 2 else labels


def predicted_labels(estimator: Any, X: Any, truth: LabelMatrix) -> Any:
    """Predict the labels of rows; predicted classes become columns."""
    found = estimator.predict(X)
    if sp.issparse(found) or np.ndim(found) == 2:
        return found
    if truth.n_labels == 1 and len(estimator.classes_) != 2:
        return np.reshape(found, (-1, 1))
    return one_hot(read_values(found, "y_pred"), estimator.classes_, "y_pred")


def score_table(scores: Any, labels: LabelMatrix) -> npt.NDArray[np.float64]:
    """Read scores or probabilities as a dense table (n, L)."""
    if not sp.issparse(scores) and labels.n_labels == 1 and numbers_of(scores, "scores").ndim == 1:
        scores = np.reshape(scores, (-1, 1))
    table = read_scores(scores, labels)
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)


def parts_to_draw(
    labels: LabelMatrix, table: Floats, chosen: Any
) -> list[tuple[str, LabelMatrix, Floats, Array]]:
    """Return the name, truth, scores and labels of each curve; all labels together by default."""
    if chosen is None:
        name = f"all {labels.n_labels} labels" if labels.n_labels > 1 else labels.words[0]
        return [(name, labels, table, np.arange(labels.n_labels))]
    numbers = chosen_labels(labels, chosen)
    return [(labels.words[k], labels.select_labels([k]), table[:, [k]], np.array([k])) for k in numbers]


def chosen_labels(labels: LabelMatrix, chosen: Any) -> Array:
    """Return the numbers of labels, from names or numbers."""
    if isinstance(chosen, (str, int, np.integer)):
        chosen = [chosen]
    if not isinstance(chosen, Iterable) or getattr(chosen, "ndim", 1) != 1:
        raise ValueError(f"labels is {shown(chosen)}; pass names or numbers of labels, or None for all.")
    asked = list(chosen)
    if not asked:
        raise ValueError("No label was chosen; choose at least one, or pass None for all together.")
    names, places = labels.words, dict[Any, int]()
    for k, name in enumerate(names):
        places |= {k: k, name: k}
    keys = [label if isinstance(label, (int, np.integer)) else str(label) for label in asked]
    numbers = [places.get(key, places.get(str(key), -1)) for key in keys]
    if -1 in numbers:
        raise ValueError(
            f"There is no label {asked[numbers.index(-1)]!r} among the {len(names)} labels (the first is "
            f"{names[0]!r}); use their names, or numbers from 0 to {len(names) - 1}."
        )
    return np.asarray(numbers, dtype=np.intp)


def _names_of(source: Any) -> list[str] | None:
    found = getattr(source, "columns", getattr(source, "label_names_", None))
    return None if found is None else [str(name) for name in found]
