"""The cross-validated squared loss of kernel ridge regression and its gradient, in closed form.

It is the criterion of :mod:`labelweave.problems.hyperparameters.cross_validation` for the squared loss of
fully observed labels: one factor per fold suffices for all labels, without iterations.  With J the
training rows, I the held-out ones and S^2 the weights,

    psi = sum_folds 1/2 ||S_I (K_IJ A - Y_I)||^2,    A = S_J M^-1 S_J Y_J,    M = S_J K_JJ S_J + lambda,

and with ``e = S_I^2 (K_IJ A - Y_I)``, ``C = M^-1 S_J K_JI e``

    d psi = sum_folds tr e^T (dK_IJ) A - tr (S_J C)^T (dK_JJ) A - (d lambda) tr C^T M^-1 S_J Y_J.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import Gram
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.foundation.arrays import CholeskyFactor, Workers, linear_algebra
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.coupled_gram import PriorTerm, ScorePrior
from labelweave.problems.hyperparameters import priors
from labelweave.problems.hyperparameters.cross_validation import Criterion, CriterionValue, kernel_gradient


@dataclass(eq=False)
class RidgePriors(priors.PriorFamily):
    """One kernel for all labels, and one lambda.

    The ridge penalty ``lambda / 2 |u|^2`` in the space of ``K + c^2`` is the prior ``(K + c^2) / lambda`` for
    every label: the hyperparameters are lambda and those of K, while c, the constant feature, is given.
    """

    kernel: Kernel | None
    alpha: float
    constant: float
    n_labels: int
    ties_labels: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        start = np.concatenate([[np.log(self.alpha)], priors.shape_start(self.kernel)])
        self._lay_out(["alpha", *priors.shape_names(self.kernel)], start)

    def kernel_at(self, theta: Array) -> Kernel | None:
        """Return the kernel; None for a precomputed kernel matrix."""
        return priors.shaped(self.kernel, theta[1:])

    def prior(self, theta: Array) -> ScorePrior:
        variance = float(np.exp(-theta[0]))
        covariance = FactorCovariance(np.empty((self.n_labels, 0)), np.full(self.n_labels, variance))
        return ScorePrior((PriorTerm(self.kernel_at(theta), covariance),), variance * self.constant**2)

    def gradient(self, theta: Array, by_prior: priors.PriorGradient) -> Floats:
        term = by_prior.terms[0]
        by_variances = term.covariance if term.covariance.ndim == 1 else term.covariance.diagonal()
        by_variance = by_variances.sum() + self.constant**2 * by_prior.intercept_variance
        return np.concatenate([[-np.exp(-theta[0]) * by_variance], term.kernel])

    def retreated(self, theta: Array) -> Floats:
        return np.concatenate([[theta[0] + np.log(10.0)], theta[1:]])


@dataclass(frozen=True)
class FoldedRidge:
    """Rows of a cross-validation, held out by (n, folds); ``least`` (n,) is the loss of perfect scores."""

    features: FeatureMatrix
    targets: RowsByLabels
    weights: PerRow
    held_out: Array
    make_gram: Callable[[Kernel | None], Gram]
    least: PerRow | float = 0.0


class RidgeCrossValidation(Criterion):
    """The criterion in closed form; evaluations are independent."""

    family: RidgePriors

    def __init__(self, family: RidgePriors, data: FoldedRidge, workers: Workers) -> None:
        self.family, self.data, self.workers = family, data, workers
        weights = data.weights[:, None] * data.held_out
        self.mass, self.least = float(weights.sum()), float(np.sum(weights.sum(axis=1) * data.least))

    def __call__(self, theta: Array) -> CriterionValue:
        begin = time.perf_counter()
        kernel, alpha = self.family.kernel_at(theta), float(np.exp(theta[0]))
        gram = self.data.make_gram(kernel)
        table = linear_algebra.as_type(gram.columns(np.arange(gram.n_rows)), np.float64)
        table += self.family.constant**2
        try:
            folds = [self._fold(table, alpha, held) for held in self.data.held_out.T]
        except np.linalg.LinAlgError:
            seconds = time.perf_counter() - begin
            return CriterionValue(np.nan, np.full(len(theta), np.nan), np.nan, 0.0, seconds, False)
        values, by_alpha, left, right = zip(*folds, strict=True)
        gradient = [alpha * sum(by_alpha)]
        if kernel is not None and kernel.parameter_names():
            pair = linear_algebra.placed(np.hstack(left)), linear_algebra.placed(np.hstack(right))
            gradient.extend(kernel_gradient(kernel, self.data.features, pair, self.workers))
        value, seconds = (sum(values) + self.least) / self.mass, time.perf_counter() - begin
        return CriterionValue(value, np.asarray(gradient) / self.mass, 0.0, 2.0, seconds, True)

    def _fold(self, table: Array, alpha: float, held_out: Array) -> tuple[float, float, Array, Array]:
        """Return a fold's share of the criterion, its derivative by lambda, and factors of that by K."""
        data, multiply = self.data, self.workers.matmul
        held, kept = np.flatnonzero(held_out), np.flatnonzero(~held_out)
        roots, weights = (
            linear_algebra.like(part[:, None], table)
            for part in (np.sqrt(data.weights[kept]), data.weights[held])
        )
        matrix = linear_algebra.contiguous(linear_algebra.block_of(table, kept, kept))
        matrix *= roots
        matrix *= roots.T
        linear_algebra.add_to_diagonal(matrix, alpha)
        factor = CholeskyFactor(matrix, self.workers)
        solved = factor.solve(roots * linear_algebra.like(data.targets[kept], table))
        across = linear_algebra.contiguous(linear_algebra.block_of(table, held, kept))
        misses = multiply(across, roots * solved) - linear_algebra.like(data.targets[held], table)
        errors = weights * misses
        pulled = factor.solve(roots * multiply(linear_algebra.contiguous(across.T), errors))
        left, right = np.zeros_like(data.targets), np.zeros_like(data.targets)
        left[held], left[kept] = linear_algebra.to_numpy(errors), linear_algebra.to_numpy(-roots * pulled)
        right[kept] = linear_algebra.to_numpy(roots * solved)
        return 0.5 * linear_algebra.dot(errors, misses), -linear_algebra.dot(pulled, solved), left, right
