"""The scoring part of a fitted model: one frozen dataclass per kind of model, with one stored form.

A classifier stores it as ``scorer_``; its fields can be read on the classifier as if they were its own
(``model.coef_``), so the kind of a model is the kind of its scorer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.feature_matrix import dense_rows
from labelweave.features.gram import LowRankGram
from labelweave.features.kernels.kernel import part_of_others
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import Workers, linear_algebra, panels
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import LARGEST, Field, Items, Made, Maybe, Numbers, places, reads_numbers
from labelweave.problems.coupled_gram import CoupledGram, ScorePrior

_KERNEL_VALUES_AT_ONCE = 2_000_000  # in memory per thread, 16 MB and as much again to compute them
_PRODUCTS_AT_ONCE = 32_000_000  # a few milliseconds
_Score = Callable[[FeatureMatrix, Array], None]
_FEWEST_ROWS = 16  # per panel, which makes the cost per panel negligible


@dataclass(frozen=True)
class Scorer(StoredParameters, ABC):
    """Base of the kinds: subclasses are dataclasses, registered with ``storable``."""

    intercept_: PerLabel
    holds_mean: ClassVar[bool] = False
    """Whether scores known a priori are part of the weights, and not to be added."""
    _takes_devices: ClassVar[bool] = False
    """Whether scores can be computed where the call makes its tables; otherwise they are NumPy's."""

    @abstractmethod
    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        """Compute the score of each label in each row, with the same bits for any number of threads."""

    def scores_at_home(self, features: FeatureMatrix) -> RowsByLabels:
        """Score rows where the call makes its tables (:mod:`labelweave.foundation.arrays.homes`)."""
        if (home := linear_algebra.HOME.get()) is None or not self._takes_devices:
            return self.scores(features)
        key = str(home[:2])
        if key not in self._copies:
            self._copies[key] = _placed(self)
        return linear_algebra.to_numpy(self._copies[key].scores(features.placed()))

    @cached_property
    def _copies(self) -> dict[str, Self]:
        """The scorer with its arrays at other homes."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without derived values

    @classmethod
    @cache
    def attributes(cls) -> frozenset[str]:
        """Return the names that users may read on the model."""
        own = {
            name for kind in cls.__mro__ for name, value in vars(kind).items() if isinstance(value, property)
        }
        return frozenset(name for name in own | {field.name for field in fields(cls)} if name.endswith("_"))

    @property
    def n_labels(self) -> int:
        return int(self.intercept_.shape[0])

    def _in_panels(self, features: FeatureMatrix, size: int, score: _Score, *kernels: Kernel | None) -> Array:
        """Score panels of rows, each on one thread, on as many threads as the linear algebra library uses.

        size: the rows of a panel, by the sizes of a model and not by its threads.
        score: writes the scores of rows.
        kernels: the kernels it uses; a custom one may not be called by several threads.
        """
        scores = linear_algebra.empty((len(features), self.n_labels), np.float64)
        parts = panels(len(features), max(_FEWEST_ROWS, size))
        is_own = not any(kernel and part_of_others(kernel) for kernel in kernels)
        with (Workers.of_library() if is_own and len(parts) > 1 else Workers()).running() as workers:
            workers.each(lambda rows: score(features.rows(rows), scores[rows, ...]), parts)
        return scores

    def takes(self, n_features: int) -> bool:
        raise NotImplementedError


def _placed(part: Any) -> Any:
    """Copy a scorer, or a part of it, with its real numbers at the home of the call."""
    part = part.toarray() if sp.issparse(part) else part
    if isinstance(part, np.ndarray):
        return linear_algebra.placed(part) if part.dtype.kind == "f" else part
    if isinstance(part, tuple):
        return tuple(map(_placed, part))
    if isinstance(part, Scorer | KernelExpansion):
        return replace(part, **{field.name: _placed(getattr(part, field.name)) for field in fields(part)})
    return part


def attribute_of_scorer(model: Any, name: str) -> Any:
    """Read an attribute of a model's scorer as if it were the model's own; the model's ``__getattr__``."""
    scorer = model.__dict__.get("scorer_")
    if scorer is not None and name in scorer.attributes():
        return getattr(scorer, name)
    raise AttributeError(f"{type(model).__name__!r} object has no attribute {name!r}")


KERNEL = Maybe(Made(Kernel))
ROWS = Maybe(Numbers("m d", "fiu", sparse=True))

OF_FEATURES: dict[str, Field] = {"intercept_": Numbers("L"), "weights": Numbers("d L"), "kernel": KERNEL}


@storable("LinearScorer", OF_FEATURES)
@dataclass(frozen=True)
class LinearScorer(Scorer):
    """Weights of the features, or of the explicit features of a kernel.

    weights (d, L): contiguous per feature, so that a sparse row reads those of its own features.
    """

    weights: Array
    kernel: Kernel | None = None
    holds_mean = True
    _takes_devices = True

    @classmethod
    def of_labels(cls, intercepts: PerLabel, coef: Array, kernel: Kernel | None = None) -> Self:
        """Create a scorer from weights (L, d), whose transpose is copied unless it is contiguous."""
        return cls(intercepts, np.ascontiguousarray(coef.T), kernel)

    @property
    def coef_(self) -> Array:
        """The weights, one row per label: a view of shape (L, d)."""
        return self.weights.T

    def takes(self, n_features: int) -> bool:
        return explicit_width(self.kernel, n_features) == len(self.weights)

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        def score(rows: FeatureMatrix, scores: Array) -> None:
            scores[...] = explicit_features(self.kernel, rows).matmul(self.weights)
            scores += self.intercept_

        return self._in_panels(features, _PRODUCTS_AT_ONCE // _products(features, self.weights), score)


@storable(
    "FactorScorer",
    {
        "intercept_": Numbers("L"),
        "feature_factors_": Numbers("m k"),
        "label_factors_": Numbers("L k"),
        "kernel": KERNEL,
        "support": Maybe(places("m")),
        "support_vectors": ROWS,
    },
)
@dataclass(frozen=True)
class FactorScorer(Scorer):
    """Two factors: scores are ``phi(x) W H^T`` plus intercepts.

    feature_factors_ (d, k) or (m, k): W, of explicit features or of support rows.
    label_factors_ (L, k): H.
    kernel: None for linear features, or for a precomputed kernel matrix.
    support (m,): the support rows; None with explicit features.
    support_vectors (m, d): their features; None with a precomputed kernel matrix.
    """

    feature_factors_: Array
    label_factors_: Array
    kernel: Kernel | None = None
    support: Array | None = None
    support_vectors: Any = None
    _takes_devices = True

    @property
    def support_(self) -> Array:
        if self.support is None:
            raise AttributeError("A model with weights of features has no support rows; use coef_.")
        return self.support

    @property
    def support_vectors_(self) -> Any:
        if self.support_vectors is None:
            raise AttributeError("The model has no features of support rows.")
        return self.support_vectors

    @property
    def coef_(self) -> Array:
        """Weights of the features, H W^T of shape (L, d): dense, and computed at every access."""
        if self.support is not None:
            raise AttributeError("A model of a kernel has coefficients of support rows, feature_factors_.")
        return np.asarray(self.label_factors_ @ self.feature_factors_.T)

    def takes(self, n_features: int) -> bool:
        if self.support is None:
            return explicit_width(self.kernel, n_features) == len(self.feature_factors_)
        return takes_support(self.kernel, self.support, self.support_vectors, n_features)

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        return self.products(features, self.intercept_)

    def products(self, features: FeatureMatrix, constants: PerLabel) -> RowsByLabels:
        """Score rows with other constants than the intercepts."""
        if self.support is not None:
            rows = _KERNEL_VALUES_AT_ONCE // max(1, len(self.support))
        else:
            of_latent = _products(features, self.feature_factors_)
            rows = _PRODUCTS_AT_ONCE // (of_latent + math.prod(self.label_factors_.shape))

        def score(part: FeatureMatrix, scores: Array) -> None:
            scores[...] = self._latent(part) @ self.label_factors_.T
            scores += constants

        return self._in_panels(features, rows, score, self.kernel)

    @cached_property
    def _latent(self) -> Callable[[FeatureMatrix], Array]:
        """Return the map from rows to the space of the factors: shape (n, k)."""
        if self.support is None:
            return lambda rows: explicit_features(self.kernel, rows).matmul(self.feature_factors_)
        support, vectors = self.support, self.support_vectors
        columns = None if self.kernel is None else FeatureMatrix.of_model(vectors)

        def latent(rows: FeatureMatrix) -> Array:
            block = _kernel_values(self.kernel, rows, support, columns)
            return linear_algebra.as_type(_product(block, self.feature_factors_), self.feature_factors_.dtype)

        return latent


@storable(
    "KernelExpansion",
    {"kernel": KERNEL, "rows": places("m"), "labels": places("k"), "coefficients": Numbers("m k")},
)
@dataclass(frozen=True)
class KernelExpansion(StoredParameters):
    """One term of the scores: ``scores[:, labels] += k(x, rows) @ coefficients``.

    kernel: k; None for a precomputed kernel matrix.
    Shapes: rows (m,), labels (k,), coefficients (m, k).
    """

    kernel: Kernel | None
    rows: Array
    labels: Array
    coefficients: Array

    def add_to(self, scores: RowsByLabels, block: Array) -> None:
        """Add the term, from the kernel (n, m) between the rows to score and the term's rows."""
        added = _product(block, self.coefficients)
        if len(self.labels) == scores.shape[1]:
            scores += added
        else:
            linear_algebra.put_columns(
                scores, self.labels, linear_algebra.columns_of(scores, self.labels) + added
            )


SUPPORT: dict[str, Field] = {
    "intercept_": Numbers("L"),
    "terms": Items(Made(KernelExpansion), kind=tuple),
    "support_": places("m"),
    "support_vectors": ROWS,
}


@storable("KernelScorer", SUPPORT)
@dataclass(frozen=True)
class KernelScorer(Scorer):
    """Sums of kernels to training rows.

    terms: one per kernel, over its own support rows.
    support_ (m,): the training rows.
    support_vectors (m, d): their features; None with a precomputed kernel matrix.
    """

    terms: tuple[KernelExpansion, ...]
    support_: Array
    support_vectors: Any
    _takes_devices = True

    def takes(self, n_features: int) -> bool:
        return all(
            all_below(term.rows, len(self.support_))
            and all_below(term.labels, self.n_labels)
            and takes_support(term.kernel, self.support_[term.rows], self.support_vectors, n_features)
            for term in self.terms
        )

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the support rows, shape (m, L); with one kernel only."""
        if len(self.terms) > 1:
            raise AttributeError("A sum of kernels has coefficients per kernel, but no dual_coef_.")
        return self.terms[0].coefficients

    @property
    def support_vectors_(self) -> Any:
        if self.support_vectors is None:
            raise AttributeError("With a precomputed kernel the features of support rows are unknown.")
        return self.support_vectors

    @cached_property
    def _columns(self) -> list[FeatureMatrix | None]:
        """The rows of every term, checked once and not copied where a term has all."""
        rows, everything = self.support_vectors, np.arange(len(self.support_))
        return [
            None if term.kernel is None
            else FeatureMatrix.of_model(
                rows if np.array_equal(term.rows, everything) else linear_algebra.rows_of(rows, term.rows)
            )
            for term in self.terms
        ]  # fmt: skip

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        if self._as_weights is not None:
            return self._as_weights.scores(features)

        def score(rows: FeatureMatrix, scores: Array) -> None:
            scores[...] = self.intercept_
            for term, vectors in zip(self.terms, self._columns, strict=True):
                term.add_to(scores, _kernel_values(term.kernel, rows, self.support_[term.rows], vectors))

        widest = max((len(term.rows) for term in self.terms), default=1)
        kernels = (term.kernel for term in self.terms)
        return self._in_panels(features, _KERNEL_VALUES_AT_ONCE // max(1, widest), score, *kernels)

    @cached_property
    def _as_weights(self) -> LinearScorer | None:
        """The scores as feature weights, for a single kernel with fewer features than support rows."""
        kernel, columns = (self.terms[0].kernel, self._columns[0]) if len(self.terms) == 1 else (None, None)
        explicit = kernel.explicit_features(columns) if kernel and columns else None
        if explicit is None or explicit.shape[1] >= len(explicit):
            return None
        weights = np.zeros((explicit.shape[1], self.n_labels))
        weights = weights if linear_algebra.is_numpy(self.intercept_) else linear_algebra.placed(weights)
        self.terms[0].add_to(weights, explicit.data.T)
        return LinearScorer(self.intercept_, weights, kernel)


def label_weights(model: Any, label: int) -> Array:
    """Return the weights of one label, shape (d,), of a model that has ``coef_``."""
    row = model.coef_[[label]]
    return np.asarray(row.toarray() if sp.issparse(row) else row)[0]


def known_weights(model: Any, label: int) -> tuple[Array | None, float]:
    """Return the weights (d,) and the constant that a label's mean adds to the scorer's; None for none."""
    mean = getattr(model, "label_mean_", None)
    if mean is None or model.scorer_.holds_mean:
        return None, 0.0
    own = mean.columns(np.array([label]))
    return np.asarray(own.weights()[0]), float(own.intercepts[0])


def all_below(places_: Array, length: int) -> bool:
    return not len(places_) or int(places_.max()) < length


def explicit_width(kernel: Kernel | None, n_features: int) -> int:
    return explicit_features(kernel, FeatureMatrix(sp.csr_array((1, n_features)))).shape[1]


def takes_support(kernel: Kernel | None, support: Array, vectors: Any, n_features: int) -> bool:
    """Whether kernel values between rows of this many features and the support rows can be computed."""
    if kernel is None or vectors is None:
        return kernel is None and vectors is None and all_below(support, n_features)
    if vectors.shape[1] != n_features:
        return False
    first = FeatureMatrix(vectors[:1])
    kernel.block(first, first)  # raises unless parameters are set and match the width
    if not reads_numbers() or not vectors.shape[0]:
        return True
    return bool(kernel.diagonal(FeatureMatrix(vectors)).max() <= LARGEST)


def explicit_features(kernel: Kernel | None, features: FeatureMatrix) -> FeatureMatrix:
    explicit = features if kernel is None else kernel.explicit_features(features)
    assert explicit is not None, "weights are only kept for explicit features"
    return explicit


def _products(features: FeatureMatrix, weights: Array) -> int:
    """Count the multiplications per row with weights (features, labels), at least one."""
    d, n_labels = weights.shape
    share = features.data.nnz / max(1, len(features)) if features.is_sparse else d
    return max(1, int(share * n_labels))  # with sparse rows the bits do not depend on panels


def _product(left: Array, right: Array) -> Array:
    return Workers().matmul(left, right) if linear_algebra.is_foreign(left) else left @ right


def _kernel_values(
    kernel: Kernel | None, rows: FeatureMatrix, support: Array, vectors: FeatureMatrix | None
) -> Array:
    """Return the kernel between rows and support rows; a slice of the rows if it is precomputed."""
    if kernel is None:
        return linear_algebra.columns_of(dense_rows(rows), support)
    assert vectors is not None, "a kernel comes with the features of the support rows"
    return kernel.block(rows, vectors)


def kernel_scorer(
    kernels: Sequence[Kernel | None],
    intercepts: PerLabel,
    coefficients: Sequence[Array],
    support: Array,
    vectors: Any,
) -> KernelScorer:
    """Create the scorer of kernels over the same support rows, each with coefficients of shape (m, L)."""
    rows, labels = np.arange(len(support)), np.arange(len(intercepts))
    terms = [
        KernelExpansion(kernel, rows, labels, part)
        for kernel, part in zip(kernels, coefficients, strict=True)
    ]
    return KernelScorer(intercepts, tuple(terms), support, vectors)


def expansion(
    prior: ScorePrior, gram: CoupledGram, dual: RowsByLabels
) -> tuple[Array, list[KernelExpansion]]:
    """Express the scores of a fitted model as sums of kernels to training rows.

    support (m,): the training rows that are needed.
    terms: one per kernel, over these rows.
    """
    parts = []
    for term, matrix in zip(prior.terms, gram.terms, strict=True):
        labels = np.flatnonzero(term.covariance.diagonal())
        mixed = np.ascontiguousarray(np.asarray(term.covariance.matmul(dual))[:, labels])
        if isinstance(matrix.gram, LowRankGram):
            rows, mixed = matrix.gram.active_rows, matrix.gram.active_coefficients(mixed)
        else:
            rows = np.flatnonzero(dual.any(axis=1))
            mixed = mixed[rows]
        parts.append((term.kernel, rows, labels, mixed))
    support = np.unique(np.concatenate([rows for _, rows, _, _ in parts]))
    terms = [
        KernelExpansion(kernel, np.searchsorted(support, rows), labels, coefficients)
        for kernel, rows, labels, coefficients in parts
    ]
    return support, terms
