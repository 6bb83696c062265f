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
factor suits: for the trace norm the pair of least penalty (both factors balanced), turned so that the
columns of what the entries see of the fixed factor are orthogonal; for the ridge penalty a fixed factor
with orthonormal columns, so that the penalty is ``lambda / 2`` times the squared length of the one that moves.

**Certificate.**  Without the bound on the rank the trace norm problem is convex.  With D the matrix of slopes,
t D is feasible for its dual where ``t <= 1`` and ``t ||Phi^T D||_2 <= lambda``, and

    dual(t) = - sum of w_ij conjugate(t D_ij / w_ij)

bounds every product from below, those of larger rank too.  A gap of 0 proves that no other factors,
of whatever rank, are better.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse.linalg as ssl

from labelweave.arrays import Workers
from labelweave.features.factor_maps import FactorMap, IdentityMap
from labelweave.problems.factor_step import FactorStep
from labelweave.problems.label_entries import LabelEntries
from labelweave.solvers.trust_region_newton import FactorSolution, TrustRegionNewton

__all__ = ["LowRankFactors", "Penalty"]

Array = npt.NDArray[Any]
Penalty = Literal["trace_norm", "ridge"]

_RITZ_TOL = 1e-4


class LowRankFactors:
    """The objective, and the pair of factors that an algorithm improves.

    Parameters
    ----------
    entries : LabelEntries of shape (n, L)
        The loss.
    factor_map : FactorMap of shape (n, m)
        The features' side.
    penalty : {"trace_norm", "ridge"}
        What is penalised.
    regularization : float
        lambda.
    start : ndarray of shape (L, k)
        The labels' factor to start from; the features' factor starts at 0.
    workers : Workers
        The threads.

    Attributes
    ----------
    feature_factor : ndarray of shape (m, k)
        W.
    label_factor : ndarray of shape (L, k)
        H.
    image : ndarray of shape (n, k)
        Phi W.
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
        self.label_factor = start.copy()
        self.feature_factor = np.zeros((factor_map.shape[1], rank), dtype)
        self.image = np.zeros((entries.shape[0], rank), dtype)

    def improve_features(self, solver: TrustRegionNewton) -> FactorSolution:
        """Lower the objective by the features' factor.

        Parameters
        ----------
        solver : TrustRegionNewton
            What takes the steps.

        Returns
        -------
        FactorSolution
            How it went.
        """
        self._suit_labels()
        blocks: Literal["whole", "columns"] = "columns" if self.entries.has_uniform_curvature else "whole"
        step = FactorStep(
            self.entries, self.map, self.label_factor, self.regularization, blocks, self.workers
        )
        found = solver.minimise(step, self.feature_factor, self.image)
        self.feature_factor, self.image = found.factor, found.image
        return found

    def improve_labels(self, solver: TrustRegionNewton) -> FactorSolution:
        """Lower the objective by the labels' factor.

        Parameters
        ----------
        solver : TrustRegionNewton
            What takes the steps.

        Returns
        -------
        FactorSolution
            How it went.
        """
        self._suit_features()
        step = FactorStep(
            self.entries.transposed, self.label_map, self.image, self.regularization, "rows", self.workers
        )
        found = solver.minimise(step, self.label_factor, self.label_factor)
        self.label_factor = found.factor
        return found

    def refresh(self) -> None:
        """Compute the image anew."""
        self.image = self.map.image(self.feature_factor)

    def objective(self) -> float:
        """Compute the objective.

        Returns
        -------
        float
            Loss and penalty.
        """
        loss = float(self.entries.values(self.image, self.label_factor).sum())
        features, labels = self._feature_gram(), self._label_gram()
        if self.penalty == "trace_norm":
            return loss + 0.5 * self.regularization * float(np.trace(features) + np.trace(labels))
        return loss + 0.5 * self.regularization * float((features * labels).sum())

    def lower_bound(self) -> float:
        """Compute the dual value at the multiple of the slopes that is feasible; trace norm only.

        The spectral norm is computed to a relative accuracy of 1e-4 by Lanczos' method.

        Returns
        -------
        float
            A bound of the objective of all factors of any rank; minus infinity if there is none.
        """
        if self.penalty != "trace_norm":
            return -np.inf
        slopes = self.entries.slope_operator(self.image, self.label_factor)
        dtype = self.image.dtype

        def square(vector: Array) -> Array:
            column = np.ascontiguousarray(vector.reshape(-1, 1), dtype)
            through = self.map.image(self.map.gradient(slopes.matmul(column)))
            return np.asarray(slopes.adjoint(through)).ravel()

        length = np.sqrt(max(0.0, _largest_eigenvalue(square, self.entries.shape[1], dtype)))
        share = 1.0 if length <= self.regularization else self.regularization / length
        return -slopes.conjugate(share)

    def _feature_gram(self) -> Array:
        dual = self.map.dual(self.feature_factor, self.image)
        return self.workers.inner(self.feature_factor, dual, np.float64)

    def _label_gram(self) -> Array:
        return self.workers.inner(self.label_factor, self.label_factor, np.float64)

    def _suit_labels(self) -> None:
        """Take the pair of factors that suits a fixed factor of the labels."""
        labels = self._label_gram()
        if self.penalty == "ridge":
            self._whiten(labels, fixed_is_labels=True)
        elif self.feature_factor.any():
            self._balance(labels)
        else:
            self._turn(labels)

    def _suit_features(self) -> None:
        """Take the pair of factors that suits a fixed factor of the features."""
        if self.penalty == "ridge":
            self._whiten(self._feature_gram(), fixed_is_labels=False)
        self._turn(self.workers.inner(self.image, self.image, np.float64))

    def _whiten(self, gram: Array, *, fixed_is_labels: bool) -> None:
        """Give the fixed factor orthonormal columns; those it does not need become 0."""
        values, vectors = np.linalg.eigh(gram)
        roots = np.sqrt(np.where(values > values.max(initial=0.0) * 1e-12, values, 0.0))
        inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
        of_fixed, of_other = vectors * inverse, vectors * roots
        if fixed_is_labels:
            self._multiply(of_other, of_fixed)
        else:
            self._multiply(of_fixed, of_other)

    def _turn(self, gram: Array) -> None:
        """Turn both factors to the eigenvectors of a matrix."""
        vectors = np.linalg.eigh(gram)[1]
        self._multiply(vectors, vectors)

    def _balance(self, labels: Array) -> None:
        """Take the pair of least penalty, W = U S^1/2 and H = V S^1/2 with the product's singular values S."""
        values, vectors = np.linalg.eigh(labels)
        roots = np.sqrt(np.maximum(values, 0.0))
        inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 1e-7 * roots.max(initial=0.0))
        half = vectors * roots
        squares, turned = np.linalg.eigh(half.T @ self._feature_gram() @ half)
        sizes = np.sqrt(np.sqrt(np.maximum(squares, 0.0)))  # square roots of singular values
        safe = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 1e-7 * sizes.max(initial=0.0))
        self._multiply(half @ (turned * safe), (vectors * inverse) @ (turned * sizes))

    def _multiply(self, of_features: Array, of_labels: Array) -> None:
        dtype = self.image.dtype
        of_features, of_labels = of_features.astype(dtype), of_labels.astype(dtype)
        self.feature_factor = self.workers.matmul(self.feature_factor, of_features)
        self.image = self.workers.matmul(self.image, of_features)
        self.label_factor = self.workers.matmul(self.label_factor, of_labels)


def _largest_eigenvalue(multiply: Any, size: int, dtype: np.dtype[Any]) -> float:
    if size < 3:
        columns = [multiply(column) for column in np.eye(size, dtype=dtype)]
        return float(np.linalg.eigvalsh(np.array(columns, dtype=np.float64)).max(initial=0.0))
    operator = ssl.LinearOperator((size, size), matvec=multiply, dtype=dtype)
    start = np.random.default_rng(0).standard_normal(size).astype(dtype)
    found = ssl.eigsh(operator, k=1, which="LA", v0=start, tol=_RITZ_TOL, return_eigenvectors=False)
    return float(found[0]) * (1 + _RITZ_TOL)
