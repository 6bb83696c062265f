from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features.gram.sources import PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems.kernel_row_margins import BlockMargins, MarginBox, Resources, WorkingSetMargins
from labelweave.problems.make_gram_margins import kernel_margins
from labelweave.solvers import AlternatingDirections, BlockAscent, Status, WorkingSetAscent, block_ascent
from labelweave.solvers.block_ascent import BlockAscentState, _is_stalled, _n_visited
from labelweave.solvers.frame import TraceRecord

_L = 5


def _kernel(random, n, *, duplicates=False):
    X = random.normal(size=(n, 4))
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    return np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def _covariance(random, kind, n_labels):
    if kind == "identity":
        return LabelCovariance.identity(n_labels)
    factor = random.normal(size=(n_labels, 2))
    if kind == "low rank":
        return LabelCovariance.low_rank(factor)
    return LabelCovariance.dense(factor @ factor.T + 0.3 * np.eye(n_labels))


def _parts(seed=0, n=40, kind="dense", missing=0.1, n_labels=_L, *, duplicates=False):
    random = np.random.default_rng(seed)
    Y = (random.random((n, n_labels)) < 0.3).astype(float)
    Y[random.random(Y.shape) < missing] = np.nan
    weights = random.uniform(0, 3, n) * (random.random(n) < 0.9)
    box = MarginBox.make(LabelMatrix.from_any(Y), weights, random.uniform(0.5, 2, (2, n_labels)))
    source = PrecomputedSource(_kernel(random, n, duplicates=duplicates))
    return box, source, 1.0, _covariance(random, kind, n_labels)


def _resources(dtype=np.float64, budget=1e9, n_threads=1):
    return Resources(Workers(n_threads), dtype, budget)


def _certified(problem, state):
    settled = problem.settled(state.beta)
    return problem.measure(settled.boxed, settled.boxed_scores, np.empty(problem.n_rows))


def _solved(problem, solver):
    result, _ = solver.solve(problem)
    assert result.status is Status.CONVERGED
    return result.trace[-1], result.answer.kept_scores


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 40),
    kind=st.sampled_from(["identity", "dense", "low rank"]),
    missing=st.sampled_from([0.0, 0.4]),
    duplicates=st.booleans(),
    room=st.sampled_from([16, 30, 1000]),
)
def test_all_kernel_solvers_reach_the_same_optimum(seed, n, kind, missing, duplicates, room):
    parts = _parts(seed, n, kind, missing, duplicates=duplicates)
    rows = _resources(budget=room * n * 8)
    ends = [
        _solved(BlockMargins(*parts, rows), BlockAscent(1e-7, 10**5)),
        _solved(WorkingSetMargins(*parts, rows), WorkingSetAscent(1e-7, 10**5)),
        _solved(kernel_margins(*parts, _resources()), AlternatingDirections(1e-6, 10**4)),
    ]
    diagonals = np.outer(parts[1].diagonal() + 1, parts[3].diagonal())
    for k, (record, scores) in enumerate(ends):
        for other, other_scores in ends[:k]:
            np.testing.assert_allclose(record.dual, other.dual, rtol=2e-6, atol=2e-6)
            # a primal value within g of the optimum puts the weights within sqrt(2 g) of the best
            far = sum(
                np.sqrt(2 * max(0, end.primal - max(e[0].dual for e in ends))) for end in (record, other)
            )
            assert (np.abs(scores - other_scores) <= far * np.sqrt(diagonals) + 1e-6).all()


@pytest.mark.parametrize("kind", ["identity", "dense"])
@pytest.mark.parametrize("n_labels", [1, 40])
def test_single_precision_reaches_the_same_optimum(kind, n_labels):
    parts = _parts(1, 150, kind, n_labels=n_labels)
    exact, _ = _solved(BlockMargins(*parts, _resources()), BlockAscent(1e-6, 10**4))
    problem = BlockMargins(*parts, _resources(np.float32))
    record, scores = _solved(problem, BlockAscent(1e-4, 10**4))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(record.dual, exact.dual, rtol=1e-4)
    assert record.dual <= exact.primal


@pytest.mark.parametrize("room", [300, 2000])
def test_threads_do_not_change_a_bit(room):
    parts, betas = _parts(2, 1300), []
    for n_threads in (1, 3):
        with Workers(n_threads).running() as workers:
            problem = BlockMargins(*parts, Resources(workers, np.float32, 4 * 1300 * room))
            _, state = BlockAscent(0.0, 4).solve(problem)
        betas.append(state.beta)
    np.testing.assert_array_equal(*betas)


def test_the_dual_never_falls_and_the_trace_tells_so():
    records, problem = [], BlockMargins(*_parts(4, 300), _resources())
    result, _ = BlockAscent(1e-6, 10**4).solve(problem, on_check=lambda record, _: records.append(record))
    assert result.status is Status.CONVERGED
    assert result.trace == records
    assert [record.iteration for record in records] == list(range(1, result.n_iter + 1))
    duals = np.array([record.dual for record in records])
    assert (np.diff(duals) >= -1e-9 * duals.max()).all()
    assert result.gap == records[-1].gap <= 1e-6
    for record in records:
        assert record.gap == (record.primal - record.dual) / abs(record.primal)
        assert 0 < record.active_share <= 1


def test_an_interruption_within_a_visit_ends_with_a_certificate():
    problem = BlockMargins(*_parts(8, 300), _resources())
    follow, calls = problem._follow, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        follow(*arguments)

    problem._follow = interrupted
    result, state = BlockAscent(1e-9, 1000).solve(problem)
    assert result.status is Status.INTERRUPTED
    assert (result.trace[-1].primal, result.trace[-1].dual) == _certified(problem, state)
    expected = (problem.rows.source.matrix + 1) @ state.beta @ problem.covariance.to_dense()
    np.testing.assert_allclose(state.scores, expected, atol=1e-9)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, -1.0), (np.float32, 1e-13)])
def test_a_tolerance_beyond_the_precision_is_given_up(dtype, tol):
    problem = BlockMargins(*_parts(9, 30), _resources(dtype))
    result, _ = BlockAscent(tol, 10**6).solve(problem)
    assert result.status is Status.STALLED
    assert result.n_iter < 5000
    assert abs(result.gap) < (1e-12 if dtype == np.float64 else 1e-3)


def test_a_gap_that_was_small_by_chance_does_not_hide_a_stall():
    problem, values = (
        BlockMargins(*_parts(9, 30), _resources(np.float32)),
        iter([(1.0, 0.0), (0.5, 0.5 - 1e-7)]),
    )
    problem.measure = lambda *_: next(values, (1.0 + 1e-3, 1.0))
    result, _ = BlockAscent(1e-13, 2000).solve(problem)
    assert result.status is Status.STALLED
    assert result.n_iter < 500


def test_scores_that_drift_are_found_out():
    problem = BlockMargins(*_parts(10, 200), _resources(np.float32))
    measure = problem.measure

    def too_good(beta, scores, shares):
        primal, dual = measure(beta, scores, shares)
        return primal, primal if beta.dtype == np.float32 else dual

    problem.measure = too_good
    result, _ = BlockAscent(1e-9, 3000).solve(problem)
    assert result.status is Status.STALLED  # six certificates did not confirm the measurements
    assert result.trace[-1].dual < result.trace[-1].primal


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["identity", "dense"])
@pytest.mark.parametrize("room", [280, 2000])
@pytest.mark.parametrize("stop", [1, 4, 11])
def test_a_run_that_is_stopped_and_goes_on_gives_the_same_bits(dtype, kind, room, stop):
    """With a cache for some of the rows too, whose content decides which rows are visited."""
    parts = _parts(11, 400, kind)
    resources = _resources(dtype, 400 * room * np.dtype(dtype).itemsize)
    solver = BlockAscent(1e-4, 1000)
    whole, _ = solver.solve(BlockMargins(*parts, resources))
    assert whole.n_iter > stop
    _, state = solver.solve(
        BlockMargins(*parts, resources), on_check=lambda record, _: record.iteration == stop
    )
    again, _ = solver.solve(BlockMargins(*parts, resources), BlockAscentState.from_plain(state.to_plain()))
    assert [record[2:] for record in again.trace] == [record[2:] for record in whole.trace]
    np.testing.assert_array_equal(again.answer.boxed, whole.answer.boxed)


@pytest.mark.parametrize(("rows", "block", "visited"), [(1000, 50, 250), (1000, 400, 400), (30, 64, 30)])
def test_a_round_visits_a_quarter_of_the_rows_or_one_block(rows, block, visited):
    assert _n_visited(SimpleNamespace(n_rows=rows, block_rows=block)) == visited


def test_a_run_is_stalled_where_for_long_neither_the_gap_fell_nor_the_dual_rose():
    near = TraceRecord.of(10.0, 9.9)

    def stalled(rounds, best_dual, failed=0, record=near):
        return _is_stalled(
            SimpleNamespace(rounds=rounds, best_round=10, best_dual=best_dual, failed=failed), record
        )

    assert not stalled(84, 9.9)
    assert stalled(85, 9.9)
    assert stalled(85, 9.8995)
    assert not stalled(85, 9.895)
    assert not stalled(11, 9.9, failed=5)
    assert stalled(11, 9.9, failed=6)
    far = TraceRecord.of(1e5, 10.0)  # the dual rises, though by little of the gap
    assert not stalled(85, 9.8, record=far)
    assert stalled(85, 9.95, record=far)


def test_a_result_is_computed_once_for_the_same_points():
    problem = kernel_margins(*_parts(), _resources())
    free, boxed = problem.targets * 0.1, problem.targets * 0.0
    found = problem.settled(free, boxed, 1e-3)
    assert problem.settled(free, boxed, 1e-3) is found
    assert problem.settled(free, boxed.copy(), 1e-3) is not found
    assert problem.settled(free.copy(), boxed, 1e-3) is not found


def test_a_certificate_that_fails_is_tried_again_after_more_and_more_rounds(monkeypatch):
    promised, found = TraceRecord(gap=1e-9), TraceRecord(gap=1.0)
    solver, met = BlockAscent(1e-3, 100), []

    def certify(self, problem, state, status):
        met.append(state.rounds)
        return found, status, SimpleNamespace(boxed_scores=0.0)

    monkeypatch.setattr(BlockAscent, "certify", certify)
    monkeypatch.setattr(block_ascent, "_record", lambda *_: promised)
    problem = SimpleNamespace(drifts=False, measure=lambda *_: ())
    arrays = {name: np.zeros(1) for name in ("beta", "scores", "shares")}
    state = BlockAscentState(**arrays, generator=None, at_hand=None, best_gap=0.0)
    for rounds in range(1, 32):
        state = solver._checked(problem, replace(state, rounds=rounds)).state
    assert met == [1, 3, 7, 15, 31]


def test_scores_in_single_precision_are_made_anew_now_and_then():
    for dtype, is_made_anew in ((np.float32, True), (np.float64, False)):
        problem = BlockMargins(*_parts(10, 60), _resources(dtype))
        state = BlockAscent(0.0, 100).start(problem)
        problem.ascend(state.beta, state.scores, np.arange(60))
        exact = problem.settled(state.beta).boxed_scores
        state.scores[:] = exact + 0.5
        rounds = block_ascent._RENEWAL
        after = BlockAscent(0.0, 100)._checked(problem, replace(state, rounds=rounds - 1)).state.scores.copy()
        np.testing.assert_allclose(after, exact + 0.5, atol=1e-5)
        after = BlockAscent(0.0, 100)._checked(problem, replace(state, rounds=rounds)).state.scores
        np.testing.assert_allclose(after, exact if is_made_anew else exact + 0.5, atol=1e-5)
