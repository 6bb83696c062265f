"""Prior means of scores, linear in the features, around which weights are penalized.

A prior with a mean penalizes Z - Z0 instead of Z.  With Z = Z0 + D the scores are ``x . z0_l + x . d_l``, so
every fit is one of D with known score offsets: a loss of shifted scores, and nothing else changes.  Z0 is
stored as two factors, as embeddings yield them: of features, and of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import checked_csr, numbers_of
from labelweave.labels.label_names import checked_names, columns_by_name, places_by_name, rows_by_name
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Maybe, Names, Numbers, Optional


@storable(
    "LabelMean",
    {
        "label_factors": Numbers("L k"),
        "feature_factors": Maybe(Numbers("d k")),
        "intercepts": Numbers("L"),
        "label_names": Optional(Maybe(Names("L"))),
    },
)
class LabelMean(StoredParameters):
    """Prior mean of label scores: ``feature_factors @ label_factors.T`` times a row, plus an intercept.

    Parameters
    ----------
    label_factors : array-like of shape (L, k)
        The factors of the labels; without feature factors the weights themselves, k = d.
    feature_factors : array-like of shape (d, k) or None, default=None
        The factors of the features.
    intercepts : array-like of shape (L,) or None, default=None
        The scores of a row of zeros; None for 0.
    label_names : sequence of str or None, default=None
        One name per label, by which a model matches it.

    Raises
    ------
    ValueError
        If the shapes are inconsistent, or any number is not finite.

    Examples
    --------
    >>> from labelweave import LabelMean
    >>> mean = LabelMean([[1.0], [-1.0]], [[2.0], [0.5]])
    >>> mean.weights()
    array([[ 2. ,  0.5],
           [-2. , -0.5]])
    """

    def __init__(
        self, label_factors: Any, feature_factors: Any = None, intercepts: Any = None,
        label_names: Sequence[str] | Array | None = None,
    ) -> None:  # fmt: skip
        self.label_factors = _table(label_factors, "label_factors")
        self.feature_factors = None if feature_factors is None else _table(feature_factors, "feature_factors")
        self.n_labels = n_labels = len(self.label_factors)
        self.intercepts: PerLabel = np.zeros(n_labels)
        if intercepts is not None:
            self.intercepts = numbers_of(intercepts, "intercepts").astype(np.float64)
        if self.intercepts.shape != (n_labels,) or not np.isfinite(self.intercepts).all():
            raise ValueError(
                f"intercepts of shape {self.intercepts.shape} is invalid for {n_labels} labels; pass one "
                "finite number per label."
            )
        if self.feature_factors is not None and self.feature_factors.shape[1] != self.label_factors.shape[1]:
            raise ValueError(
                f"feature_factors has {self.feature_factors.shape[1]} columns but label_factors has "
                f"{self.label_factors.shape[1]}; they must agree."
            )
        self.label_names = checked_names(label_names, n_labels)

    def __repr__(self) -> str:
        return f"LabelMean({self.n_labels} labels, {self.n_features} features)"

    @property
    def n_features(self) -> int:
        """The number of features d."""
        if self.feature_factors is None:
            return int(self.label_factors.shape[1])
        return len(self.feature_factors)

    def weights(self) -> Array:
        """Return the dense weights.

        Returns
        -------
        ndarray of shape (L, d)
            Z0, one row per label.
        """
        if self.feature_factors is None:
            return self.label_factors
        return np.asarray(self.label_factors @ self.feature_factors.T)

    def products(self, features: Any) -> RowsByLabels:
        """Compute the scores of rows without intercepts.

        Parameters
        ----------
        features : ndarray or csr_array of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of shape (n, L)
            ``x . z0_l``.
        """
        latent = features if self.feature_factors is None else features @ self.feature_factors
        return np.asarray(latent @ self.label_factors.T, dtype=np.float64)

    def scores(self, features: Any) -> RowsByLabels:
        """Compute the scores of rows with intercepts; see :meth:`products`."""
        return self.products(features) + self.intercepts

    def factors(self, features: Any) -> tuple[Array, Array]:
        """Return the scores of rows as a product with the fewest columns.

        Parameters
        ----------
        features : ndarray or csr_array of shape (n, d)
            The rows.

        Returns
        -------
        rows : ndarray of shape (n, c)
            Factors of the rows, ones for the intercepts last.
        labels : ndarray of shape (L, c)
            Factors of the labels.
        """
        ones = np.ones((features.shape[0], 1))
        if self.label_factors.shape[1] >= self.n_labels:
            rows, labels = self.products(features), np.eye(self.n_labels)
        else:
            latent = features if self.feature_factors is None else features @ self.feature_factors
            rows, labels = latent.toarray() if hasattr(latent, "toarray") else latent, self.label_factors
        return np.hstack([rows, ones]), np.hstack([labels, self.intercepts[:, None]])

    def columns(self, labels: Array) -> Self:
        """Select labels, in the given order; see :meth:`labelweave.LabelCovariance.columns`."""
        names = None if self.label_names is None else self.label_names[labels]
        return type(self)(self.label_factors[labels], self.feature_factors, self.intercepts[labels], names)

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        names = {} if self.label_names is None else {"label_names": self.label_names.tolist()}
        kept = ("label_factors", "feature_factors", "intercepts")
        return {name: getattr(self, name) for name in kept} | names


def read_label_mean(
    given: Any, names: Sequence[str], n_features: int, feature_names: Array | None = None
) -> LabelMean | None:
    """Return a label mean; one with names is put into the order of the labels and features.

    given: a LabelMean, weights (L, d), as a frame optionally with label and feature names, or None.
    Raises ValueError if its labels or features differ.
    """
    if given is None:
        return None
    if not isinstance(given, LabelMean):
        given = rows_by_name(given, names, "label_mean")
        if feature_names is not None:
            given = columns_by_name(given, [str(name) for name in feature_names], "label_mean", "feature")
    mean = given if isinstance(given, LabelMean) else LabelMean(given)
    if mean.n_labels != len(names) or mean.n_features != n_features:
        raise ValueError(
            f"label_mean has {mean.n_labels} labels and {mean.n_features} features, but there are "
            f"{len(names)} and {n_features}; pass weights of shape (labels, features)."
        )
    theirs = [] if mean.label_names is None else mean.label_names.tolist()
    places = places_by_name(theirs, names, "label_mean")
    return mean if places is None else mean.columns(places)


def _table(given: Any, name: str) -> Array:
    table = checked_csr(given, name).toarray() if sp.issparse(given) else numbers_of(given, name)
    found = np.array(table, dtype=np.float64)  # a copy, which callers cannot change
    if found.ndim != 2 or not (is_finite := np.isfinite(found)).all():
        what = f"has shape {found.shape}" if found.ndim != 2 else f"is {found[~is_finite][0]} in an entry"
        raise ValueError(f"{name} {what}; pass a table of finite numbers.")
    return found
