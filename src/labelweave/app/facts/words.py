"""Descriptions of kernels, taxonomies and parameters."""

from __future__ import annotations

import copy
import inspect
import math
from functools import cached_property
from typing import Any

import numpy as np

from labelweave.decisions.layers import innermost
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.estimators.scorers import known_weights
from labelweave.features import FeatureMatrix
from labelweave.features.kernels import Kernel, ProductKernel, ScaledKernel, SumKernel
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, panels, ratios
from labelweave.labels import LabelCovariance, LabelText, Taxonomy

_MOST_VALUES = 6
_KERNEL_ROWS_AT_ONCE = 512
_DECIMALS = 9  # rounding must not decide between equal labels
_MOST_LABELS = 2000  # whose pairs are all compared
_MOST_SUPPORT_ROWS = 5000  # whose kernel is computed for the description


def class_words(model: Any) -> str:
    name = type(model).__name__
    return f"a{'n' if name[0] in 'AEIOU' else ''} {name}"


def kernel_words(kernel: Any) -> str:
    """Return a kernel as Python code, with all its parameters, numbers with six digits."""
    if not isinstance(kernel, Kernel):
        return kernel if isinstance(kernel, str) else getattr(kernel, "__name__", type(kernel).__name__)
    if isinstance(kernel, SumKernel):
        return f"{kernel_words(kernel.left)} + {kernel_words(kernel.right)}"
    if isinstance(kernel, ProductKernel):
        return f"{_factor(kernel.left)} * {_factor(kernel.right)}"
    if isinstance(kernel, ScaledKernel):
        return f"{kernel.scale:.6g} * {_factor(kernel.kernel)}"
    parameters = kernel.get_params(deep=False)
    return f"{type(kernel).__name__}({', '.join(f'{k}={_number(v)}' for k, v in parameters.items())})"


def _factor(kernel: Kernel) -> str:
    return f"({kernel_words(kernel)})" if isinstance(kernel, SumKernel) else kernel_words(kernel)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return kernel_words(value) if isinstance(value, Kernel) else repr(value)


def number_words(values: dict[str, float]) -> str:
    """Return hyperparameters with names; if there are many, the range of each kind."""
    if len(values) <= _MOST_VALUES:
        return ", ".join(f"{name} {value:.4g}" for name, value in values.items())
    kinds: dict[str, list[float]] = {}
    for name, value in values.items():
        kinds.setdefault(name.partition("[")[0], []).append(value)
    return ", ".join(
        f"{len(found)} x {kind} from {min(found):.4g} to {max(found):.4g}"
        if len(found) > 1
        else f"{kind} {found[0]:.4g}"
        for kind, found in kinds.items()
    )


def taxonomy_words(taxonomy: Taxonomy, names: list[str], kind: str) -> str:
    """Return the size of a taxonomy, and the depths of its labels or classes."""
    depths = taxonomy.depth(names)
    low, high = int(depths.min()), int(depths.max())
    where = f"at depth {low}" if low == high else f"at depths {low} to {high}"
    roots = f" in {len(taxonomy.roots)} trees" if len(taxonomy.roots) > 1 else ""
    return f"{len(taxonomy)} nodes{roots}, the {len(depths)} {kind} {where}"


def plain_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a classifier as plain data, without the classifier inside."""
    return {name: _plain(value) for name, value in _own_parameters(model).items()}


def changed_parameters(model: Any) -> tuple[str, ...]:
    defaults = {name: p.default for name, p in inspect.signature(type(model)).parameters.items()}
    given = _own_parameters(model).items()
    return tuple(name for name, value in given if not _is_same(value, defaults.get(name)))


def _own_parameters(model: Any) -> dict[str, Any]:
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name != "estimator"}


def _is_same(value: Any, default: Any) -> bool:
    value = value.item() if isinstance(value, np.generic) else value
    kinds = {type(value), type(default)}
    is_one_kind = len(kinds) == 1 or kinds == {int, float}  # True is not 1
    return value is default or (is_one_kind and not np.ndim(value) and value == default)


def _plain(value: Any) -> Any:
    """Return numbers and words as they are, larger objects by type and size."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Kernel) or callable(value):
        return kernel_words(value)
    if isinstance(value, Taxonomy):
        return f"Taxonomy of {len(value)} nodes"
    if isinstance(value, (tuple, list)) and all(isinstance(item, (str, int, float)) for item in value):
        return ",".join(map(str, value))
    size = getattr(value, "n_labels", None)
    if size is None:
        size = len(value) if isinstance(value, (tuple, list, LabelText)) else np.size(value)
    return f"{type(value).__name__} over {size} labels"


class FactorGeometry:
    """The columns of Z of a fitted classifier with ``feature_factors_`` and ``label_factors_``."""

    def __init__(self, model: Any) -> None:
        self.model, self.factors = model, model.label_factors_

    @property
    def names(self) -> list[str]:
        """The rows of H: with two classes only the second one's."""
        names = [str(name) for name in self.model.label_names_]
        return names[len(names) - len(self.factors) :]

    @cached_property
    def _gram(self) -> Array | None:
        """``W^T W``, in the kernel's space for a kernel; None if it needs too many kernel values."""
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
        """The columns of Z in an orthonormal basis, one per row; rows of H where ``W^T W`` is unknown."""
        if self._gram is None:
            return np.asarray(self.factors, np.float64)
        values, vectors = np.linalg.eigh(self._gram)
        return np.asarray(self.factors @ (vectors * np.sqrt(np.maximum(values, 0.0))))

    @cached_property
    def lengths(self) -> Array:
        return np.asarray(np.linalg.norm(self._columns, axis=1))

    @property
    def singular_values(self) -> list[float] | None:
        """The singular values of Z, descending; None if they need too many kernel values."""
        if self._gram is None:
            return None
        squares = np.linalg.eigvalsh(Workers().inner(self._columns, self._columns))[::-1]
        return [math.sqrt(max(value, 0.0)) for value in squares]

    def longest(self, count: int) -> list[tuple[str, float]]:
        order = np.argsort(-self.lengths, kind="stable")[:count]
        return [(self.names[k], float(self.lengths[k])) for k in order]

    def similar(self, row: int, count: int) -> list[tuple[str, float]]:
        """Return the labels whose nonzero weights have the highest cosines with one label's."""
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
    """Return the named prior covariance of the labels, summed over several kernels; ValueError if none."""
    inner = innermost(classifier)
    found = prior_covariances(inner)
    if not found:
        raise ValueError(f"The model is {class_words(inner)}, which has no label covariance.")
    covariance, names = found[0], inner.label_names_
    if len(found) > 1:
        if covariance.n_labels > _MOST_LABELS:
            raise ValueError(
                f"The model has {len(found)} kernels over {covariance.n_labels} labels; their covariances "
                f"are summed for at most {_MOST_LABELS} labels."
            )
        covariance = LabelCovariance.dense(sum(term.to_dense() for term in found))
    if covariance.label_names is not None or len(names) != covariance.n_labels:  # two classes are one label
        return covariance
    named = copy.copy(covariance)
    named.label_names = names
    return named
