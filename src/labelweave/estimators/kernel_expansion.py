"""Scores as sums of kernels to training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.array_types import Array, RowsByLabels
from labelweave.features import Kernel
from labelweave.features.gram import LowRankGram
from labelweave.model_files import storable
from labelweave.problems.coupled_gram import CoupledGram, ScorePrior

__all__ = ["KernelExpansion", "expansion"]


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
