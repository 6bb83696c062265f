"""What a fitted model keeps to score rows: one frozen record a kind of model, with one stored form.

A classifier keeps one as ``scorer_``; the record's fields are read on the classifier as if they were its own
(``model.coef_``), so the kind of a model is the kind of its scorer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from labelweave.array_types import Array, PerLabel, RowsByLabels
from labelweave.arrays import panels
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import LowRankGram
from labelweave.model_files import storable
from labelweave.problems.coupled_gram import CoupledGram, ScorePrior

__all__ = [
    "KernelExpansion",
    "KernelScorer",
    "LinearScorer",
    "Scorer",
    "dense_rows",
    "expansion",
    "kernel_scorer",
    "scorer_of_parts",
]

_KERNEL_VALUES_AT_ONCE = 8_000_000  # held in memory while predicting, 64 MB and as much to compute them


@dataclass(frozen=True)
class Scorer(ABC):
    """Base of the kinds: subclasses are dataclasses, registered with ``storable``."""

    intercept_: PerLabel

    @abstractmethod
    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        """Score every label of every row."""

    @classmethod
    def attributes(cls) -> frozenset[str]:
        """Name what users may read on the model."""
        own = {
            name for kind in cls.__mro__ for name, value in vars(kind).items() if isinstance(value, property)
        }
        return frozenset(name for name in own | {field.name for field in fields(cls)} if name.endswith("_"))

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make it again."""
        return cls(**state)


@storable("LinearScorer")
@dataclass(frozen=True)
class LinearScorer(Scorer):
    """Weights of the features, or of the explicit features of a kernel.

    coef_ (L, d): one row a label.
    """

    coef_: Array
    kernel: Kernel | None = None

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        explicit = features if self.kernel is None else self.kernel.explicit_features(features)
        assert explicit is not None, "weights are only kept for explicit features"
        scores: Array = explicit.matmul(self.coef_.T) + self.intercept_
        return scores


@storable("KernelExpansion")
@dataclass(frozen=True)
class KernelExpansion:
    """One term of the scores: ``scores[:, labels] += k(x, rows) @ coefficients``.

    kernel: k; None for a kernel matrix that is given.
    Shapes: rows (m,), labels (k,), coefficients (m, k).
    """

    kernel: Kernel | None
    rows: Array
    labels: Array
    coefficients: Array

    def add_to(self, scores: RowsByLabels, block: Array) -> None:
        """Add the term.

        block (n, m): the kernel between the rows to be scored and the term's rows.
        """
        if len(self.labels) == scores.shape[1]:
            scores += block @ self.coefficients
        else:
            scores[:, self.labels] += block @ self.coefficients

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> KernelExpansion:
        """Make the term again."""
        return cls(**state)


@storable("KernelScorer")
@dataclass(frozen=True)
class KernelScorer(Scorer):
    """Sums of kernels to training rows.

    terms: one a kernel, over the support rows that it names.
    support_ (m,): the training rows.
    support_vectors (m, d): their features; None with a given kernel matrix.
    """

    terms: tuple[KernelExpansion, ...]
    support_: Array
    support_vectors: Any

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the support rows, shape (m, L); of one kernel only."""
        if len(self.terms) > 1:
            raise AttributeError("A sum of kernels has coefficients a kernel; see expansion_.")
        return self.terms[0].coefficients

    @property
    def support_vectors_(self) -> Any:
        """The features of the support rows."""
        if self.support_vectors is None:
            raise AttributeError("With a precomputed kernel the features of support rows are not known.")
        return self.support_vectors

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        scores = np.tile(self.intercept_, (len(features), 1))
        for term in self.terms:
            rows_at_once = max(1, _KERNEL_VALUES_AT_ONCE // max(1, len(term.rows)))
            for rows in panels(len(features), rows_at_once):
                term.add_to(scores[rows], self._kernel_values(term, features.rows(rows)))
        return scores

    def _kernel_values(self, term: KernelExpansion, features: FeatureMatrix) -> Array:
        if term.kernel is None:
            return dense_rows(features)[:, self.support_[term.rows]]
        return term.kernel.block(features, FeatureMatrix(self.support_vectors[term.rows]))


def scorer_of_parts(fitted: dict[str, Any]) -> Scorer:
    """Make a scorer of the parts that earlier model files have as attributes, and take them out of these."""
    intercepts, kernel = fitted.pop("intercept_"), fitted.get("kernel_")
    if "coef_" in fitted:
        return LinearScorer(intercepts, fitted.pop("coef_"), kernel)
    coefficients, support = fitted.pop("dual_coef_"), fitted.pop("support_")
    return kernel_scorer([kernel], intercepts, [coefficients], support, fitted.pop("support_vectors_", None))


def kernel_scorer(
    kernels: Sequence[Kernel | None],
    intercepts: PerLabel,
    coefficients: Sequence[Array],
    support: Array,
    vectors: Any,
) -> KernelScorer:
    """Make the scorer of kernels over the same support rows, each with coefficients of shape (m, L)."""
    rows, labels = np.arange(len(support)), np.arange(len(intercepts))
    terms = [
        KernelExpansion(kernel, rows, labels, part)
        for kernel, part in zip(kernels, coefficients, strict=True)
    ]
    return KernelScorer(intercepts, tuple(terms), support, vectors)


def dense_rows(features: FeatureMatrix) -> Array:
    """Give features as a dense array."""
    table: Array = features.data.toarray() if features.is_sparse else features.data
    return table


def expansion(
    prior: ScorePrior, gram: CoupledGram, dual: RowsByLabels
) -> tuple[Array, list[KernelExpansion]]:
    """Write the scores of a fitted model as sums of kernels to training rows.

    gram: the kernel matrices of the fit.
    support (m,): the training rows that are needed.
    terms: one a kernel, over these rows.
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
