"""The structured margin: losses, oracles, certificates; and the paper's smoothed penalty."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.problems.structured_margin import RidgePenalty, RoundPenalty
from labelweave.problems.structured_margin.margin_model import grown_shares
from labelweave.solvers import Status
from labelweave.solvers.passes import BlockFrankWolfe
from reference.structured_problems import TRIANGLE, AtPoint, margin_data, rows, structured
from reference.structured_twin import StructuredTwin


def _solve(problem, tol=1e-4, max_iter=3000):
    result = problem.solve(BlockFrankWolfe(tol, max_iter, 0))
    assert result.status is Status.CONVERGED
    return problem.evaluate()


def _one_hot_weights(problem):
    """The paper's two vectors per label, and one per state, from differences of scores."""
    weights, n_labels = problem.weights(), problem.data.n_labels
    labels = np.stack([-0.5 * weights[:, :n_labels], 0.5 * weights[:, :n_labels]], axis=2)
    return np.hstack([labels.reshape(len(weights), -1), weights[:, n_labels:]])


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [None, (0, 1), (0, 0), ((0, 1), 1)])
@pytest.mark.parametrize("cliques", [((0, 1), (1, 2)), ((0, 1, 2), (0, 2))])
def test_optimum_is_that_of_the_enumerated_dual(rounds, cliques):
    X, Y = rows(1, n=8, d=2, n_labels=3)
    costs = np.array([[1.0, 0.5, 2.0], [1.5, 1.0, 0.3]])
    weights = np.arange(1.0, 9.0)
    twin = StructuredTwin(X, Y, cliques, 0.1, costs, weights, rounds)
    returns = rounds == ((0, 1), 1)
    if returns:
        penalty = RoundPenalty([0, 1, 1], members=[0, 0, 1])
    else:
        penalty = RidgePenalty(2) if rounds is None else RoundPenalty(rounds)
    problem = structured(margin_data(X, Y, weights, costs), cliques, 0.1, penalty)
    point, best = _solve(problem, 1e-6), twin.optimum()
    if not returns:  # the weights of a clique in two rounds are a sum of unknown parts
        assert point.primal == pytest.approx(twin.primal(_one_hot_weights(problem)), abs=1e-9)
    assert point.dual <= best + 1e-6
    assert best <= point.primal + 1e-6


def test_weights_of_entries_multiply_their_costs():
    X, Y = rows(1, n=8, d=2, n_labels=3, missing=0.1)
    entries = np.random.default_rng(0).choice([0.5, 1.0, 2.0], Y.shape)
    costs, cliques = np.array([[1.0, 0.5, 2.0], [1.5, 1.0, 0.3]]), ((0, 1, 2), (0, 2))
    twin = StructuredTwin(X, Y, cliques, 0.1, costs, entries=entries)
    problem = structured(margin_data(X, Y, None, costs, entries), cliques, 0.1)
    point, best = _solve(problem, 1e-6), twin.optimum()
    assert point.primal == pytest.approx(twin.primal(_one_hot_weights(problem)), abs=1e-9)
    assert point.dual - 1e-6 <= best <= point.primal + 1e-6


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    capacity=st.sampled_from([2, 4, 16]),
    missing=st.sampled_from([0.0, 0.3]),
    search=st.booleans(),
)
def test_sweeps_keep_z_and_never_lower_the_dual(seed, capacity, missing, search):
    X, Y = rows(seed, n=40, missing=missing)
    problem = structured(margin_data(X, Y), (*TRIANGLE, (2, 3)), 0.01, capacity=capacity)
    random, before = np.random.RandomState(seed), problem.evaluate()
    for number in range(4):
        estimate = problem.sweep(random.permutation(40), search or number == 0)
        point, kept = problem.evaluate(), problem.sums.copy()
        assert estimate >= 0
        assert point.dual >= before.dual - 1e-10
        assert point.primal >= point.dual - 1e-10
        shares = problem.dual.shares
        assert (shares >= 0).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)
        problem.recompute()
        np.testing.assert_allclose(problem.sums, kept, atol=1e-8)
        before = point


def test_sparse_features_give_the_dense_result():
    X, Y = rows(3)
    X[np.abs(X) < 0.7] = 0.0
    ends = []
    for features in (X, sp.csr_array(X)):
        problem = structured(margin_data(features, Y), TRIANGLE)
        for seed in range(5):
            problem.sweep(np.random.RandomState(seed).permutation(len(X)))
        ends.append(problem.weights())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)


@pytest.mark.parametrize("penalty", [RidgePenalty(3), RoundPenalty([0, 1, 1])])
def test_two_kept_labelings_come_near_with_a_true_certificate(penalty):
    X, Y = rows(5)
    best = structured(margin_data(X, Y), TRIANGLE, penalty=penalty)
    best_point = _solve(best, 1e-4)
    few = structured(margin_data(X, Y), TRIANGLE, penalty=penalty, capacity=2)
    few.solve(BlockFrankWolfe(1e-4, 60, 0))
    point = few.evaluate()
    assert point.gap < 0.05
    assert point.dual <= best_point.primal + 1e-9
    assert best_point.dual <= point.primal + 1e-9


def test_inexact_inference_keeps_the_order_of_bounds():
    X, Y = rows(6)
    exact = structured(margin_data(X, Y), TRIANGLE, 0.02)
    best = _solve(exact, 1e-6)
    rough = structured(
        margin_data(X, Y), TRIANGLE, 0.02, inference={"method": "message_passing", "max_iter": 1}
    )
    for seed in range(40):
        rough.sweep(np.random.RandomState(seed).permutation(len(X)))
    point = rough.evaluate()
    missed = rough.hinge_loss()[1]
    assert missed > 0
    assert point.dual <= best.primal + 1e-9
    assert point.primal >= best.dual - 1e-9
    assert point.primal - missed <= point.primal


def _latent_objective(problem):
    """Both maxima by enumeration."""
    data, n_labels = problem.data.arrays, problem.data.n_labels
    targets = np.where(data.observed == 1, data.targets, np.nan)
    twin = StructuredTwin(problem.data.products.data, targets, problem.graph.cliques, problem.alpha)
    w = _one_hot_weights(problem)
    scores = (problem.data.products.data @ w) @ twin.statistics.T
    fits = ((twin.labelings[None] == problem.targets[:, None]) | (data.observed == 0)[:, None]).all(axis=2)
    worst = (scores + twin.cost).max(axis=1)
    best = np.where(fits, scores, -np.inf).max(axis=1)
    assert n_labels == 5
    return 0.5 * problem.alpha * (w**2).sum() + (worst - best).mean()


@pytest.mark.slow
def test_completing_labels_never_raises_the_latent_objective():
    X, Y = rows(7, n=50, missing=0.3)
    problem = structured(margin_data(X, Y), TRIANGLE, 0.02)
    values = []
    for _ in range(6):
        point = _solve(problem, 1e-4)
        values.append(_latent_objective(problem))
        if not problem.complete():
            break
    assert len(values) > 1
    assert all(later <= value + 1e-4 * max(1, point.primal) for value, later in pairwise(values))


def test_unobserved_labels_alone_drop_out():
    X, Y = rows(8, n=40)
    hidden = Y.copy()
    hidden[:15, 4] = np.nan
    whole = structured(margin_data(X, hidden), ((0, 1),), 0.05)
    point = _solve(whole, 1e-6)
    seen = structured(margin_data(X[15:], Y[15:]), ((0, 1),), 0.05 * 40 / 25)
    _solve(seen, 1e-6)
    np.testing.assert_allclose(whole.weights()[:, 4], seen.weights()[:, 4], atol=2e-2)
    whole.complete()
    assert _solve(whole, 1e-6).primal == pytest.approx(point.primal, abs=2e-6)


def test_what_is_unobserved_now_keeps_nothing_of_an_earlier_fit():
    X, Y = rows(12, n=40)
    hidden = Y.copy()
    hidden[:15, 4] = np.nan
    earlier = structured(margin_data(X, Y), (), 0.05)
    _solve(earlier, 1e-4)
    kept = earlier.point.means.copy()
    problem = structured(margin_data(X, hidden), (), 0.05).problem
    point = problem.continued(earlier.point)
    cold = structured(margin_data(X[15:], Y[15:, [4]]), (), 0.05 * 40 / 25)
    assert (earlier.point.means == kept).all()
    assert (point.means[:15, 4] == point.targets[:15, 4]).all()
    _solve(cold, 1e-6)
    warm = AtPoint(problem, point)
    _solve(warm, 1e-6)
    np.testing.assert_allclose(warm.weights()[:, 4], cold.weights()[:, 0], atol=2e-2)


def test_growing_the_graph_keeps_expected_costs_and_goes_on():
    X, Y = rows(10)
    problem = structured(margin_data(X, Y), ((0, 1),), penalty=RoundPenalty([0]))
    _solve(problem, 1e-3)
    means = problem.dual.means.copy()
    data, cliques = problem.data, ((0, 1), (1, 2), (3, 4))
    problem.regraph(structured(data, cliques, penalty=RoundPenalty([0, 1, 1])).problem)
    np.testing.assert_allclose(problem.round_shares, [0.5, 0.5])
    problem.moments()
    np.testing.assert_allclose(problem.dual.means, means, atol=1e-9)
    point = _solve(problem, 1e-4)
    fresh = structured(margin_data(X, Y), problem.graph.cliques, penalty=RoundPenalty([0, 1, 1]))
    assert _solve(fresh, 1e-4).primal == pytest.approx(point.primal, abs=3e-4)


def test_shares_of_rounds_are_the_norms_of_their_weights():
    penalty, squares = RoundPenalty([0, 1, 1]), np.array([4.0, 0.5, 0.5])
    shares = penalty.first_shares()
    np.testing.assert_allclose(shares, [0.5, 0.5])
    penalty.rebalance(squares, shares)
    np.testing.assert_allclose(shares, [2 / 3, 1 / 3])
    assert penalty.primal(squares, shares) == pytest.approx(0.5 * (2 * 2 / 3 + 1 / 3) ** 2)
    assert penalty.dual(squares) == 2.0
    # for given shares the penalty is a ridge: w^2 / d with w = d z
    assert penalty.primal(squares, shares) <= 0.5 * (shares[penalty.rounds] * squares).sum() + 1e-12
    np.testing.assert_allclose(RoundPenalty([0, 1, 1], members=[0, 0, 1]).scales(shares), [1.0, 1 / 3])
    grown = grown_shares(shares)
    assert grown[-1] == pytest.approx(1 / 3)
    assert grown.sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:overflow")
def test_features_whose_squares_overflow_are_refused():
    X, Y = rows()
    with pytest.raises(ValueError, match=r"squared norm above 1.8e308; scale the features"):
        margin_data(1e160 * X, Y)


def algorithm_3(norms, smoothness):
    """Return what rounds of z are multiplied by, in closed form (Tan et al. 2015, Algorithm 3)."""
    ordered = smoothness * np.sort(norms)[::-1]
    levels = smoothness / (1 + np.arange(1, len(norms) + 1) * smoothness) * np.cumsum(ordered)
    above = np.flatnonzero(ordered > levels)
    threshold = levels[above[-1]] if len(above) else 0.0
    lengths = np.maximum(smoothness * norms - threshold, 0.0)
    return np.divide(lengths, norms, out=np.zeros(len(norms)), where=norms > 0)


@settings(max_examples=60)
@given(
    norms=st.lists(st.floats(0.1, 5), min_size=1, max_size=6), smoothness=st.sampled_from([0.3, 1.0, 10.0])
)
def test_the_best_shares_give_the_weights_of_algorithm_3(norms, smoothness):
    norms = np.asarray(norms)
    penalty = RoundPenalty(np.arange(len(norms)), smoothness)
    shares = penalty.first_shares()
    for _ in range(3000):
        penalty.rebalance(norms**2, shares)
    np.testing.assert_allclose(penalty.scales(shares), algorithm_3(norms, smoothness), atol=0.02)


def test_without_smoothing_multiples_are_shares():
    shares = np.array([0.3, 0.7])
    assert (RoundPenalty([0, 1]).scales(shares) == shares).all()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_smoothing_by_half_the_tolerance_leaves_the_tolerance_within_reach(missing):
    X, Y = rows(1, missing=missing)
    smooth = structured(margin_data(X, Y), TRIANGLE, 0.05, RoundPenalty([0, 1, 1], 4.0 / 0.005))
    result = smooth.solve(BlockFrankWolfe(0.005, 3000, 0, most_sweeps=0))
    assert result.status is Status.CONVERGED
    if not missing:
        exact = structured(margin_data(X, Y), TRIANGLE, 0.05, RoundPenalty([0, 1, 1]))
        exact.solve(BlockFrankWolfe(1e-5, 3000, 0))
        best, end = exact.evaluate(), result.trace[-1]
        assert best.dual <= end.primal + 1e-9
        assert end.dual <= best.primal + 1e-9
