"""Low-rank multi-label learning: a product of two factors with a trace norm or ridge penalty (LEML).

    minimize over W, H   sum over entries of w_ij loss(y_ij, phi(x_i)^T W h_j)  +  penalty(W H^T)

(Yu, Jain, Kar and Dhillon, "Large-scale multi-label learning with missing labels", ICML 2014, equation 4.)
Two penalties:

- "trace_norm": ``lambda / 2 (||W||^2 + ||H||^2)``, which at the best factors of a product Z is
  ``lambda ||Z||_tr``;
- "ridge": ``lambda / 2 ||W H^T||^2``, that of independent linear models, but with bounded
  rank.  With the squared loss this is reduced-rank ridge regression.

Norms of W are those of the feature space, so a kernel penalizes functions.  A covariance R = U U^T
between labels does the same on their side: H = U G, and G is penalized instead, ``||G||^2 = tr(H^T R^-1
H)``.  With U the features of the labels this is inductive matrix completion.

**Half steps.**  While one factor is fixed, N, the other one minimizes

    sum of entries' losses at (Phi F, N)  +  lambda / 2 <F, F>,

with Phi = X or a kernel for the feature factor, and Phi = 1 on the transposed entries for the label
factor, or U with a covariance (equations 5 and 6).  A product has many pairs of factors.  For the ridge
penalty each half step starts from a fixed factor with orthonormal columns, so that the penalty is ``lambda /
2`` times the squared norm of the one that moves; for the trace norm a step of the feature factor starts from
the pair of least penalty (both factors balanced).  Then both are rotated so that the columns of the fixed
factor, as the entries use it, are orthogonal.  All of this uses k x k matrices, then multiplies each factor.

**Certificate.**  Without the bound on the rank the trace norm problem is convex.  With D the matrix of
gradients, t D is feasible for its dual where ``t <= 1`` and ``t ||Phi^T D U||_2 <= lambda``, and

    dual(t) = - sum of w_ij conjugate(t D_ij / w_ij)

bounds every product from below, also of larger rank.  A gap of 0 proves that no other factors,
of any rank, are better.  Among products whose trace norm is at most b, ``dual(1) - b ||Phi^T D U||_2``
bounds the loss itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features.factor_maps import USUAL, FactorMap, is_usual, largest_root
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, namespace
from labelweave.foundation.arrays.linear_algebra import HOME, as_type, is_double, like, to_numpy
from labelweave.foundation.arrays.tables import add_multiple, column_inner, divided_by_outer, row_inner
from labelweave.labels import LabelMatrix
from labelweave.problems.label_entries import (
    DenseEntries,
    EntryTable,
    EntryWeights,
    LabelEntries,
    QuadraticEntries,
    SampledEntries,
    ShiftedEntries,
)
from labelweave.problems.label_entries.any_loss import BUDGET
from labelweave.problems.label_entries.base import listed_signs, read_flips
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES, EntryLoss, GradedEntryLoss, SquaredEntryLoss
from labelweave.solvers.alternating_minimization import FactorPair, Improved
from labelweave.solvers.trust_region_newton import FactorSolution, TrustRegionNewton

Penalty = Literal["trace_norm", "ridge"]
Blocks = Literal["whole", "rows", "columns"]

_DEPENDENT = {8: 1e-14, 4: 1e-10}  # eigenvalues of correlations that are rounding noise, by bytes of an entry
_CLEAR = 1e4  # times these: not noise
_DEAD = 1e-3  # times the longest column: shorter ones are restarted; and the margin above lambda
_SMALLEST = 1e-4  # root of a singular value as a share of the largest, below which Gram matrices show noise

# observed share above which dense products of all entries are faster: Hessian products break even at 0.4 to
# 0.5, evaluations above, for 2,000 x 159 entries at rank 64 and x 983 at 200, in float32 and float64
_DENSE_SHARE = 0.5


class LowRankFactors:
    """The objective of a pair of factors.

    first (q, k): the initial label factor; the feature factor starts at 0.
    label_map: from a label factor to the one in the scores; by default the identity.
    Shapes: entries (n, L), factor_map (n, m), label_map (L, q).
    """

    def __init__(
        self,
        entries: LabelEntries,
        factor_map: FactorMap,
        penalty: Penalty,
        alpha: float,
        first: Array,
        workers: Workers,
        label_map: FactorMap | None = None,
    ) -> None:
        self.entries, self.map, self.workers = entries, factor_map, workers
        self.penalty, self.alpha = penalty, alpha
        self.first, self.dtype = first, np.dtype(np.float64 if is_double(first) else np.float32)
        self.ties_labels = label_map is not None
        self.label_map = label_map or FactorMap(entries.shape[1])

    @property
    def sees_features(self) -> bool:
        """Whether the scores are linear in the feature factor itself."""
        return type(self.map) is FactorMap

    @property
    def label_blocks(self) -> Blocks:
        """How the label half step separates into blocks."""
        if not self.ties_labels:
            return "rows"
        return "columns" if self.entries.transposed.has_uniform_curvature else "whole"

    def start(self) -> FactorPair:
        rank = self.first.shape[1]
        shapes = (self.map.shape[1], rank), (self.entries.shape[0], rank)
        features, image = (like(np.zeros(shape), self.first) for shape in shapes)
        return self._with_labels(features, features if self.sees_features else image, self.first)

    def pair_of(self, features: Array) -> FactorPair:
        return self._with_labels(features, self.map.image(features), self.first)

    def _with_labels(self, features: Array, image: Array, factor: Array) -> FactorPair:
        if not self.ties_labels:
            return FactorPair(features, image, factor)
        return FactorPair(features, image, self.label_map.image(factor), factor)

    @staticmethod
    def label_factor(pair: FactorPair) -> Array:
        return pair.labels if pair.label_factor is None else pair.label_factor

    def revived(self, pair: FactorPair, fresh: Callable[[], Array]) -> FactorPair:
        """Restart columns of a settled pair that are near 0 from ``fresh()`` (L, k), if that can help."""
        factor = np.array(to_numpy(self.label_factor(pair)))
        lengths = np.linalg.norm(factor, axis=0)
        dead = lengths <= _DEAD * lengths.max(initial=0.0)
        if not dead.any():
            return pair
        if self.penalty == "trace_norm" and self.gradient_length(pair) <= (1 + _DEAD) * self.alpha:
            return pair  # no other column would lower the objective
        features = np.array(to_numpy(pair.features))
        image = features if self.sees_features else np.array(to_numpy(pair.image))
        kept, new = factor[:, ~dead], fresh()[:, dead].astype(self.dtype)
        new -= kept @ np.linalg.lstsq(kept, new, rcond=None)[0]  # columns of a fixed factor are orthogonal
        features[:, dead], image[:, dead], factor[:, dead] = 0, 0, new
        return self._with_labels(*(like(part, pair.features) for part in (features, image, factor)))

    def improve_features(self, pair: FactorPair, solver: TrustRegionNewton) -> Improved:
        pair = self._suited_labels(pair)
        blocks: Blocks = "columns" if self.entries.has_uniform_curvature else "whole"
        step = FactorStep(self.entries, self.map, pair.labels, self.alpha, blocks, self.workers)
        found = solver.minimize(step, pair.features, pair.image)
        improved = pair._replace(features=found.factor, image=found.image)
        if self.penalty == "ridge" and not namespace(pair.features).any(pair.features):
            return self._with_lost_rank(improved, found, lambda: solver.minimize(step, *improved[:2]))
        return improved, found

    def _with_lost_rank(
        self, pair: FactorPair, found: FactorSolution, again: Callable[[], FactorSolution]
    ) -> Improved:
        """Continue where the first gradient has lower rank than the next; lost directions never come back."""
        rank = self._clear_rank(pair)
        if rank < min(self.map.shape[1], *self.first.shape):
            more = again()
            wider = pair._replace(features=more.factor, image=more.image)
            if self._clear_rank(wider) > rank:
                return wider, replace(more, n_iter=found.n_iter + more.n_iter)
        return pair, found

    def _clear_rank(self, pair: FactorPair) -> int:
        """Count directions of the feature factor above rounding noise, which would be scaled to length 1."""
        turned = _orthonormal(self._feature_gram(pair), self.dtype, _CLEAR)[0]
        return int(turned.any(axis=0).sum())

    def improve_labels(self, pair: FactorPair, solver: TrustRegionNewton) -> Improved:
        pair = self._suited_features(pair)
        entries, blocks = self.entries.transposed, self.label_blocks
        step = FactorStep(entries, self.label_map, pair.image, self.alpha, blocks, self.workers)
        found = solver.minimize(step, self.label_factor(pair), pair.labels)
        return self._with_labels(pair.features, pair.image, found.factor), found

    def refreshed(self, pair: FactorPair) -> FactorPair:
        return self._with_labels(pair.features, self.map.image(pair.features), self.label_factor(pair))

    def objective(self, pair: FactorPair) -> float:
        return sum(self.loss_and_penalty(pair))

    def loss_and_penalty(self, pair: FactorPair) -> tuple[float, float]:
        """Return the loss, which may be negative where targets are outside of 0 and 1, and the penalty."""
        loss = max(self.entries.least, float(self.entries.values(pair.image, pair.labels).sum()))
        features, labels = self._feature_gram(pair), self._label_gram(pair)
        if self.penalty == "trace_norm":
            return loss, 0.5 * self.alpha * float(np.trace(features) + np.trace(labels))
        return loss, 0.5 * self.alpha * float((features * labels).sum())

    def lower_bound(self, pair: FactorPair, most: float = np.inf) -> float:
        """Bound the objective of factors of any rank from below, by the dual value; trace norm only.

        most: a bound of the trace norm; then the result bounds the loss of factors within it from below.
        """
        if self.penalty != "trace_norm":
            return -np.inf
        gradients = self.entries.gradient_operator(pair.image, pair.labels)
        length = self.gradient_length(pair)
        share = 1.0 if length <= self.alpha else self.alpha / length
        penalized = -gradients.conjugate(share)
        if most == np.inf:
            return penalized
        return max(penalized - self.alpha * most, -gradients.conjugate(1.0) - length * most)

    def within(self, pair: FactorPair, most: float) -> FactorPair:
        """Scale a pair to a trace norm, unless it has a smaller one and no larger loss.

        The best product of another trace norm, scaled like this, is optimal here up to second order.
        """
        loss, penalty = self.loss_and_penalty(pair)
        size = penalty / self.alpha
        if size == 0:
            return pair
        scale = np.sqrt(most / size) * np.eye(self.first.shape[1])
        scaled = self._multiplied(pair, scale, scale)
        return pair if size <= most and loss <= self.loss_and_penalty(scaled)[0] else scaled

    def gradient_length(self, pair: FactorPair) -> float:
        """Compute an upper bound, accurate to 1e-4, of the norm ``||Phi^T D U||_2``, D the loss gradients.

        With W = 0 it is the least lambda at which the trace norm forces all weights to 0; infinity if not
        found.
        """
        gradients = self.entries.gradient_operator(pair.image, pair.labels)

        def forth(vector: Array) -> Array:
            column = self.label_map.image(like(vector.reshape(-1, 1), self.first))
            return to_numpy(self.map.gradient(gradients.matmul(column)))

        def back(moved: Array) -> Array:
            image = self.map.image(like(moved, self.first))
            return to_numpy(self.label_map.gradient(gradients.adjoint(image))).ravel()

        return largest_root(forth, back, self.label_map.shape[1], self.dtype)

    def settled(self, pair: FactorPair) -> FactorPair:
        """Return the pair of least penalty of a trace norm, in descending order of singular values."""
        if not namespace(pair.features).any(pair.features):
            return pair
        of_features, of_labels = _balanced(self._feature_gram(pair), self._label_gram(pair), self.dtype)
        return self._multiplied(pair, of_features[:, ::-1], of_labels[:, ::-1])

    def _feature_gram(self, pair: FactorPair) -> Array:
        dual = self.map.dual(pair.features, pair.image)
        return to_numpy(self.workers.inner(pair.features, dual, np.float64))

    def _label_gram(self, pair: FactorPair) -> Array:
        factor = self.label_factor(pair)
        return to_numpy(self.workers.inner(factor, factor, np.float64))

    def _suited_labels(self, pair: FactorPair) -> FactorPair:
        """Return the pair of factors for a half step with a fixed label factor."""
        labels = self._label_gram(pair)
        if self.penalty == "ridge":
            of_labels, of_features = _orthonormal(labels, self.dtype)
        else:
            of_features, of_labels = self._balanced(pair, labels)
        if self.ties_labels:  # columns of G are orthogonal now, but the scores use those of H
            seen = to_numpy(self.workers.inner(pair.labels, pair.labels, np.float64))
            turn = np.linalg.eigh(of_labels.T @ seen @ of_labels)[1]
            of_features, of_labels = of_features @ turn, of_labels @ turn
        return self._multiplied(pair, of_features, of_labels)

    def _balanced(self, pair: FactorPair, labels: Array) -> tuple[Array, Array]:
        """Balance the columns that the feature factor has; rotate the others, at 0, separately."""
        features = self._feature_gram(pair)
        begun = np.diag(features) > 0
        if begun.all():
            return _balanced(features, labels, self.dtype)
        turned = np.zeros((2, *labels.shape))
        for columns, (of_features, of_labels) in (
            (begun, _balanced(features[begun][:, begun], labels[begun][:, begun], self.dtype)),
            (~begun, 2 * (np.linalg.eigh(labels[~begun][:, ~begun])[1],)),
        ):
            place = np.ix_(columns, columns)
            turned[0][place], turned[1][place] = of_features, of_labels
        return turned[0], turned[1]

    def _suited_features(self, pair: FactorPair) -> FactorPair:
        """Return the pair of factors for a half step with a fixed feature factor."""
        if self.penalty == "ridge":
            of_features, of_labels = _orthonormal(self._feature_gram(pair), self.dtype)
        else:
            of_features = of_labels = np.eye(pair.image.shape[1])
        seen = self.entries.transposed.gram(pair.image, self.workers)
        turn = np.linalg.eigh(of_features.T @ seen @ of_features)[1]
        return self._multiplied(pair, of_features @ turn, of_labels @ turn)

    def _multiplied(self, pair: FactorPair, of_features: Array, of_labels: Array) -> FactorPair:
        """Multiply the factors by matrices of which one times the other's transpose is the identity."""
        multiply = self.workers.matmul
        of_features, of_labels = like(of_features, pair.features), like(of_labels, pair.features)
        features = multiply(pair.features, of_features)
        image = features if self.sees_features else multiply(pair.image, of_features)
        return self._with_labels(features, image, multiply(self.label_factor(pair), of_labels))


@dataclass
class FactorStep:
    """The objective of a half step.

    entries (n, c): the loss, rows on the side of the factor that moves.
    fixed (c, k): N; N^T C N should be diagonal, with the weights C of the entries' columns, for the
        preconditioner.
    blocks: independent parts: rows where Phi = 1, columns where the curvature is the same for all entries and
        N^T N is diagonal.
    Shapes: map (n, m).
    """

    entries: LabelEntries
    map: FactorMap
    fixed: Array
    penalty: float
    blocks: Blocks
    workers: Workers

    def __post_init__(self) -> None:
        self.is_quadratic, self.image = self.entries.is_quadratic, self.map.image
        self.spread = self.entries.spread(self.fixed, self.workers)

    def evaluate(self, factor: Array, image: Array) -> StepPoint:
        found = self.entries.at(image, self.fixed)
        gradient = self.map.gradient(found.gradients)
        add_multiple(gradient, self.penalty, factor, self.workers)
        values = self._total(found.values, factor, image)
        return StepPoint(self, found.curve, values, gradient, self._sizes(found.weights))

    def values(self, factor: Array, image: Array) -> npt.NDArray[np.float64]:
        return self._total(self.entries.values(image, self.fixed), factor, image)

    def steering(self, gradient: Array) -> Array:
        """Return a gradient in single precision where that suffices for steps; see :class:`FactorProblem`."""
        takes = self.entries.takes_single and self.map.takes_single and math.prod(gradient.shape) > 0
        serves = takes and is_usual(gradient) and not 0 < self.penalty < 1 / USUAL
        return as_type(gradient, namespace(gradient).float32) if serves else gradient

    def inner(self, left: Array, right: Array, image: Array) -> npt.NDArray[np.float64]:
        dual = self.map.dual(right, image)
        if self.blocks == "rows":
            return row_inner(left, dual, self.workers)[:, None]
        sums = column_inner(left, dual, self.workers)[None, :]
        return sums if self.blocks == "columns" else sums.sum(axis=1, keepdims=True)

    def _total(self, losses: Array, factor: Array, image: Array) -> npt.NDArray[np.float64]:
        """Add the penalty to the losses; with columns as blocks the first gets all losses."""
        penalties = 0.5 * self.penalty * self.inner(factor, factor, image)
        if self.blocks == "rows":
            return penalties + losses[:, None]
        penalties[0, 0] += losses.sum()
        return penalties

    def _sizes(self, weights: Array) -> tuple[Array, Array, Array | None]:
        """Return a column (m or 1, 1) and a row (k,); their product plus the penalty estimates the Hessian.

        It does so in the features' principal axes (m, m) where the map has some, which are the last item.
        Without a penalty all features are scaled alike: steps then stay in the row space of the
        features, and converge to the solution of least norm.
        """
        dtype = weights.dtype
        squares = self.map.squares(weights)
        if self.penalty:
            axes, shares = self.map.axes(self.fixed.shape[1]) or (None, None)
            squares = squares if shares is None else squares.sum() * shares[:, None]
            return squares, self.spread.astype(dtype), axes
        if self.blocks != "rows":
            squares = squares.mean(keepdims=True, dtype=np.float64).astype(dtype)
        there = self.spread > np.finfo(dtype).eps * self.spread.max(initial=0.0)
        return squares, np.where(there, self.spread, 0.0).astype(dtype), None


@dataclass
class StepPoint:
    """The objective at one factor; see :class:`~labelweave.solvers.factor_problem.FactorPoint`.

    bend: the curvature of the loss; see :class:`label_entries.EntryPoint`.
    sizes: see :meth:`FactorStep._sizes`.
    Shapes: gradient (m, k).
    """

    step: FactorStep
    bend: Callable[[Array], Array]
    values: npt.NDArray[np.float64]
    gradient: Array
    sizes: tuple[Array, Array, Array | None]

    def curve(self, direction: Array, image: Array) -> Array:
        bent = self.step.map.gradient(self.bend(image))
        add_multiple(bent, self.step.penalty, direction, self.step.workers)
        return bent

    def precondition(self, residual: Array) -> Array:
        """Divide by the estimate of the Hessian; return 0 where there is no curvature."""
        (column, row, axes), workers = self.sizes, self.step.workers
        turned = residual if axes is None else workers.inner(axes, residual)
        found = divided_by_outer(turned, column, row, self.step.penalty, workers)
        return found if axes is None else workers.matmul(axes, found)


@dataclass(frozen=True)
class RowsLoss:
    """The data and weights of the loss of some rows.

    negative_weight: factor of the weights of entries that are not positive.
    factors: further factors of the weights; those that differ by label or entry rule out quadratic forms.
    known: factors of prior scores, of rows (n, c) and of labels (L, c).
    """

    labels: LabelMatrix
    weights: PerRow
    loss: str | EntryLoss
    negative_weight: float = 1.0
    dtype: npt.DTypeLike = np.float64
    factors: EntryWeights | None = None
    known: tuple[Array, Array] | None = None

    def rows(self, kept: slice) -> RowsLoss:
        return replace(
            self,
            labels=self.labels[kept],
            weights=self.weights[kept],
            factors=None if self.factors is None else self.factors.rows(kept),
            known=None if self.known is None else (self.known[0][kept], self.known[1]),
        )

    def entries(self, workers: Workers, budget: float = BUDGET) -> LabelEntries:
        """Choose how the loss is computed.

        budget: bytes for second derivatives of all entries; they are recomputed where they take more.
        Returns :class:`QuadraticEntries` for the squared loss without missing labels, :class:`SampledEntries`
            where few entries are observed, else :class:`DenseEntries`; shifted by prior scores, if any.
        """
        entries = self._unshifted(workers, budget)
        if self.known is None:
            return entries
        return ShiftedEntries(entries, *(np.asarray(part, self.dtype) for part in self.known))

    def _unshifted(self, workers: Workers, budget: float) -> LabelEntries:
        labels, loss, factors = self.labels, make_entry_loss(self.loss), self.factors
        weights, negative = np.asarray(self.weights, self.dtype), self.negative_weight
        lists_all = labels.observed is not None
        signs: Any = labels.observed if lists_all else labels.positives
        if labels.flip_probabilities is not None:
            labels, loss, factors = read_flips(labels, loss, factors)
            signs = listed_signs(labels)
        if not lists_all:
            own = loss.loss if isinstance(loss, GradedEntryLoss) else loss
            is_squared = type(own) is SquaredEntryLoss and factors is None  # not a subclass
            if is_squared and HOME.get() is None:
                return QuadraticEntries.from_pattern(labels.expected_positives, weights, negative, workers)
        elif HOME.get() is None and signs.nnz <= _DENSE_SHARE * signs.shape[0] * signs.shape[1]:
            return SampledEntries.from_signs(loss, signs, weights, negative, workers, factors)
        ones = np.ones(labels.n_labels, weights.dtype)
        table = EntryTable(sp.csr_array(signs), lists_all, weights, ones, negative, factors)
        return DenseEntries(loss, table, workers, budget)


def make_entry_loss(loss: str | EntryLoss) -> EntryLoss:
    return loss if isinstance(loss, EntryLoss) else ENTRY_LOSSES[loss]()


def _orthonormal(gram: Array, dtype: np.dtype[Any], above: float = 1.0) -> tuple[Array, Array]:
    """Find the matrix that orthonormalizes a factor with this Gram matrix, and that of its partner.

    Columns are first scaled to one length, which handles features of very different sizes.
    Redundant directions of a factor with dependent columns become 0.
    """
    lengths = np.sqrt(np.diag(gram))
    lengths = np.where(lengths > 0, lengths, 1.0)[:, None]
    values, vectors = np.linalg.eigh(gram / lengths / lengths.T)
    kept = values > above * _DEPENDENT[dtype.itemsize] * values.max(initial=0.0)
    roots = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)
    return vectors * inverse / lengths, vectors * roots * lengths


def _balanced(features: Array, labels: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Find the matrices that turn factors with these Gram matrices into the pair of least penalty.

    It is W = U S^1/2 and H = V S^1/2, with the singular values S of the product.
    """
    of_labels, of_features = _orthonormal(labels, dtype)
    squares, turn = np.linalg.eigh(of_features.T @ features @ of_features)
    sizes = np.sqrt(np.sqrt(np.maximum(squares, 0.0)))
    sizes = np.maximum(sizes, _SMALLEST * sizes.max(initial=0.0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    return of_features @ (turn / sizes), of_labels @ (turn * sizes)
