"""What passes between a benchmark and the process of another program: two files of arrays (npz).

The benchmark writes a problem, and the program its answer: a hinge machine (:func:`serve`), a ranking of
labels (:func:`serve_ranking`), or other arrays (:func:`answer`).  Tables are dense or in CSR form.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.machine import peak_memory_bytes


@dataclass(frozen=True)
class PeerProblem:
    """Features, 0/1 labels (CSR), the peer's penalty ``c`` and the threads it may use, for the problem

        min over z:  1/2 ||z||^2 + c sum_i max(0, 1 - y_il z.x_i),    for every label l,

    where ``x_i`` has one more feature, the constant 1.  With a kernel ``x_i`` is the row in its space, and
    the bias of a peer is free; then there are also the width of the RBF kernel, and the memory for its
    values.
    """

    X: Any
    Y: Any
    penalty: float
    threads: int = 1
    gamma: float = float("nan")
    kernel_megabytes: float = 2000.0

    @property
    def is_linear(self) -> bool:
        return bool(np.isnan(self.gamma))


@dataclass
class Solution:
    """A machine: seconds, weights, and what the program reports.

    weights: of shape (d + 1, L) with the bias in the last row; with a kernel, coefficients (n + 1, L).
    dual: the program's own dual value summed over labels; ``None`` if not reported, as the next one.
    iterations: the passes of its slowest label.
    shared_seconds: spent once for all labels, in addition to ``seconds``.
    """

    seconds: float
    weights: npt.NDArray[Any]
    dual: float | None = None
    iterations: int | None = None
    shared_seconds: float = 0.0


@dataclass(frozen=True)
class RankingProblem:
    """Training rows and test features, in rows of unit length, and the number of threads."""

    X: Any
    Y: Any
    X_test: Any
    threads: int = 1


@dataclass(frozen=True)
class Trained:
    """A trained model: functions that rank labels (n, TOP) and store it in a folder."""

    rank: Callable[[Any], Any]
    store: Callable[[Path], None]


TOP = 5
Trainer = Callable[[float], Solution]
Arrays = dict[str, Any]
_CSR_PARTS = ("data", "indices", "indptr", "shape")
_Kind = TypeVar("_Kind")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def pack(record: Any) -> Arrays:
    """Return the arrays of a record by their names in the file; sparse tables have several."""
    found = {}
    for name, value in vars(record).items():
        if sp.issparse(value):
            table = sp.csr_matrix(value).sorted_indices()
            found |= {f"{name}_{part}": getattr(table, part) for part in _CSR_PARTS}
        elif value is not None:
            found[name] = value
    return found


def unpack(kind: type[_Kind], stored: Arrays) -> _Kind:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    present = [name for name in names if name in stored or f"{name}_data" in stored]
    return kind(**{name: _value(stored, name) for name in present})


def _value(stored: Arrays, name: str) -> Any:
    if name in stored:
        return stored[name] if stored[name].ndim else stored[name].item()
    *parts, shape = (stored[f"{name}_{part}"] for part in _CSR_PARTS)
    return sp.csr_matrix(tuple(parts), shape=tuple(shape))


def answer(work: _Function) -> _Function:
    """Make a function from arrays and a variant to arrays, which ends its module, the program of a peer."""
    return _ending(work, work)


def serve(prepare: _Function) -> _Function:
    """Make a function from a problem and a variant to a trainer, which ends its module, a peer's program.

    Only the trainer is timed, by itself.
    """

    def work(given: Arrays, variant: str) -> Arrays:
        train: Trainer = prepare(unpack(PeerProblem, given), variant)
        return pack(train(float(given["tolerance"])))

    return _ending(prepare, work)


def serve_ranking(prepare: _Function) -> _Function:
    """Make a function that ends its module the program of a peer that trains, ranks labels, and stores a
    model.

    ``prepare``, which gets the problem and the name of a variant, is not timed; the function that it returns
    is the training.  The answer has the five labels of highest score of every test row, CPU and wall-clock
    seconds of training and of prediction, the bytes of the stored model, and the largest resident memory of
    the process until trained.
    """

    def work(given: Arrays, variant: str) -> Arrays:
        problem = unpack(RankingProblem, given)
        train = prepare(problem, variant)
        start = time.process_time(), time.perf_counter()
        trained: Trained = train()
        middle = time.process_time(), time.perf_counter()
        peak = peak_memory_bytes()
        top = trained.rank(problem.X_test)
        end = time.process_time(), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            trained.store(Path(folder))
            n_bytes = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        seconds, clock = np.array([np.subtract(middle, start), np.subtract(end, middle)]).T
        return {"top": top, "seconds": seconds, "clock": clock, "bytes": n_bytes, "peak": peak}

    return _ending(prepare, work)


def _ending(own: _Function, work: Callable[[Arrays, str], Arrays]) -> _Function:
    """Read, work and write where the module of a function is run."""
    if own.__module__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("problem", type=Path)
        parser.add_argument("answer", type=Path)
        parser.add_argument("--variant", default="")
        arguments = parser.parse_args()
        with np.load(arguments.problem) as stored:
            given = dict(stored)
        np.savez(arguments.answer, **work(given, arguments.variant))
    return own


def settings_of(variant: str) -> tuple[str, dict[str, Any]]:
    """Parse a variant such as ``bonsai,n_trees=1``: a word, and numbers or words by name."""
    word, *pairs = variant.split(",")
    return word, {name: _number(text) for name, _, text in (pair.partition("=") for pair in pairs)}


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
