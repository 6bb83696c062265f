"""Penalised likelihoods of kernel models (Seeger 2008, equation 1).

    minimise  sum_i w_i loss(y_i, u(x_i)) + 1/2 |u|^2

over score functions u of all labels in the reproducing kernel space of the prior covariance
``sum_g K_g ⊗ R_g``, with intercepts of a variance of their own.  By the representer theorem
``u = K a``.  Several fits to different rows of the same data, such as the
folds of a cross-validation, are solved at once: every product with a kernel matrix then serves all of
them, and its rows outside a fit are that fit's predictions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.arrays import RowPanels, Workers
from labelweave.labels import LabelCovariance
from labelweave.losses import ScoreLoss
from labelweave.problems.coupled_gram import CoupledGram
from labelweave.problems.spectral_preconditioner import (
    LabelwisePreconditioner,
    LeadingVectors,
    SeparatePreconditioner,
    SpectralPreconditioner,
    label_modes,
    leading_vectors,
)

__all__ = ["KernelLikelihood"]

Array = npt.NDArray[Any]

_MOST_MODES = 2500  # labels; eigenvectors of so many take seconds


class KernelLikelihood:
    """The objective of one or several fits.

    Parameters
    ----------
    gram : CoupledGram
        The prior covariance of the scores.
    loss : ScoreLoss
        The loss; its groups are the groups of the problem.
    rank : int
        Leading eigenvectors for the preconditioner; 0 for none.
    seed : int
        Fixes the pivots by which they are found.
    """

    def __init__(self, gram: CoupledGram, loss: ScoreLoss, rank: int, seed: int) -> None:
        self.gram, self.loss, self.rank, self.seed = gram, loss, rank, seed
        self.shape, self.workers = loss.shape, gram.workers
        self._leading: list[LeadingVectors] | None = None

    def product(self, vectors: Array, groups: Array) -> Array:
        """Multiply by the prior covariance; see :meth:`NewtonProblem.product`."""
        return self.gram.product(vectors, groups, share=len(groups) / self.shape[1])

    def evaluate(self, scores: Array, groups: Array) -> tuple[npt.NDArray[np.float64], Array, Array]:
        """Evaluate the losses; see :meth:`NewtonProblem.evaluate`."""
        residuals, state = np.empty_like(scores), np.empty_like(scores)

        def one(rows: slice) -> Array:
            found = self.loss.evaluate(scores[rows], rows, groups)
            residuals[rows], state[rows] = found.residuals, found.state
            return found.values

        return self._panels(scores).total(one), residuals, state

    def _panels(self, scores: Array) -> RowPanels:
        return RowPanels(self.workers, len(scores), scores[0].size)

    def values(self, scores: Array, groups: Array, rows: slice) -> npt.NDArray[np.float64]:
        """Compute the losses of some rows; see :meth:`NewtonProblem.values`."""
        return self.loss.values(scores, rows, groups)

    def curve(self, curvature: Array, vectors: Array, groups: Array, rows: slice) -> Array:
        """Multiply by the curvature; see :meth:`NewtonProblem.curve`."""
        return self.loss.curve(curvature, vectors, rows, groups)

    def preconditioner(self, curvature: Array, groups: Array) -> Any:
        """Make a preconditioner from leading eigenvectors; see :meth:`NewtonProblem.preconditioner`."""
        if self.rank == 0 or self._form() == "none":
            return None
        if self._leading is None:
            self._leading = self._find_leading()
        mean = self._panels(curvature).total(
            lambda rows: self.loss.mean_curvature(curvature[rows], rows, groups)
        ) / len(curvature)
        if self._form() == "labelwise":
            return self._labelwise(self._leading, mean, groups)
        covariance, intercept = self.gram.terms[0].covariance, self.gram.intercept_variance
        if self.gram.is_separate:
            variances = covariance.diagonal()[groups % covariance.n_labels]
            return SeparatePreconditioner(
                self._leading[0], variances, mean[:, 0, 0], intercept, self.workers
            )
        modes = label_modes(covariance, mean / len(groups))
        return SpectralPreconditioner(self._leading[0], modes, intercept, self.workers)

    def _form(self) -> str:
        """Say which preconditioner serves: the terms must share one matrix, or have a label each."""
        terms = self.gram.terms
        if len(terms) == 1:
            return "shared" if self.gram.is_separate or self.gram.n_labels <= _MOST_MODES else "none"
        owned = [np.flatnonzero(term.covariance.diagonal()) for term in terms]
        flat = np.concatenate(owned)
        return "labelwise" if len(np.unique(flat)) == len(flat) == len(terms) else "none"

    def _find_leading(self) -> list[LeadingVectors]:
        gram, intercept = self.gram, self.gram.intercept_variance
        return [
            leading_vectors(
                term.gram, intercept / _largest(term.covariance), self.rank, self.workers, self.seed
            )
            for term in gram.terms
        ]

    def _labelwise(self, leading: list[LeadingVectors], mean: Array, groups: Array) -> Any:
        labels = [int(np.flatnonzero(term.covariance.diagonal())[0]) for term in self.gram.terms]
        scales = [float(term.covariance.diagonal().max()) for term in self.gram.terms]
        own = [
            LeadingVectors(one.vectors, one.images * scale, one.values * scale, one.sums, 0.0)
            for one, scale in zip(leading, scales, strict=True)
        ]
        if self.gram.is_separate:
            places = [groups % self.gram.n_labels == label for label in labels]
            curvatures = np.array([mean[place].mean() if place.any() else 0.0 for place in places])
            columns: list[Any] = [(slice(None), place, 0) for place in places]
        else:
            curvatures = np.diag(mean)[labels] / len(groups)
            columns = [(slice(None), slice(None), label) for label in labels]
        return LabelwisePreconditioner(own, curvatures, columns, self.workers)


def _largest(covariance: LabelCovariance) -> float:
    """Compute the largest eigenvalue of a covariance, or 1 if it has none."""
    values, _ = covariance.spectrum()
    return float(values[0]) if len(values) else 1.0


