"""The files between the driver and a peer's process: problems and solutions.

A problem file (npz) holds X (dense or CSR), Y (CSR) and the peer's penalty ``c`` of

    min over z:  1/2 ||z||^2 + c sum_i max(0, 1 - y_il z.x_i),    for every label l,

where ``x_i`` has one more feature, the constant 1.  The solution is a folder with ``solutions.json`` and, for
each tolerance, ``weights-<k>.npy`` of shape ``(d + 1, L)`` with the bias in its last row.

With a kernel ``x_i`` is the row in the space of the kernel, the bias of a peer is free, and
``weights-<k>.npy``, of shape ``(n + 1, L)``, has the coefficients of the rows, with the bias in the last one.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


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


def _parse_arguments() -> argparse.Namespace:
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
