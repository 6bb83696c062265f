"""TRON on one factor, against LIBLINEAR's solvers and scipy's, and its conjugate gradients by block."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize as so
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from labelweave.features.factor_maps import DenseMap, FactorMap
from labelweave.foundation.arrays import Workers
from labelweave.problems.label_entries import SampledEntries
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.low_rank_factors import FactorStep
from labelweave.solvers import trust_region_newton
from reference.quadratic_twin import QuadraticTwin

TIGHT = trust_region_newton.TrustRegionNewton(1e-8, 200, 500)


def _problem(scale=1.0, n=60, d=5, seed=0):
    random = np.random.default_rng(seed)
    X = scale * random.normal(size=(n, d))
    y = np.where(X @ random.normal(size=d) / scale + random.normal(size=n) > 0.3, 1, -1)
    return X, y.astype(np.int8)


def _step(X, signs, fixed, loss, penalty, *, is_transposed=False):
    workers = Workers(1)
    entries = SampledEntries.from_signs(
        ENTRY_LOSSES[loss](), sp.csr_array(signs), np.ones(len(signs)), 1.0, workers
    )
    if is_transposed:
        made = FactorStep(entries.transposed, FactorMap(signs.shape[1]), fixed, penalty, "rows", workers)
        return made, np.zeros((signs.shape[1], fixed.shape[1]))
    made = FactorStep(entries, DenseMap(X, workers), fixed, penalty, "whole", workers)
    return made, np.zeros((X.shape[1], fixed.shape[1]))


def _solved(step, factor, solver=TIGHT):
    return solver.minimize(step, factor, step.image(factor))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("penalty", [0.03, 1.0, 30.0])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_one_label_is_the_model_of_scikit_learn(loss, scale, penalty):
    (X, y), penalty = _problem(scale), penalty * scale**2
    found = _solved(*_step(X, y[:, None], np.ones((1, 1)), loss, penalty))
    peer = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=10_000)
    if loss == "squared_hinge":
        peer = LinearSVC(C=0.5 / penalty, fit_intercept=False, dual=False, tol=1e-12, max_iter=100_000)
    assert np.allclose(scale * found.factor[:, 0], scale * peer.fit(X, y).coef_[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_many_labels_reach_the_optimum_of_scipy(loss, is_transposed):
    random = np.random.default_rng(3)
    X = random.normal(size=(20, 4))
    signs = random.choice([-1, 0, 1], (20, 6), p=[0.5, 0.2, 0.3]).astype(np.int8)
    signs[:, 0], signs[3] = 1, 0
    fixed = random.normal(size=(20 if is_transposed else 6, 3))
    step, factor = _step(X, signs, fixed, loss, 0.5, is_transposed=is_transposed)

    def function(flat):
        factor_there = flat.reshape(factor.shape)
        point = step.evaluate(factor_there, step.image(factor_there))
        return float(point.values.sum()), point.gradient.ravel()

    best = so.minimize(function, factor.ravel(), jac=True, method="L-BFGS-B", tol=1e-14)
    found = _solved(step, factor)
    assert found.value == pytest.approx(best.fun, rel=1e-8)
    assert np.allclose(found.factor.ravel(), best.x, atol=1e-4)
    assert found.gradient_share <= 1e-8


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("start", [0.0, 1.0, 30.0])
def test_every_step_lowers_every_block(loss, is_transposed, start):
    random = np.random.default_rng(4)
    X, signs = random.normal(size=(25, 6)), random.choice([-1, 1], (25, 5)).astype(np.int8)
    fixed = random.normal(size=(25 if is_transposed else 5, 2))
    step, factor = _step(X, signs, fixed, loss, 1e-3, is_transposed=is_transposed)
    factor = start * random.normal(size=factor.shape)
    image, solver = step.image(factor), trust_region_newton.TrustRegionNewton(1e-9, 1, 30)
    values = step.values(factor, image)
    for _ in range(12):
        found = solver.minimize(step, factor, image)
        factor, image = found.factor, found.image
        after = step.values(factor, image)
        assert (after <= values + 1e-11 * np.abs(values)).all()
        assert found.value == pytest.approx(after.sum(), rel=1e-12)
        assert np.allclose(image, step.image(factor))
        values = after


def test_a_rejected_step_shrinks_the_region_until_one_is_taken():
    """Far from the optimum the quadratic model of a squared hinge promises too much at first."""
    X, y = _problem()
    step, _ = _step(X, y[:, None], np.ones((1, 1)), "squared_hinge", 1e-6)
    factor = np.full((5, 1), -500.0)
    first = step.values(factor, step.image(factor)).sum()
    found = _solved(step, factor)
    assert found.value < 0.01 * first
    assert found.gradient_share <= 1e-8


def test_a_factor_at_its_optimum_stays():
    X, y = _problem()
    step, factor = _step(X, y[:, None], np.ones((1, 1)), "log_loss", 1.0)
    once = _solved(step, factor)
    again = trust_region_newton.TrustRegionNewton(0.9, 5, 10).minimize(step, once.factor, once.image)
    assert again.value <= once.value * (1 + 1e-12)
    # nothing to learn at all
    still = _solved(*_step(X, np.zeros_like(y[:, None]), np.ones((1, 1)), "log_loss", 1.0))
    assert still.n_steps == 0
    assert not still.factor.any()


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_float32_comes_close(loss):
    X, y = _problem()
    step, factor = _step(X, y[:, None], np.ones((1, 1)), loss, 1.0)
    true = _solved(step, factor).factor
    workers = Workers(1)
    entries = SampledEntries.from_signs(
        ENTRY_LOSSES[loss](), sp.csr_array(y[:, None]), np.ones(len(y), np.float32), 1.0, workers
    )
    single = FactorStep(
        entries, DenseMap(X.astype(np.float32), workers), np.ones((1, 1), np.float32), 1.0, "whole", workers
    )
    found = _solved(single, factor.astype(np.float32), trust_region_newton.TrustRegionNewton(1e-5, 50, 100))
    assert found.factor.dtype == np.float32
    assert np.allclose(found.factor, true, rtol=1e-3, atol=1e-4)


def test_what_a_step_gained_decides_whether_it_is_taken_and_how_far_the_next_may_go():
    gained = np.array([[0.9, 0.5, 0.2, 0.0, -1.0, 0.0]])  # of the decrease of 1 that was promised
    decrease = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    before, shape = np.full((1, 6), 10.0), (1, 6)
    problem = SimpleNamespace(values=lambda factor, image: before - gained)
    now = trust_region_newton._Trusted(np.zeros(shape), np.zeros(shape), before, np.full(shape, 4.0))
    step = trust_region_newton.TruncatedStep(
        np.ones(shape), np.full(shape, 2.0), decrease, np.full(shape, 2.0), 1, 0.1
    )
    later, is_lower = trust_region_newton._judged(problem, now, step)
    assert is_lower
    np.testing.assert_array_equal(later.factor, [[1, 1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(later.image, [[2, 2, 2, 0, 0, 0]])
    np.testing.assert_array_equal(later.values, before - gained * [[1, 1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(later.radius, [[8, 4, 0.5, 0.5, 0.5, 4]])
    gained[:] = -1.0
    still, is_lower = trust_region_newton._judged(problem, now, step)
    assert not is_lower
    assert still.factor is now.factor
    np.testing.assert_array_equal(still.radius, [[0.5, 0.5, 0.5, 0.5, 0.5, 4]])


BLOCKS = ("whole", "rows", "columns")


@st.composite
def quadratics(draw, least=1e-2):
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    blocks = draw(st.sampled_from(BLOCKS))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    count, size = {"whole": (1, rows * columns), "rows": (rows, columns), "columns": (columns, rows)}[blocks]
    hessians = []
    for _ in range(count):
        root = random.normal(size=(size, size))
        hessians.append(root @ root.T + least * np.eye(size))
    return QuadraticTwin(blocks, hessians, random.normal(size=(rows, columns)))


def _start(problem):
    factor = np.zeros_like(problem.right)
    point = problem.evaluate(factor, problem.image(factor))
    return point, trust_region_newton.descent(problem, point)


def _length(problem, point, direction):
    """The length of a step in the norm of the preconditioner's inverse."""
    scaled = direction / point.precondition(np.ones_like(direction))
    return np.sqrt(problem.inner(direction, scaled, None))


@given(problem=quadratics())
def test_the_step_solves_the_system(problem):
    point, start = _start(problem)
    step = trust_region_newton.truncated_gradients(problem, point, start, 1e-12, 1000)
    solution = problem.solution()
    assert np.allclose(step.direction, solution, rtol=1e-5, atol=1e-6 * np.abs(solution).max())
    assert np.allclose(step.image, problem.image(step.direction))
    assert step.residual <= 1e-12 or step.n_iter == 1000


@given(problem=quadratics(), max_iter=st.integers(1, 5), radius=st.sampled_from([None, 1e-3, 0.3, 10.0]))
def test_the_decrease_of_the_model_is_exact_and_the_radius_kept(problem, max_iter, radius):
    point, start = _start(problem)
    radii = None if radius is None else np.full_like(start.square, radius)
    step = trust_region_newton.truncated_gradients(problem, point, start, 1e-8, max_iter, radii)
    true = -problem.values(step.direction, problem.image(step.direction))
    assert np.allclose(step.decrease, true, rtol=1e-6, atol=1e-10 * np.abs(true).max())
    assert (step.decrease >= 0).all()
    assert np.allclose(step.length, _length(problem, point, step.direction), rtol=1e-6, atol=1e-10)
    if radius is not None:
        assert (step.length <= radius * (1 + 1e-9)).all()


@given(problem=quadratics())
def test_a_small_radius_is_used_up(problem):
    point, start = _start(problem)
    radius = 0.01 * np.sqrt(start.square)
    step = trust_region_newton.truncated_gradients(problem, point, start.copy(), 1e-8, 100, radius)
    whole = trust_region_newton.truncated_gradients(problem, point, start, 1e-12, 1000)
    at_edge = whole.length > 1.001 * radius
    assert np.allclose(step.length[at_edge], radius[at_edge])


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95, 2.0])
def test_a_step_ends_on_the_edge_of_its_region(blocks, share):
    random = np.random.default_rng(3)
    count, size = {"whole": (1, 20), "rows": (5, 4), "columns": (4, 5)}[blocks]
    roots = random.normal(size=(count, size, size))
    problem = QuadraticTwin(
        blocks, [root @ root.T + np.eye(size) for root in roots], random.normal(size=(5, 4))
    )
    point, start = _start(problem)
    whole = trust_region_newton.truncated_gradients(problem, point, start.copy(), 1e-12, 1000)
    step = trust_region_newton.truncated_gradients(problem, point, start, 1e-12, 1000, share * whole.length)
    np.testing.assert_allclose(step.length, min(share, 1.0) * whole.length, rtol=1e-6)
    np.testing.assert_allclose(step.length, _length(problem, point, step.direction), rtol=1e-6)


@pytest.mark.parametrize("blocks", ["rows", "columns"])
def test_blocks_stop_alone(blocks):
    """A block that need not move does not, and one without curvature stops no other."""
    count, size = (3, 2) if blocks == "rows" else (2, 3)
    hessians = [2.0 * np.eye(size) for _ in range(count)]
    problem = QuadraticTwin(blocks, hessians, np.ones((3, 2)))
    problem.vectors(problem.right)[0] = 0.0
    point, start = _start(problem)
    step = trust_region_newton.truncated_gradients(problem, point, start, 0.1, 10)
    vectors = problem.vectors(step.direction)
    assert not vectors[0].any()
    assert np.allclose(vectors[1:], 0.5)
    tols = np.ones_like(start.square)
    assert not trust_region_newton.truncated_gradients(problem, point, start, tols, 10).direction.any()


def test_directions_without_curvature_are_left_alone():
    """A singular system whose right-hand side is in its range."""
    root = np.array([[1.0, 2.0, -1.0]])
    problem = QuadraticTwin("rows", [root.T @ root], 3.0 * root)
    point, start = _start(problem)
    step = trust_region_newton.truncated_gradients(problem, point, start, 1e-10, 100)
    assert np.allclose(step.direction @ root.T, 3.0)


@given(problem=quadratics(), max_iter=st.integers(1, 40))
def test_a_quadratic_is_minimized_in_one_step(problem, max_iter):
    factor = np.random.default_rng(0).normal(size=problem.right.shape)
    image = problem.image(factor)
    found = trust_region_newton.TrustRegionNewton(1e-10, 1, max_iter).minimize(problem, factor, image)
    value = problem.values(found.factor, found.image).sum()
    assert found.value == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert value <= problem.values(factor, image).sum() + 1e-9
    assert found.n_steps == 1
    assert found.n_iter <= max_iter
