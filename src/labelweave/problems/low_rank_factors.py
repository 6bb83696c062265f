"""Low-rank multi-label learning: a product of two factors with a trace norm or ridge penalty (LEML).

    minimise over W, H   sum over entries of w_ij loss(y_ij, phi(x_i)^T W h_j)  +  penalty(W H^T)

(Yu, Jain, Kar and Dhillon, "Large-scale multi-label learning with missing labels", ICML 2014, equation 4.)
Two penalties:

- "trace_norm": ``lambda / 2 (||W||^2 + ||H||^2)``, which at the best factors of a product Z is
  ``lambda ||Z||_tr``;
- "ridge": ``lambda / 2 ||W H^T||^2``, that of independent linear models, whose rank is bounded all
  the same.  With the squared loss this is reduced-rank ridge regression.

Lengths of W are those of the features' space, so that a kernel penalises functions.

**Half steps.**  A product has many pairs of factors.  Before each half step one is taken in which the fixed
factor suits: for the trace norm the pair of least penalty (both factors balanced), for the ridge penalty
a fixed factor with orthonormal columns, so that the penalty is ``lambda / 2`` times the squared length of
the one that moves; and both turned so that the columns of what the entries see of the fixed factor are
orthogonal.  All of it is done on k x k matrices, then each factor is multiplied once.

**Certificate.**  Without the bound on the rank the trace norm problem is convex.  With D the matrix of
slopes, t D is feasible for its dual where ``t <= 1`` and ``t ||Phi^T D||_2 <= lambda``, and

    dual(t) = - sum of w_ij conjugate(t D_ij / w_ij)

bounds every product from below, those of larger rank too.  A gap of 0 proves that no other factors,
of whatever rank, are better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse.linalg as ssl

from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.features.factor_maps import FactorMap, IdentityMap
from labelweave.problems.factor_step import FactorStep
from labelweave.problems.label_entries import LabelEntries
from labelweave.problems.label_entries.base import weighted_rows
from labelweave.solvers.trust_region_newton import FactorSolution, TrustRegionNewton

__all__ = ["LowRankFactors", "Penalty"]

Penalty = Literal["trace_norm", "ridge"]

_RITZ_TOL = 1e-4
_DEPENDENT = {8: 1e-14, 4: 1e-10}  # eigenvalues of correlations that are noise, by bytes of an entry
_SMALLEST = 1e-4  # root of a singular value as a share of the largest, below which Gram matrices show noise


class _Pair(NamedTuple):
    """Both factors and the image, replaced together so that an interrupt never leaves halves of two pairs."""

    features: Array
    image: Array
    labels: Array


class LowRankFactors:
    """The objective, and the pair of factors that an algorithm improves.

    start (L, k): the labels' factor to start from; the features' factor starts at 0.
    Shapes: entries (n, L), factor_map (n, m).
    """

    def __init__(
        self,
        entries: LabelEntries,
        factor_map: FactorMap,
        penalty: Penalty,
        regularization: float,
        start: Array,
        workers: Workers,
    ) -> None:
        self.entries, self.map, self.workers = entries, factor_map, workers
        self.penalty, self.regularization = penalty, regularization
        self.label_map = IdentityMap(entries.shape[1])
        rank, dtype = start.shape[1], start.dtype
        features = np.zeros((factor_map.shape[1], rank), dtype)
        self._pair = _Pair(features, np.zeros((entries.shape[0], rank), dtype), start.copy())

    @property
    def feature_factor(self) -> Array:
        """W, shape (m, k)."""
        return self._pair.features

    @property
    def label_factor(self) -> Array:
        """H, shape (L, k)."""
        return self._pair.labels

    @property
    def image(self) -> Array:
        """Phi W, shape (n, k)."""
        return self._pair.image

    def improve_features(self, solver: TrustRegionNewton) -> FactorSolution:
        """Lower the objective by the features' factor."""
        self._suit_labels()
        blocks: Literal["whole", "columns"] = "columns" if self.entries.has_uniform_curvature else "whole"
        step = FactorStep(
            self.entries, self.map, self.label_factor, self.regularization, blocks, self.workers
        )
        found = solver.minimise(step, self.feature_factor, self.image)
        self._pair = _Pair(found.factor, found.image, self.label_factor)
        return found

    def improve_labels(self, solver: TrustRegionNewton) -> FactorSolution:
        """Lower the objective by the labels' factor."""
        self._suit_features()
        step = FactorStep(
            self.entries.transposed, self.label_map, self.image, self.regularization, "rows", self.workers
        )
        found = solver.minimise(step, self.label_factor, self.label_factor)
        self._pair = self._pair._replace(labels=found.factor)
        return found

    def refresh(self) -> None:
        """Compute the image anew."""
        self._pair = self._pair._replace(image=self.map.image(self.feature_factor))

    def objective(self) -> float:
        """Compute the objective."""
        loss = float(self.entries.values(self.image, self.label_factor).sum())
        features, labels = self._feature_gram(), self._label_gram()
        if self.penalty == "trace_norm":
            return loss + 0.5 * self.regularization * float(np.trace(features) + np.trace(labels))
        return loss + 0.5 * self.regularization * float((features * labels).sum())

    def lower_bound(self) -> float:
        """Compute the dual value at the multiple of the slopes that is feasible; trace norm only.

        The square of the spectral norm is computed to a relative accuracy of 1e-4 by Lanczos' method.

        Returns A bound of the objective of all factors of any rank; minus infinity if there is none.
        """
        if self.penalty != "trace_norm":
            return -np.inf
        slopes = self.entries.slope_operator(self.image, self.label_factor)
        length = self.slope_length()
        share = 1.0 if length <= self.regularization else self.regularization / length
        return -slopes.conjugate(share)

    def slope_length(self) -> float:
        """Compute the spectral norm of ``Phi^T D``, D the slopes of the losses, from above.

        With W = 0 it is the least lambda at which the trace norm leaves nothing but 0.

        Returns the norm; infinity where it is not found.
        """
        slopes = self.entries.slope_operator(self.image, self.label_factor)
        dtype = self.image.dtype

        def square(vector: Array) -> Array:
            column = np.ascontiguousarray(vector.reshape(-1, 1), dtype)
            through = self.map.image(self.map.gradient(slopes.matmul(column)))
            return np.asarray(slopes.adjoint(through)).ravel()

        return float(np.sqrt(max(0.0, _largest_eigenvalue(square, self.entries.shape[1], dtype))))

    def settle(self) -> None:
        """Take the pair of least penalty of a trace norm, the column of the largest singular value first."""
        if self.feature_factor.any():
            of_features, of_labels = _balanced(self._feature_gram(), self._label_gram(), self.image.dtype)
            self._multiply(of_features[:, ::-1], of_labels[:, ::-1])

    def _feature_gram(self) -> Array:
        dual = self.map.dual(self.feature_factor, self.image)
        return self.workers.inner(self.feature_factor, dual, np.float64)

    def _label_gram(self) -> Array:
        return self.workers.inner(self.label_factor, self.label_factor, np.float64)

    def _suit_labels(self) -> None:
        """Take the pair of factors that suits a fixed factor of the labels."""
        labels = self._label_gram()
        if self.penalty == "ridge":
            of_labels, of_features = _orthonormal(labels, self.image.dtype)
        elif self.feature_factor.any():
            of_features, of_labels = _balanced(self._feature_gram(), labels, self.image.dtype)
        else:
            of_features = of_labels = np.linalg.eigh(labels)[1]
        self._multiply(of_features, of_labels)

    def _suit_features(self) -> None:
        """Take the pair of factors that suits a fixed factor of the features."""
        if self.penalty == "ridge":
            of_features, of_labels = _orthonormal(self._feature_gram(), self.image.dtype)
        else:
            of_features = of_labels = np.eye(self.image.shape[1])
        weighted = weighted_rows(self.image, self.entries.transposed.column_weights)
        seen = self.workers.inner(self.image, weighted, np.float64)
        turn = np.linalg.eigh(of_features.T @ seen @ of_features)[1]
        self._multiply(of_features @ turn, of_labels @ turn)

    def _multiply(self, of_features: Array, of_labels: Array) -> None:
        """Multiply the factors by matrices of which one times the other's transpose is 1."""
        dtype, multiply = self.image.dtype, self.workers.matmul
        of_features, of_labels = of_features.astype(dtype), of_labels.astype(dtype)
        features, image, labels = self._pair
        self._pair = _Pair(
            multiply(features, of_features), multiply(image, of_features), multiply(labels, of_labels)
        )


def _orthonormal(gram: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Find what gives a factor with this Gram matrix orthonormal columns, and what its partner needs then.

    Columns are first brought to one length, so that features of very different sizes do no harm.
    Directions that a factor of dependent columns does not need become 0.
    """
    lengths = np.sqrt(np.diag(gram))
    lengths = np.where(lengths > 0, lengths, 1.0)[:, None]
    values, vectors = np.linalg.eigh(gram / lengths / lengths.T)
    kept = values > _DEPENDENT[dtype.itemsize] * values.max(initial=0.0)
    roots = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)
    return vectors * inverse / lengths, vectors * roots * lengths


def _balanced(features: Array, labels: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Find what turns factors with these Gram matrices into the pair of least penalty.

    It is W = U S^1/2 and H = V S^1/2, with the singular values S of the product.
    """
    of_labels, of_features = _orthonormal(labels, dtype)
    squares, turn = np.linalg.eigh(of_features.T @ features @ of_features)
    sizes = np.sqrt(np.sqrt(np.maximum(squares, 0.0)))
    sizes = np.maximum(sizes, _SMALLEST * sizes.max(initial=0.0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    return of_features @ (turn / sizes), of_labels @ (turn * sizes)


def _largest_eigenvalue(multiply: Callable[[Array], Array], size: int, dtype: np.dtype[Any]) -> float:
    """Find the largest eigenvalue of a positive semi-definite operator; infinity if that takes too long."""
    if size < 3:
        columns = [multiply(column) for column in np.eye(size, dtype=dtype)]
        return float(np.linalg.eigvalsh(np.array(columns, dtype=np.float64)).max(initial=0.0))
    start = np.random.default_rng(0).standard_normal(size).astype(dtype)
    if not multiply(start).any():
        return 0.0
    operator = ssl.LinearOperator((size, size), matvec=multiply, dtype=dtype)
    try:
        found = ssl.eigsh(operator, k=1, which="LA", v0=start, tol=_RITZ_TOL, return_eigenvectors=False)
    except ssl.ArpackError:
        return np.inf
    return float(found[0]) * (1 + _RITZ_TOL)
