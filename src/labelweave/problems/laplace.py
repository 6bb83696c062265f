"""Laplace's approximation to the posterior of the scores (Rasmussen and Williams 2006, sections 3.4 and 3.5).

At the optimum the scores of the training rows have the Gaussian posterior of covariance ``(K^-1 + W)^-1``, W
being the curvature of the loss, and the log marginal likelihood is minus the objective minus
``1/2 log |I + W K|``.  Let ``K = G G^T + D`` with G of q columns and D block-diagonal in the rows, and

    L = (W^-1 + D)^-1,    T^T T = I + G^T L G,    log |I + W K| = log |I + W D| + 2 log |T|.

The scores of a new row with the features g have the covariance ``K(x, x) - g^T g + |T^-T g|^2``.  G is a
pivoted Cholesky factor of all rows, which leaves out rounding, or the ``kernel_rank`` columns of a low-rank
kernel matrix: then the active rows are the inducing points of the fully independent training conditional
approximation (Snelson and Ghahramani 2006).  Labels that neither the prior nor the loss ties have a T each.
A factor takes ``n q^2 / 2 + q^3 / 3`` multiplications, and a new row q^2 per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as sl

from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import LowRankGram, incomplete_cholesky
from labelweave.features.kernels.kernel import part_of_others
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, panels
from labelweave.labels import LabelCovariance
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Items, Made, Number, Numbers
from labelweave.problems.coupled_gram import ScorePrior
from labelweave.problems.kernel_likelihood import KernelLikelihood

_VALUES_AT_ONCE = 4_000_000
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class _Features:
    """Features of n rows in every term ``K_g (x) F F^T`` of the prior.

    tables (n, r): G of each term; left (n,): what the diagonal of K has beyond that of ``G G^T``.
    mixings: F of each term, one row per label.
    """

    tables: Sequence[Array]
    left: Sequence[Array]
    mixings: Sequence[Array]
    intercept_variance: float

    def columns(self, labels: Array) -> list[tuple[Array, Array]]:
        """List pairs of features (n, r) and weights (labels,), whose outer products are the columns of G."""
        parts = [
            (table, column)
            for table, mixing in zip(self.tables, self.mixings, strict=True)
            for column in mixing[labels].T
        ]
        if self.intercept_variance:
            ones = np.ones((len(self.tables[0]), 1))
            parts += [(ones, column) for column in np.sqrt(self.intercept_variance) * np.eye(len(labels))]
        return [(table, column) for table, column in parts if column.any()]

    def stacked(self, labels: Array, rows: slice) -> Array:
        """Compute the transpose of G, shape (q, n, labels)."""
        pairs = self.columns(labels)
        return np.concatenate([np.multiply.outer(table[rows].T, column) for table, column in pairs])

    def outside(self, labels: Array, rows: slice) -> Array:
        """Compute D, shape (n, labels, labels)."""
        pairs = ((own[rows], mixing[labels]) for own, mixing in zip(self.left, self.mixings, strict=True))
        return np.asarray(sum(np.multiply.outer(own, mixing @ mixing.T) for own, mixing in pairs))


@storable(
    "Posterior",
    {
        "kernels": Items(Made(Kernel), "g", least=1),
        "vectors": Items(Numbers("_ d", "fiu", sparse=True), "g"),
        "triangles": Items(Numbers("_ _"), "g"),
        "mixings": Items(Numbers("L _"), "g"),
        "intercept_variance": Number(0),
        "factors": Items(Numbers("_ _"), least=1),
    },
    {"its sizes do not match": lambda state: Posterior(**state).is_whole()},
)
@dataclass(frozen=True)
class Posterior(StoredParameters):
    """The posterior covariance of scores of new rows.

    kernels, vectors, triangles: of each term, the active rows and their lower triangular G.
    mixings: F of each term.
    factors: T of all labels, or of every label.
    """

    kernels: list[Kernel]
    vectors: list[Any]
    triangles: list[Array]
    mixings: list[Array]
    intercept_variance: float
    factors: list[Array]

    @property
    def n_labels(self) -> int:
        return len(self.mixings[0])

    def is_whole(self) -> bool:
        """Whether triangles and factors have the sizes of the rows and labels, and can be solved with."""
        sizes = [vectors.shape[0] for vectors in self.vectors]
        made = _Features([np.empty((1, size)) for size in sizes], (), self.mixings, self.intercept_variance)
        groups = _groups(self.n_labels, len(self.factors))
        sizes += [sum(table.shape[1] for table, _ in made.columns(labels)) for labels in groups]
        squares = [*self.triangles, *self.factors]
        fit = len(sizes) == len(squares) and len(groups) == len(self.factors)
        return fit and all(
            square.shape == (size, size) and bool(square.diagonal().all())
            for size, square in zip(sizes, squares, strict=True)
        )

    def covariances(self, features: FeatureMatrix) -> Array:
        """Compute the covariances of the scores of n rows: shape (n, groups, labels, labels)."""
        size = self.n_labels * max(map(len, self.factors))
        parts = panels(len(features), max(1, _VALUES_AT_ONCE // size))
        is_own = not any(map(part_of_others, self.kernels))  # threads may not share a custom kernel
        with (Workers.of_library() if is_own else Workers()).running() as workers:
            return np.concatenate(workers.map(lambda rows: self._of_rows(features.rows(rows)), parts))

    def _of_rows(self, features: FeatureMatrix) -> Array:
        features, tables, left = features.astype(np.float64), [], []
        for kernel, vectors, triangle in zip(self.kernels, self.vectors, self.triangles, strict=True):
            across = kernel.block(FeatureMatrix(vectors).astype(np.float64), features)
            tables.append(sl.solve_triangular(triangle, across, lower=True, check_finite=False).T)
            own = np.einsum("nr,nr->n", tables[-1], tables[-1])
            left.append(np.maximum(kernel.diagonal(features) - own, 0.0))
        made = _Features(tables, left, self.mixings, self.intercept_variance)
        groups = _groups(self.n_labels, len(self.factors))
        whole, found = slice(0, len(features)), []
        for labels, factor in zip(groups, self.factors, strict=True):
            half = _solved(factor, made.stacked(labels, whole))
            found.append(made.outside(labels, whole) + _grams(half))
        return np.stack(found, axis=1)


class LaplaceFactors:
    """The factors of the posterior at the optimum of a single fit.

    budget: bytes that all T may take.
    Raises ParameterError if they take more.
    """

    def __init__(
        self, problem: KernelLikelihood, prior: ScorePrior, scores: Array, budget: float = np.inf
    ) -> None:
        self.problem, self.prior = problem, prior
        self.incomplete = [
            term.gram if isinstance(term.gram, LowRankGram)
            else incomplete_cholesky(term.gram, term.gram.n_rows, problem.workers, problem.seed)
            for term in problem.gram.terms
        ]  # fmt: skip
        self.features = _Features(
            [one.factor for one in self.incomplete],
            [one.left for one in self.incomplete],
            [_root_of(term.covariance) for term in prior.terms],
            prior.intercept_variance,
        )
        self.groups = _groups(prior.n_labels, problem.shape[1])
        self._check_budget(budget)
        every = np.arange(problem.shape[1])
        root = problem.root(problem.evaluate(scores, every)[2], every)
        self.log_determinant, self.weights, self.factors = 0.0, list[Array](), list[Array]()
        for number, labels in enumerate(self.groups):
            self._factorize(labels, *(None if part is None else part[:, number] for part in root))

    def _check_budget(self, budget: float) -> None:
        sizes = [sum(table.shape[1] for table, _ in self.features.columns(labels)) for labels in self.groups]
        needed = 16.0 * sum(size**2 for size in sizes)
        if needed > budget:
            raise ParameterError(
                f"The factors of Laplace's approximation need {needed / 1e6:.3g} MB, but `memory_budget` is "
                f"{budget / 1e6:g} MB; pass a smaller `kernel_rank`, fewer rows or `learning_rows`."
            )

    def _factorize(self, labels: Array, scale: Any, shares: Any) -> None:
        """Compute L and T of a group of labels, from S and U of ``W = V V^T, V = S (I - U U^T)``."""
        weights, unit = np.empty((*scale.shape, scale.shape[1])), np.eye(scale.shape[1])
        for rows in panels(len(scale), _ROWS_AT_ONCE):
            root = scale[rows, :, None] * unit
            if shares is not None:
                root -= np.einsum("nc,nc,nd->ncd", scale[rows], shares[rows], shares[rows])
            across = root.transpose(0, 2, 1)
            inner = unit + across @ self.features.outside(labels, rows) @ root
            weights[rows] = root @ np.linalg.solve(inner, across)
            self.log_determinant += float(np.linalg.slogdet(inner)[1].sum())
        factor = sl.cholesky(self._precision(labels, weights), overwrite_a=True, check_finite=False)
        self.weights.append(weights)
        self.factors.append(factor)
        self.log_determinant += 2.0 * float(np.log(np.diagonal(factor)).sum())

    def _precision(self, labels: Array, weights: Array) -> Array:
        """Compute ``I + G^T L G``, of which only the upper triangle of blocks is used."""
        columns, inner = self.features.columns(labels), self.problem.workers.inner
        places = [slice(*ends) for ends in pairwise(np.cumsum([0, *(pair[0].shape[1] for pair in columns)]))]
        total = np.eye(places[-1].stop)
        for number, (table, mixing) in enumerate(columns):
            turned = np.einsum("c,ncd->nd", mixing, weights)
            for place, (other, theirs) in zip(places[number:], columns[number:], strict=True):
                total[places[number], place] += inner(table, (turned @ theirs)[:, None] * other)
        return total

    def posterior(self, features: FeatureMatrix) -> Posterior:
        """Return what predictions need; ``features`` are the training rows."""
        kernels = [term.kernel for term in self.prior.terms if term.kernel is not None]
        vectors = [features.rows(one.active_rows).data for one in self.incomplete]
        triangles = [one.triangle for one in self.incomplete]
        mixings, variance = list(self.features.mixings), self.prior.intercept_variance
        return Posterior(kernels, vectors, triangles, mixings, variance, self.factors)

    def pulled(self) -> tuple[Array, Array]:
        """Compute H of ``(W^-1 + K)^-1 = L - H H^T``, and the covariances of the training rows' scores.

        Shapes: H (n, columns, labels), where separate labels stand side by side; covariances (n, groups,
        labels, labels).
        """
        whole, parts, covariances = slice(0, self.problem.shape[0]), [], []
        for labels, factor, weights in zip(self.groups, self.factors, self.weights, strict=True):
            half = _solved(factor, self.features.stacked(labels, whole))
            outside = self.features.outside(labels, whole)
            kept = np.eye(len(labels)) - outside @ weights
            covariances.append(kept @ outside + kept @ _grams(half) @ kept.transpose(0, 2, 1))
            parts.append(np.matmul(half.transpose(1, 0, 2), weights))
        columns = np.zeros((whole.stop, max(map(len, self.factors)), self.prior.n_labels))
        for labels, part in zip(self.groups, parts, strict=True):
            columns[:, : part.shape[1], labels] = part
        return columns, np.stack(covariances, axis=1)

    def whole_weights(self) -> Array:
        """Return L of all labels, shape (n, labels, labels)."""
        if len(self.groups) == 1:
            return self.weights[0]
        return np.concatenate(self.weights, axis=1) * np.eye(len(self.groups))

    def curve(self, vectors: Array, columns: Array) -> Array:
        """Multiply by ``L - H H^T``, from H; see :meth:`pulled`."""
        flat = vectors.reshape(len(vectors), -1)
        inside = np.einsum("nql,nl->ql", columns, flat)
        if len(self.groups) == 1:
            inside = np.repeat(inside.sum(axis=1, keepdims=True), flat.shape[1], axis=1)
        product = np.einsum("ncd,nd->nc", self.whole_weights(), flat)
        return np.asarray(product - np.einsum("nql,ql->nl", columns, inside)).reshape(vectors.shape)


def _groups(n_labels: int, n_groups: int) -> list[Array]:
    labels = np.arange(n_labels)
    return [labels] if n_groups == 1 else list(labels[:, None])


def _solved(factor: Array, stacked: Array) -> Array:
    flat = stacked.reshape(len(factor), -1)
    solved = np.asarray(sl.solve_triangular(factor, flat, trans="T", check_finite=False))
    return solved.reshape(stacked.shape)


def _grams(half: Array) -> Array:
    """Compute the products ``h^T h`` of every row, from (q, n, labels)."""
    return np.asarray(np.matmul(half.transpose(1, 2, 0), half.transpose(1, 0, 2)))


def _root_of(covariance: LabelCovariance) -> Array:
    """Return F with ``R = F F^T``."""
    if not covariance.ties_labels:
        return np.diag(np.sqrt(covariance.diagonal()))
    values, vectors = covariance.spectrum()
    return np.asarray(vectors * np.sqrt(values))
