"""Match the labels or classes of data with those of a model, and score tables of any classifier."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import ParameterError, ParameterMessage
from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.frames import is_frame
from labelweave.labels import ClassProbabilities, LabelMatrix, Taxonomy
from labelweave.labels.class_columns import labels_of_columns
from labelweave.labels.tags import read_tags, tag_rows, tags_of_texts
from labelweave.labels.taxonomy.taxonomy import merged_labels
from labelweave.metrics._classes import NOT_A_CLASS, as_text, class_codes, one_column, read_values
from labelweave.metrics._inputs import _check_names

Unknown = Literal["missed", "kept", "ignore", "raise", "error"]  # the last two are equivalent

_REMEDY = "drop them, or ignore them with `unknown_labels='ignore'`"
_MOST_NAMED = 10


class TruthWarning(UserWarning):
    """True labels that are unknown to the model and count as missed, or that a hierarchy completes."""


def known_labels(
    Y: Any, names: list[str], unknown: Unknown, tree: Taxonomy | None = None
) -> tuple[LabelMatrix, Array]:
    """Return the labels that data and model share, their names, and their positions in the model.

    Labels of data without names are those of the model, in order, unless there are more.
    unknown: "missed" and "kept" also keep positive labels unknown to the model, after the others; "missed"
        warns.
    tree: the hierarchy of the model's labels: labels are matched by its nodes and completed, with a warning.
    """
    labels = LabelMatrix.from_any(Y)
    words = _words(labels, names)
    if tree is not None:
        labels = _completed(LabelMatrix.from_any(labels, words), names, tree)
        words = labels.words
    place = {name: column for column, name in enumerate(names)}
    columns = np.array([place.get(word, -1) for word in words], np.intp)
    strange = np.flatnonzero(columns < 0)
    if len(strange) and unknown in ("raise", "error"):
        raise ParameterError(
            f"The label {words[strange[0]]!r} is unknown to the model ({len(strange)} of {labels.n_labels} "
            f"are); {_REMEDY}."
        )
    known = np.flatnonzero(columns >= 0)
    if not len(known):
        raise ValueError("No label of the data is known to the model; pass data with labels of the model.")
    counts = labels.positive_counts()
    missed = [k for k in strange.tolist() if counts[k] and unknown in ("missed", "kept")]
    if unknown == "missed":
        warn_of_missed({words[k]: int(counts[k]) for k in missed})
    kept = labels.select_labels([*known, *missed])
    return LabelMatrix.from_any(kept, [words[k] for k in (*known, *missed)]), columns[known]


def warn_of_missed(counts: dict[str, int], what: str = "label") -> None:
    """Warn of labels or classes unknown to the model, with the numbers of rows that have them."""
    if counts:
        words = what if len(counts) == 1 else f"{what}es" if what.endswith("s") else f"{what}s"
        said = f"{len(counts)} {words} unknown to the model count as missed, with their numbers of rows"
        more = f"{said}: {listed_counts(counts)}; `unknown_labels='ignore'` ignores them."
        warnings.warn(TruthWarning(ParameterMessage(more)), stacklevel=3)


def listed_counts(counts: dict[str, int]) -> str:
    """Format names with their counts, the most frequent first."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    shown = [f"{name!r} ({counts[name]})" for name in order[:_MOST_NAMED]]
    return ", ".join(shown + [f"and {len(order) - len(shown)} more"] * (len(order) > len(shown)))


def _completed(labels: LabelMatrix, names: list[str], tree: Taxonomy) -> LabelMatrix:
    """Rename labels to the model's names for the same nodes, and add the ancestors of each row's labels."""
    own = {tree._node_of(name): name for name in names}
    called = {name: own.get(tree._node_of(name), name) for name in labels.words}
    there = {*names, *(name for name, n in zip(called, labels.positive_counts(), strict=True) if n)}
    labels = merged_labels(labels, {name: now for name, now in called.items() if {name, now} & there})
    closed = tree._with_roots(labels.words).with_ancestors(labels)
    more = np.count_nonzero(np.diff(closed.positives.indptr) > np.diff(labels.positives.indptr))
    if more:
        said = f"{more} of {len(labels)} rows lack ancestors of their labels in the hierarchy"
        warnings.warn(f"{said}; they are added.", TruthWarning, stacklevel=3)
    return closed


def widened(found: Any, truth: Any, is_set: bool = True) -> Any:
    """Add columns for further labels of a named truth to predicted sets or scores: negative, or last."""
    n_labels = 0 if getattr(truth, "names", None) is None else truth.n_labels
    if n_labels <= (np.shape(found)[1] if np.ndim(found) > 1 else 1):
        return found
    if is_set or sp.issparse(found):
        wide = sp.csr_array(LabelMatrix.from_any(found).positives if is_set else found, copy=True)
        wide.resize(wide.shape[0], n_labels)
        return wide
    table = np.asarray(found).reshape(len(found), -1)
    last = min(0.0, float(table.min(initial=1.0)) - 1.0) if (table < 0).any() or (table > 1).any() else 0.0
    return np.column_stack([table, np.full((len(table), n_labels - table.shape[1]), last)])


def tags_of_model(y: Any, classifier: Any, others: Literal["ignore", "add"] = "ignore") -> Any:
    """Read lists of tags, or columns of classes, as the labels of a classifier; return others unchanged."""
    names = [str(name) for name in getattr(classifier, "classes_", ())]
    form: Any = getattr(fitted_inside(classifier), "_form", None)
    if has_columns(classifier):
        labels = labels_of_columns(y, form.columns)
        return labels.select_labels(np.arange(len(names))) if others == "ignore" else labels
    rows = tags_of_texts(y, names) if getattr(form, "container", None) == "tags" else tag_rows(y)
    if rows is None:
        return y
    return LabelMatrix(*read_tags(rows, names, others=others))


def has_columns(classifier: Any) -> bool:
    """Return whether a fitted classifier predicts columns of classes, with a list of probabilities."""
    return getattr(getattr(fitted_inside(classifier), "_form", None), "columns", None) is not None


def fitted_inside(classifier: Any) -> Any:
    for inner in ("best_estimator_", "_final_estimator", "classifier_"):
        classifier = getattr(classifier, inner, classifier)
    return classifier


def _check_policy(unknown: Unknown) -> None:
    if unknown not in get_args(Unknown):
        raise ParameterError(f"`unknown_labels` is {unknown!r}; it must be 'missed', 'ignore' or 'raise'.")


def truth_for(y: Any, classifier: Any, unknown: Unknown = "missed") -> Any:
    """Read labels as those of a fitted classifier, without those that have no observed value in training.

    unknown: how to treat further labels; "missed" appends them; see :func:`known_labels`.
    Raises ValueError if they are named in another order than those of the classifier.
    """
    _check_policy(unknown)
    y, classifier = tags_of_model(y, classifier, others="add"), fitted_inside(classifier)
    tree: Taxonomy | None = getattr(classifier, "_hierarchy", None)
    names = classifier.classes_ if hasattr(classifier, "label_names_") else None
    if tree is not None and not is_frame(y) and not isinstance(y, LabelMatrix):
        y = LabelMatrix.from_any(y, names)
    if names is not None and names.dtype.kind in "UO" and (is_frame(y) or isinstance(y, LabelMatrix)):
        y = LabelMatrix.from_any(y)
        _check_names("The model", names, y)
        ours, theirs = [str(name) for name in names], set(y.words)
        if y.names is not None and (tree is not None or len(theirs) > len(ours)) and theirs >= set(ours):
            y, columns = known_labels(y, ours, unknown, tree)
            y = y.select_labels([*np.argsort(columns), *range(len(ours), y.n_labels)])
    never = getattr(classifier, "unobserved_labels_", ())
    return LabelMatrix.from_any(y).without_labels(never) if len(never) else y


def _words(labels: LabelMatrix, names: list[str]) -> list[str]:
    """Return the names of the labels of data; without names, the model's in order if the numbers match."""
    if labels.names is not None:
        return [str(name) for name in labels.names]
    if labels.n_labels > len(names):
        return [str(number) for number in range(labels.n_labels)]
    return names[: labels.n_labels]


def known_classes(y: Any, names: list[str], taxonomy: Taxonomy | None, unknown: Unknown) -> PerRow:
    """Return the name of the class of every row, None where it is unobserved.

    y (n,): classes; or labels, of which a row has one, or those on one path of the taxonomy.
    unknown: how to treat classes that are neither the model's nor above one of them.
    """
    classes = _as_classes(y, names, taxonomy)
    given, own = {entry for entry in classes if entry is not None}, set(names)

    def is_known(entry: str) -> bool:
        if taxonomy is None or entry in own or entry not in taxonomy:
            return entry in own
        return bool(taxonomy.under([entry], names).nnz)

    strange = {entry for entry in given if not is_known(entry)}
    wrong = np.array([entry in strange for entry in classes], bool)
    if wrong.any() and unknown in ("raise", "error"):
        row = int(np.flatnonzero(wrong)[0])
        raise ParameterError(
            f"The class {classes[row]!r} of row {row} (counted from 0) is unknown to the model, as in "
            f"{wrong.sum()} of {len(classes)} rows; {_REMEDY}."
        )
    if unknown == "missed":
        warn_of_missed(Counter(classes[wrong].tolist()), "class")
    elif unknown != "kept":
        classes[wrong] = None
    if not given - strange:
        raise ValueError(
            "No row of the data has a class of the model, so there is nothing to compare; pass rows that do."
        )
    return classes


def known_targets(y: Any, classes: Array, unknown: Unknown) -> Any:
    """Return the class of every row, with unknown classes treated as requested."""
    _check_policy(unknown)
    values = read_values(one_column(y), "y")
    strange = np.flatnonzero(class_codes(values, classes) == NOT_A_CLASS)
    if len(strange) and unknown == "raise":
        found = f"The class {values[strange[0]]!r} of row {strange[0]} is unknown to the model"
        raise ParameterError(f"{found}; {_REMEDY}.")
    if unknown == "missed":
        warn_of_missed(Counter(str(as_text(value)) for value in values[strange]), "class")
        return y
    values[strange] = None
    return values if len(strange) else y


def _as_classes(y: Any, names: list[str], taxonomy: Taxonomy | None) -> Array:
    if not isinstance(y, LabelMatrix) and not sp.issparse(y) and np.ndim(y) == 1:
        entries = [as_text(entry) for entry in read_values(y, "y")]
        return np.array([*entries, None], object)[:-1]
    labels = LabelMatrix.from_any(y)
    # numbers are positions unless the model's classes are numbers themselves
    are_numbers = labels.names is None and all(name.isdecimal() for name in names)
    own = [str(number) for number in range(labels.n_labels)] if are_numbers else _words(labels, names)
    return classes_of_labels(labels, own, taxonomy)


def classes_of_labels(labels: LabelMatrix, words: list[str], taxonomy: Taxonomy | None) -> PerRow:
    """Return the class of every row from labels that stand for classes, the most probable; None without.

    labels (n, C): at most one label per row, or those on one path of the taxonomy; the deepest counts.
    """
    if labels.flip_probabilities is not None:
        return ClassProbabilities.of_labels(labels, words).most_likely()
    counts = np.diff(labels.positives.indptr)
    several = np.flatnonzero(counts > 1)
    if len(several) and taxonomy is not None and set(words) <= set(taxonomy.nodes):
        return taxonomy.deepest(LabelMatrix(labels.positives, None, words))
    names = np.array(words, object)
    if len(several):
        first, second = names[labels.positives.indices[labels.positives.indptr[several[0]] :][:2]]
        raise ValueError(
            f"Row {several[0]} (counted from 0) has several labels, such as {first!r} and {second!r}, as in "
            f"{len(several)} of {len(counts)} rows; pass at most one label per row."
        )
    classes = np.full(len(counts), None, object)
    classes[counts == 1] = names[labels.positives.indices]
    return classes


def label_scores(estimator: Any, X: Any, n_labels: int, response: str = "auto") -> RowsByLabels:
    """Score every label by ``decision_function`` or, without it, by ``predict_proba``."""
    if response == "predict_proba" or not hasattr(estimator, "decision_function"):
        return label_probabilities(estimator, X, n_labels)
    return as_score_table(estimator.decision_function(X), estimator, n_labels)


def label_probabilities(estimator: Any, X: Any, n_labels: int) -> RowsByLabels:
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has neither the requested method nor predict_proba; "
            "pass an estimator with decision_function or predict_proba."
        )
    found = estimator.predict_proba(X)
    if has_columns(estimator):
        return as_score_table(np.hstack(found), estimator, n_labels)
    if isinstance(found, list):  # forests, neighbors and trees return one table per label
        classes = getattr(estimator, "classes_", [np.arange(2)] * len(found))
        columns = [_positive_column(table, values) for table, values in zip(found, classes, strict=True)]
        return as_score_table(np.column_stack(columns), estimator, n_labels)
    classes = _classes_of_one_label(estimator)
    if n_labels == 1 and np.ndim(found) == 2 and found.shape[1] == len(classes):
        found = _positive_column(found, classes)
    return as_score_table(found, estimator, n_labels)


def _classes_of_one_label(estimator: Any) -> Any:
    """Return the values of the label in training if the estimator stores them, otherwise 0 and 1."""
    classes = getattr(estimator, "classes_", None)
    names_labels = hasattr(fitted_inside(estimator), "label_names_")
    return (0, 1) if classes is None or names_labels or np.ndim(classes) != 1 else classes


def _positive_column(table: Array, classes: Any) -> Array:
    """Return the column of the label's class 1; a label that is constant in training has a single class."""
    if len(classes) == 2:
        return np.asarray(table[:, 1])
    return np.full(len(table), float(classes[0] == 1))


def as_score_table(found: Any, estimator: Any, n_labels: int) -> RowsByLabels:
    """Check that scores have one column per label; scores of one label may be a vector."""
    scores = found.toarray() if sp.issparse(found) else np.asarray(found)
    table = scores.reshape(-1, 1) if scores.ndim == 1 and n_labels == 1 else scores
    if table.ndim != 2 or table.shape[1] != n_labels:
        raise ValueError(
            f"{type(estimator).__name__} returns scores of shape {scores.shape} for {n_labels} labels; it "
            "must return one column per label."
        )
    return table
