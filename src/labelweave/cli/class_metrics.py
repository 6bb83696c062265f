"""The metrics of a model with one class a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave import Taxonomy
from labelweave.cli.class_rows import classes_of
from labelweave.cli.messages import note
from labelweave.cli.model_outputs import chosen_classes, has_probabilities, probabilities_of, scores_of
from labelweave.cli.model_rows import Model, classifier_of
from labelweave.datasets import LabeledData
from labelweave.labels import LabelMatrix
from labelweave.metrics import class_summary, score_table

__all__ = ["class_metrics"]

Array = npt.NDArray[Any]


def class_metrics(model: Model, rows: LabeledData, ignore: bool) -> tuple[dict[str, int], dict[str, float]]:
    """Measure a model with one class a row.

    Parameters
    ----------
    model : TableModel or LabelClassifier
        The model.
    rows : LabeledData
        Rows with their classes; those without are not counted.
    ignore : bool
        Whether classes that the model does not know are passed over.

    Returns
    -------
    counts : dict of str to int
        Rows with a class, and classes of the model.
    metrics : dict of str to float
        The metrics: of its probabilities, or else those of label sets and scores.

    Raises
    ------
    ValueError
        If a row has several classes or one that is unknown, or none has any.
    """
    names = [str(name) for name in model.label_names_]
    taxonomy: Taxonomy | None = getattr(classifier_of(model), "taxonomy_", None)
    classes = _known(_named(classes_of(rows, taxonomy), rows.Y, names), names, taxonomy, ignore)
    kept = np.flatnonzero(classes != None)  # noqa: E711
    if not len(kept):
        raise ValueError(
            "No row of the data has a class that the model knows, so there is nothing to compare."
        )
    if len(kept) < len(classes):
        note(f"{len(classes) - len(kept)} of {len(classes)} rows have no known class and are not counted.")
    X, classes = rows.X.iloc[kept] if hasattr(rows.X, "iloc") else rows.X[kept], classes[kept]
    counts = {"rows": len(kept), "classes": len(names)}
    if not has_probabilities(model):
        return counts, _score_metrics(scores_of(model, X), classes, names)
    probabilities = probabilities_of(model, X)
    predicted = np.array(names, object)[chosen_classes(model, X, probabilities)]
    return counts, class_summary(classes, probabilities, names, taxonomy=taxonomy, y_pred=predicted)


def _named(classes: Array, Y: LabelMatrix, names: list[str]) -> Array:
    """Take numbers of a file without names for places, unless the model's classes are numbers themselves."""
    if Y.names is not None or all(name.isdecimal() for name in names) or Y.n_labels > len(names):
        return classes
    return np.array([None if entry is None else names[int(entry)] for entry in classes], object)


def _known(classes: Array, names: list[str], taxonomy: Taxonomy | None, ignore: bool) -> Array:
    """Drop classes that the model does not know, or refuse them."""
    given = list(dict.fromkeys(entry for entry in classes if entry is not None))
    strange = {name for name in given if name not in names and not _is_above(name, names, taxonomy)}
    unknown = np.array([entry in strange for entry in classes], bool)
    if unknown.any() and not ignore:
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"The class {classes[row]!r} of row {row} (counted from 0) is unknown to the model, as in "
            f"{unknown.sum()} of {len(classes)} rows; pass over such rows with --ignore-unknown-labels."
        )
    known = classes.copy()
    known[unknown] = None
    return known


def _is_above(name: str, names: list[str], taxonomy: Taxonomy | None) -> bool:
    """Say whether a node lies above a class of the model."""
    return taxonomy is not None and name in taxonomy and taxonomy.under([name], names).nnz > 0


def _score_metrics(scores: Array, classes: Array, names: list[str]) -> dict[str, float]:
    place = {name: number for number, name in enumerate(names)}
    columns = [place[name] for name in classes]
    ones = np.ones(len(columns), np.int8)
    shape = (len(columns), len(names))
    Y = LabelMatrix(sp.csr_array((ones, (np.arange(len(columns)), columns)), shape=shape), None, names)
    best = scores.argmax(axis=1)[:, None] == np.arange(len(names))
    return score_table(Y, scores, best)
