"""The squared cross-validation loss: against ridge regression fold by fold; its gradient at all scales."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.gram import StoredGram, choose_gram
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.problems.hyperparameters import ridge_cross_validation
from labelweave.problems.hyperparameters.cross_validation import (
    CrossValidationLikelihood,
    FoldedData,
    InnerSettings,
)
from labelweave.problems.losses import EntrywiseLoss
from labelweave.solvers.newton_system import ExactDirections
from reference.cross_validation_twin import TIGHT, slope_along

N, L, FOLDS, CONSTANT = 24, 4, 3, 0.6
EXACT = InnerSettings(tol=1e-12, directions=ExactDirections())


class Rows:
    def __init__(self, *, missing, negative_weight=1.0, features=3):
        random = np.random.default_rng(0)
        self.X = random.normal(size=(N, features))
        scores = np.sin(self.X[:, :3] @ random.normal(size=(3, L)))
        self.signs = np.where(scores > 0.3, 1, -1).astype(np.int8)
        if missing:
            self.signs[random.random(self.signs.shape) < 0.3] = 0
        self.weights = random.uniform(0.3, 2.0, N)
        self.fold = random.permutation(N) % FOLDS
        self.held_out = self.fold[:, None] == np.arange(FOLDS)
        self.missing, self.negative_weight = missing, negative_weight

    def criterion(self, priors, settings, make_gram=None):
        workers = Workers(1)
        features = FeatureMatrix(self.X)

        def make_loss(weights):
            separate = not priors.ties_labels
            factors = np.where(self.signs < 0, self.negative_weight, 1.0)
            return EntrywiseLoss(
                "squared_error", self.signs, weights, is_separate=separate, entry_weights=factors
            )

        def stored(kernel):
            return StoredGram.from_source(KernelSource(kernel, features), 0.0, np.float64, workers)

        make_gram = make_gram or stored
        data = FoldedData(features, make_loss, self.weights, self.held_out, make_gram, priors.ties_labels)
        return CrossValidationLikelihood(priors, data, workers, settings)

    def closed_form(self, priors):
        features, workers = FeatureMatrix(self.X), Workers(1)

        def make_gram(kernel):
            return StoredGram.from_source(KernelSource(kernel, features), 0.0, np.float64, workers)

        targets = (self.signs > 0).astype(float)
        data = ridge_cross_validation.FoldedRidge(features, targets, self.weights, self.held_out, make_gram)
        return ridge_cross_validation.RidgeCrossValidation(priors, data, workers)

    def slow_value(self, kernel, alpha):
        """Ridge regression of every label on every fold, in closed form."""
        features = FeatureMatrix(self.X)
        K = kernel.block(features, features) + CONSTANT**2
        targets = (self.signs > 0).astype(float)
        weights = self.weights[:, None] * np.where(self.signs < 0, self.negative_weight, self.signs != 0)
        total = 0.0
        for fold in range(FOLDS):
            held = self.fold == fold
            for label in range(L):
                w = np.where(held, 0.0, weights[:, label])
                dual = np.linalg.solve(w[:, None] * K + alpha * np.eye(N), w * targets[:, label])
                miss = (K @ dual - targets[:, label])[held]
                total += 0.5 * np.sum(weights[held, label] * miss**2)
        return total / self.weights.sum()


def ridge(kernel, alpha, *, ties_labels=False):
    return ridge_cross_validation.RidgePriors(kernel, alpha, CONSTANT, L, ties_labels=ties_labels)


@pytest.mark.parametrize("negative_weight", [1.0, 0.2])
@pytest.mark.parametrize("missing", [False, True])
def test_value_is_half_the_held_out_squared_distance(missing, negative_weight):
    rows, priors = Rows(missing=missing, negative_weight=negative_weight), ridge(RBFKernel(0.4), 0.3)
    found = rows.criterion(priors, TIGHT)(priors.start)
    assert found.value == pytest.approx(rows.slow_value(RBFKernel(0.4), 0.3), rel=1e-9)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0, 1e2])
def test_gradient_over_scales(gamma, alpha, missing):
    """Conjugate gradients lose digits where lambda is far below the kernel, so solves are exact here."""
    rows, priors = Rows(missing=missing), ridge(RBFKernel(gamma), alpha, ties_labels=not missing)
    criterion = rows.criterion(priors, EXACT) if missing else rows.closed_form(priors)
    for direction in np.eye(2):
        expected = slope_along(criterion, priors.start, direction)
        assert criterion(priors.start).gradient @ direction == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("gamma", [1e-4, 0.3, 1e2])
def test_the_closed_form_gives_the_same(gamma, alpha):
    rows, priors = Rows(missing=False), ridge(RBFKernel(gamma), alpha)
    closed = rows.closed_form(priors)(priors.start)
    assert closed.converged
    assert closed.value == pytest.approx(rows.slow_value(RBFKernel(gamma), alpha), rel=1e-9)
    found = rows.criterion(priors, EXACT)(priors.start)
    np.testing.assert_allclose(closed.gradient, found.gradient, rtol=1e-6, atol=1e-9)


def test_no_factor_is_a_failed_evaluation():
    rows, priors = Rows(missing=False), ridge(RBFKernel(0.4), 1.0)
    criterion = rows.closed_form(priors)
    found = criterion(np.array([-800.0, np.log(1e-6)]))
    assert not found.converged
    assert np.isnan(found.value)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_linear_kernel_of_sparse_rows_without_its_matrix(alpha, missing):
    rows, priors = Rows(missing=missing, features=40), ridge(LinearKernel(), alpha)
    rows.X[:, 3:] *= np.random.default_rng(1).random((N, 37)) < 0.1
    dense = rows.criterion(priors, TIGHT)(priors.start)
    rows.X = sp.csr_array(rows.X)

    def make_gram(kernel):
        features = FeatureMatrix(rows.X)
        return choose_gram(KernelSource(kernel, features), features, L, 1e9, Workers(1))

    criterion = rows.criterion(priors, TIGHT, make_gram)
    sparse = criterion(priors.start)
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)
    assert sparse.gradient[0] == pytest.approx(
        slope_along(criterion, priors.start, np.ones(1)), rel=1e-5, abs=1e-8
    )


def test_given_kernel_matrix():
    rows, priors = Rows(missing=True), ridge(None, 0.5)
    features = FeatureMatrix(rows.X)
    K = RBFKernel(0.4).block(features, features)
    workers = Workers(1)
    given = rows.criterion(
        priors, TIGHT, lambda _: StoredGram.from_source(PrecomputedSource(K), 0.0, np.float64, workers)
    )(priors.start)
    fixed = ridge(RBFKernel(0.4), 0.5)
    found = rows.criterion(fixed, TIGHT)(fixed.start)
    assert given.value == pytest.approx(found.value, rel=1e-10)
    assert given.gradient == pytest.approx(found.gradient[:1], rel=1e-6)


def test_names_values_and_a_retreat():
    priors = ridge(RBFKernel(0.4), 2.0)
    assert priors.values(priors.start) == pytest.approx({"alpha": 2.0, "gamma": 0.4})
    assert priors.values(priors.retreated(priors.start))["alpha"] == pytest.approx(20.0)
    assert priors.coarser() is None
    assert priors.kernel_at(priors.start).gamma == pytest.approx(0.4)
    assert ridge(None, 1.0).kernel_at(np.zeros(1)) is None
