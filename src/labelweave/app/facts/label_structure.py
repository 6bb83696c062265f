"""The prior covariance of labels; lengths and cosines of labels where weights are a product Z = W H^T.

They are those of the columns of Z, so they do not depend on which pair of factors makes the product: of rows
of H where W has orthonormal columns.  They need the small matrix W^T W only; Z is never formed.
"""

from __future__ import annotations

import copy
import math
from functools import cached_property
from typing import Any

import numpy as np

from labelweave.app.facts.words import class_words
from labelweave.decisions.layers import innermost
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.estimators.scorers import known_weights
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, panels, ratios
from labelweave.labels import LabelCovariance

_KERNEL_ROWS_AT_ONCE = 512
_DECIMALS = 9  # rounding must not choose among equal labels
_MOST_LABELS = 2000  # of which all pairs are looked at
_MOST_SUPPORT_ROWS = 5000  # whose kernel is computed to say what is in a model


class FactorGeometry:
    """The columns of Z of a fitted classifier with ``feature_factors_`` and ``label_factors_``."""

    def __init__(self, model: Any) -> None:
        self.model, self.factors = model, model.label_factors_

    @property
    def names(self) -> list[str]:
        """The rows of H: of two classes it has the second one's."""
        names = [str(name) for name in self.model.label_names_]
        return names[len(names) - len(self.factors) :]

    @cached_property
    def _gram(self) -> Array | None:
        """``W^T W``, in the kernel's space for a kernel; None where that takes too many kernel values."""
        factors = self.model.feature_factors_
        if not hasattr(self.model, "support_"):
            return Workers().inner(factors, factors, np.float64)
        if not hasattr(self.model, "support_vectors_") or len(factors) > _MOST_SUPPORT_ROWS:
            return None
        total = np.zeros((factors.shape[1], factors.shape[1]))
        support = FeatureMatrix(self.model.support_vectors_)
        for rows in panels(len(factors), _KERNEL_ROWS_AT_ONCE):
            total += factors[rows].T @ (self.model.kernel_.block(support.rows(rows), support) @ factors)
        return total

    @cached_property
    def _columns(self) -> Array:
        """The columns of Z on an orthonormal basis, a row each; rows of H where ``W^T W`` is not known."""
        if self._gram is None:
            return np.asarray(self.factors, np.float64)
        values, vectors = np.linalg.eigh(self._gram)
        return np.asarray(self.factors @ (vectors * np.sqrt(np.maximum(values, 0.0))))

    @cached_property
    def lengths(self) -> Array:
        return np.asarray(np.linalg.norm(self._columns, axis=1))

    @property
    def singular_values(self) -> list[float] | None:
        """The singular values of Z, falling; None where they need too many values of a kernel."""
        if self._gram is None:
            return None
        squares = np.linalg.eigvalsh(Workers().inner(self._columns, self._columns))[::-1]
        return [math.sqrt(max(value, 0.0)) for value in squares]

    def longest(self, count: int) -> list[tuple[str, float]]:
        order = np.argsort(-self.lengths, kind="stable")[:count]
        return [(self.names[k], float(self.lengths[k])) for k in order]

    def similar(self, row: int, count: int) -> list[tuple[str, float]]:
        """Name labels whose weights, not 0, point most nearly the same way as one's, with cosines."""
        if not self.lengths[row]:
            return []
        products = self._columns @ self._columns[row]
        cosines = np.round(ratios(products, self.lengths * self.lengths[row], -np.inf), _DECIMALS)
        cosines[row] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:count]
        names = self.names
        return [(names[k], float(cosines[k])) for k in best if np.isfinite(cosines[k])]

    def feature_weights(self, row: int) -> Array | None:
        """Multiply the factors for one label: the weights of features; None for kernels of training rows."""
        if hasattr(self.model, "support_"):
            return None
        weights, known = self.model.feature_factors_ @ self.factors[row], known_weights(self.model, row)[0]
        return np.asarray(weights if known is None else weights + known)


def prior_covariances(model: Any) -> list[LabelCovariance]:
    if isinstance(model, KernelLogisticClassifier):
        return [term.covariance for term in model.prior_.terms]
    found = model.label_covariance_ if isinstance(model, MaxMarginClassifier) else []
    return found if isinstance(found, list) else [found]


def covariance_of(classifier: Any) -> LabelCovariance:
    """Return the named prior covariance of the labels, of several kernels their sum; ValueError if none."""
    inner = innermost(classifier)
    found = prior_covariances(inner)
    if not found:
        raise ValueError(f"The model is {class_words(inner)}, which has no label covariance.")
    covariance, names = found[0], inner.label_names_
    if len(found) > 1:
        if covariance.n_labels > _MOST_LABELS:
            raise ValueError(
                f"The model has {len(found)} kernels over {covariance.n_labels} labels; their covariances "
                f"are put together for at most {_MOST_LABELS} labels."
            )
        covariance = LabelCovariance.dense(sum(term.to_dense() for term in found))
    if covariance.label_names is not None or len(names) != covariance.n_labels:  # two classes are one label
        return covariance
    named = copy.copy(covariance)
    named.label_names = names
    return named
