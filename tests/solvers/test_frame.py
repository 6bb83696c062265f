"""The loop of all solvers, for one that halves a number, and states read from files."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from labelweave.estimators.journal import Journal, data_fingerprint
from labelweave.solvers import Round, Solver, State, Status
from labelweave.solvers.frame import TraceRecord, rounds_foreseen
from labelweave.solvers.likeness import refuse_unlike


class Record(NamedTuple):
    iteration: int
    time: float
    primal: float
    dual: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class Halves(State):
    numbers: np.ndarray
    stream: dict


@dataclass(frozen=True, kw_only=True)
class Others(State):
    pass


State.plain_with(Record)


class Halving(Solver):
    def __init__(self, tol=1e-3, max_iter=100, fails_at=None):
        self.tol, self.max_iter, self.fails_at = tol, max_iter, fails_at

    def start(self, problem):
        return Halves(numbers=np.array(problem), stream=np.random.default_rng(0).bit_generator.state)

    def round(self, problem, state):
        if state.rounds == self.fails_at:
            raise KeyboardInterrupt
        generator = np.random.default_rng(0)
        generator.bit_generator.state = state.stream
        numbers = np.asfortranarray(state.numbers * generator.uniform(0.4, 0.6, state.numbers.shape))
        state = replace(state, numbers=numbers, stream=generator.bit_generator.state, rounds=state.rounds + 1)
        record = self.record(state)
        return Round(state, record, Status.CONVERGED if record.gap <= self.tol else None)

    def record(self, state):
        largest = float(np.abs(state.numbers).max())
        return Record(0, 0.0, largest, 0.0, largest)

    def certify(self, problem, state, status):
        return self.record(state), status


START = np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3))


def test_a_run_ends_at_the_tolerance():
    begin = perf_counter()
    result, state = Halving().solve(START)
    assert 0 <= result.trace[-1].time <= perf_counter() - begin
    assert result.converged
    assert result.gap <= 1e-3 < result.trace[-2].gap
    assert [record.iteration for record in result.trace] == list(range(1, state.rounds + 1))
    assert all(a.time <= b.time for a, b in zip(result.trace, result.trace[1:], strict=False))


@pytest.mark.parametrize("stop", [1, 4, 9])
def test_a_run_that_is_stopped_and_goes_on_gives_the_same_bits(stop):
    whole, _ = Halving().solve(START)
    first, state = Halving().solve(START, on_check=lambda record, _: record.iteration == stop)
    assert first.status is Status.INTERRUPTED
    taken_up = Halves.from_plain(state.to_plain())
    assert taken_up.numbers.flags.f_contiguous
    second, _ = Halving().solve(START, taken_up)
    assert second.n_iter == whole.n_iter
    assert [record.gap for record in second.trace] == [record.gap for record in whole.trace]


def test_the_limit_and_an_interrupt_are_certified():
    limited, _ = Halving(max_iter=3).solve(START)
    assert limited.status is Status.ITERATION_LIMIT
    assert limited.n_iter == 3
    interrupted, state = Halving(fails_at=2).solve(START)
    assert interrupted.status is Status.INTERRUPTED
    assert (interrupted.n_iter, state.rounds) == (2, 2)


def test_another_kind_of_state_is_refused():
    with pytest.raises(ValueError, match="it must be a Halves"):
        Halves.from_plain(Others(rounds=2).to_plain())
    with pytest.raises(ValueError, match="kind of state 'Nothing' does not exist"):
        Halves.from_plain({**Others().to_plain(), "kind of state": "Nothing"})


def test_a_checkpoint_continues_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr("labelweave.estimators.journal._SECONDS", 0.0)
    path = tmp_path / "fit.lwc"
    marks = {"X": data_fingerprint(START)}
    whole, _ = Journal().run("all", Halving(), START)
    with pytest.raises(RuntimeError, match="killed"):
        Journal(path, marks).run("all", Halving(), START, on_check=_killed_at(3))
    journal = Journal(path, marks)
    again, state = journal.run("all", Halving(), START)
    assert [record.gap for record in again.trace] == [record.gap for record in whole.trace]
    rerun, same = journal.run("all", Halving(fails_at=0), START)  # is done: nothing runs
    assert (rerun.status, same) == (Status.CONVERGED, state)
    journal.close(is_done=True)
    assert not path.exists()


def _killed_at(stop):
    def on_check(record, state):
        if record.iteration == stop:
            raise RuntimeError("killed")
        return False

    return on_check


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "fit.lwc"
    journal = Journal(path, {"X": data_fingerprint(START), "parameters": data_fingerprint({"C": 1.0})})
    journal.run("all", Halving(max_iter=3), START)
    journal.write()
    with pytest.raises(ValueError, match="to another fit: X differ"):
        Journal(path, {"X": data_fingerprint(START + 1), "parameters": data_fingerprint({"C": 1.0})})
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="checkpoint"):
        Journal(path, {})


def test_an_objective_that_is_no_number_is_refused():
    with pytest.raises(
        ValueError, match="The objective is inf after 3 rounds, so nothing was learned; scale"
    ):
        Halving(max_iter=3).solve([np.inf])


def test_rounds_to_come_are_foreseen_from_how_the_gap_fell():
    """A gap that halves in every round takes ten rounds for a thousandth."""
    gaps = [2.0**-k for k in range(9)]
    assert rounds_foreseen(gaps, 2.0**-18) == pytest.approx(10)
    assert rounds_foreseen([1.0, *gaps], 2.0**-18) == pytest.approx(10)
    assert rounds_foreseen(gaps, 2.0**-8) == 0
    assert rounds_foreseen([1.0] * 9, 1e-3) == rounds_foreseen([1.0], 1e-3) == np.inf


@dataclass(frozen=True, kw_only=True)
class SomeState(State):
    table: Any
    stream: Any = None
    names: Any = ()
    begun: int = 0
    active: Any = None
    codes: Any = None

    _varies: ClassVar = ("active",)
    _limits: ClassVar = {"codes": (0, 1)}


def _start():
    return SomeState(
        table=np.zeros((3, 2)),
        stream={"state": {"pos": 1}, "name": "MT"},
        names=["a", "b"],
        active=np.arange(3),
        codes=np.zeros(3, np.int8),
    )


def _with(**changes):
    return replace(_start(), **changes)


RECORD = TraceRecord.of(2.0, 1.0)
FITTING = [
    _with(
        table=np.ones((3, 2)), rounds=4, begun=2, trace=(TraceRecord.of(2.0, 1.0),), status=Status.CONVERGED
    ),
    _with(active=np.arange(1), codes=np.array([0, 1, 1], np.int8)),
]
UNLIKE = {
    "rounds": [_with(rounds=-1), _with(rounds=2, begun=3), _with(rounds="1"), _with(rounds=True)],
    "table": [
        _with(table=np.ones((3, 2), np.float32)), _with(table=np.ones((2, 3))), _with(table=None),
        _with(table=np.full((3, 2), np.nan)), _with(table=1.0), _with(table=np.full((3, 2), np.inf)),
    ],
    "trace": [_with(trace=(1.0,)), _with(trace=(RECORD._replace(time="now"),))],
    "status": [_with(status=status) for status in (1.0, "CONVERGED", (Status.CONVERGED,))],
    "ended at a check": [_with(status=Status.CONVERGED)],
    "stream": [_with(stream={"state": state, "name": "MT"}) for state in ({"pos": 625}, {"pos": -1}, {})],
    "names": [_with(names=["a"]), _with(names=["a", 1]), _with(names=("a", "b"))],
    "codes": [_with(codes=np.array([0, 2, 1], np.int8)), _with(codes=np.array([0, -1, 1], np.int8))],
}  # fmt: skip


@pytest.mark.parametrize("state", FITTING)
def test_states_of_a_run_fit(state):
    refuse_unlike(state, _start())


@pytest.mark.parametrize("name", UNLIKE)
def test_others_are_refused_by_the_place(name):
    for state in UNLIKE[name]:
        with pytest.raises(ValueError, match=name):
            refuse_unlike(state, _start())
