"""The log marginal likelihood of Laplace's approximation and its gradient.

It is the evidence of the hyperparameters in all rows, without folds (Rasmussen and Williams 2006,
section 5.5.1).  The criterion is minus it,

    psi = sum_i loss_i(u_i) + 1/2 <a, K a> + 1/2 log |I + W K|,    u = K a,

at the optimum.  With ``B = (W^-1 + K)^-1`` and the derivatives s of the last term by u, through W,

    d psi = tr (f - a / 2)^T (dK) a + 1/2 tr B dK,    f = (I + W K)^-1 s.

With the factors of :mod:`labelweave.problems.laplace`, ``B = L - H H^T``: the columns of H are pairs like
those of the cross-validation's gradient, and take ``n^2 q`` multiplications per label.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.problems.coupled_gram import ScorePrior
from labelweave.problems.hyperparameters.cross_validation import CrossValidationLikelihood, diagonal_gradient
from labelweave.problems.hyperparameters.priors import PriorGradient, TermGradient
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.laplace import LaplaceFactors
from labelweave.solvers.newton import NewtonState

_COLUMNS_AT_ONCE = 512  # of H


class MarginalLikelihood(CrossValidationLikelihood):
    """Minus the log marginal likelihood per row as a function of theta; of data that hold out no rows."""

    def _evaluated(
        self, prior: ScorePrior, problem: KernelLikelihood, state: NewtonState
    ) -> tuple[float, list[PriorGradient]]:
        factors, every = LaplaceFactors(problem, prior, state.scores, self.settings.budget), self.every
        columns, covariances = factors.pulled()
        rows = slice(0, len(state.scores))
        slopes = problem.loss.trace_gradient(state.scores, covariances, rows, every) / 2
        adjoint = slopes - factors.curve(problem.product(slopes, every), columns)
        _, dual, _ = problem.evaluate(state.scores, every)
        correction = np.vdot(adjoint, problem.product(dual - state.dual, every))
        value = state.values.sum() + factors.log_determinant / 2 + correction
        pairs = [(self._by_fit(adjoint - dual / 2), self._by_fit(dual))]
        parts = [columns[:, some] for some in panels(columns.shape[1], _COLUMNS_AT_ONCE)]
        pairs += [(part / -2, np.ascontiguousarray(part)) for part in parts]
        gradients = [self._by_prior(prior, problem, pair) for pair in pairs]
        return float(value), [*gradients, self._by_diagonal(prior, problem, factors.whole_weights() / 2)]

    def _by_diagonal(self, prior: ScorePrior, problem: KernelLikelihood, weights: Array) -> PriorGradient:
        """Differentiate ``tr L K``, L being block-diagonal with blocks (n, labels, labels)."""
        terms = []
        for made, term in zip(problem.gram.terms, prior.terms, strict=True):
            by_covariance = np.einsum("n,ncd->cd", made.gram.diagonal(), weights)
            if not self.family.learns_covariance and not term.covariance.ties_labels:
                by_covariance = by_covariance.diagonal()
            of_rows = np.einsum("ncd,cd->n", weights, term.covariance.to_dense())
            kernel, features = term.kernel, self.data.features
            by_kernel = np.empty(0) if kernel is None else diagonal_gradient(kernel, features, of_rows)
            terms.append(TermGradient(by_kernel, by_covariance))
        return PriorGradient(terms, float(np.einsum("ncc->", weights)))
