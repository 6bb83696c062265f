from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.solvers import Status, WorkingSetAscent
from reference import working_set_twin as twin


class _DenseDual:
    """A kernel max-margin dual with everything in memory; it records the requests."""

    def __init__(self, K, R, Y, C=1.0):
        self.K, self.R = K, R
        self.targets = np.asfortranarray(np.nan_to_num(Y))
        width = 2 * C * np.abs(self.targets)
        self.lower = np.asfortranarray(np.where(self.targets < 0, -width, 0))
        self.upper = np.asfortranarray(np.where(self.targets > 0, width, 0))
        self.beta, self.scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        self.kernel_diagonal = np.diag(K).copy()
        self.asked, self.certified = [], 0

    def kernel_row(self, row):
        self.asked.append(("row", row))
        return self.K[row]

    def covariance_column(self, label):
        self.asked.append(("label", label))
        return self.R[label]

    def start(self):
        """Start where the last run ended."""
        return self.beta, self.scores

    def measure(self, beta, scores):
        gradients = self.targets - scores
        quadratic = 0.5 * (beta * scores).sum()
        losses = np.maximum(self.upper * gradients, self.lower * gradients).sum()
        return float(quadratic + losses), float((beta * self.targets).sum() - quadratic)

    def settled(self, beta):
        self.certified += 1
        scores = np.asfortranarray(self.K @ beta @ self.R)
        return SimpleNamespace(kept_scores=scores, boxed=beta, boxed_scores=scores)

    def values(self):
        return self.measure(self.beta, np.asfortranarray(self.K @ self.beta @ self.R))


def _signs(random, n, n_labels, missing=0.0):
    signs = random.choice([-1.0, 1.0], (n, n_labels), p=[0.7, 0.3])
    return np.where(random.random((n, n_labels)) < missing, np.nan, signs)


def _rbf(random, n, gamma=0.3):
    X = random.normal(size=(n, 4))
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def _covariance(random, n_labels):
    factor = random.normal(size=(n_labels, 2))
    return factor @ factor.T / 2 + 0.3 * np.eye(n_labels)


def _dual(seed=0, n=30, n_labels=5, missing=0.0, C=1.0):
    random = np.random.default_rng(seed)
    K, R = _rbf(random, n), _covariance(random, n_labels)
    return _DenseDual(K, R, _signs(random, n, n_labels, missing), C)


def _assert_optimal(dual):
    assert (dual.lower <= dual.beta).all()
    assert (dual.beta <= dual.upper).all()
    np.testing.assert_allclose(dual.scores, dual.K @ dual.beta @ dual.R, atol=1e-9)
    primal, value = dual.values()
    assert primal - value <= 1e-8 * max(1, primal)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]), st.booleans())
def test_every_step_is_the_slow_twins(seed, missing, independent):
    dual = _dual(seed, n=14, n_labels=4, missing=missing, C=0.7)
    # targets of one size give gradients that tie, and rounding would choose between them
    dual.targets *= np.random.default_rng(seed).uniform(0.5, 2, dual.targets.shape)
    if independent:
        dual.R = np.eye(4)
    beta, scores, asked = dual.beta.copy(), dual.scores.copy(), []
    steps = 0
    while steps < 14:  # one round
        label, pairs = twin.visit(
            dual.K, dual.R, dual.targets, dual.lower, dual.upper, beta, scores, n_steps=16
        )
        asked.append(("label", label))
        asked += [("row", row) for pair in pairs for row in pair if row is not None]
        steps += len(pairs)
    WorkingSetAscent(0.0, 1).solve(dual)
    assert dual.asked == asked
    np.testing.assert_allclose(dual.beta, beta, atol=1e-9)
    np.testing.assert_allclose(dual.scores, scores, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_labels", [1, 5, 40])
def test_dense_covariances_reach_a_tiny_gap(n_labels, missing):
    dual = _dual(1, n_labels=n_labels, missing=missing)
    result, _ = WorkingSetAscent(1e-8, 2000).solve(dual)
    assert result.status is Status.CONVERGED
    _assert_optimal(dual)
    unobserved = dual.targets == 0
    assert (dual.beta[unobserved] == 0).all()


def test_the_dual_never_falls():
    dual = _dual(4, n=25, n_labels=20)
    values = []
    measure = dual.measure

    def spy(beta, scores):
        values.append(float((beta * (dual.targets - 0.5 * (dual.K @ beta @ dual.R))).sum()))
        return measure(beta, scores)

    dual.measure = spy
    assert WorkingSetAscent(1e-9, 2000).solve(dual)[0].converged
    assert len(values) > 3
    assert (np.diff(values) >= -1e-10).all()


def test_the_order_of_labels_is_by_largest_gradient_and_only_related_labels_move():
    random = np.random.default_rng(5)
    R = np.eye(4)
    R[0, 1] = R[1, 0] = 0.5
    dual = _DenseDual(_rbf(random, 20), R, _signs(random, 20, 4))
    dual.targets[:, 0] *= 9
    before = dual.scores.copy()
    WorkingSetAscent(0.0, 1).solve(dual)
    assert dual.asked[0] == ("label", 0)
    visited = {number for kind, number in dual.asked if kind == "label"}
    untouched = [k for k in (2, 3) if k not in visited]
    np.testing.assert_array_equal(dual.scores[:, untouched], before[:, untouched])


@pytest.mark.parametrize("kind", ["doubled rows", "empty rows", "a kernel of zeros", "one row"])
@pytest.mark.parametrize("dense", [False, True])
def test_degenerate_kernels_are_solved(kind, dense):
    random = np.random.default_rng(6)
    X = random.normal(size=(24, 5))
    if kind == "doubled rows":
        X = np.repeat(X[:8], 3, axis=0) * random.choice([1.0, -1.0, 2.0], (24, 1))
    if kind == "empty rows":
        X[::3] = 0
    X = X * (kind != "a kernel of zeros")
    X = X[: 1 if kind == "one row" else None]
    R = _covariance(random, 4) if dense else np.eye(4)
    dual = _DenseDual(X @ X.T, R, _signs(random, len(X), 4))
    assert WorkingSetAscent(1e-8, 5000).solve(dual)[0].converged
    _assert_optimal(dual)


def test_a_label_without_prior_variance_goes_to_its_bounds():
    random = np.random.default_rng(7)
    R = np.zeros((3, 3))
    R[:2, :2] = _covariance(random, 2)
    dual = _DenseDual(_rbf(random, 20), R, _signs(random, 20, 3))
    assert WorkingSetAscent(1e-8, 5000).solve(dual)[0].converged
    _assert_optimal(dual)
    np.testing.assert_array_equal(dual.beta[:, 2], dual.upper[:, 2] + dual.lower[:, 2])


def test_two_rows_of_the_kernel_at_a_time_are_enough():
    plain, frugal = _dual(14), _dual(14)
    buffers, row = [np.empty(30), np.empty(30)], frugal.kernel_row

    def kernel_row(number):
        buffers.reverse()
        buffers[0][:] = row(number)
        return buffers[0]

    frugal.kernel_row = kernel_row
    for dual in (plain, frugal):
        assert WorkingSetAscent(1e-8, 2000).solve(dual)[0].converged
    np.testing.assert_array_equal(frugal.beta, plain.beta)


def test_an_interruption_within_a_visit_ends_with_a_certificate():
    dual = _dual(12, n=60)
    row = dual.kernel_row

    def interrupted(number):
        if len(dual.asked) == 300:
            raise KeyboardInterrupt
        return row(number)

    dual.kernel_row = interrupted
    result, _ = WorkingSetAscent(1e-9, 1000).solve(dual)
    assert result.status is Status.INTERRUPTED
    assert dual.certified == 2  # to make the scores again, and for the last record
    assert (result.trace[-1].primal, result.trace[-1].dual) == dual.values()
    np.testing.assert_allclose(dual.scores, dual.K @ dual.beta @ dual.R)


def test_no_step_is_left_when_the_tolerance_asks_for_more_than_numbers_hold():
    dual = _dual(13)
    result, _ = WorkingSetAscent(-1.0, 10**6).solve(dual)
    assert result.status is Status.STALLED
    assert result.n_iter < 10**4
    assert abs(result.gap) < 1e-12


def test_the_trace_tells_the_share_of_variables_that_moved():
    result, _ = WorkingSetAscent(1e-6, 1000).solve(_dual(n=20, n_labels=1, C=100.0))
    shares = [record.active_share for record in result.trace]
    assert all(0 <= share <= 1 for share in shares)
    assert shares[0] == 1
