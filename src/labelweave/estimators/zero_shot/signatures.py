"""Classes described by attributes or by vectors: their signatures and priors, and the scores of classes.

Real-valued signatures are vectors, such as those of a language model. Let ``s_c`` be the vector of class c
minus the mean vector of the training rows, and ``g(x)`` the vector that is predicted for a row. Predictions
of unseen classes are shrunk and noisy: ``g(x) = rho s_c + noise``, of equal variance in all directions. rho
is estimated on held-out training classes. Then

``log p(c | x) = log p(c) + t (s_c^T g(x) - rho / 2 |s_c|^2) + const``,

with ``t = rho / variance``, chosen by the likelihood of held-out classes.  ``rho = 1`` is the nearest vector,
which prefers classes near the mean wherever the regression shrinks; ``rho = 0`` ignores lengths.  Covariances
of the noise (full, diagonal, within classes) do not improve the likelihood of held-out classes.

The vector g comes from a regression on the vectors of training rows, or from the scores F(x) of a classifier
of the training classes: ``g = S^T F`` is the expected vector, and for the squared loss with a ridge penalty
the regression itself.  Coupled classes have the prior covariance ``S S^T``: ``F = S a`` with independent
weights a of the coordinates.  Then ``g = S^+ F`` is the mean given F, and ``s_c^T g`` scores any class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor

from labelweave.estimators.label_predictions import LabelPredictions
from labelweave.estimators.scorers import Scorer
from labelweave.estimators.zero_shot.training_rows import (
    ClassFold,
    TrainingRows,
    attribute_scores,
    covariance_parameter,
)
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.covariance.sources import checked_class_weights, in_class_order
from labelweave.labels.label_names import as_text, typed
from labelweave.labels.targets import read_classes
from labelweave.model_files import storable
from labelweave.model_files.schema import FLAG, Made, Maybe, Number, Numbers, Sizes, Texts, refuse
from labelweave.splits.splitters import take_rows


@storable(
    "SignatureScorer",
    {
        "intercept_": Numbers("c", infinite=True),
        "estimator_": Made(LabelPredictions),
        "mean_scores_": Numbers("a"),
        "signs": Numbers("c a", "fi"),
        "temperature_": Number(),
    },
    {"some class is possible": lambda state: np.isfinite(state["intercept_"].max())},
)
@dataclass(frozen=True)
class SignatureScorer(Scorer):
    """Scores of classes, up to a constant that all share: log prior plus evidence of attributes.

    estimator_: scores attributes.
    mean_scores_ (L,): m.
    signs (classes, L): the signatures, 0 where unknown; for vectors, the map from scores to evidence.
    temperature_: t.
    """

    estimator_: Any
    mean_scores_: Array
    signs: Array
    temperature_: float

    def takes(self, n_features: int) -> bool:
        columns = len(self.estimator_._form.scored)
        return bool(self.estimator_.n_features_in_ == n_features and columns == len(self.mean_scores_))

    def scores(self, features: Any) -> Array:
        """Score each class of every row; the rows (n, d) are the estimator's input."""
        with Workers().running():
            evidence = (attribute_scores(self.estimator_, features) - self.mean_scores_) @ self.signs.T
        with np.errstate(over="ignore"):  # infinite scores have undefined differences
            return np.asarray(self.intercept_ + np.nan_to_num(self.temperature_ * evidence))


_NO_VARIANCE = 1e-9  # of the largest singular value of the centered vectors


def read_vectors(signatures: Any) -> Array | None:
    """Read signatures that are vectors, (C, v); None where they are attributes, 0/1 or -1/1 or NaN.

    Raises ValueError if an entry of a vector is not finite.
    """
    if signatures is None or isinstance(signatures, LabelMatrix) or hasattr(signatures, "tocsr"):
        return None
    try:
        table = np.asarray(signatures)
    except ValueError:  # rows of several lengths, such as lists of tags
        return None
    if table.ndim != 2 or table.dtype.kind not in "iuf":
        return None
    if np.isin(table[~np.isnan(table)], (-1, 0, 1)).all():
        return None
    strange = np.argwhere(~np.isfinite(table))
    if len(strange):
        raise ValueError(
            f"signatures has {table[tuple(strange[0])]} at row {strange[0, 0]}, column {strange[0, 1]}; it "
            "must be finite."
        )
    return np.asarray(table, np.float64)


@dataclass(frozen=True)
class ClassVectors:
    """The vectors (C, v) of classes (C,)."""

    table: Array
    classes: Array

    def of(self, classes: Array) -> Array:
        place = {as_text(name): row for row, name in enumerate(self.classes.tolist())}
        return self.table[[place[as_text(name)] for name in classes.tolist()]]

    def fit(self, estimator: Any, rows: TrainingRows, couple: bool) -> VectorMap:
        """Fit to the vectors of the rows if the estimator is a regressor, else to their classes."""
        assert rows.classes is not None, "vectors are of classes"
        classes, codes = np.unique(rows.classes, return_inverse=True)
        seen = self.of(classes)
        center = np.average(seen[codes], axis=0, weights=rows.weights)
        targets, seen = seen[codes], seen - center
        seen = seen[1:] - seen[:1] if len(seen) == 2 else seen  # two classes have one score
        if couple:
            spread = np.sqrt(np.mean(np.square(seen).sum(axis=1))) or 1.0
            covariance = LabelCovariance.low_rank(seen / spread)
            estimator.set_params(**{covariance_parameter(estimator): covariance})
        extra = {} if rows.weights is None else {"sample_weight": rows.weights}
        if is_regressor(estimator):
            estimator.fit(rows.X, targets, **extra)
            return VectorMap(center, None)
        estimator.fit(rows.X, rows.classes, **extra)
        return VectorMap(center, np.linalg.pinv(seen, rcond=_NO_VARIANCE).T if couple else seen)


@dataclass(frozen=True)
class VectorMap:
    """Maps centered scores to vectors, around a center (v,).

    matrix (columns, v): None where scores are vectors.
    """

    center: Array
    matrix: Array | None

    def directions(self, table: Array) -> Array:
        """Compute the map from scores to evidence of classes: (C, columns), by their vectors (C, v)."""
        moved = table - self.center
        return moved if self.matrix is None else moved @ self.matrix.T

    def squares(self, table: Array) -> PerLabel:
        return np.asarray(np.square(table - self.center).sum(axis=1))

    def evidence(self, scores: RowsByLabels, table: Array) -> Evidence:
        return Evidence(scores @ self.directions(table).T, self.squares(table))


class Evidence(NamedTuple):
    """Of rows and classes: products ``s_c^T g``, (rows, C), and squares ``|s_c|^2``, (C,)."""

    products: RowsByLabels
    squares: PerLabel

    def at(self, shrinkage: float) -> RowsByLabels:
        return self.products - shrinkage / 2 * self.squares


def best_shrinkage(evidence: list[Evidence], folds: list[ClassFold]) -> float:
    """Estimate rho by least squares over held-out rows: sums of ``s_c^T g`` by those of ``|s_c|^2``."""
    found, lengths = np.float64(0.0), np.float64(0.0)
    for (products, squares), fold in zip(evidence, folds, strict=True):
        found += np.dot(fold.weights, products[np.arange(len(products)), fold.truth])
        lengths += np.dot(fold.weights, squares[fold.truth])
    return max(0.0, float(found / lengths)) if lengths > 0 else 0.0


def attributes_of_classes(signatures: Any, y: Any) -> tuple[Any, Any, Array, Array]:
    """Look up the attributes of rows whose classes y (n,) names.

    signatures: of all classes; None where every class is an attribute of its own.
    Returns the attributes of the rows, in the container of the signatures; the signatures (classes, L); the
    names of their classes; and the class of every row by these names.
    Raises ValueError if a row has no class, or a class no signature.
    """
    targets = read_classes(y)
    unknown = np.flatnonzero(~targets.is_observed)
    if len(unknown):
        raise ValueError(f"y at row {unknown[0]} has no class; remove such rows, or pass attributes as y.")
    if signatures is None:
        table = np.eye(len(targets.classes))
        return table[targets.codes], table, targets.classes, targets.classes[targets.codes]
    names = class_names(signatures)
    place = {as_text(name): row for row, name in enumerate(names.tolist())}
    strangers = [name for name in targets.classes.tolist() if as_text(name) not in place]
    if strangers:
        raise ValueError(
            f"The class {strangers[0]!r} of y has no signature; pass a DataFrame with one row per class, or "
            "attributes as y."
        )
    rows = np.array([place[as_text(name)] for name in targets.classes.tolist()])[targets.codes]
    return take_rows(signatures, rows), signatures, names, names[rows]


def class_names(signatures: Any) -> Array:
    """Return the names of the classes: a frame's index, or their numbers; ValueError if names repeat."""
    index = getattr(signatures, "index", None) if hasattr(signatures, "columns") else None
    if index is None:
        return np.arange(_num_samples(signatures))
    names, once = typed(np.asarray(index)), set[str]()
    for name in map(as_text, names.tolist()):
        if name in once:
            raise ValueError(f"signatures has the class {name!r} more than once; pass one row per class.")
        once.add(name)
    return names


def read_signatures(signatures: Any, attributes: LabelMatrix) -> Array:
    """Read signatures for the attributes (n, L) of some training rows.

    signatures (classes, L): 0/1 or -1/1, NaN where unknown.
    Returns them as -1 or 1, 0 where unknown, columns in the order of the attributes.
    Raises ValueError if there are none, an entry is no label, or the attributes differ.
    """
    if signatures is None:
        raise ValueError("signatures is None; pass attributes of classes, of shape (classes, attributes).")
    table = LabelMatrix.from_any(signatures)
    if len(table) < 1 or table.n_labels != attributes.n_labels:
        raise ValueError(
            f"signatures has shape {table.shape} but y has {attributes.n_labels} attributes; pass one row "
            "per class and one column per attribute."
        )
    signs = table.to_signs().astype(np.float64)
    if table.names is not None and attributes.names is not None:
        signs = signs[:, _column_order(table.names, attributes.names)]
    return signs


def _column_order(names: Array, wanted: Array) -> list[int]:
    place = {str(name): column for column, name in enumerate(names)}
    for name in wanted:
        if str(name) not in place:
            raise ValueError(
                f"The attribute {str(name)!r} of y is not in signatures; both must have the same attributes."
            )
    return [place[str(name)] for name in wanted]


def read_class_prior(class_prior: Any, classes: Array) -> Array:
    """Read the weights of the classes, None for equal ones, and scale them to sum to 1.

    A Series or dict is matched by name.
    Raises ValueError if their number is wrong, a weight is negative, infinite or NaN, or all are 0.
    """
    names = [str(name) for name in classes]
    given = np.ones(len(names)) if class_prior is None else in_class_order(class_prior, names, len(names))
    prior = checked_class_weights(given, names)
    return np.asarray(prior / prior.sum())


@dataclass(frozen=True)
class StoredNames:
    """The field of names: an array, and whether they were objects."""

    letter: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not tuple or len(value) != 2:
            refuse(where, "names")
        Maybe(Texts(self.letter), Numbers(self.letter, "iufb"), none=False).check(value[0], where, sizes)
        FLAG.check(value[1], where, sizes)


def storable_names(names: Array) -> tuple[Array, bool]:
    """Return names as text where they are objects, and whether they were."""
    is_object = names.dtype == object
    return (names.astype(np.str_) if is_object else names), is_object


def names_again(stored: tuple[Array, bool]) -> Array:
    """Reverse :func:`storable_names`."""
    names, is_object = stored
    return names.astype(object) if is_object else names
