"""The paper's smoothed penalty, whose passes hold dual variables to their simplex."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.problems.structured_margin import GrowingMargin, RoundPenalty
from labelweave.solvers import Status
from labelweave.solvers.clique_generation import CliqueGeneration
from labelweave.solvers.passes import BlockFrankWolfe
from reference.structured_problems import TRIANGLE, margin_data, rows, structured


def algorithm_3(norms, smoothness):
    """Give what rounds of z are multiplied by, in closed form (Tan et al. 2015, Algorithm 3)."""
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


def test_clique_generation_finds_the_tied_labels():
    X, Y = rows(4, n=200)
    data, passes = margin_data(X, Y), BlockFrankWolfe(0.005, 200, 0, most_sweeps=0)
    growing = GrowingMargin(
        5,
        lambda graph, penalty: structured(
            data, graph.cliques, 0.02, RoundPenalty(penalty.rounds, 800.0)
        ).problem,
        1, 2,
    )  # fmt: skip
    _, state = CliqueGeneration(passes, passes, 3, 0.0).solve(growing)
    assert {0, 1, 2} >= set(state.cliques[1][0])
    assert state.records[-1].dual <= state.records[-1].primal < state.records[0].primal
