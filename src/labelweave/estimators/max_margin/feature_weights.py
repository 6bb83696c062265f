"""Explicit features: how they are used, the weights that variables make of them, and their certificate.

Rounding can part weights from variables: of features far from 0, sums over many rows nearly cancel.  What a
fit says of its gap is therefore measured by the weights that its model has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.labels import LabelCovariance
from labelweave.problems import feature_bytes
from labelweave.solvers import SolverResult, Status
from labelweave.solvers.box_dual import Settled, box_loss
from labelweave.solvers.frame import relative_gap

WIDEST = 2000  # features, or rows of more, of which a square matrix is factorised
_FEW_WIDE_ROWS, _FAR = 500, 1e3
_DENSE = 0.3  # of entries that are not 0, from which on sparse features are held densely


@dataclass(frozen=True)
class FeatureWeights:
    """How features make weights and scores.

    data (n, d): the features, dense or sparse.
    constant: the square of a constant feature, whose weights give the intercepts; 0 for none.
    """

    data: Array
    constant: float
    covariance: LabelCovariance

    def of(self, settled: Settled) -> tuple[Array, PerLabel]:
        """Give the weights (L, d) and the intercepts of a result."""
        coupled = self.covariance.matmul(self._uncoupled(settled))
        return coupled[: self.data.shape[1]].T, self._intercepts(coupled)

    def certified(self, result: SolverResult, tol: float) -> SolverResult:
        """Measure the objectives by the weights; those worse than none are not kept."""
        settled = result.answer
        kept = self._uncoupled(settled)
        coupled = self.covariance.matmul(kept)
        scores = self.data @ coupled[: self.data.shape[1]] + self._intercepts(coupled)
        primal = float(np.vdot(kept, coupled)) / 2 + box_loss(settled, scores)
        at_zero = box_loss(settled, np.zeros_like(scores))
        if not primal <= at_zero:
            kept, primal = np.zeros_like(kept), at_zero
        dual = settled.values()[1]
        if settled.weights is None:
            part = self._made_by(settled.boxed)
            square = float(np.vdot(part, self.covariance.matmul(part)))
            dual = float(np.vdot(settled.targets, settled.boxed)) - square / 2
        gap = relative_gap(primal, dual)
        trace = [*result.trace[:-1], result.trace[-1]._replace(primal=primal, dual=dual, gap=gap)]
        status = _status(result.status, is_reached=abs(gap) <= tol)
        return replace(result, status=status, trace=trace, answer=replace(settled, weights=kept))

    def _uncoupled(self, settled: Settled) -> Array:
        return self._made_by(settled.kept) if settled.weights is None else settled.weights

    def _made_by(self, variables: RowsByLabels) -> Array:
        """Give weights of the features, and of the constant one, before labels are coupled."""
        of_constant = np.sqrt(self.constant) * variables.sum(axis=0, keepdims=True)
        return np.vstack([np.asarray(self.data.T @ variables), of_constant[: self.constant > 0]])

    def _intercepts(self, coupled: Array) -> PerLabel:
        return np.asarray(np.sqrt(self.constant) * coupled[self.data.shape[1] :].sum(axis=0))


def is_mostly_zero(features: FeatureMatrix) -> bool:
    """Tell whether features are sparse, and better held so."""
    return features.is_sparse and features.data.nnz <= _DENSE * np.prod(features.shape)


def is_thin(features: FeatureMatrix, budget: float) -> bool:
    """Tell whether features serve better than their dot products: few, or many of few rows.

    Of more rows, features are slower than dot products, but these lose digits where features are far from 0.
    """
    n, d = features.shape
    if d < n:
        return d <= WIDEST
    if n > WIDEST or is_mostly_zero(features) or feature_bytes(n, d) > budget:
        return False
    norms = features.squared_norms()
    variance = norms.mean() - np.square(features.data.mean(axis=0)).sum()
    return bool(n <= _FEW_WIDE_ROWS or norms.max() > _FAR * variance)


def _status(status: Status, *, is_reached: bool) -> Status:
    if status is Status.INTERRUPTED:
        return status
    if is_reached:
        return Status.CONVERGED
    # dot products of features are semi-definite but for rounding
    return Status.STALLED if status in (Status.CONVERGED, Status.INDEFINITE) else status
