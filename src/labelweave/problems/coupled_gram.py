"""The prior covariance of all scores: a sum of kernel matrices, each with a label covariance.

The linear model of coregionalisation: scores of rows i, j and labels c, d covary by

    sum_g K_g(x_i, x_j) R_g(c, d) + s [c = d],

with s the variance of the intercepts, which are independent of each other (Seeger 2008,
sections 2, 3 and 5.1.1: the intercepts are eliminated into the kernel).  The flat model is
``K ⊗ diag(v)`` or one kernel a class, the tree ``sum_p v_p K_p ⊗ phi_p phi_p^T``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers
from labelweave.features.gram import Gram
from labelweave.labels import LabelCovariance
from labelweave.problems.label_mixing import has_separate_labels, make_mixing

__all__ = ["CoupledGram", "GramTerm"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class GramTerm:
    """One kernel matrix and how it is shared by the labels.

    Parameters
    ----------
    gram : Gram
        K_g, without a constant.
    covariance : LabelCovariance
        R_g.
    """

    gram: Gram
    covariance: LabelCovariance


class CoupledGram:
    """The sum as an operator.

    Parameters
    ----------
    terms : list of GramTerm
        The kernel matrices with their label covariances.
    intercept_variance : float
        s, 0 for no intercepts.
    workers : Workers
        The threads.
    is_separate : bool
        Whether every label is a group of its own; needs diagonal covariances.

    Attributes
    ----------
    products : float
        Kernel products so far, one for each product of all columns with one kernel matrix; the
        figure that a good method keeps low.
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
        """Tell whether no covariance ties two labels together.

        Parameters
        ----------
        covariances : list of LabelCovariance
            The R_g.

        Returns
        -------
        bool
            Whether all are diagonal.
        """
        return all(has_separate_labels(covariance) for covariance in covariances)

    def product(self, vectors: Array, groups: Array, *, share: float = 1.0) -> Array:
        """Multiply.

        Parameters
        ----------
        vectors : ndarray of float64, shape (n, groups, columns)
            One array of rows x labels a group.
        groups : ndarray of int
            Which groups these are.
        share : float, default=1.0
            Which share of all groups, for the count of products.

        Returns
        -------
        ndarray of float64, shape (n, groups, columns)
            The product, a new array.
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

    def diagonal(self) -> Array:
        """Compute the prior variance of every score.

        Returns
        -------
        ndarray of float64, shape (n, L)
            The variances.
        """
        total = np.full((self.n_rows, self.n_labels), self.intercept_variance)
        for term in self.terms:
            total += np.multiply.outer(term.gram.diagonal(), term.covariance.diagonal())
        return total

    def row_covariances(self, vectors: Array) -> Array:
        """Multiply by the prior covariance of each row's own scores.

        Parameters
        ----------
        vectors : ndarray of shape (n, groups, L)
            One vector a row and group.

        Returns
        -------
        ndarray of shape (n, groups, L)
            ``K_ii vectors_i``, K_ii of shape (L, L) for every row (appendix B of the paper).
        """
        total = self.intercept_variance * vectors
        for term, mixing in zip(self.terms, self.mixings, strict=True):
            total += term.gram.diagonal()[:, None, None] * mixing.alone(vectors)
        return total

    def dense_prior(self, label: int) -> Array:
        """Write out the prior covariance of one label's scores.

        Parameters
        ----------
        label : int
            Which label.

        Returns
        -------
        ndarray of float64, shape (n, n)
            The matrix, a new array.

        Raises
        ------
        ValueError
            If a covariance ties labels together.
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
