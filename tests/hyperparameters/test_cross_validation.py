"""The cross-validation likelihood, of parts and at low rank: values, gradients, and when fits fail."""

from dataclasses import replace

import numpy as np
import pytest
from attacks.small_fits import grouped
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from labelweave import HyperparameterSearch, KernelLogisticClassifier
from labelweave.features import (
    CosineKernel,
    FeatureMatrix,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
)
from labelweave.features.gram import LowRankGram, StoredGram
from labelweave.features.gram.sources import KernelSource
from labelweave.problems.hyperparameters import cross_validation
from labelweave.problems.hyperparameters.cross_validation import (
    CrossValidationLikelihood,
    InnerSettings,
    MeanCriterion,
    kernel_gradient,
)
from labelweave.problems.hyperparameters.priors import LearnedIntercepts
from labelweave.problems.hyperparameters.search import SearchSettings, learn
from reference.cross_validation_twin import FAMILIES, TIGHT, Problem, family, slope_along

pytestmark = pytest.mark.usefixtures("workers")
KINDS = pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "log_loss"])
# at large scales rounding ends the fits at gaps of about 1e-18, and the gradient's error is about the root
NEARLY_TIGHT = replace(TIGHT, tol=1e-16)


def assert_slope(criterion, theta, relative=1e-6, absolute=1e-9, seed=0):
    direction = np.random.default_rng(seed).normal(size=len(theta))
    direction /= np.linalg.norm(direction)
    found = criterion(theta)
    assert found.converged
    expected = slope_along(criterion, theta, direction)
    assert found.gradient @ direction == pytest.approx(expected, rel=relative, abs=absolute)


@KINDS
@pytest.mark.parametrize("name", FAMILIES)
def test_value_and_gradient(name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax)
    priors = family(name, RBFKernel(0.3))
    criterion = problem.criterion(priors, workers=workers)
    theta = priors.start + np.random.default_rng(1).normal(0.0, 0.3, len(priors.start))
    assert criterion(theta).value == pytest.approx(problem.slow_value(priors.prior(theta)), abs=1e-7)
    assert_slope(criterion, theta)


@KINDS
@pytest.mark.parametrize(
    "name", ["class", "level", "given", "loadings", "weighted", "factors", "root", "sum"]
)
@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize("gamma", [1e-4, 1e4])
def test_gradient_at_extremes(gamma, scale, name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax, n=10, folds=2)
    priors = family(name, RBFKernel(0.3 * gamma), 3.0 * scale)
    criterion = problem.criterion(priors, NEARLY_TIGHT, workers=workers)
    assert_slope(criterion, priors.start, relative=2e-3, absolute=1e-8)


@KINDS
@pytest.mark.parametrize("gamma", 10.0 ** np.arange(-4, 5))
def test_gradient_over_length_scales(gamma, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax, n=10)
    priors = family("shared", RBFKernel(0.3 * gamma))
    criterion = problem.criterion(priors, workers=workers)
    for scale in (1e-2, 1.0, 1e2):
        theta = priors.start + np.log([scale, 1.0])
        assert_slope(criterion, theta)


@KINDS
@pytest.mark.parametrize("name", ["class", "level", "given", "loadings"])
@pytest.mark.parametrize("variance", [1e-4, 1.0, 1e4])
def test_gradient_of_the_intercepts(variance, name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax, n=10)
    priors = LearnedIntercepts(family(name, RBFKernel(0.3), intercept_variance=variance))
    assert_slope(problem.criterion(priors, workers=workers), priors.start, relative=1e-3)


@KINDS
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_few_features_of_any_size(scale, is_softmax, workers):
    """The kernel has a large null space and large entries; fits stop at their usual tolerance."""
    problem = Problem.drawn(is_softmax=is_softmax, n=40)
    problem.X /= np.sqrt(scale)
    priors = LearnedIntercepts(family("shared", LinearKernel(), scale=scale, intercept_variance=1e-3))
    exact = problem.criterion(priors, workers=workers)(priors.start)
    usual = problem.criterion(priors, InnerSettings(), workers=workers)(priors.start)
    assert usual.value == pytest.approx(exact.value, rel=1e-5)
    np.testing.assert_allclose(usual.gradient, exact.gradient, atol=1e-4)


@KINDS
def test_large_kernels_do_not_spoil_value_and_gradient(is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax, n=40)
    priors = family("shared", LinearKernel(), scale=3e4)
    exact = problem.criterion(priors, NEARLY_TIGHT, workers=workers)(priors.start)
    usual = problem.criterion(priors, InnerSettings(), workers=workers)(priors.start)
    assert usual.value == pytest.approx(exact.value, rel=1e-3)
    np.testing.assert_allclose(usual.gradient, exact.gradient, atol=0.1 * np.abs(exact.gradient).max() + 1e-3)


KERNELS = {
    "linear": LinearKernel(),
    "cosine": CosineKernel(),
    "poly": PolynomialKernel(degree=2, gamma=0.4, coef0=0.5),
    "laplacian": LaplacianKernel(gamma=0.2),
    "sum": 0.5 * RBFKernel(gamma=0.4) + LinearKernel(),
    "product": RBFKernel(gamma=0.1) * (LinearKernel() + 2.0),
}


@pytest.mark.parametrize("name", ["class", "subtree"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_of_kernels(kernel, name, workers):
    problem = Problem.drawn(is_softmax=True, n=10)
    priors = family(name, KERNELS[kernel])
    assert_slope(problem.criterion(priors, workers=workers), priors.start)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "sum"])  # a matrix is one kernel
def test_given_kernel_matrix(name, workers):
    problem = Problem.drawn(is_softmax=True, n=10)
    priors = family(name, None)
    K = rbf_kernel(problem.X, gamma=0.3)
    criterion = problem.criterion(priors, matrix=K, workers=workers)
    assert_slope(criterion, priors.start)
    fixed = family(name, RBFKernel(0.3))
    found = problem.criterion(fixed, workers=workers)(fixed.start)
    assert found.value == pytest.approx(criterion(priors.start).value, abs=1e-10)


@KINDS
def test_folds_together_are_folds_alone(is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax)
    priors = family("level", RBFKernel(0.3))
    together = problem.criterion(priors, workers=workers)(priors.start)
    value, slope, mass = 0.0, np.zeros(len(priors.start)), 0.0
    for fold in problem.held_out.T:
        alone = replace(problem, held_out=fold[:, None]).criterion(priors, workers=workers)(priors.start)
        weight = problem.weights[fold].sum()
        value, slope, mass = value + weight * alone.value, slope + weight * alone.gradient, mass + weight
    assert together.value == pytest.approx(value / mass, rel=1e-10)
    np.testing.assert_allclose(together.gradient, slope / mass, atol=1e-9)


def test_a_row_that_repeats_has_its_weight(workers):
    problem = Problem.drawn(is_softmax=True)
    priors = family("class", RBFKernel(0.3))
    problem.weights[:] = np.random.default_rng(2).integers(1, 4, len(problem.X))
    weighted = problem.criterion(priors, workers=workers)(priors.start)
    often = np.repeat(np.arange(len(problem.X)), problem.weights.astype(int))
    parts = {name: getattr(problem, name)[often] for name in ("X", "codes", "signs", "held_out")}
    repeated = replace(problem, weights=np.ones(len(often)), **parts)
    found = repeated.criterion(priors, workers=workers)(priors.start)
    assert weighted.value == pytest.approx(found.value, rel=1e-9)
    np.testing.assert_allclose(weighted.gradient, found.gradient, atol=1e-8)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(FAMILIES), st.booleans())
def test_loose_fits_are_corrected(seed, name, is_softmax):
    """The value at a gap of 1e-3 is better than the gap."""
    problem = Problem.drawn(is_softmax=is_softmax, seed=seed, n=12)
    priors = family(name, RBFKernel(0.3))
    exact = problem.criterion(priors)(priors.start)
    loose = problem.criterion(priors, InnerSettings(tol=1e-3))(priors.start)
    assert loose.gap > exact.gap
    assert loose.value == pytest.approx(exact.value, rel=1e-2)
    usual = problem.criterion(priors, InnerSettings())(priors.start)
    assert usual.value == pytest.approx(exact.value, rel=1e-4)
    assert np.linalg.norm(usual.gradient - exact.gradient) <= 1e-2 * np.linalg.norm(exact.gradient) + 1e-4


def test_a_second_evaluation_starts_from_the_first(workers):
    problem = Problem.drawn(is_softmax=True)
    priors = family("shared", RBFKernel(0.3))
    criterion = problem.criterion(priors, InnerSettings(), workers=workers)
    first, second = criterion(priors.start), criterion(priors.start)
    assert second.products < first.products
    assert second.value == pytest.approx(first.value, rel=1e-5)


def test_fits_that_fail_leave_the_state_alone(workers):
    problem = Problem.drawn(is_softmax=True)
    priors = family("shared", RBFKernel(0.3))
    criterion = problem.criterion(priors, InnerSettings(max_iter=1), workers=workers)
    found = criterion(priors.start)
    assert not found.converged
    assert np.isnan(found.value)
    assert np.isnan(found.gradient).all()
    assert criterion.inner_state is None


def test_an_interrupt_leaves_the_criterion(workers, monkeypatch):
    problem = Problem.drawn(is_softmax=True)
    priors = family("shared", RBFKernel(0.3))
    criterion = problem.criterion(priors, workers=workers)
    evaluate, calls = criterion.training.evaluate, []

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    monkeypatch.setattr(criterion.training, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        criterion(priors.start)
    assert criterion(priors.start).converged


def test_every_class_may_be_missing_from_a_fold(workers):
    problem = Problem.drawn(is_softmax=True)
    held_out = problem.codes[:, None] == np.unique(problem.codes)
    priors = family("class", RBFKernel(0.3))
    assert held_out.any(axis=0).all()
    assert_slope(replace(problem, held_out=held_out).criterion(priors, workers=workers), priors.start)


@pytest.mark.parametrize("side", [5, 17, 512])
def test_derivatives_by_kernel_parameters_do_not_depend_on_blocks(side, workers, monkeypatch):
    monkeypatch.setattr(cross_validation, "_SIDE", side)
    random = np.random.default_rng(0)
    X, left, right = (random.normal(size=(17, columns)) for columns in (4, 3, 3))

    def total(width):
        return float((rbf_kernel(X, gamma=width) * (left @ right.T)).sum())

    found = kernel_gradient(RBFKernel(0.4), FeatureMatrix(X), (left, right), workers)
    step = 1e-5
    slope = (total(0.4 * np.exp(step)) - total(0.4 * np.exp(-step))) / (2 * step)
    assert found == pytest.approx([slope], rel=1e-6)


def drawn_parts(priors, workers, *, is_softmax=True, settings=TIGHT, sizes=(12, 20, 15)):
    """Draw cross-validations with separate rows and weights; logistic labels have some missing."""
    problems = [Problem.drawn(is_softmax=is_softmax, n=n, seed=seed) for seed, n in enumerate(sizes)]
    return [problem.criterion(priors, settings, workers=workers) for problem in problems]


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", FAMILIES)
def test_value_and_gradient_of_a_mean(name, is_softmax, workers):
    priors = family(name, RBFKernel(0.3))
    parts = drawn_parts(priors, workers, is_softmax=is_softmax)
    criterion = MeanCriterion(parts)
    theta = priors.start + np.random.default_rng(1).normal(0.0, 0.3, len(priors.start))
    found, apart = criterion(theta), [part(theta) for part in parts]
    masses = [part.mass for part in parts]
    assert found.value == pytest.approx(np.average([one.value for one in apart], weights=masses))
    expected = np.average([one.gradient for one in apart], axis=0, weights=masses)
    np.testing.assert_allclose(found.gradient, expected, atol=1e-9)
    assert_slope(criterion, theta, seed=2)


@KINDS
def test_one_part_is_the_criterion_itself(is_softmax, workers):
    priors = family("level", RBFKernel(0.3))
    (part,), (same,) = (drawn_parts(priors, workers, is_softmax=is_softmax, sizes=(20,)) for _ in range(2))
    mean, alone = MeanCriterion([part])(priors.start), same(priors.start)
    assert mean._replace(gradient=0, time=0) == alone._replace(gradient=0, time=0)
    np.testing.assert_array_equal(mean.gradient, alone.gradient)


def test_the_mean_of_equal_parts_is_each_of_them(workers):
    priors = family("class", RBFKernel(0.3))
    parts = [*drawn_parts(priors, workers, sizes=(20,)), *drawn_parts(priors, workers, sizes=(20,))]
    mean, alone = MeanCriterion(parts)(priors.start), parts[0](priors.start)
    assert mean.value == pytest.approx(alone.value)
    np.testing.assert_allclose(mean.gradient, alone.gradient, atol=1e-9)


def test_costs_add_up(workers):
    priors = family("class", RBFKernel(0.3))
    parts, same = drawn_parts(priors, workers), drawn_parts(priors, workers)
    mean, apart = MeanCriterion(parts)(priors.start), [part(priors.start) for part in same]
    assert mean.products == sum(one.products for one in apart)
    assert mean.gap == max(one.gap for one in apart)
    assert mean.time > 0


@pytest.mark.parametrize("position", range(3))
def test_one_failure_is_a_failure(position, workers):
    priors = family("shared", RBFKernel(0.3))
    parts = drawn_parts(priors, workers)
    parts[position].settings = InnerSettings(max_iter=1)
    criterion = MeanCriterion(parts)
    found = criterion(priors.start)
    assert not found.converged
    assert np.isnan(found.value)
    assert np.isnan(found.gradient).all()
    assert criterion.inner_states[position] is None
    with pytest.raises(ValueError, match="did not converge at the initial hyperparameters"):
        learn(criterion, priors.start, priors.bounds)


def test_states_serve_another_family(workers):
    tied, apart = family("shared", RBFKernel(0.3)), family("class", RBFKernel(0.3))
    first = MeanCriterion(drawn_parts(tied, workers, settings=InnerSettings()))
    warm, cold = (MeanCriterion(drawn_parts(apart, workers, settings=InnerSettings())) for _ in range(2))
    assert warm.family is apart
    assert warm.inner_states == (None,) * 3
    first(tied.start)
    warm.start_from(first.inner_states)
    found, expected = warm(apart.start), cold(apart.start)
    assert found.products < expected.products
    assert found.value == pytest.approx(expected.value, rel=1e-5)


def test_the_search_lowers_the_mean(workers):
    priors = family("class", RBFKernel(0.3))
    criterion = MeanCriterion(drawn_parts(priors, workers, settings=InnerSettings()))
    found = learn(criterion, priors.start, priors.bounds, SearchSettings(max_iter=10))
    assert found.value < criterion(priors.start).value
    assert found.value == pytest.approx(criterion(found.theta).value, rel=1e-4)


def test_parts_count_by_their_weights(workers):
    priors = family("shared", RBFKernel(0.3))
    light, heavy = (Problem.drawn(is_softmax=True, seed=seed) for seed in (0, 1))
    heavy = replace(heavy, weights=heavy.weights * 1e7)
    parts = [problem.criterion(priors, InnerSettings(), workers=workers) for problem in (light, heavy)]
    theta = priors.start - np.log([1e7, 1.0])  # as many times the prior's precision
    assert MeanCriterion(parts)(theta).value == pytest.approx(parts[1](theta).value, rel=1e-6)


ACTIVE = np.array([3, 0, 11, 7, 15])
OF_LOW_RANK = {
    "rbf": RBFKernel(0.3),
    "poly": PolynomialKernel(2, 0.4, 0.5),
    "sum": 0.5 * RBFKernel(0.4) + LinearKernel(),
}


def _criterion(problem, priors, workers, active=ACTIVE):
    features = FeatureMatrix(problem.X)
    exact = problem.criterion(priors, workers=workers)

    def make(kernel):
        return LowRankGram.at_rows(KernelSource(kernel, features), active, workers)

    data = exact.data.__class__(**{**vars(exact.data), "make_gram": make})
    return CrossValidationLikelihood(priors, data, workers, TIGHT)


def _dense(kernel, X):
    """Compute Nyström's matrix with the true diagonal."""
    features = FeatureMatrix(X)
    K = kernel.block(features, features)
    across = K[:, ACTIVE]
    low = across @ np.linalg.solve(K[np.ix_(ACTIVE, ACTIVE)], across.T)
    np.fill_diagonal(low, K.diagonal())
    return low


@pytest.mark.parametrize("kernel", OF_LOW_RANK)
def test_the_matrix_is_nystroms_with_the_true_diagonal(kernel, workers):
    problem = Problem.drawn(is_softmax=True)
    source = KernelSource(OF_LOW_RANK[kernel], FeatureMatrix(problem.X))
    gram = LowRankGram.at_rows(source, ACTIVE, workers)
    np.testing.assert_allclose(
        gram.product(np.eye(len(problem.X))), _dense(OF_LOW_RANK[kernel], problem.X), atol=1e-5
    )


@pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "log_loss"])
@pytest.mark.parametrize("name", ["shared", "class", "level", "loadings"])
@pytest.mark.parametrize("kernel", OF_LOW_RANK)
def test_the_gradient_is_that_of_the_value(kernel, name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax)
    priors = family(name, OF_LOW_RANK[kernel])
    assert_slope(_criterion(problem, priors, workers), priors.start, relative=1e-5, absolute=1e-8)


@pytest.mark.parametrize("gamma", 10.0 ** np.arange(-3, 4))
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_the_gradient_over_scales(gamma, scale, workers):
    problem = Problem.drawn(is_softmax=True, n=16)
    priors = family("shared", RBFKernel(0.3 * gamma), 3.0 * scale)
    criterion = _criterion(problem, priors, workers)
    for direction in np.eye(2):
        expected = slope_along(criterion, priors.start, direction)
        found = criterion(priors.start).gradient @ direction
        # at wide kernels the matrix of the active rows is nearly singular
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_all_rows_active_is_the_exact_criterion(workers):
    problem = Problem.drawn(is_softmax=True)
    priors = family("class", RBFKernel(0.3))
    low = _criterion(problem, priors, workers, np.arange(len(problem.X)))(priors.start)
    exact = problem.criterion(priors, workers=workers)(priors.start)
    assert low.value == pytest.approx(exact.value, rel=1e-6)
    np.testing.assert_allclose(low.gradient, exact.gradient, atol=1e-5)


def test_a_learned_model_of_low_rank_makes_no_exact_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    exact = KernelLogisticClassifier(hyperparameters=HyperparameterSearch(max_learning_iter=20)).fit(X, y)

    def refuse(*arguments, **options):
        raise AssertionError("an exact kernel matrix was made")

    monkeypatch.setattr(StoredGram, "from_source", refuse)
    model = grouped(KernelLogisticClassifier, kernel_rank=60, max_learning_iter=20).fit(X, y)
    assert model.cross_validation_loss_ == pytest.approx(exact.cross_validation_loss_, rel=0.05)
    assert model.score(X, y) > 0.85
