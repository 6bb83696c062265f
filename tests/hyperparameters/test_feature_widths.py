"""Kernel widths a feature: the kernel, its gradient at all scales, and what keeps widths honest."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import HyperparameterSearch, KernelLogisticClassifier, LowRankClassifier
from labelweave.features import ARDKernel, FeatureMatrix, RBFKernel
from labelweave.model_files import load_object, save_object
from labelweave.problems.hyperparameters.cross_validation import MeanCriterion
from labelweave.problems.hyperparameters.priors import FeatureWidths, LearnedIntercepts
from labelweave.testing import check_kernel
from reference.cross_validation_twin import FAMILIES, Problem, family, slope_along

pytestmark = pytest.mark.usefixtures("workers")
NAMES = ["x0", "x1", "x2"]


def _pair(is_sparse):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    left[rng.random(left.shape) < 0.3] = 0.0
    kind = sp.csr_array if is_sparse else np.asarray
    return FeatureMatrix(kind(left)), FeatureMatrix(kind(right)), left, right


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("gamma", [1e-4, 0.3, 1e2])
def test_the_kernel_and_its_derivatives(gamma, is_sparse):
    rows, columns, left, right = _pair(is_sparse)
    weights = np.array([2.0, 1e-3, 0.7])
    kernel = ARDKernel(gamma, weights)
    squares = (weights * (left[:, None] - right[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernel.block(rows, columns), np.exp(-gamma * squares), rtol=1e-9)
    factors = np.random.default_rng(1).normal(size=(7, 5))
    found = kernel.gradient(rows, columns, factors)
    listed = kernel.derivatives(rows, columns)
    np.testing.assert_allclose(found, [np.vdot(d, factors) for d in listed.values()], rtol=1e-8, atol=1e-14)
    theta = kernel.log_parameters()
    for position in range(4):
        step = 1e-5 * np.eye(4)[position]
        ahead, behind = (kernel.with_log_parameters(theta + s).block(rows, columns) for s in (step, -step))
        expected = np.vdot((ahead - behind) / 2e-5, factors)
        assert found[position] == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_without_weights_it_is_the_rbf_kernel():
    rows, columns, _, _ = _pair(False)
    for kernel in (ARDKernel(0.3), ARDKernel(0.3, np.ones(3))):
        np.testing.assert_array_equal(kernel.block(rows, columns), RBFKernel(0.3).block(rows, columns))


def test_a_resolved_kernel_has_weights_of_its_own():
    rows, columns, _, _ = _pair(False)
    weights = np.ones(3)
    found = ARDKernel(0.3, weights).resolved(rows)
    before = found.block(rows, columns)
    weights[:] = 50.0
    np.testing.assert_array_equal(found.block(rows, columns), before)


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0], [1.0, np.inf, 1.0], [[1.0]], [1.0]])
def test_weights_that_make_no_kernel_are_refused(weights):
    rows, columns, _, _ = _pair(False)
    with pytest.raises(ValueError, match="weights"):
        ARDKernel(0.3, weights).block(rows, columns)


@pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "log_loss"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_of_the_criterion(name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax, n=14)
    priors = LearnedIntercepts(FeatureWidths(family(name, RBFKernel(0.3)), NAMES))
    criterion = MeanCriterion([problem.criterion(priors, workers=workers)])
    rng = np.random.default_rng(1)
    theta = priors.start + rng.normal(0.0, 0.3, len(priors.start))
    direction = rng.normal(size=len(theta))
    direction /= np.linalg.norm(direction)
    expected = slope_along(criterion, theta, direction)
    assert criterion(theta).gradient @ direction == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("gamma", 10.0 ** np.arange(-3, 4))
@pytest.mark.parametrize("away", [-6.0, 0.0, 4.0])
def test_the_gradient_over_scales(gamma, away, workers):
    problem = Problem.drawn(is_softmax=True, n=12)
    priors = FeatureWidths(family("shared", RBFKernel(0.3 * gamma)), NAMES)
    criterion = MeanCriterion([problem.criterion(priors, workers=workers)])
    theta = priors.start + np.array([0, 0, away, 0.0, -away / 2])
    found = criterion(theta).gradient
    for position in range(len(theta)):
        expected = slope_along(criterion, theta, np.eye(len(theta))[position])
        assert found[position] == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_the_coarser_family_has_one_width(workers):
    priors = FeatureWidths(family("class", RBFKernel(0.3)), NAMES)
    coarse = priors.coarser()
    theta = coarse.start + 0.1
    fine = priors.prior(priors.from_coarser(theta))
    for one, other in zip(fine.terms, coarse.prior(theta).terms, strict=True):
        assert one.kernel.gamma == other.kernel.gamma
        assert (one.kernel.weights == 1).all()
    assert priors.penalty(priors.start)[0] == 0.0
    assert list(priors.values(priors.start)) == priors.names


@pytest.mark.parametrize("weights", [None, np.array([2.0, 1e-2, 0.7, 1.0])])
def test_sums_products_and_multiples_of_it_are_kernels(weights):
    ard = ARDKernel(0.3, weights)
    for kernel in (2.0 * ard, ard + RBFKernel(0.5), RBFKernel(0.5) * ard, 1.5 * (ard + 2.0 * ard)):
        check_kernel(kernel)


@pytest.mark.parametrize("make", [LowRankClassifier, KernelLogisticClassifier])
def test_fits_with_multiples_of_it(make):
    X = np.random.default_rng(0).normal(size=(40, 3))
    Y = (X[:, :2] > 0).astype(int)
    kernel = 2.0 * ARDKernel(0.3, np.ones(3))
    model = make(kernel=kernel, hyperparameters="fixed").fit(X, Y)
    other = make(kernel=2.0 * RBFKernel(0.3), hyperparameters="fixed").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), rtol=1e-9)
    shape = {"penalty": "ridge"} if make is LowRankClassifier else {}
    learned = make(kernel=kernel, hyperparameters=HyperparameterSearch(max_learning_iter=2), **shape).fit(
        X, Y
    )
    assert learned.hyperparameters_["kernel__weights[2]"] > 0


@pytest.mark.parametrize("weights", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.float32)])
def test_weights_of_any_kind_survive_a_model_file(weights, tmp_path):
    rows, columns, _, _ = _pair(False)
    kernel = ARDKernel(0.5, weights)
    save_object(tmp_path / "kernel.lw", kernel)
    again = load_object(tmp_path / "kernel.lw")
    np.testing.assert_array_equal(again.block(rows, columns), kernel.block(rows, columns))
