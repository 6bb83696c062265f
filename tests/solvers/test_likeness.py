"""States that are read from files are held against the state that a run begins with."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from labelweave.solvers.frame import State, Status, TraceRecord
from labelweave.solvers.likeness import refuse_unlike


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
