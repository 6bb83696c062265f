"""The prior covariance of all scores: a sum of kernel matrices, each with a label covariance.

The linear model of coregionalization: scores of rows i, j and labels c, d covary by

    sum_g K_g(x_i, x_j) R_g(c, d) + s [c = d],

with s the variance of the intercepts, which are independent of each other (Seeger 2008,
sections 2, 3 and 5.1.1: the intercepts are eliminated into the kernel).  The flat model is
``K ⊗ diag(v)`` or one kernel per class, the tree ``sum_p v_p K_p ⊗ phi_p phi_p^T``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.features import Kernel
from labelweave.features.gram import Gram
from labelweave.foundation.array_types import Array, RowsByLabels, RowsByRows
from labelweave.foundation.arrays import Workers, namespace
from labelweave.foundation.arrays.linear_algebra import is_numpy, like
from labelweave.labels import LabelCovariance
from labelweave.model_files import storable
from labelweave.model_files.schema import Items, Made, Maybe, Number


@dataclass(frozen=True)
class PriorTerm:
    """A kernel with numeric parameters, and how the labels share it; None for a precomputed matrix."""

    kernel: Kernel | None
    covariance: LabelCovariance


@storable(
    "ScorePrior",
    {
        "kernels": Items(Maybe(Made(Kernel)), "g", least=1),
        "covariances": Items(Made(LabelCovariance, {"L": "n_labels"}), "g"),
        "intercept_variance": Number(0),
    },
)
@dataclass(frozen=True)
class ScorePrior:
    """The prior as a model stores it: ``sum_g K_g ⊗ R_g`` and intercepts, of variance 0 for none."""

    terms: tuple[PriorTerm, ...]
    intercept_variance: float

    @property
    def n_labels(self) -> int:
        return self.terms[0].covariance.n_labels

    @property
    def ties_labels(self) -> bool:
        return any(term.covariance.ties_labels for term in self.terms)

    def operator(self, grams: Iterable[Gram], workers: Workers, *, ties_labels: bool = True) -> CoupledGram:
        """Create the operator at the training rows, from the kernel matrix of each term.

        ties_labels: whether labels are solved for jointly; needed where the prior or the loss couples them.
        """
        terms = [GramTerm(gram, term.covariance) for gram, term in zip(grams, self.terms, strict=True)]
        return CoupledGram(terms, self.intercept_variance, workers, is_separate=not ties_labels)

    def to_state(self) -> dict[str, Any]:
        return {
            "kernels": [term.kernel for term in self.terms],
            "covariances": [term.covariance for term in self.terms],
            "intercept_variance": self.intercept_variance,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ScorePrior:
        pairs = zip(state["kernels"], state["covariances"], strict=True)
        return cls(tuple(PriorTerm(*pair) for pair in pairs), state["intercept_variance"])


@dataclass(frozen=True)
class GramTerm:
    """One kernel matrix and how it is shared by the labels."""

    gram: Gram
    covariance: LabelCovariance

    def product(self, vectors: Array) -> Array:
        """Multiply an array of shape (n, ..., columns) by the kernel matrix."""
        xp = namespace(vectors)
        flat = self.gram.product(xp.reshape(vectors, (vectors.shape[0], -1)))
        return xp.reshape(flat, vectors.shape)


class CoupledGram:
    """The sum as an operator on arrays of shape (n, L), or (n, groups, L) where a group is a fit.

    is_separate: whether every label is a group of its own, of one column: group g is label g modulo L.
        Needs covariances that do not couple labels.
    products: the number of kernel products so far, one for each product of all columns with one kernel
        matrix; the main cost of a method.
    """

    def __init__(
        self, terms: list[GramTerm], intercept_variance: float, workers: Workers, *, is_separate: bool = False
    ) -> None:
        self.terms, self.intercept_variance, self.is_separate = terms, intercept_variance, is_separate
        self.workers = workers
        self.n_rows, self.n_labels = terms[0].gram.n_rows, terms[0].covariance.n_labels
        self.products = 0.0

    def product(self, vectors: Array, groups: Array | None = None, *, share: float = 1.0) -> Array:
        """Multiply; the product is a new array of the vectors' type, float32 or float64.

        groups: which groups these are, where every label is one.
        share: the share of all groups, for the count of products.
        """
        self.products += share
        total: Array | None = None
        for term in self.terms:
            if groups is None or not self.is_separate:
                part = term.covariance.around(term.product, vectors, self.workers)
            else:
                part = self._scaled(term, vectors, groups)
            if total is None:
                total = part
            else:
                total += part
        assert total is not None, "there is at least one term"
        if self.intercept_variance:
            total += self.intercept_variance * namespace(vectors).sum(vectors, axis=0)
        return total

    def _scaled(self, term: GramTerm, vectors: Array, groups: Array) -> Array:
        variances = term.covariance.diagonal()[groups % self.n_labels]
        used = np.flatnonzero(variances)  # labels without variance are omitted from the kernel product
        if len(used) == len(variances) or not is_numpy(vectors):
            part = term.product(vectors)
            part *= like(variances[:, None], part)
            return part
        part = term.product(np.ascontiguousarray(vectors[:, used]))
        part *= variances[used][:, None]
        result = np.zeros_like(vectors)
        result[:, used] = part
        return result

    def diagonal(self) -> RowsByLabels:
        total = np.full((self.n_rows, self.n_labels), self.intercept_variance)
        for term in self.terms:
            total += np.multiply.outer(term.gram.diagonal(), term.covariance.diagonal())
        return total

    def row_covariances(self, vectors: Array) -> Array:
        """Multiply a vector of shape (groups, L) per row by the row's prior covariance K_ii (appendix B)."""
        total = self.intercept_variance * vectors
        for term in self.terms:
            total += term.gram.diagonal()[:, None, None] * term.covariance.matmul(vectors, self.workers)
        return total

    def dense_prior(self, label: int) -> RowsByRows:
        """Return the dense prior covariance of one label's scores; ValueError if labels are coupled."""
        if any(term.covariance.ties_labels for term in self.terms):
            raise ValueError(
                "The exact solver needs independent labels, but a term of the prior has a label covariance; "
                "use conjugate gradients."
            )
        total = np.full((self.n_rows, self.n_rows), float(self.intercept_variance))
        for term in self.terms:
            variance = term.covariance.diagonal()[label]
            if variance:
                total += variance * _written_out(term.gram)
        return total


def _written_out(gram: Gram) -> Array:
    if gram.dtype == np.float64:
        return gram.columns(np.arange(gram.n_rows))
    return gram.product(np.eye(gram.n_rows))  # products are in double precision
