import numpy as np
import pytest

from labelweave.features.gram.sources import PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems.kernel_row_margins import BlockMargins, MarginBox, Resources

_N, _L = 60, 20
_FACTOR = np.random.default_rng(3).normal(size=(_L, 2))
COVARIANCES = {
    "independent": LabelCovariance.identity(_L),
    "dense": LabelCovariance.dense(_FACTOR @ _FACTOR.T + np.eye(_L)),
    "low rank": LabelCovariance.low_rank(_FACTOR),
}


def _problem(kind, dtype=np.float64, budget=1e6):
    random = np.random.default_rng(0)
    X = random.normal(size=(_N, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    Y = np.where(random.random((_N, _L)) < 0.2, np.nan, random.random((_N, _L)) < 0.4)
    box = MarginBox.make(LabelMatrix.from_any(Y), random.uniform(0.5, 2, _N), np.ones((2, _L)))
    resources = Resources(Workers(), dtype, budget)
    return K + 1.0, BlockMargins(box, PrecomputedSource(K), 1.0, COVARIANCES[kind], resources)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_a_visit_moves_its_rows_and_all_scores(kind):
    K, problem = _problem(kind)
    beta, scores = problem.start()
    shares, duals = np.empty(_N), []
    for rows in (np.arange(0, _N, 7), np.array([3]), np.arange(_N)[::-1]):
        before = beta.copy()
        problem.ascend(beta, scores, rows)
        np.testing.assert_allclose(scores, K @ beta @ COVARIANCES[kind].to_dense(), atol=1e-9)
        held = np.setdiff1d(np.arange(_N), rows)
        np.testing.assert_array_equal(beta[held], before[held])
        assert (beta[rows] != before[rows]).any()
        primal, dual = problem.measure(beta, scores, shares)
        duals.append(dual)
        np.testing.assert_allclose(shares.sum(), primal - dual, rtol=1e-9)
    assert (np.diff(duals) > 0).all()


@pytest.mark.parametrize("kind", COVARIANCES)
def test_a_certificate_is_in_double_precision(kind):
    K, problem = _problem(kind, np.float32)
    beta, scores = problem.start()
    problem.ascend(beta, scores, np.arange(20))
    scores += 1
    found = problem.settled(beta)
    primal, dual = problem.measure(found.boxed, found.boxed_scores, np.empty(_N))
    expected = K @ found.boxed @ COVARIANCES[kind].to_dense()
    np.testing.assert_allclose(found.boxed_scores, expected, atol=1e-10)
    assert found.kept is found.boxed
    assert (found.lower <= found.boxed).all()
    assert (found.boxed <= found.upper).all()
    np.testing.assert_allclose(dual, (found.boxed * (found.targets - expected / 2)).sum(), rtol=1e-12)
    short = found.targets - expected
    losses = np.maximum(found.upper * short, found.lower * short).sum()
    np.testing.assert_allclose(primal, (found.boxed * expected).sum() / 2 + losses, rtol=1e-12)


def test_a_start_is_put_between_the_bounds():
    _, plain = _problem("dense")
    beta, scores = plain.start()
    plain.ascend(beta, scores, np.arange(_N))
    warm, warm_scores = plain.start(np.where(plain.targets == 0, 5.0, beta))
    np.testing.assert_array_equal(warm, beta)
    np.testing.assert_allclose(warm_scores, scores, atol=1e-9)


def test_a_small_budget_makes_blocks_small_and_a_smaller_one_is_refused():
    row = _N * 8
    assert _problem("dense", budget=1e6)[1].rows_at_hand() is None
    _, problem = _problem("dense", budget=16 * row)
    assert (problem.block_rows, problem.rows.n_slots) == (8, 8)
    problem.ascend(*problem.start(), np.array([4, 40]))
    np.testing.assert_array_equal(problem.rows_at_hand(), [4, 40])
    with pytest.raises(ValueError, match="memory_budget"):
        _problem("dense", budget=16 * row - 1)
