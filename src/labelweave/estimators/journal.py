"""The journal of a fit: the state of each of its stages, in memory, and in a file if one is named.

A fit is a sequence of named stages ("part", "float32", "fold 3"), each of them a solver's run or a
search.  With the states of all stages a fit that was killed resumes where it stopped, with the same
bits: finished stages are read and not run again.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from labelweave.foundation.arguments import ParameterMessage
from labelweave.model_files import (
    ModelContent,
    ModelFileError,
    decode,
    encode,
    read_model_file,
    write_model_file,
)
from labelweave.model_files.schema import TEXT, Anything, Named, OneOf, Record, count
from labelweave.solvers import SolverResult, Status
from labelweave.solvers.frame import OnCheck, Solver, State
from labelweave.solvers.likeness import refuse_unlike

AnyState = TypeVar("AnyState", bound=State)

_SECONDS = 30.0  # between two writes
_KIND = "Checkpoint"


class Journal:
    """The states of the stages of one fit.

    path: the file, first written at the first check after 30 s; None for none.
    fingerprint: identifies the fit, by name; the file of another fit is rejected.
    within: the prefix of the names of stages and facts; not empty for a fit inside another one.
    Raises ModelFileError, a ValueError, if the file is no checkpoint, or one of other data or parameters, or
    if the fit cannot resume from it.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, fingerprint: Mapping[str, str] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = dict(fingerprint or {})
        self.states: dict[str, State] = {}
        self.facts: dict[str, Any] = {}
        self.ends: dict[str, str] = {}
        self.read: set[str] = set()  # stages that were read from the file
        self.written = time.monotonic()
        self.within = ""
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def part(self, name: str) -> Journal:
        """Return the journal of a fit inside this one, stored here under a name."""
        inner = copy.copy(self)
        inner.within = f"{self.within}{name}/"
        return inner

    def known(self, stage: str) -> State | None:
        return self.states.get(self.within + stage)

    def run(
        self,
        stage: str,
        solver: Solver[Any, AnyState],
        problem: Any,
        start: AnyState | None = None,
        on_check: OnCheck | None = None,
    ) -> tuple[SolverResult, AnyState]:
        """Solve, from the state of this stage in the file, or from ``start``, and store every check."""

        def noting(record: Any, state: State) -> bool:
            self.note(stage, state)
            return on_check is not None and on_check(record, state)

        known: Any = self.known(stage)
        with self.going_on():
            if self.within + stage in self.read:
                refuse_unlike(known, solver.state_template(problem, known))
            return self._run(stage, known, solver, problem, start, noting)

    def _run(
        self, stage: str, known: Any, solver: Any, problem: Any, start: Any, noting: OnCheck
    ) -> tuple[SolverResult, Any]:
        name = self.within + stage
        end = None if known is None else known.status or self.ends.get(name)
        if end is not None:
            return solver.ended(problem, known, Status[end] if isinstance(end, str) else end), known
        result, state = solver.solve(problem, known or start, noting)
        self.states[name] = state
        if result.status is not Status.INTERRUPTED:
            self.ends[name] = result.status.name
        return result, state

    def model(
        self,
        stage: str,
        solver: Solver[Any, AnyState],
        problem: Any,
        start: AnyState | None,
        on_check: Callable[..., bool],
        made: Callable[[SolverResult, AnyState], Any],
    ) -> Any:
        """Solve, and make a model of the result; callbacks get the records, and what makes the model."""

        def checked(record: Any, state: AnyState) -> bool:
            return on_check(record, lambda: made(solver.stopped(problem, state), state))

        return made(*self.run(stage, solver, problem, start, checked))

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Note on an error in a fit resumed from the file that the file may be the cause."""
        try:
            yield
        except ModelFileError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if not self.read:
                raise
            said = " ".join(str(error).split()).rstrip(".")
            why = f": the fit cannot resume from it ({said}); delete it, or use another file."
            raise _refusal(self.path, why) from error

    def recall(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a plain value that must be the same when the fit resumes, such as a random seed."""
        name = self.within + name
        if name not in self.facts:
            self.facts[name] = make()
        return self.facts[name]

    def note(self, stage: str, state: State) -> None:
        """Store the state of a stage; write the file if the last write was long ago."""
        self.states[self.within + stage] = state
        if self.path is not None and time.monotonic() - self.written >= _SECONDS:
            self.write()

    def forget(self, stage: str) -> None:
        """Drop a stage whose result is part of another one's state."""
        self.states.pop(self.within + stage, None)
        self.ends.pop(self.within + stage, None)

    def write(self) -> None:
        assert self.path is not None, "only a journal with a file is written"
        plain = {
            "fingerprint": self.fingerprint,
            "ends": self.ends,
            "facts": self.facts,
            "states": {stage: state.to_plain() for stage, state in self.states.items()},
        }
        arrays: dict[str, Any] = {}
        write_model_file(self.path, ModelContent(_KIND, encode(plain, arrays), arrays))
        self.written = time.monotonic()

    def close(self, *, is_done: bool) -> None:
        """Remove the file of a finished fit; write that of an interrupted one."""
        if self.path is None or self.within:
            return
        if is_done:
            self.path.unlink(missing_ok=True)
        else:
            self.write()

    def _read(self, path: Path) -> None:
        try:
            content = read_model_file(path)
            if content.kind != _KIND:
                raise ModelFileError(f"it is a file of another kind ({content.kind}).")
            plain = decode(content.state, content.arrays)
            _CONTENT.check(plain, "checkpoint", {})
            states = {stage: _state_of(stage, state) for stage, state in plain["states"].items()}
        except ModelFileError as error:
            raise _refusal(path, f": {error} Use another file.") from error
        others = [what for what, mark in self.fingerprint.items() if plain["fingerprint"].get(what) != mark]
        if others:
            differ = f" belongs to another fit: {', '.join(others)} differ; repeat that fit, use "
            raise _refusal(path, f"{differ}another file, or delete this one.")
        self.ends, self.facts, self.states = plain["ends"], plain["facts"], states
        self.read = set(states)


_CONTENT = Record(
    {
        "fingerprint": Named(TEXT),
        "ends": Named(OneOf(tuple(Status.__members__))),
        "facts": Named(count()),
        "states": Named(Anything()),
    },
    {"stages that ended have states": lambda plain: plain["ends"].keys() <= plain["states"].keys()},
)


def _refusal(path: Path | None, why: str) -> ModelFileError:
    return ModelFileError(ParameterMessage(f"`checkpoint={str(path)!r}`{why}"))


def _state_of(stage: str, plain: Any) -> State:
    try:
        return State.from_plain(plain)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"its stage {stage!r} is not a state ({error}).") from error


def data_fingerprint(*values: Any) -> str:
    """Digest nested data: arrays by type, shape and bytes, the rest in model file format."""
    arrays: dict[str, Any] = {}
    text = json.dumps(encode(list(values), arrays), sort_keys=True)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        parts = (array.data, array.indices, array.indptr) if hasattr(array, "indptr") else (array,)
        for part in parts:
            digest.update(f"{name} {part.dtype.str} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"")
    return digest.hexdigest()
