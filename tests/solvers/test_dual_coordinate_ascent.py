import numpy as np
import pytest

from drawn import draw_labels
from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginData, make_margin_dual
from labelweave.problems.margin_dual import MarginDual
from labelweave.solvers import DualCoordinateAscent, Status


def _dual(n_labels=40, covariance=None, dtype=np.float64, n=60, workers=None):
    X, Y = draw_labels(n, 30, n_labels, kept=0.3, noise=0, above=0.5)
    data = MarginData(
        FeatureMatrix(X), LabelMatrix.from_any(Y), covariance or LabelCovariance.identity(n_labels),
        np.ones(n), np.ones((2, n_labels)), True,
    )  # fmt: skip
    return make_margin_dual(data, dtype, workers)


class _TwoBlocks:
    """The first block is done after one sweep; the gap of the second shrinks slowly."""

    n_rows, n_blocks, blocks_are_independent = 4, 2, True

    def __init__(self, sweep_hook=None):
        self.block_gaps, self.certified = [100.0, 100.0], 0
        self.sweep_hook = sweep_hook
        self.swept = [0, 0]
        self.workers = Workers()

    def start(self):
        return None

    def follow(self, point):
        pass

    def solution(self):
        return self.certified

    def map_blocks(self, of_block, blocks):
        return self.workers.map(of_block, list(blocks))

    def sweep(self, point, block, rows, threshold):
        if self.sweep_hook:
            self.sweep_hook(block, self)
        met = self.block_gaps[block]
        if len(rows) == self.n_rows:
            self.swept[block] += 1
            self.block_gaps[block] *= (0.0, 0.7)[block]
        return met

    round = MarginDual.round

    def gains(self, point, block):
        return np.zeros(4)

    def measure(self, point, block):
        return 100 + self.block_gaps[block], 100.0

    def certify(self, point, block):
        self.certified += 1
        return self.measure(point, block)


def _interrupt(block, problem):
    if problem.swept[block] == 3:
        raise KeyboardInterrupt


def test_the_certificate_is_measured_at_the_solution_returned():
    dual = _dual(dtype=np.float32)
    result, state = DualCoordinateAscent(1e-3, 1000).solve(dual)
    certified = np.sum([dual.certify(state.point, block) for block in range(dual.n_blocks)], axis=0)
    np.testing.assert_allclose((result.trace[-1].primal, result.trace[-1].dual), certified, rtol=1e-13)


def test_a_run_hands_over_where_more_rounds_are_foreseen_than_its_rival_takes():
    """The gap falls to seven tenths in every round: 58 rounds from 1 to 1e-9."""
    patient, _ = DualCoordinateAscent(1e-9, 1000, rival=100.0).solve(_TwoBlocks())
    assert patient.status is Status.CONVERGED
    problem = _TwoBlocks()
    result, state = DualCoordinateAscent(1e-9, 1000, rival=20.0).solve(problem)
    assert result.status is Status.HANDED_OVER
    assert result.n_iter == len(state.falling) < 20
    assert result.trace[-1].iteration == result.n_iter
    assert result.answer is None
    half, _ = DualCoordinateAscent(1e-9, 60, rival=100.0).solve(_TwoBlocks())
    assert (half.status, half.n_iter) == (Status.HANDED_OVER, 30)
    late, _ = DualCoordinateAscent(1e-2, 1000, rival=20.0).solve(_TwoBlocks())
    assert late.status is Status.CONVERGED


def test_a_run_whose_gap_is_hidden_by_rounding_hands_over():
    dual = _dual(dtype=np.float32)
    exact = dual.certify
    dual.certify = lambda point, block: np.array(exact(point, block)) * (1.01, 1.0)
    assert DualCoordinateAscent(1e-3, 50).solve(dual)[0].status is Status.ITERATION_LIMIT
    assert DualCoordinateAscent(1e-3, 50, rival=1e9).solve(dual)[0].status is Status.HANDED_OVER


def test_a_block_that_is_done_early_does_not_hide_the_end_of_the_others():
    problem = _TwoBlocks()
    result, _ = DualCoordinateAscent(1e-3, 100).solve(problem)
    assert result.status is Status.CONVERGED
    assert problem.swept[0] < 3 < problem.swept[1] < 25


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interruption_ends_with_a_certificate(n_threads):
    problem = _TwoBlocks(_interrupt)
    with Workers(n_threads).running() as problem.workers:
        result, _ = DualCoordinateAscent(1e-9, 100).solve(problem)
    assert result.status is Status.INTERRUPTED
    assert problem.certified == 2
    assert result.trace[-1].dual == 200.0
    assert result.gap < 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype):
    solutions = []
    for n_threads in (1, 2, 3):
        with Workers(n_threads).running() as workers:
            result, _ = DualCoordinateAscent(1e-4, 1000).solve(_dual(dtype=dtype, workers=workers))
        solutions.append((*result.answer, result.n_iter, result.gap))
    for other in solutions[1:]:
        for ours, theirs in zip(solutions[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
