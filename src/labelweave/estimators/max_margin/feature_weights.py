"""Explicit features: how they are used, the weights that follow from dual variables, and their certificate.

Rounding can separate weights from variables: with features far from 0, sums over many rows nearly cancel.
The reported gap of a fit is therefore computed from the weights of its model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import dot, to_numpy
from labelweave.labels import LabelCovariance
from labelweave.problems import feature_bytes
from labelweave.solvers import SolverResult, Status
from labelweave.solvers.box_dual import Settled, box_loss
from labelweave.solvers.frame import relative_gap

WIDEST = 2000  # features, or rows of more, for which a square matrix is factorized
_FEW_WIDE_ROWS, _FAR = 500, 1e3
_DENSE = 0.3  # of nonzero entries, above which sparse features are stored dense


@dataclass(frozen=True)
class FeatureWeights:
    """Maps between features, weights and scores.

    data (n, d): the features, dense or sparse.
    constant: the square of a constant feature, whose weights are the intercepts; 0 for none.
    """

    data: Array
    constant: float
    covariance: LabelCovariance

    def of(self, settled: Settled) -> tuple[Array, PerLabel]:
        """Return the weights (L, d) and the intercepts of a result."""
        coupled = to_numpy(self.covariance.matmul(self._uncoupled(settled)))
        return coupled[: self.data.shape[1]].T, self._intercepts(coupled)

    def certified(self, result: SolverResult, tol: float) -> SolverResult:
        """Compute the objectives from the weights; weights worse than none are not kept."""
        settled = result.answer
        kept = self._uncoupled(settled)
        coupled = self.covariance.matmul(kept)
        xp = namespace(kept)
        scores = self.data @ coupled[: self.data.shape[1], ...] + self._intercepts(coupled)
        primal = dot(kept, coupled) / 2 + box_loss(settled, scores)
        at_zero = box_loss(settled, xp.zeros_like(scores))
        if not primal <= at_zero:
            kept, primal = xp.zeros_like(kept), at_zero
        dual = settled.values()[1]
        if settled.weights is None:
            part = self._made_by(settled.boxed)
            square = dot(part, self.covariance.matmul(part))
            dual = dot(settled.targets, settled.boxed) - square / 2
        gap = relative_gap(primal, dual)
        trace = [*result.trace[:-1], result.trace[-1]._replace(primal=primal, dual=dual, gap=gap)]
        status = _status(result.status, is_reached=abs(gap) <= tol)
        return replace(result, status=status, trace=trace, answer=replace(settled, weights=kept))

    def _uncoupled(self, settled: Settled) -> Array:
        return self._made_by(settled.kept) if settled.weights is None else settled.weights

    def _made_by(self, variables: RowsByLabels) -> Array:
        """Compute weights of the features, and of the constant one, before labels are coupled."""
        xp = namespace(variables)
        of_constant = math.sqrt(self.constant) * xp.sum(variables, axis=0, keepdims=True)
        made: Array = xp.concat([self.data.T @ variables, of_constant[: self.constant > 0, ...]], axis=0)
        return made

    def _intercepts(self, coupled: Array) -> PerLabel:
        of_constant = coupled[self.data.shape[1] :, ...]
        found: Array = math.sqrt(self.constant) * namespace(coupled).sum(of_constant, axis=0)
        return found


def is_mostly_zero(features: FeatureMatrix) -> bool:
    """Whether features are sparse, and better stored so."""
    return features.is_sparse and features.data.nnz <= _DENSE * np.prod(features.shape)


def is_thin(features: FeatureMatrix, budget: float) -> bool:
    """Whether to use features rather than their dot products: few features, or many of few rows.

    With more rows features are slower than dot products, but these lose digits where features are far from 0.
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
    # dot products of features are semi-definite except for rounding
    return Status.STALLED if status in (Status.CONVERGED, Status.INDEFINITE) else status
