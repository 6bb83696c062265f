"""Reduced-rank ridge regression solved exactly: the squared loss of all entries with the ridge penalty.

    minimize over Z of rank k   sum_i w_i / 2 ||phi_i Z - y_i||^2  +  lambda / 2 ||Z||^2.

Without the bound on the rank ``Z* = (C + lambda)^-1 B`` with ``C = Phi^T D Phi``, ``B = Phi^T D Y`` and D
the weights; with it the loss grows by half of ``tr (Z - Z*)^T (C + lambda) (Z - Z*)``, so the best Z is the
projection of Z* on the leading k eigenvectors V of

    M = Z*^T (C + lambda) Z* = B^T Z*:        Z = (Z* V) V^T.

One factorization and one eigenproblem of the labels' size suffice for every rank.  For a kernel, and for more
features than rows, the same holds in the rows: ``C = S K S`` and ``B = S K S (S Y)`` with S^2 = D, so
that the coefficients are ``A* = (S K S + lambda)^-1 S Y`` and ``M = (S Y)^T (S Y - lambda A*)``.

**Certificate.**  The objective of the best Z is half of ``sum_i w_i ||y_i||^2`` minus the k largest
eigenvalues of M, up to rounding.  The difference has an error of some eps times the sum.  A backward stable
solve is exact for a matrix that differs from C by E, some eps times tr C: this moves tr M by ``tr Z^T E Z``,
for rows by ``lambda tr A^T E A``, and the objective of the weights by the square of E over lambda at most.
Rounding the factors by a share r adds ``r^2 tr C ||Z||^2`` at most, coefficients of rows
``r^2 (tr C)^2 ||A||^2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features import FeatureMatrix
from labelweave.features.gram import StoredGram
from labelweave.features.gram.sources import GramSource
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.arrays.linear_algebra import (
    contiguous,
    copied,
    eigh,
    inner_product,
    like,
    namespace,
    placed,
    to_numpy,
)
from labelweave.problems.shifted_solves import shifted_factor

# the cost of alternating minimization: rounds times conjugate gradient iterations, each with one product
_ITERATIONS = 100
_SPARSE_WORK, _PAIR_WORK, _EIGEN_WORK = 4.0, 60.0, 10.0  # multiplications of a dense product, see choose_gram
_SMALL = 1e6  # multiplications whose time is negligible
_LEAST_SHARE = 1e-12  # of the trace: a smaller lambda is lost in rounding
_COPIES = 4  # of arrays of the size of the right-hand side
_ROUNDING = 64.0  # multiples of eps


@dataclass(frozen=True)
class RidgeFactors:
    """The best factors of one rank.

    features (m, k): W, of weights of features or coefficients of rows.
    labels (L, k): H, its columns orthonormal, the most important one first.
    rounding: a bound of how far the objective may be above the minimum, or above the reported value.
    """

    features: Array
    labels: Array
    objective: float
    rounding: float


@dataclass(frozen=True)
class RidgeSizes:
    """The size of a problem.

    features: explicit features, including the constant one; None for a kernel.
    row_counts (rows,): nonzero entries per row, for sparse features.
    trace: the sum of the squared lengths of all rows.
    by_features: whether the matrix must be that of features, even with more features than rows.
    """

    rows: int
    labels: int
    features: int | None
    row_counts: Array | None
    trace: float
    by_features: bool = False

    @classmethod
    def of(
        cls, explicit: FeatureMatrix | None, source: GramSource | None, constant: float, n_labels: int
    ) -> RidgeSizes:
        if explicit is None:
            assert source is not None, "there are features or a kernel"
            trace = float(source.diagonal().sum()) + source.n_rows * constant**2
            return cls(source.n_rows, n_labels, None, None, trace)
        counts, width = explicit.row_counts(), explicit.shape[1] + (constant != 0)
        trace = float(explicit.squared_norms().sum()) + len(explicit) * constant**2
        return cls(len(explicit), n_labels, width, counts, trace, by_features=explicit.is_distributed)

    @property
    def side(self) -> int:
        if self.features is None:
            return self.rows
        return self.features if self.by_features else min(self.rows, self.features)

    def suit(self, alpha: float, rank: int, budget_bytes: float, *, is_kept: bool) -> bool:
        """Whether the exact solution is possible, and no slower than alternating minimization."""
        side, n_labels = float(self.side), float(self.labels)
        held = (1 + is_kept) * side**2 + _COPIES * n_labels * (self.rows + side + n_labels)
        if not alpha > _LEAST_SHARE * self.trace or 8 * held > budget_bytes:
            return False
        exact = side**3 / 6 + side**2 * n_labels + side * n_labels**2 + _EIGEN_WORK * n_labels**3
        others = _ITERATIONS * rank * (self._product() + self.rows * float(rank))
        return exact + self._making() < max(others, _SMALL)

    def _making(self) -> float:
        """Count the operations for the matrix itself, beyond those of any method."""
        if self.features is None:
            return 0.0
        if self.row_counts is None:
            return self.rows * float(self.features) * self.side / 2
        return _PAIR_WORK * float(np.square(self.row_counts, dtype=np.float64).sum())

    def _product(self) -> float:
        """Count the operations of a product and its adjoint, per column."""
        if self.features is None:
            return float(self.rows) ** 2
        if self.row_counts is None:
            return 2.0 * self.rows * self.features
        return 2.0 * _SPARSE_WORK * float(self.row_counts.sum())


@dataclass(frozen=True)
class NormalEquations:
    """C and B, of shapes (m, m) and (m, L), or the share that some rows contribute."""

    normal: Array
    right: Array

    @classmethod
    def of(
        cls, constant: float, workers: Workers, features: FeatureMatrix, roots: PerRow, scaled: sp.csr_array
    ) -> NormalEquations:
        table = _with_constant(features, constant, roots)
        product = table.T @ scaled
        right = np.ascontiguousarray(product.toarray() if sp.issparse(product) else product)
        return cls(_gram(table.T, workers), placed(right))

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.normal + other.normal, self.right + other.right)


class ReducedRankRidge:
    """The problem, to be solved for any lambda and rank.

    normal (m, m): C, or S K S.
    squares: the sum of the weights of positive entries, times their targets.
    by_rows: whether the matrices are S K S and S Y.
    is_kept: whether another lambda will follow; otherwise the first one may overwrite the matrix.
    Shapes: right (m, L).
    """

    def __init__(
        self, normal: Array, right: Array, squares: float, workers: Workers, *, by_rows: bool, is_kept: bool
    ) -> None:
        self.normal, self.right, self.squares = normal, right, squares
        self.trace = float(namespace(normal).linalg.trace(normal))
        self.workers, self.by_rows, self.is_kept = workers, by_rows, is_kept
        self.expand: Any = lambda coefficients: coefficients
        self.has_row_coefficients = False
        self._solved: tuple[float, Array, Array, Array] | None = None

    @classmethod
    def of(
        cls,
        explicit: FeatureMatrix | None,
        source: GramSource | None,
        constant: float,
        positives: sp.csr_array,
        weights: PerRow,
        workers: Workers,
        *,
        is_kept: bool,
    ) -> ReducedRankRidge:
        """Create the problem.

        explicit: features whose dot products are the kernel.
        constant: the constant feature; 0 for none.
        positives (n, L): 1 where a label is positive; of real type, targets q, with the loss
            (q (s - 1)^2 + (1 - q) s^2) / 2.
        Returns the problem; its factors are for the features with the constant one last, or for rows.
        """
        roots = np.sqrt(np.asarray(weights, np.float64))
        scaled = sp.csr_array(sp.diags_array(roots) @ positives.astype(np.float64))
        squares = float(scaled.multiply(scaled).sum())
        if positives.dtype.kind == "f":
            squares += float(np.sum(roots**2 @ (positives - positives.multiply(positives))))
        if explicit is None:
            assert source is not None, "there are features or a kernel"
            normal = StoredGram.from_source(source, constant**2, np.float64, workers).table
            by_row = like(roots[:, None], normal)
            normal *= by_row
            normal *= by_row.T
            made = cls(normal, placed(scaled.toarray()), squares, workers, by_rows=True, is_kept=is_kept)
            made.expand = lambda coefficients: by_row * coefficients
            made.has_row_coefficients = True
            return made
        if explicit.is_distributed or explicit.shape[1] + (constant != 0) <= len(explicit):
            sums = explicit.summed(partial(NormalEquations.of, constant, workers), roots, scaled)
            return cls(sums.normal, sums.right, squares, workers, by_rows=False, is_kept=is_kept)
        table = _with_constant(explicit, constant, roots)
        normal, right = _gram(table, workers), placed(scaled.toarray())
        made = cls(normal, right, squares, workers, by_rows=True, is_kept=is_kept)
        made.expand = lambda coefficients: np.asarray(table.T @ to_numpy(coefficients))
        return made

    def fit(self, alpha: float, rank: int, dtype: npt.DTypeLike = np.float64) -> RidgeFactors:
        """Solve, for factors that will be rounded to a type."""
        if self._solved is None or self._solved[0] != alpha:
            self._solved = (alpha, *self._solve(alpha))
        _, solution, values, vectors = self._solved
        labels = contiguous(vectors[:, :rank])
        factor = self.workers.matmul(solution, labels)
        features = self.expand(factor)
        objective = 0.5 * (self.squares - float(values[:rank].sum()))
        rounding = self._rounding(alpha, factor, features, float(np.finfo(dtype).eps))
        objective = 0.0 if -rounding <= objective < 0 else objective
        return RidgeFactors(features, labels, objective, rounding)

    def _rounding(self, alpha: float, factor: Array, features: Array, share: float) -> float:
        """Bound the effect of rounding on the objective, see the module; ``share`` is that of the weights."""
        eps, trace = _ROUNDING * float(np.finfo(np.float64).eps), self.trace
        length = trace * inner_product(factor, factor)
        moved = length * (alpha if self.by_rows else 1.0) * (1.0 + eps * trace / alpha)
        stored = trace * length if self.has_row_coefficients else trace * inner_product(features, features)
        return eps * (self.squares + moved) + share**2 * stored

    def _solve(self, alpha: float) -> tuple[Array, Array, Array]:
        """Return Z* or A*, and the eigenvalues and eigenvectors of M in descending order."""
        matrix = copied(self.normal) if self.is_kept else self.normal
        solution = shifted_factor(matrix, alpha, self.workers).solve(self.right)
        other = self.right - alpha * solution if self.by_rows else solution
        values, vectors = eigh(self.workers.inner(self.right, other))  # eigh reads one triangle
        return solution, np.maximum(values[::-1], 0.0), namespace(vectors).flip(vectors, axis=1)


def _with_constant(explicit: FeatureMatrix, constant: float, roots: Array) -> Any:
    """Append the constant feature, and multiply rows by the roots of their weights."""
    wide = explicit.astype(np.float64)
    table = (wide.with_constant(constant) if constant else wide).data
    return sp.csr_array(sp.diags_array(roots) @ table) if wide.is_sparse else roots[:, None] * table


def _gram(table: Any, workers: Workers) -> Array:
    if not sp.issparse(table):
        table = placed(table)
        return workers.matmul(table, table.T)
    rows = sp.csr_array(table)
    columns, gram = sp.csr_array(rows.T), np.empty((table.shape[0],) * 2)
    for panel in panels(table.shape[0]):
        gram[panel] = (rows[panel] @ columns).toarray()
    return placed(gram)
