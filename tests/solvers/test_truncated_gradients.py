"""Conjugate gradients by block, against dense solves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.solvers.trust_region_newton import TrustRegionNewton, descent, truncated_gradients
from reference.quadratic_twin import QuadraticTwin

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
    return point, descent(problem, point)


def _length(problem, point, direction):
    """The length of a step in the norm of the preconditioner's inverse."""
    scaled = direction / point.precondition(np.ones_like(direction))
    return np.sqrt(problem.inner(direction, scaled, None))


@given(problem=quadratics())
def test_the_step_solves_the_system(problem):
    point, start = _start(problem)
    step = truncated_gradients(problem, point, start, 1e-12, 1000)
    solution = problem.solution()
    assert np.allclose(step.direction, solution, rtol=1e-5, atol=1e-6 * np.abs(solution).max())
    assert np.allclose(step.image, problem.image(step.direction))
    assert step.residual <= 1e-12 or step.n_iter == 1000


@given(problem=quadratics(), max_iter=st.integers(1, 5), radius=st.sampled_from([None, 1e-3, 0.3, 10.0]))
def test_the_decrease_of_the_model_is_exact_and_the_radius_kept(problem, max_iter, radius):
    point, start = _start(problem)
    radii = None if radius is None else np.full_like(start.square, radius)
    step = truncated_gradients(problem, point, start, 1e-8, max_iter, radii)
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
    step = truncated_gradients(problem, point, start.copy(), 1e-8, 100, radius)
    whole = truncated_gradients(problem, point, start, 1e-12, 1000)
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
    whole = truncated_gradients(problem, point, start.copy(), 1e-12, 1000)
    step = truncated_gradients(problem, point, start, 1e-12, 1000, share * whole.length)
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
    step = truncated_gradients(problem, point, start, 0.1, 10)
    vectors = problem.vectors(step.direction)
    assert not vectors[0].any()
    assert np.allclose(vectors[1:], 0.5)
    tols = np.ones_like(start.square)
    assert not truncated_gradients(problem, point, start, tols, 10).direction.any()


def test_directions_without_curvature_are_left_alone():
    """A singular system whose right-hand side is in its range."""
    root = np.array([[1.0, 2.0, -1.0]])
    problem = QuadraticTwin("rows", [root.T @ root], 3.0 * root)
    point, start = _start(problem)
    step = truncated_gradients(problem, point, start, 1e-10, 100)
    assert np.allclose(step.direction @ root.T, 3.0)


@given(problem=quadratics(), max_iter=st.integers(1, 40))
def test_a_quadratic_is_minimised_in_one_step(problem, max_iter):
    factor = np.random.default_rng(0).normal(size=problem.right.shape)
    image = problem.image(factor)
    found = TrustRegionNewton(1e-10, 1, max_iter).minimise(problem, factor, image)
    value = problem.values(found.factor, found.image).sum()
    assert found.value == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert value <= problem.values(factor, image).sum() + 1e-9
    assert found.n_steps == 1
    assert found.n_iter <= max_iter
