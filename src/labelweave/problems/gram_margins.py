"""The max-margin dual on a kernel matrix, all labels at once.

It is the dual of :mod:`labelweave.problems.margin_dual` with ``X X^T`` replaced by a kernel matrix K,

    max_B  <T, B> - 1/2 tr(B^T K B R),      B_il between 0 and y_il U_i,      T_il = y_il m_il,

the scores of the training rows being ``K B R``.  An unobserved entry has the box [0, 0].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import is_

import numpy as np
import numpy.typing as npt

from labelweave.features.gram import FeatureGram, Gram, StoredGram
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import linear_algebra, namespace
from labelweave.problems.coupled_gram import CoupledGram
from labelweave.problems.kernel_row_margins import MarginBox
from labelweave.solvers.box_dual import Settled, ShiftedSolves, dual_value, primal_value
from labelweave.solvers.frame import relative_gap

_LARGEST_SYSTEM = 6000  # variables: 288 MB
_ENTRY_WORK = 100  # cost of a step's passes over the variables, in columns of a factor
_CALLS = 4e6  # the overhead of a round's calls in operations, 0.2 ms on two cores
_SUPPORT_STEPS = 30
_SUPPORT_SHARE = 1e-8  # of the squared residual, at which a label has converged
_GATHERING = 100  # cost in operations of random access to a matrix entry


class GramMargins:
    """The dual on a kernel matrix, for solvers that update all variables at once.

    box: targets and bounds in float64.
    operator: K (x) R, or a sum of such products.
    make_solves: creates exact or approximate solves with the operator plus ``rho I``, if a solver needs them.
    is_linear: whether the model stores feature weights, so that support rows do not matter.
    """

    def __init__(
        self,
        box: MarginBox,
        operator: CoupledGram,
        make_solves: Callable[[], ShiftedSolves],
        dtype: npt.DTypeLike,
        *,
        is_linear: bool = False,
    ) -> None:
        self.is_linear = is_linear
        self.box, self.operator = box, operator
        self.only = operator.terms[0] if len(operator.terms) == 1 else None
        self.is_coupled = not all(term.covariance.is_diagonal for term in operator.terms)
        self.is_semidefinite = all(isinstance(term.gram, FeatureGram) for term in operator.terms)
        self.dtype = np.dtype(dtype)
        self.targets, self.lower, self.upper = box.parts(dtype)
        self._make_solves = make_solves
        self._last: tuple[Array, Array, Array | None, Settled] | None = None

    @cached_property
    def solves(self) -> ShiftedSolves:
        return self._make_solves()

    def first_penalty(self) -> float:
        """Return an initial penalty: scores are near the margins, variables near their bounds."""
        bounds = linear_algebra.to_numpy(namespace(self.box.upper).maximum(self.box.upper, -self.box.lower))
        widest = bounds[bounds > 0]
        guess = 2.0 / float(np.median(widest)) if widest.size else 1.0
        return max(guess, self.solves.smallest_penalty)

    def scores(self, *variables: RowsByLabels) -> tuple[Array, ...]:
        products = self.operator.product(namespace(variables[0]).stack(variables, axis=1))
        return tuple(products[:, part, :] for part in range(len(variables)))

    def objectives(self, variables: RowsByLabels) -> tuple[float, float]:
        (scores,) = self.scores(variables)
        return primal_value(self, variables, scores), dual_value(self, variables, scores)

    def coupled_labels(self) -> list[Array]:
        every = np.arange(self.operator.n_labels)
        return [every] if self.is_coupled else list(every[:, None])

    def newton_work(self, sizes: list[int]) -> float:
        """Estimate the operations to solve linear systems between variables; infinite where impossible."""
        if self.only is None or not isinstance(self.only.gram, StoredGram) or max(sizes) > _LARGEST_SYSTEM:
            return np.inf
        return sum(float(size) ** 3 / 3 + _GATHERING * float(size) ** 2 for size in sizes)

    def round_work(self) -> float:
        """Estimate the operations of a step: two products with a factor of K, and passes over variables."""
        n, grams = self.operator.n_rows, [term.gram for term in self.operator.terms]
        rank = sum(gram.table.shape[1] if isinstance(gram, FeatureGram) else n for gram in grams)
        return 4.0 * n * (rank + _ENTRY_WORK) * self.operator.n_labels + _CALLS

    def low_rank_factor(self) -> Array | None:
        """Return reflected features (n, r) in NumPy; None for a kernel or coupled labels."""
        if self.is_coupled or self.only is None or not isinstance(self.only.gram, FeatureGram):
            return None
        table = self.only.gram.exact_table
        return table if linear_algebra.is_numpy(table) else None

    def system(self, rows: Array, labels: Array) -> Array:
        """Return ``K (x) R`` between the variables at ``rows`` and ``labels`` (k,), dense (k, k)."""
        assert self.only is not None, "systems are written out of one term"
        assert isinstance(self.only.gram, StoredGram), "systems are written out from a stored matrix only"
        entries = self.only.gram.block(rows)
        if self.is_coupled:
            every, places = np.unique(labels, return_inverse=True)
            entries *= self.only.covariance.block(every, every)[np.ix_(places, places)]
        return entries

    def settled(
        self, free: RowsByLabels, boxed: RowsByLabels, tol: float, weights: Array | None = None
    ) -> Settled:
        """Return the result at B and V, without coefficients of rows that do not support V where possible.

        tol: the relative duality gap that omitting rows may cost.
        weights (r, L): replace ``G^T B`` for features G.
        """
        if self._last is not None and all(map(is_, self._last, (free, boxed, weights))):
            return self._last[3]
        xp = namespace(boxed)
        dual = xp.clip(linear_algebra.as_type(boxed, np.float64), self.box.lower, self.box.upper)
        gram = None if self.only is None else self.only.gram
        if isinstance(gram, FeatureGram):
            result = self._of_features(gram, linear_algebra.as_type(free, np.float64), dual, weights)
        else:
            result = self._with_scores(free, dual)
        if not (self.is_linear or xp.all(xp.any(boxed, axis=1))):
            near = dual if self.only is None else on_support(self.only.gram, free, boxed)
            narrow = self._with_scores(near, dual)
            if relative_gap(*narrow.values()) <= max(tol, relative_gap(*result.values())):
                result = narrow
        self._last = free, boxed, weights, result
        return result

    def _of_features(self, gram: FeatureGram, free: Array, dual: Array, weights: Array | None) -> Settled:
        """Compute objectives from the weights, which are the model: rounding can separate them from B."""
        assert self.only is not None, "features make one term"
        kept = gram.weights(free) if weights is None else weights
        pairs = [(part, self.only.covariance.matmul(part)) for part in (kept, gram.weights(dual))]
        scores = [gram.scores(coupled) for _, coupled in pairs]
        square, dual_square = (linear_algebra.inner_product(*pair) for pair in pairs)
        ends = free, scores[0], dual, scores[1]
        return Settled(*self.box.parts(), *ends, gram.feature_weights(kept), (square, dual_square))

    def _with_scores(self, kept: Array, dual: Array) -> Settled:
        kept = linear_algebra.as_type(kept, np.float64)
        kept_scores, dual_scores = self.scores(kept, dual)
        return Settled(*self.box.parts(), kept, kept_scores, dual, dual_scores)


def on_support(gram: Gram, free: RowsByLabels, boxed: RowsByLabels) -> RowsByLabels:
    """Find a point with nearly the scores of B in the span of the rows that support V.

    B - V is projected on that span in the norm of K by conjugate gradients, which find its
    large parts, those along large eigenvalues, first.

    boxed: V; a row supports it if it has a nonzero entry.
    Returns the point; rows outside the support are 0.
    """
    xp = namespace(boxed)
    support = xp.any(boxed, axis=1)
    if xp.all(support):
        return free
    found = xp.zeros_like(free)
    residual = gram.product(free - boxed)
    residual[~support] = 0
    direction, size = linear_algebra.copied(residual), _column_sums(residual * residual)
    enough = _SUPPORT_SHARE * size
    for _ in range(_SUPPORT_STEPS):
        image = gram.product(direction)
        image[~support] = 0
        curvature = _column_sums(direction * image)
        # a converged label has only rounding left, along which a singular K has no curvature
        going = (size > enough) & (curvature > 0)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=going)
        found += linear_algebra.like(step, direction) * direction
        residual -= linear_algebra.like(step, image) * image
        new_size = _column_sums(residual * residual)
        if not (going & (new_size > enough)).any():
            break
        direction = residual + linear_algebra.like(new_size / np.maximum(size, 1e-30), direction) * direction
        size = new_size
    return boxed + found


def _column_sums(table: Array) -> Array:
    return linear_algebra.to_numpy(namespace(table).sum(table, axis=0))
