"""The labels or classes of data, matched with those of a model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.frames import is_frame
from labelweave.labels import ClassProbabilities, LabelMatrix, Taxonomy
from labelweave.labels.tags import read_tags, tag_rows
from labelweave.metrics._classes import as_text, read_values
from labelweave.metrics._inputs import _check_names

Unknown = Literal["error", "ignore"]

_REMEDY = "drop them, or pass over them with `unknown_labels='ignore'`"


def known_labels(Y: Any, names: list[str], unknown: Unknown) -> tuple[LabelMatrix, Array]:
    """Keep the labels that data and model share, named, with their numbers in the model.

    Labels of data without names are those of the model, in order, unless there are more.
    """
    labels = LabelMatrix.from_any(Y)
    words = _words(labels, names)
    place = {name: column for column, name in enumerate(names)}
    columns = np.array([place.get(word, -1) for word in words], np.intp)
    strange = np.flatnonzero(columns < 0)
    if len(strange) and unknown == "error":
        raise ParameterError(
            f"The label {words[strange[0]]!r} is unknown to the model ({len(strange)} of {labels.n_labels} "
            f"are); {_REMEDY}."
        )
    known = np.flatnonzero(columns >= 0)
    if not len(known):
        raise ValueError("No label of the data is known to the model, so there is nothing to compare.")
    kept = labels.select_labels(known)
    return LabelMatrix.from_any(kept, [names[column] for column in columns[known]]), columns[known]


def tags_of_model(y: Any, classifier: Any) -> Any:
    """Read lists of tags as the labels of a classifier, others left out; give other targets as they are."""
    rows = tag_rows(y)
    if rows is None:
        return y
    return LabelMatrix(*read_tags(rows, [str(name) for name in classifier.classes_], ignore_others=True))


def fitted_inside(classifier: Any) -> Any:
    """Give the classifier inside searches, pipelines and tables."""
    for inner in ("best_estimator_", "_final_estimator", "classifier_"):
        classifier = getattr(classifier, inner, classifier)
    return classifier


def truth_for(y: Any, classifier: Any) -> Any:
    """Read labels as those of a fitted classifier, those left out that no row of its training showed.

    Raises ValueError if they are named in another order than those of the classifier.
    """
    y, classifier = tags_of_model(y, classifier), fitted_inside(classifier)
    names = classifier.classes_ if hasattr(classifier, "label_names_") else None
    if names is not None and names.dtype.kind in "UO" and (is_frame(y) or isinstance(y, LabelMatrix)):
        y = LabelMatrix.from_any(y)
        _check_names("The model", names, y)
    never = getattr(classifier, "unobserved_labels_", ())
    return LabelMatrix.from_any(y).without_labels(never) if len(never) else y


def _words(labels: LabelMatrix, names: list[str]) -> list[str]:
    """Name the labels of data; without names they are the model's in order, if it has as many."""
    if labels.names is not None:
        return [str(name) for name in labels.names]
    if labels.n_labels > len(names):
        return [str(number) for number in range(labels.n_labels)]
    return names[: labels.n_labels]


def known_classes(y: Any, names: list[str], taxonomy: Taxonomy | None, unknown: Unknown) -> PerRow:
    """Name the class of every row, None where it is not known.

    y (n,): classes; or labels, of which a row has one, or those on one path of the taxonomy.
    unknown: what to do with classes that are neither the model's nor above one of them.
    """
    classes = _as_classes(y, names, taxonomy)
    given, own = {entry for entry in classes if entry is not None}, set(names)

    def is_known(entry: str) -> bool:
        if taxonomy is None or entry in own or entry not in taxonomy:
            return entry in own
        return bool(taxonomy.under([entry], names).nnz)

    strange = {entry for entry in given if not is_known(entry)}
    wrong = np.array([entry in strange for entry in classes], bool)
    if wrong.any() and unknown == "error":
        row = int(np.flatnonzero(wrong)[0])
        raise ParameterError(
            f"The class {classes[row]!r} of row {row} (counted from 0) is unknown to the model, as in "
            f"{wrong.sum()} of {len(classes)} rows; {_REMEDY}."
        )
    classes[wrong] = None
    if not given - strange:
        raise ValueError(
            "No row of the data has a class that the model knows, so there is nothing to compare."
        )
    return classes


def _as_classes(y: Any, names: list[str], taxonomy: Taxonomy | None) -> Array:
    if not isinstance(y, LabelMatrix) and not sp.issparse(y) and np.ndim(y) == 1:
        entries = [as_text(entry) for entry in read_values(y, "y")]
        return np.array([*entries, None], object)[:-1]
    labels = LabelMatrix.from_any(y)
    # numbers are places unless the model's classes are numbers themselves
    are_numbers = labels.names is None and all(name.isdecimal() for name in names)
    own = [str(number) for number in range(labels.n_labels)] if are_numbers else _words(labels, names)
    return classes_of_labels(labels, own, taxonomy)


def classes_of_labels(labels: LabelMatrix, words: list[str], taxonomy: Taxonomy | None) -> PerRow:
    """Name the class of every row whose labels stand for classes, the likeliest; None without a label.

    labels (n, C): one label a row or none, or those on one path of the taxonomy, of which the deepest is
    taken.
    """
    if labels.doubts is not None:
        return ClassProbabilities.of_labels(labels, words).likeliest()
    counts = np.diff(labels.positives.indptr)
    several = np.flatnonzero(counts > 1)
    if len(several) and taxonomy is not None and set(words) <= set(taxonomy.nodes):
        return taxonomy.deepest(LabelMatrix(labels.positives, None, words))
    names = np.array(words, object)
    if len(several):
        first, second = names[labels.positives.indices[labels.positives.indptr[several[0]] :][:2]]
        raise ValueError(
            f"The row {several[0]} (counted from 0) has several labels, such as {first!r} and {second!r} "
            f"({len(several)} of {len(counts)} rows have); for one class a row give one label or none."
        )
    classes = np.full(len(counts), None, object)
    classes[counts == 1] = names[labels.positives.indices]
    return classes
