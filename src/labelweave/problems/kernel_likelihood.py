"""Penalized likelihoods of kernel models (Seeger 2008, equation 1).

    minimize  sum_i w_i loss(y_i, u(x_i)) + 1/2 |u|^2

over score functions u of all labels in the reproducing kernel space of the prior covariance
``sum_g K_g ⊗ R_g``, with intercepts of a variance of their own.  By the representer theorem
``u = K a``.  Several fits to different rows of the same data, such as the
folds of a cross-validation, are solved at once: they share every product with a kernel matrix,
and its rows outside a fit are that fit's predictions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.features.gram.spectrum import leading_spectrum
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import RowPanels, namespace, panels
from labelweave.foundation.arrays.linear_algebra import group_products, is_numpy
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.losses import ScoreLoss
from labelweave.problems.spectral_preconditioner import SpectralPreconditioner, label_modes, row_basis
from labelweave.solvers.newton_system import NewtonProblem

_MOST_MODES = 2500  # labels; eigenvectors of this many take seconds
_ROWS_OF_SUM = 4096  # whose L x L sums are computed at once; these are large for many labels
_LEAST_SHARE = 0.5  # of the trace in the leading eigenvalues; with less the basis saves little or slows down
_FEWEST_MODES = 20  # labels; with fewer, computing the basis costs more products than it saves


class KernelLikelihood(NewtonProblem):
    """The objective of one or several fits.

    gram: the prior covariance of the scores.
    loss: the loss; its groups are the groups of the problem.
    rank: leading eigenvectors for the preconditioner; 0 for none.
    seed: determines the pivots by which they are found.
    """

    def __init__(self, gram: CoupledGram, loss: ScoreLoss, rank: int, seed: int) -> None:
        self.gram, self.loss, self.rank, self.seed = gram, loss, rank, seed
        self.shape, self.workers, self.least = loss.shape, gram.workers, loss.least
        self.curve, self.row_covariances = loss.curve, gram.row_covariances
        self._leading: Array | None = None
        self._constant = 0.0

    def product(self, vectors: Array, groups: Array) -> Array:
        return self.gram.product(vectors, groups, share=len(groups) / self.shape[1])

    def evaluate(self, scores: Array, groups: Array) -> tuple[npt.NDArray[np.float64], Array, Array]:
        xp = namespace(scores)
        residuals, state = xp.empty_like(scores), xp.empty_like(scores)

        def one(rows: slice) -> Array:
            found = self.loss.evaluate(scores[rows, ...], rows, groups)
            residuals[rows, ...], state[rows, ...] = found.residuals, found.state
            return found.values

        return RowPanels(self.workers, scores).total(one), residuals, state

    def along(self, scores: Array, direction: Array, groups: Array, rows: slice) -> tuple[Array, Array]:
        found = self.loss.evaluate(scores, rows, groups)
        return found.values, -group_products(found.residuals, direction)

    def root(self, curvature: Array, groups: Array) -> tuple[Array, Array | None]:
        return self.loss.root(curvature, slice(0, len(curvature)), groups)

    def variances(self, groups: Array) -> Array:
        variances = self.gram.diagonal()
        if self.gram.is_separate:
            return variances[:, groups % self.gram.n_labels, None]
        return variances[:, None, :]

    def dense_prior(self, group: int, column: int) -> Array:
        return self.gram.dense_prior(group % self.gram.n_labels if self.gram.is_separate else column)

    def preconditioner(self, curvature: Array, groups: Array) -> SpectralPreconditioner | None:
        """Create one for coupled labels with one kernel matrix; see :meth:`NewtonProblem.preconditioner`."""
        gram = self.gram
        is_apt = len(gram.terms) == 1 and not gram.is_separate
        is_apt = is_apt and _FEWEST_MODES <= gram.n_labels <= _MOST_MODES
        if self.rank == 0 or not (is_apt and is_numpy(curvature)):
            return None
        term = gram.terms[0]
        if self._leading is None:
            self._leading = self._find_leading(term)
        if not self._leading.shape[1]:
            return None
        mean, of_rows = self._mean_curvatures(curvature, groups)
        bases = [
            row_basis(term.gram, self._constant, self._leading, of_group, self.workers)
            for of_group in of_rows.T
        ]
        gram.products += self._leading.shape[1] * len(groups) / (self.shape[1] * self.shape[2])
        modes = label_modes(term.covariance, mean)
        return SpectralPreconditioner(bases, modes, self._constant, gram.intercept_variance, self.workers)

    def _find_leading(self, term: GramTerm) -> Array:
        """Find the leading eigenvectors; none if they have a small share of the trace."""
        gram = self.gram
        rank = min(self.rank, gram.n_labels, gram.n_rows)
        found = leading_spectrum(term.gram, rank, self.workers, self.seed)
        gram.products += rank / (self.shape[1] * self.shape[2])
        of_labels, _ = term.covariance.spectrum()
        self._constant = gram.intercept_variance / (float(of_labels[0]) if len(of_labels) else 1.0)
        kept = found.values.sum() >= _LEAST_SHARE * term.gram.diagonal().sum()
        return found.vectors.astype(np.float64) if kept else np.empty((gram.n_rows, 0))

    def _mean_curvatures(self, curvature: Array, groups: Array) -> tuple[Array, Array]:
        """Compute S over the labels, of trace 1 on average, and a of shape (n, groups)."""
        of_rows = np.empty(curvature.shape[:2])

        def traces(rows: slice) -> None:
            of_rows[rows] = self.loss.row_curvatures(curvature[rows], rows, groups)

        def one(rows: slice) -> Array:
            return self.loss.mean_curvature(curvature[rows], rows, groups)

        RowPanels(self.workers, curvature).each(traces)
        sums = self.workers.map(one, panels(len(curvature), _ROWS_OF_SUM))
        total = sum(sums[1:], sums[0])  # in order, so that the sum does not depend on the threads
        return total / max(float(of_rows.sum()), np.finfo(float).tiny), of_rows
