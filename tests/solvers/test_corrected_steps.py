"""Corrections of a nearby operator: the point they leave alone is the true optimum."""

import numpy as np
import pytest

from labelweave.solvers.alternating_directions import Corrections


class _Nearby:
    """H = N + rest M written out, for variables of shape (n, 1)."""

    def __init__(self, N):
        self.N = N

    def near_product(self, variables):
        return self.N @ variables

    def rest_product(self, variables):
        return variables


def _problem(n=6, seed=0, left_out=0.5):
    random = np.random.default_rng(seed)
    G = random.normal(size=(n, 3))
    rest = random.normal(size=(n, n))
    N = G @ G.T
    A = N + left_out * rest @ rest.T / n
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
    N, A, T = _problem()
    operator, corrections = _Nearby(N), Corrections.at_zero(T, rest)
    target, optimum = T, _box_step(A, T, 1.0)
    for _ in range(300):
        V = _box_step(N + corrections.rest * np.eye(6), target, 1.0)
        dual = float((T * V).sum() - (V * (A @ V)).sum() / 2)
        corrections, correction = corrections.renewed(operator, V, A @ V, dual)
        target = T + correction
    np.testing.assert_allclose(V, optimum, atol=1e-6)


def test_the_rest_is_raised_only_as_far_as_steps_have_met():
    N, A, T = _problem()
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
    N, A, T = _problem()
    corrections = Corrections.at_zero(T, 100.0)
    for seed in range(5):
        V = np.random.default_rng(seed).random(T.shape)
        corrections, _ = corrections.renewed(_Nearby(N), V, A @ V, float(seed))
        assert corrections.rest == 100.0


def test_an_exact_operator_gets_no_correction_beyond_its_rest():
    N, _, T = _problem()
    V = np.random.default_rng(0).random(T.shape)
    _, correction = Corrections.at_zero(T, 0.5).renewed(_Nearby(N), V, N @ V, 0.0)
    np.testing.assert_allclose(correction, 0.5 * V, atol=1e-12)


def test_a_fall_of_the_dual_begins_the_momentum_anew():
    N, A, T = _problem()
    corrections = Corrections.at_zero(T, 100.0)
    random = np.random.default_rng(0)
    for dual in (1.0, 2.0, 3.0, 2.5):
        V = random.random(T.shape)
        corrections, correction = corrections.renewed(_Nearby(N), V, A @ V, dual)
    np.testing.assert_allclose(correction, 100.0 * V - (A - N) @ V, atol=1e-9)  # around V itself
