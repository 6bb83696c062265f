"""The files between the driver and a peer's process: problems and solutions, and rankings of labels.

A problem file (npz) holds X (dense or CSR), Y (CSR) and the peer's penalty ``c`` of

    min over z:  1/2 ||z||^2 + c sum_i max(0, 1 - y_il z.x_i),    for every label l,

where ``x_i`` has one more feature, the constant 1.  The solution is a folder with ``solutions.json`` and, for
each tolerance, ``weights-<k>.npy`` of shape ``(d + 1, L)`` with the bias in its last row.  With a kernel
``x_i`` is the row in the space of the kernel, the bias of a peer is free, and ``weights-<k>.npy``, of shape
``(n + 1, L)``, has the coefficients of the rows, with the bias in the last one.

For a peer that ranks labels the problem holds X, Y and X_test in CSR form, and the number of threads; the
solution (npz) the five labels of highest score of every test row, CPU and wall-clock seconds of training and
of prediction, the bytes of the stored model and the largest resident memory of the process.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.machine import peak_memory_bytes


@dataclass(frozen=True)
class PeerProblem:
    """Features, 0/1 labels, the peer's penalty and the threads it may use.

    With a kernel also the width of the RBF kernel, and the memory for its values.
    """

    X: Any
    Y: Any
    penalty: float
    threads: int = 1
    gamma: float = float("nan")
    kernel_megabytes: float = 2000.0


@dataclass
class Solution:
    """The result of one tolerance: times in seconds, weights, and what the program reports.

    ``dual`` is the program's own dual value summed over labels, ``iterations`` the passes of its slowest
    label; both are ``None`` if not reported.  ``shared_seconds`` is spent once for all labels, in addition to
    ``seconds``.
    """

    tolerance: float
    seconds: float
    weights: npt.NDArray[Any] | None
    dual: float | None = None
    iterations: int | None = None
    all_seconds: list[float] = field(default_factory=list)
    shared_seconds: float = 0.0


Trainer = Callable[[float], Solution]


def write_problem(path: Path, problem: PeerProblem) -> None:
    numbers = {name: getattr(problem, name) for name in _NUMBERS}
    np.savez(path, **packed("X", problem.X), **packed("Y", sp.csr_matrix(problem.Y)), **numbers)


_NUMBERS = {"penalty": float, "threads": int, "gamma": float, "kernel_megabytes": float}
_CSR_PARTS = ("data", "indices", "indptr", "shape")


def packed(name: str, table: Any) -> dict[str, Any]:
    """Return the arrays of a table, dense or CSR, by their names in the file."""
    if not sp.issparse(table):
        return {name: table}
    return {f"{name}_{part}": getattr(sp.csr_matrix(table), part) for part in _CSR_PARTS}


def _read_problem(path: Path) -> PeerProblem:
    with np.load(path) as stored:
        numbers = {name: kind(stored[name]) for name, kind in _NUMBERS.items()}
        return PeerProblem(unpacked(stored, "X"), unpacked(stored, "Y"), **numbers)


def unpacked(stored: Any, name: str) -> Any:
    if name in stored:
        return stored[name]
    *parts, shape = (stored[f"{name}_{part}"] for part in _CSR_PARTS)
    return sp.csr_matrix(tuple(parts), shape=tuple(shape))


def serve(prepare: Callable[[PeerProblem], Trainer]) -> Callable[[PeerProblem], Trainer]:
    """Make a function that ends its module the program of a peer: read, train at each tolerance, write."""
    if prepare.__module__ != "__main__":
        return prepare
    arguments = _parse_arguments()
    train = prepare(_read_problem(arguments.problem))
    arguments.answer.mkdir(parents=True, exist_ok=True)
    solutions = [_train_repeatedly(train, tolerance, arguments.repeats) for tolerance in arguments.tolerances]
    _write_solutions(arguments.answer, solutions, with_weights=not arguments.no_weights)
    return prepare


def _parse_arguments() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("answer", type=Path)
    parser.add_argument("--tolerances", type=float, nargs="+", required=True)
    parser.add_argument("--repeats", type=int, default=1, help="the median of these is reported")
    parser.add_argument("--no-weights", action="store_true", help="only the times are wanted")
    return parser.parse_args()


def _train_repeatedly(train: Trainer, tolerance: float, repeats: int) -> Solution:
    solutions = [train(tolerance) for _ in range(repeats)]
    solutions[0].all_seconds = [solution.seconds for solution in solutions]
    solutions[0].seconds = statistics.median(solutions[0].all_seconds)
    return solutions[0]


def _write_solutions(folder: Path, solutions: list[Solution], with_weights: bool) -> None:
    for position, solution in enumerate(solutions):
        if with_weights and solution.weights is not None:
            np.save(folder / f"weights-{position}.npy", solution.weights)
        solution.weights = None
    (folder / "solutions.json").write_text(json.dumps([asdict(solution) for solution in solutions]))


def read_solutions(folder: Path) -> list[Solution]:
    """Read a peer's solution; weights are memory-mapped, or ``None`` if none were written."""
    solutions = [Solution(**record) for record in json.loads((folder / "solutions.json").read_text())]
    for position, solution in enumerate(solutions):
        weights = folder / f"weights-{position}.npy"
        solution.weights = np.load(weights, mmap_mode="r") if weights.exists() else None
    return solutions


TOP = 5
_TABLES = ("X", "Y", "X_test")


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


_Prepare = Callable[[RankingProblem, str], Callable[[], Trained]]


def write_ranking(path: Path, problem: RankingProblem) -> None:
    tables = {name: sp.csr_matrix(getattr(problem, name)).sorted_indices() for name in _TABLES}
    parts = [packed(name, table) for name, table in tables.items()]
    np.savez(path, **parts[0], **parts[1], **parts[2], threads=problem.threads)


def settings_of(variant: str) -> tuple[str, dict[str, Any]]:
    """Parse a variant such as ``bonsai,n_trees=1``: a word, and numbers or words by name."""
    word, *pairs = variant.split(",")
    return word, {name: _value(text) for name, _, text in (pair.partition("=") for pair in pairs)}


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read_ranking(path: Path) -> RankingProblem:
    with np.load(path) as stored:
        return RankingProblem(*(unpacked(stored, name) for name in _TABLES), int(stored["threads"]))


def serve_ranking(prepare: _Prepare) -> _Prepare:
    """Make a function that ends its module the program of a peer: read, train, rank, store, write.

    ``prepare``, which gets the problem and the name of a variant, is not timed; the function that it returns
    is the training.
    """
    if prepare.__module__ != "__main__":
        return prepare
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("answer", type=Path)
    parser.add_argument("--variant", default="")
    arguments = parser.parse_args()
    problem = _read_ranking(arguments.problem)
    train = prepare(problem, arguments.variant)
    start = time.process_time(), time.perf_counter()
    trained = train()
    middle = time.process_time(), time.perf_counter()
    peak = peak_memory_bytes()
    top = trained.rank(problem.X_test)
    end = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trained.store(Path(folder))
        n_bytes = bytes_in(Path(folder))
    seconds, clock = np.array([np.subtract(middle, start), np.subtract(end, middle)]).T
    np.savez(arguments.answer, top=top, seconds=seconds, clock=clock, bytes=n_bytes, peak=peak)
    return prepare


def bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
