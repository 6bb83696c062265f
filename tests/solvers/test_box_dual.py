"""Box-constrained quadratic duals: objectives, the best points of a run, corrections of nearby operators."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.problems import MarginBox
from labelweave.solvers.alternating_directions import Corrections
from labelweave.solvers.box_dual import BestPoints, dual_value, dual_value_above, primal_value
from labelweave.solvers.frame import relative_gap
from reference import gram_twins


def _problem(seed, n=7, n_labels=3):
    random = np.random.default_rng(seed)
    rank = random.integers(1, n + 1)
    G, H = random.normal(size=(n, rank)), random.normal(size=(n_labels, random.integers(1, 4)))
    signs = random.choice([-1, 0, 1], (n, n_labels))
    weights, margins = random.uniform(0, 3, n) * (random.random(n) < 0.8), random.uniform(0, 2, (2, n_labels))
    return random, G @ G.T, H @ H.T, MarginBox(*gram_twins.box(signs, weights, margins))


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_no_dual_value_exceeds_a_primal_value(seed, scale):
    random, K, R, box = _problem(seed)
    B = scale * random.normal(size=box.targets.shape)
    V = random.uniform(box.lower, box.upper)
    primal = primal_value(box, B, K @ B @ R)
    dual = dual_value(box, V, K @ V @ R)
    assert dual <= primal + 1e-10 * max(1, abs(primal), abs(dual))
    np.testing.assert_allclose(
        primal, gram_twins.primal(B, K, R, box.targets, box.lower, box.upper), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(dual, gram_twins.dual(V, K, R, box.targets), rtol=1e-9, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_the_tangent_is_above_the_dual_and_meets_it(seed):
    random, K, R, box = _problem(seed)
    V = random.uniform(box.lower, box.upper)
    near = V + random.normal(size=V.shape)
    dual = dual_value(box, V, K @ V @ R)
    above = dual_value_above(box, near, K @ near @ R, V)
    assert above >= dual - 1e-9 * max(1, abs(dual), abs(above))
    np.testing.assert_allclose(dual_value_above(box, V, K @ V @ R, V), dual, atol=1e-8)


def test_the_loss_is_the_weighted_hinge_loss():
    signs = np.array([[1, -1, 0]])
    box = MarginBox(*gram_twins.box(signs, np.array([3.0]), [[1.0, 1, 1], [2.0, 2, 2]]))
    nothing = np.zeros((1, 3))
    scores = np.array([[0.25, -0.5, 100.0]])
    assert primal_value(box, nothing, scores) == 3 * (0.75 + 1.5)
    assert primal_value(box, nothing, np.array([[1.5, -2.0, 0.0]])) == 0


def test_sums_are_in_double_precision():
    ones = np.ones((4096, 512), np.float32)
    box = MarginBox(ones, 0 * ones, np.float32(1 / 3) * ones)
    exact = 4096 * 512 * float(np.float32(1 / 3))
    assert primal_value(box, 0 * ones, 0 * ones) == pytest.approx(exact, rel=1e-12)


def test_the_gap_is_relative_to_the_objective_also_below_one():
    assert relative_gap(200.0, 150.0) == 0.25
    assert relative_gap(0.5, 0.25) == 0.5
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, -1.0) == np.inf
    assert relative_gap(0.0, 0.0) == 0


class _Terms:
    is_semidefinite = True

    def __init__(self, seed, coupled):
        generator = np.random.default_rng(seed)
        self.signs = generator.choice([-1.0, 1.0], (7, 3))
        self.targets = self.signs
        self.lower, self.upper = np.minimum(self.signs, 0), np.maximum(self.signs, 0)
        root = generator.standard_normal((7, 7)) * 10.0 ** generator.integers(-2, 3)
        self.matrix = root @ root.T
        self.inside = np.clip(generator.standard_normal((7, 3)), self.lower, self.upper)
        self.coupled = coupled

    def coupled_labels(self):
        return [np.arange(3)] if self.coupled else [np.array([label]) for label in range(3)]


def test_it_begins_with_the_gap_of_doing_nothing():
    terms = _Terms(0, coupled=False)
    best = BestPoints.at_zero(terms)
    assert best.primal == pytest.approx(21)
    assert best.dual == 0
    assert best.gap == pytest.approx(1)


@given(st.integers(0, 10_000), st.booleans())
def test_a_dual_point_is_shrunk_to_where_the_dual_is_highest(seed, coupled):
    terms = _Terms(seed, coupled)
    scores = terms.matrix @ terms.inside
    best = BestPoints.at_zero(terms)
    best, value = best.with_dual(terms, terms.inside, scores)
    assert value == pytest.approx(dual_value(terms, terms.inside, scores))
    assert (best.boxed >= terms.lower).all()
    assert (best.boxed <= terms.upper).all()
    assert best.dual == pytest.approx(dual_value(terms, best.boxed, terms.matrix @ best.boxed), abs=1e-9)
    for share in np.linspace(0, 1, 11):
        point = share * terms.inside
        assert dual_value(terms, point, terms.matrix @ point) <= best.dual + 1e-9


def test_only_better_points_are_kept():
    terms = _Terms(1, coupled=False)
    best = BestPoints.at_zero(terms)
    worse = np.full((7, 3), 100.0)
    best = best.with_primal(terms, worse, terms.matrix @ worse)
    assert not best.free.any()


@pytest.mark.parametrize("is_semidefinite", [True, False])
def test_points_that_contradict_the_other_side_are_rounding_where_nothing_is_indefinite(is_semidefinite):
    terms = _Terms(2, coupled=False)
    terms.is_semidefinite = is_semidefinite
    best = BestPoints.at_zero(terms)
    wrong = 1e40 * terms.signs  # scores of rounding: the quadratic terms are far below 0
    assert (best.with_dual(terms, terms.signs, -wrong)[0].dual > best.primal) is not is_semidefinite
    assert (best.with_primal(terms, -terms.signs, wrong).primal < best.dual) is not is_semidefinite


class _Nearby:
    """H = N + rest M written out, for variables of shape (n, 1)."""

    def __init__(self, N):
        self.N = N

    def near_product(self, variables):
        return self.N @ variables

    def rest_product(self, variables):
        return variables


def _nearby(n=6, seed=0, omitted=0.5):
    random = np.random.default_rng(seed)
    G = random.normal(size=(n, 3))
    rest = random.normal(size=(n, n))
    N = G @ G.T
    A = N + omitted * rest @ rest.T / n
    return N, A, random.normal(size=(n, 1))


def _box_step(H, target, upper):
    """Maximise <target, V> - 1/2 <V, H V> over 0 <= V <= upper."""
    V = np.zeros_like(target)
    for _ in range(60):
        for i in range(len(V)):
            V[i] = np.clip(V[i] + (target[i] - H[i] @ V) / H[i, i], 0, upper)
    return V


@pytest.mark.slow
@pytest.mark.parametrize("rest", [1e-3, 0.3, 5.0])
def test_steps_with_corrections_reach_the_optimum_of_the_true_operator(rest):
    N, A, T = _nearby()
    operator, corrections = _Nearby(N), Corrections.at_zero(T, rest)
    target, optimum = T, _box_step(A, T, 1.0)
    for _ in range(300):
        V = _box_step(N + corrections.rest * np.eye(6), target, 1.0)
        dual = float((T * V).sum() - (V * (A @ V)).sum() / 2)
        corrections, correction = corrections.renewed(operator, V, A @ V, dual)
        target = T + correction
    np.testing.assert_allclose(V, optimum, atol=1e-6)


def test_the_rest_is_raised_only_as_far_as_steps_have_met():
    N, A, T = _nearby()
    largest = np.linalg.eigvalsh(A - N).max()
    corrections, rests = Corrections.at_zero(T, 1e-6), []
    random = np.random.default_rng(1)
    for _ in range(20):
        V = random.random(T.shape)
        corrections, _ = corrections.renewed(_Nearby(N), V, A @ V, 0.0)
        rests.append(corrections.rest)
    assert rests == sorted(rests)
    assert 1e-6 < corrections.rest <= 1.1 * largest * (1 + 1e-12)


def test_a_rest_that_is_large_enough_is_left_alone():
    N, A, T = _nearby()
    corrections = Corrections.at_zero(T, 100.0)
    for seed in range(5):
        V = np.random.default_rng(seed).random(T.shape)
        corrections, _ = corrections.renewed(_Nearby(N), V, A @ V, float(seed))
        assert corrections.rest == 100.0


def test_an_exact_operator_gets_no_correction_beyond_its_rest():
    N, _, T = _nearby()
    V = np.random.default_rng(0).random(T.shape)
    _, correction = Corrections.at_zero(T, 0.5).renewed(_Nearby(N), V, N @ V, 0.0)
    np.testing.assert_allclose(correction, 0.5 * V, atol=1e-12)


def test_a_fall_of_the_dual_begins_the_momentum_anew():
    N, A, T = _nearby()
    corrections = Corrections.at_zero(T, 100.0)
    random = np.random.default_rng(0)
    for dual in (1.0, 2.0, 3.0, 2.5):
        V = random.random(T.shape)
        corrections, correction = corrections.renewed(_Nearby(N), V, A @ V, dual)
    np.testing.assert_allclose(correction, 100.0 * V - (A - N) @ V, atol=1e-9)  # around V itself
