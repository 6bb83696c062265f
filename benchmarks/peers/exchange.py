"""Problems in, solutions out: the files between the driver and a peer's process.

A problem file (npz) holds X and Y as CSR arrays and the peer's penalty ``c`` of

    min over z:  1/2 ||z||^2 + c sum_i max(0, 1 - y_il z.x_i),    for every label l,

where ``x_i`` carries one more feature, the constant 1.  The answer is a folder
with ``solutions.json`` and, for each tolerance, ``weights-<k>.npy`` of shape
``(d + 1, L)`` with the bias in its last row.
"""

from __future__ import annotations

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

__all__ = ["PeerProblem", "Solution", "Trainer", "read_solutions", "serve", "write_problem"]


@dataclass(frozen=True)
class PeerProblem:
    """Features, 0/1 labels, the peer's penalty and the threads it may use."""

    X: Any
    Y: Any
    penalty: float
    threads: int = 1


@dataclass
class Solution:
    """What one tolerance gave: times in seconds, weights, and what the program says of itself.

    ``dual`` is the program's own dual value summed over labels, ``iterations``
    the passes of its slowest label; both are ``None`` where it does not tell.
    """

    tolerance: float
    seconds: float
    weights: npt.NDArray[Any] | None
    dual: float | None = None
    iterations: int | None = None
    all_seconds: list[float] = field(default_factory=list)


Trainer = Callable[[float], Solution]


def write_problem(path: Path, problem: PeerProblem) -> None:
    """Write a problem for a peer's process to read."""
    X, Y = sp.csr_matrix(problem.X), sp.csr_matrix(problem.Y)
    np.savez(
        path,
        X_data=X.data, X_indices=X.indices, X_indptr=X.indptr, X_shape=X.shape,
        Y_data=Y.data, Y_indices=Y.indices, Y_indptr=Y.indptr, Y_shape=Y.shape,
        penalty=problem.penalty, threads=problem.threads,
    )  # fmt: skip


def _read_problem(path: Path) -> PeerProblem:
    with np.load(path) as stored:
        X, Y = (
            sp.csr_matrix(tuple(stored[f"{name}_{part}"] for part in ("data", "indices", "indptr")),
                          shape=tuple(stored[f"{name}_shape"]))
            for name in "XY"
        )  # fmt: skip
        return PeerProblem(X, Y, float(stored["penalty"]), int(stored["threads"]))


def serve(prepare: Callable[[PeerProblem], Trainer]) -> None:
    """Be the main program of a peer's process: read, train at each tolerance, write."""
    arguments = _parse_arguments()
    train = prepare(_read_problem(arguments.problem))
    arguments.answer.mkdir(parents=True, exist_ok=True)
    solutions = [_train_repeatedly(train, tolerance, arguments.repeats) for tolerance in arguments.tolerances]
    _write_solutions(arguments.answer, solutions, with_weights=not arguments.no_weights)


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
    """Read a peer's answer; weights are memory-mapped, or ``None`` where none were written."""
    solutions = [Solution(**record) for record in json.loads((folder / "solutions.json").read_text())]
    for position, solution in enumerate(solutions):
        weights = folder / f"weights-{position}.npy"
        solution.weights = np.load(weights, mmap_mode="r") if weights.exists() else None
    return solutions
