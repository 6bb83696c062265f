"""The rows that an incrementally fitted model has seen: features, labels and weights, call by call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if

from labelweave.estimators.journal import FitArguments, fit_method
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import unmasked
from labelweave.foundation.costs import warn_caller
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.labels.class_columns import joined_columns
from labelweave.labels.targets import (
    TargetForm,
    check_lengths,
    has_many_labels,
    label_form,
    read_labels,
    read_targets,
    require_observed,
)

_LOST_ROWS = (
    "The last fit kept no rows, so only these rows are fitted; to continue, start with partial_fit, or fit "
    "and warm_start=True, without entry_weight or class probabilities."
)


@dataclass(frozen=True)
class SeenRows:
    """The rows of a fit.

    Labels are matched by name where they have names, else by position.  Labels that a call does not name
    are unobserved in its rows.

    labels: multi-label targets, or the classes as passed.
    form: the form of the first labels; None for classes, whose form follows from all of them.
    classes: the possible classes; None for those of the rows.
    entries: weights of entries as passed; None where all are 1.
    """

    features: FeatureMatrix
    labels: LabelMatrix | Array
    weights: PerRow
    form: TargetForm | None
    classes: Array | None = None
    entries: Any = None

    @classmethod
    def read(cls, features: FeatureMatrix, y: Any, weights: PerRow, classes: Any = None) -> SeenRows:
        """Read the rows of one call; unlike in ``fit``, y may have a single class, or unobserved labels.

        Raises ValueError if there is not one target per row, or an entry of y is no label.
        """
        if isinstance(y, ClassProbabilities):
            raise ValueError(
                "y has class probabilities, which partial_fit does not keep; pass classes, or use fit."
            )
        if not has_many_labels(y):
            y = column_or_1d(unmasked(y.astype(object)) if np.ma.isMaskedArray(y) else y, warn=True)
            check_lengths(len(features), len(y))
            return cls(features, y, weights, None, None if classes is None else column_or_1d(classes))
        if classes is not None:
            raise ValueError("classes is for y with one class per row; leave it out for many labels.")
        labels = read_labels(y)
        check_lengths(len(features), len(labels))
        return cls(features, labels, weights, label_form(y, labels))

    def targets(self, covariance: Any = None, *, is_related: bool = False) -> tuple[LabelMatrix, TargetForm]:
        """Return the labels of all rows and their form.

        is_related: whether more than the rows informs labels.

        Raises ValueError if there is only one class, or a label that no row has observed.
        """
        if not isinstance(self.labels, LabelMatrix):
            extra = self.labels[:0] if self.classes is None else self.classes
            labels, form = read_targets(np.concatenate([self.labels, extra]), covariance)
            return labels[: len(self.labels)], form
        require_observed(self.labels, is_related=is_related)
        assert self.form is not None, "labels have a form"
        never = tuple(np.flatnonzero(self.labels.observed_counts() == 0).tolist())
        return self.labels, replace(self.form, unobserved=never)

    def joined(self, other: SeenRows) -> SeenRows:
        """Append other rows; new labels come last.

        Raises ValueError if one has labels and the other classes, or if labels cannot be matched.
        """
        features = _joined_features(self.features, other.features)
        weights = np.concatenate([self.weights, other.weights])
        if isinstance(self.labels, LabelMatrix) and isinstance(other.labels, LabelMatrix):
            assert self.form is not None, "labels have a form"
            assert other.form is not None, "labels have a form"
            if self.labels.class_columns is not None:
                labels = joined_columns(self.labels, other.labels)
                names = np.asarray(labels.words, object)
                form = replace(self.form, classes=names, columns=labels.class_columns)
                return SeenRows(features, labels, weights, form)
            labels = _joined_labels(self.labels, other.labels)
            names = np.arange(labels.n_labels) if labels.names is None else labels.names.astype(object)
            return SeenRows(features, labels, weights, self.form.widened(other.form, names))
        if isinstance(self.labels, LabelMatrix) or isinstance(other.labels, LabelMatrix):
            kinds = ("many labels", "one class")
            before, now = kinds if isinstance(self.labels, LabelMatrix) else kinds[::-1]
            raise ValueError(f"y has {now} per row, but had {before} before; keep to one kind.")
        types = self.labels.dtype, other.labels.dtype
        if object not in types and len({one.kind in "US" for one in types}) > 1:
            raise ValueError(f"y has classes of type {types[1]}, but had {types[0]} before; use one type.")
        known = [part.classes for part in (self, other) if part.classes is not None]
        classes = np.unique(np.concatenate(known)) if known else None
        return SeenRows(features, np.concatenate([self.labels, other.labels]), weights, None, classes)


def kept_rows(rows: SeenRows, y: Any) -> SeenRows | None:
    """Return the rows of a fit in the form that ``partial_fit`` extends; None where these cannot be kept."""
    if rows.entries is not None or isinstance(y, ClassProbabilities):
        return None
    return rows if has_many_labels(y) else SeenRows.read(rows.features, y, rows.weights)


def fit_from(self: Any, part: Any, kept: Array, X: Any, y: Any, **fit_params: Any) -> Any:
    """Fit all rows, with a warm start from a model fitted to the rows of the given numbers."""
    asked, self.warm_start = self.warm_start, True
    self._end = None if part._end is None else part._end.spread(kept, _num_samples(X))
    try:
        return self.fit(X, y, **fit_params)
    finally:
        self.warm_start = asked
        if not asked:
            self._seen = self._end = None


@available_if(lambda model: not model._is_precomputed)  # a kernel matrix has no columns for new rows
@fit_method
def partial_fit(self: Any, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> Any:
    """Continue training with new rows, new labels, or both.

    The rows of all calls are kept, and the result is that of a fit to all of them, with a warm start from the
    last one; features keep the scaling of the first call's rows.  Labels are matched by name where
    they have names, else by position.  A label that a call does not name is unobserved in its rows, a new
    one in all earlier rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n, d)
        More rows, or earlier ones again with labels that were unobserved.
    y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame, LabelMatrix or n lists of tags
        Their labels or classes.
    sample_weight : array-like of shape (n,), default=None
        Non-negative weights of the rows' losses.
    classes : array-like or None, default=None
        With one class per row: the possible classes, so that rows of a single class can come first.

    Returns
    -------
    Self
        The fitted model itself.

    Raises
    ------
    AttributeError
        If the kernel is precomputed: its matrix has no columns for new rows.
    ValueError
        If the data are invalid.

    Warns
    -----
    UserWarning
        If the last fit was one by :meth:`fit` without ``warm_start``, which keeps no rows: then the model
        is fitted to the rows of this call alone.
    """
    self._validate_params()  # which scikit-learn skips where a model is fitted
    before = dict(vars(self))
    try:
        _go_on(self, X, y, sample_weight, classes)
    except BaseException:  # rejected rows are not kept
        for name in filter(_is_of_a_fit, list(vars(self))):
            del self.__dict__[name]
        vars(self).update({name: value for name, value in before.items() if _is_of_a_fit(name)})
        raise
    return self


def _go_on(self: Any, X: Any, y: Any, sample_weight: Any, classes: Any) -> None:
    seen = self._seen
    if seen is None and hasattr(self, "scorer_"):
        warn_caller(_LOST_ROWS)
    features = self._read_features(X, reset=seen is None)
    rows = SeenRows.read(features, y, self._row_weights(sample_weight, features), classes)
    rows = rows if seen is None else seen.joined(rows)
    labels, form = rows.targets(self.label_covariance, is_related=self._relates_labels)
    if seen is None:
        rows = replace(rows, features=self._scale(features, labels, rows.weights))
    before, self._seen = None if seen is None else self._end, rows
    self._fit(replace(rows, labels=labels, form=form), before, FitArguments(X, y, sample_weight))


def _is_of_a_fit(attribute: str) -> bool:
    return attribute.endswith("_") or attribute in ("_form", "_seen", "_end")


def carried_columns(before: TargetForm, after: TargetForm) -> Array | None:
    """Return the columns of the labels of ``before`` in ``after``; None where labels do not match."""
    if before.kind != after.kind:
        return None
    if before.columns is not None:
        places = {name: place for place, name in enumerate(after.classes)}
        return np.array([places[name] for name in before.classes])
    if not before.has_one_class:
        return np.arange(len(before.classes))
    if not np.isin(before.classes, after.classes).all():
        return None
    return np.searchsorted(after.scored, before.scored)


def _joined_features(first: FeatureMatrix, second: FeatureMatrix) -> FeatureMatrix:
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"X has {second.shape[1]} features, but had {first.shape[1]} before; pass the same features."
        )
    parts = [first.data, second.data]
    if first.is_sparse:
        rows = sp.vstack([sp.csr_array(part) for part in parts], format="csr")
    else:
        rows = np.vstack([part.toarray() if sp.issparse(part) else part for part in parts])
    names = None if first.names is None else first.names.tolist()
    return FeatureMatrix(rows, names)


def _joined_labels(first: LabelMatrix, second: LabelMatrix) -> LabelMatrix:
    columns, names = _places(first, second)
    width = max(first.n_labels, int(columns.max(initial=-1)) + 1)
    parts = [(first, np.arange(first.n_labels)), (second, columns)]
    return LabelMatrix.stacked([_widened_labels(part, place, width, names) for part, place in parts])


def _widened_labels(labels: LabelMatrix, columns: Array, width: int, names: Any) -> LabelMatrix:
    """Place the columns of labels among more, with the new ones unobserved."""
    is_whole = labels.observed is None and labels.n_labels == width
    seen = None if is_whole else _widened(labels.observed_pattern(), columns, width)
    flips = None if labels.flip_probabilities is None else _widened(labels.flip_probabilities, columns, width)
    return LabelMatrix(_widened(labels.positives, columns, width), seen, names, flips)


def _places(first: LabelMatrix, second: LabelMatrix) -> tuple[Array, Any]:
    """Find the column of every label of the second among those of both; also return the names of all."""
    if second.names is None:
        if first.names is not None and second.n_labels > first.n_labels:
            raise ValueError(
                f"y has {second.n_labels} labels without names, but the {first.n_labels} labels so far have "
                "names; name them, as columns of a DataFrame or names of a LabelMatrix."
            )
        return np.arange(second.n_labels), first.names
    if first.names is None:
        raise ValueError(
            "y has label names, but the labels so far have none; pass names from the first call, or none."
        )
    known = {str(name): place for place, name in enumerate(first.names)}
    for name in second.names:
        known.setdefault(str(name), len(known))
    return np.asarray([known[str(name)] for name in second.names], np.intp), list(known)


def _widened(table: sp.csr_array, columns: Array, width: int) -> sp.csr_array:
    """Move the entries to the columns of their labels in a wider table."""
    parts = table.data, columns[table.indices], table.indptr
    return sp.csr_array(parts, shape=(table.shape[0], width))
