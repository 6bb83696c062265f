"""The prior covariance of all scores: a sum of kernel matrices, each with a label covariance.

The linear model of coregionalisation: scores of rows i, j and labels c, d covary by

    sum_g K_g(x_i, x_j) R_g(c, d) + s [c = d],

with s the variance of the intercepts, which are independent of each other (Seeger 2008,
sections 2, 3 and 5.1.1: the intercepts are eliminated into the kernel).  The flat model is
``K ⊗ diag(v)`` or one kernel a class, the tree ``sum_p v_p K_p ⊗ phi_p phi_p^T``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Array, GroupedColumns, RowsByLabels, RowsByRows
from labelweave.arrays import Workers
from labelweave.features.gram import Gram
from labelweave.labels import LabelCovariance
from labelweave.problems.label_mixing import has_separate_labels, make_mixing

__all__ = ["CoupledGram", "GramTerm"]


@dataclass(frozen=True)
class GramTerm:
    """One kernel matrix and how it is shared by the labels."""

    gram: Gram
    covariance: LabelCovariance


class CoupledGram:
    """The sum as an operator.

    terms: the kernel matrices with their label covariances.
    intercept_variance: s, 0 for no intercepts.
    is_separate: whether every label is a group of its own; needs diagonal covariances.
    products: kernel products so far, one for each product of all columns with one kernel matrix; the figure
        that a good method keeps low.
    """

    def __init__(
        self, terms: list[GramTerm], intercept_variance: float, workers: Workers, *, is_separate: bool
    ) -> None:
        self.terms, self.intercept_variance, self.is_separate = terms, intercept_variance, is_separate
        self.workers = workers
        self.mixings = [make_mixing(term.covariance, workers, is_separate=is_separate) for term in terms]
        self.n_rows, self.n_labels = terms[0].gram.n_rows, terms[0].covariance.n_labels
        self.products = 0.0

    @staticmethod
    def separates(covariances: list[LabelCovariance]) -> bool:
        """Tell whether no covariance ties two labels together."""
        return all(has_separate_labels(covariance) for covariance in covariances)

    def product(self, vectors: GroupedColumns, groups: Array, *, share: float = 1.0) -> GroupedColumns:
        """Multiply.

        vectors: one array of rows x labels a group.
        share: which share of all groups, for the count of products.
        Returns the product, a new array.
        """
        self.products += share
        total: Array | None = None
        for term, mixing in zip(self.terms, self.mixings, strict=True):
            part = mixing.around(term.gram.product, vectors, groups)
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None, "there is at least one term"
        if self.intercept_variance:
            total += self.intercept_variance * vectors.sum(axis=0)
        return total

    def diagonal(self) -> RowsByLabels:
        """Compute the prior variance of every score."""
        total = np.full((self.n_rows, self.n_labels), self.intercept_variance)
        for term in self.terms:
            total += np.multiply.outer(term.gram.diagonal(), term.covariance.diagonal())
        return total

    def row_covariances(self, vectors: Array) -> Array:
        """Multiply by the prior covariance of each row's own scores.

        vectors (n, groups, L): one vector a row and group.
        Returns (n, groups, L): ``K_ii vectors_i``, K_ii of shape (L, L) for every row (appendix B of the
            paper).
        """
        total = self.intercept_variance * vectors
        for term, mixing in zip(self.terms, self.mixings, strict=True):
            total += term.gram.diagonal()[:, None, None] * mixing.alone(vectors)
        return total

    def dense_prior(self, label: int) -> RowsByRows:
        """Write out the prior covariance of one label's scores.

        Returns the matrix, a new array.
        Raises ValueError if a covariance ties labels together.
        """
        if not self.separates([term.covariance for term in self.terms]):
            raise ValueError(
                "An exact solution needs labels that no covariance ties together, and here a term of the "
                "prior ties some; solve by conjugate gradients."
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
