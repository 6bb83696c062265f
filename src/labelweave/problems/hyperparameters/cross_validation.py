"""The cross-validated log likelihood and its gradient (Seeger 2008, sections 4 and 5.2).

For folds with training rows J and held-out rows I,

    psi(h) = sum_folds sum_{i in I} loss_i(u_i),    u = K a,    a = -loss'_J(u).

The folds are groups of one penalized likelihood whose weights are 0 outside J, so they share every product
with the kernel matrix, and the rows I of ``K a`` are the held-out scores.  With
``e = loss'_I(u)`` and W the curvature of the training loss,

    d psi = tr a^T (dK) f,    f = e - (I + W K)^-1 W K e:

one more solve with the matrix of Newton's system, whatever the number of hyperparameters.  The same
f corrects the value for inexact fits: with their residual ``r = -loss'_J(u) - a`` the
criterion at the exact fits is ``psi + <f, K r>`` to second order.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import Gram, LowRankGram
from labelweave.foundation.array_types import Array, Floats, PerRow
from labelweave.foundation.arrays import Workers, linear_algebra, namespace, panels
from labelweave.foundation.config import PartInterrupted
from labelweave.problems.coupled_gram import GramTerm, ScorePrior
from labelweave.problems.hyperparameters.priors import PriorFamily, PriorGradient, TermGradient
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.laplace import LaplaceFactors
from labelweave.problems.losses import ScoreLoss
from labelweave.solvers import Status
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState
from labelweave.solvers.newton_system import FunctionGradients, LinearSolver, NewtonSystem, inner_products

_MOST_ITERATIONS = 500  # in the solve for the gradient
_SIDE = 512  # of the blocks in which derivatives of a kernel are computed
_LANES = 4
_FEW = 32


@dataclass(frozen=True)
class FoldedData:
    """Rows for a cross-validation.

    make_loss: creates the loss from the weights of the rows in each fit, of shape (n, folds).
    held_out (n, folds): which rows each fold holds out.
    ties_labels: whether the labels of a fold are solved for jointly.
    """

    features: FeatureMatrix
    make_loss: Callable[[Array], ScoreLoss]
    weights: PerRow
    held_out: Array
    make_gram: Callable[[Kernel | None], Gram]
    ties_labels: bool


@dataclass(frozen=True)
class InnerSettings:
    """Settings of the fits to the folds.

    tol: their relative duality gap; the value has an error of its order, the gradient of its square root's.
    solved: the residual reduction in the solve for the gradient.
    max_iter, max_inner: Newton steps of a fit, and conjugate gradient iterations of a step.
    rank: of the preconditioner.
    directions: solves the linear systems; None for conjugate gradients.
    budget: bytes for dense factors.
    """

    tol: float = 1e-6
    solved: float = 1e-6
    max_iter: int = 30
    max_inner: int = 200
    rank: int = 100
    seed: int = 0
    directions: LinearSolver | None = None
    budget: float = np.inf


class CriterionValue(NamedTuple):
    """The criterion at some hyperparameters.

    gap: the relative duality gap of the fits.
    converged: whether all fits reached the tolerance; if not, value and gradient are invalid.
    """

    value: float
    gradient: Floats
    gap: float
    products: float
    time: float
    converged: bool


class Criterion(ABC):
    """A cross-validation as a function of theta.

    mass: the weight of all held-out rows; values are means over it.
    inner_state: the dual variables of the last success, the start of the next evaluation.
    """

    family: PriorFamily
    mass: float
    inner_state: Array | None = None

    @abstractmethod
    def __call__(self, theta: Array) -> CriterionValue:
        """Compute value and gradient."""


class CrossValidationLikelihood(Criterion):
    """The criterion as a function of theta."""

    def __init__(
        self, family: PriorFamily, data: FoldedData, workers: Workers, settings: InnerSettings | None = None
    ) -> None:
        self.family, self.data, self.workers = family, data, workers
        self.settings = InnerSettings() if settings is None else settings
        weights = np.broadcast_to(data.weights[:, None], data.held_out.shape)
        self.training = data.make_loss(np.where(data.held_out, 0.0, weights))
        self.testing = data.make_loss(np.where(data.held_out, weights, 0.0))
        self.every = np.arange(self.training.shape[1])
        self.mass = float(weights[data.held_out].sum() or data.weights.sum())

    def __call__(self, theta: Array) -> CriterionValue:
        begin = time.perf_counter()
        prior, data = self.family.prior(theta), self.data
        grams = [data.make_gram(term.kernel) for term in prior.terms]
        gram = prior.operator(grams, self.workers, ties_labels=data.ties_labels)
        problem = KernelLikelihood(gram, self.training, self.settings.rank, self.settings.seed)
        inner = self.settings
        solver = NewtonConjugateGradient(inner.tol, inner.max_iter, inner.max_inner, inner.directions)
        start = None if self.inner_state is None else NewtonState.at(linear_algebra.placed(self.inner_state))
        result, state = solver.solve(problem, start)
        if result.status is Status.INTERRUPTED:
            raise PartInterrupted  # the solver keeps its point and ends; here the search must end
        value, gradient = np.nan, np.full(len(theta), np.nan)
        if result.converged:
            self.inner_state = linear_algebra.to_numpy(state.dual)
            value, parts = self._evaluated(prior, problem, state)
            gradient = np.sum([self.family.gradient(theta, part) for part in parts], axis=0)
        seconds = time.perf_counter() - begin
        return CriterionValue(
            value / self.mass, gradient / self.mass, result.gap, gram.products, seconds, result.converged
        )

    def _evaluated(
        self, prior: ScorePrior, problem: KernelLikelihood, state: NewtonState
    ) -> tuple[float, list[PriorGradient]]:
        """Return the value at a fit, and its derivatives by the prior, to be summed."""
        held_out = KernelLikelihood(problem.gram, self.testing, rank=0, seed=0)
        losses, descent, _ = held_out.evaluate(state.scores, self.every)
        # at the optimum these are the dual variables, and unlike them exact in the null space of K
        _, dual, curvature = problem.evaluate(state.scores, self.every)
        adjoint = self._adjoint(problem, curvature, -descent)
        correction = linear_algebra.dot(adjoint, problem.product(dual - state.dual, self.every))
        pair = self._by_fit(dual), self._by_fit(adjoint)
        return float(losses.sum()) + correction, [self._by_prior(prior, problem, pair)]

    def _adjoint(self, problem: KernelLikelihood, curvature: Array, sources: Array) -> Array:
        """Compute f from e.

        The solver sees x only through K.  In the null space of K the residual is what x lacks, elsewhere it
        may be far more: so x moves along it by the length of least residual.
        """
        system = NewtonSystem(problem, curvature, self.every)
        right = system.curve_all(problem.product(sources, self.every))
        reduction = np.full(len(self.every), self.settings.solved)
        image = problem.product(right, self.every)
        linear = self.settings.directions or FunctionGradients()
        solution, solved, _ = linear.solve(
            system, linear_algebra.copied(right), image, reduction, _MOST_ITERATIONS
        )
        residual = right - solution - system.curve_all(solved)
        change = residual + system.curve_all(problem.product(residual, self.every))
        along, square = inner_products(system.panels, (change, residual), (change, change))
        lengths = np.divide(along, square, out=np.zeros_like(along), where=square > 0)
        return sources - solution - linear_algebra.like(lengths[:, None], residual) * residual

    def _by_fit(self, vectors: Array) -> Array:
        shape = (vectors.shape[0], self.data.held_out.shape[1], -1)
        return namespace(vectors).reshape(vectors, shape)

    def _by_prior(
        self, prior: ScorePrior, problem: KernelLikelihood, pair: tuple[Array, Array]
    ) -> PriorGradient:
        """Differentiate ``<E, K F>`` by the prior, for a pair of shape (n, fits, L)."""
        xp, terms = namespace(pair[0]), zip(problem.gram.terms, prior.terms, strict=True)
        gradients = [self._term_gradient(made, term.kernel, pair) for made, term in terms]
        return PriorGradient(gradients, linear_algebra.dot(*(xp.sum(part, axis=0) for part in pair)))

    def _term_gradient(
        self, term: GramTerm, kernel: Kernel | None, pair: tuple[Array, Array]
    ) -> TermGradient:
        """Differentiate ``<E, (K ⊗ R) F>`` by the parameters of one term, for a pair of shape (n, fits, L).

        A term contributes ``sum_ij dK(i, j) (F R E^T)_ij`` by the kernel, and ``E^T K F`` by R (equation 6).
        """
        covariance, workers, (left, right), xp = term.covariance, self.workers, pair, namespace(pair[0])
        is_separate = not (self.family.learns_covariance or covariance.ties_labels)
        if is_separate:
            variances = covariance.diagonal()
            used = np.flatnonzero(variances)
            left, right = (linear_algebra.taken(part, used, 2) for part in (left, right))
            mixed = right * linear_algebra.like(variances[used], right)
        else:
            mixed = covariance.matmul(right, workers)
        image = term.product(right)
        flat = [xp.reshape(part, (-1, part.shape[2])) for part in (left, image)]
        if is_separate:
            by_covariance = np.zeros(len(variances))
            by_covariance[used] = linear_algebra.column_products(*flat)
        else:
            square = linear_algebra.to_numpy(workers.inner(*flat))
            by_covariance = (square + square.T) / 2
        if kernel is None or not kernel.parameter_names():
            return TermGradient(np.empty(0), by_covariance)
        pair = xp.reshape(left, (left.shape[0], -1)), xp.reshape(mixed, (left.shape[0], -1))
        if isinstance(term.gram, LowRankGram):
            return TermGradient(
                _low_rank_gradient(kernel, self.data.features, term.gram, pair), by_covariance
            )
        return TermGradient(kernel_gradient(kernel, self.data.features, pair, workers), by_covariance)


class MeanCriterion:
    """The mean held-out loss per row over several cross-validations of one family.

    Learning on many rows is expensive, as a kernel matrix costs n^2, and few rows can be overfitted with many
    hyperparameters.  Blocks of few rows cost in proportion to their number, and average out overfitting.
    """

    def __init__(self, parts: Sequence[Criterion]) -> None:
        self.parts = list(parts)
        self.mass = sum(part.mass for part in self.parts)
        self.family = self.parts[0].family

    @property
    def inner_states(self) -> tuple[Array | None, ...]:
        """The dual variables of every part's last success, the start of the next evaluation."""
        return tuple(part.inner_state for part in self.parts)

    def start_from(self, states: Sequence[Array | None]) -> None:
        for part, state in zip(self.parts, states, strict=True):
            part.inner_state = state

    def __call__(self, theta: Array) -> CriterionValue:
        """Compute value and gradient, NaN where one part fails; the gap is the largest of all parts."""
        penalty, by_theta = self.family.penalty(theta)
        value, gradient = penalty / self.mass, by_theta / self.mass
        gap = products = seconds = 0.0
        for part in self.parts:
            found, share = part(theta), part.mass / self.mass
            gap, products, seconds = max(gap, found.gap), products + found.products, seconds + found.time
            if not found.converged:
                return found._replace(gap=gap, products=products, time=seconds)
            value, gradient = value + share * found.value, gradient + share * found.gradient
        return CriterionValue(value, gradient, gap, products, seconds, True)


def kernel_gradient(
    kernel: Kernel, features: FeatureMatrix, pair: tuple[Array, Array], workers: Workers
) -> Floats:
    """Sum ``dK_ij (E F^T)_ij`` over all pairs of rows, by the logarithms of the kernel's parameters."""
    (left, right), features = pair, features.placed()
    cuts = panels(len(features), _SIDE)
    blocks = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[: i + 1]]

    def weights_of(rows: slice, columns: slice) -> Array:  # every pair of rows once
        weights = left[rows, ...] @ right[columns, ...].T
        return weights if rows == columns else weights + right[rows, ...] @ left[columns, ...].T

    sums = np.zeros((_LANES, len(kernel.parameter_names())))

    def one(lane: int) -> None:
        for rows, columns in blocks[lane::_LANES]:
            above = features.rows(rows)
            beside = above if rows == columns else features.rows(columns)
            sums[lane] += kernel.gradient(above, beside, weights_of(rows, columns))

    workers.each(one, list(range(_LANES)))
    return np.asarray(sums.sum(axis=0))


def _low_rank_gradient(
    kernel: Kernel, features: FeatureMatrix, gram: LowRankGram, pair: tuple[Array, Array]
) -> Floats:
    """Do the same for a matrix computed from some columns of the kernel matrix and its diagonal."""
    across, among, own = gram.by_entries(*pair)
    active = features.rows(gram.active_rows)
    total = kernel.gradient(active, active, among)
    for rows in panels(len(features), _SIDE):
        total += kernel.gradient(features.rows(rows), active, across[rows])
    return total + diagonal_gradient(kernel, features, own)


def diagonal_gradient(kernel: Kernel, features: FeatureMatrix, weights: PerRow) -> Floats:
    """Sum the weighted derivatives of the kernel of every row with itself."""
    total = np.zeros(len(kernel.parameter_names()))
    for rows in panels(len(features), _FEW):  # only the diagonal of a block is used
        some = features.rows(rows)
        total += kernel.gradient(some, some, np.diag(weights[rows]))
    return total


_COLUMNS_AT_ONCE = 512  # of H


class MarginalLikelihood(CrossValidationLikelihood):
    """Minus the log marginal likelihood per row as a function of theta; of data that hold out no rows.

    It is the evidence of the hyperparameters in all rows (Rasmussen and Williams 2006, section 5.5.1):

        psi = sum_i loss_i(u_i) + 1/2 <a, K a> + 1/2 log |I + W K|,    u = K a,

    at the optimum.  With ``B = (W^-1 + K)^-1`` and the derivatives s of the last term by u, through W,

        d psi = tr (f - a / 2)^T (dK) a + 1/2 tr B dK,    f = (I + W K)^-1 s.

    With the factors of :mod:`labelweave.problems.laplace`, ``B = L - H H^T``: the columns of H are pairs like
    those of the cross-validation's gradient, and take ``n^2 q`` multiplications per label.
    """

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
