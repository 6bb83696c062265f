"""Files between the driver and a peer that ranks labels: a training and a test set in, top labels out.

The problem (npz) holds X, Y and X_test in CSR form.  The answer (npz) holds the five labels of highest
score of every test row, the processor's seconds of training, those of predicting, and the bytes of the
stored model.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["TOP", "RankingProblem", "Trained", "bytes_in", "serve_ranking", "write_ranking"]

TOP = 5
_CSR_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class RankingProblem:
    """Training rows and test features, in rows of unit length."""

    X: Any
    Y: Any
    X_test: Any


@dataclass(frozen=True)
class Trained:
    """A trained model: how it ranks labels (n, TOP), and how it stores itself in a folder."""

    rank: Callable[[Any], Any]
    store: Callable[[Path], None]


def write_ranking(path: Path, problem: RankingProblem) -> None:
    """Write a problem for a peer's process to read."""
    tables = {"X": problem.X, "Y": problem.Y, "X_test": problem.X_test}
    parts = {
        f"{name}_{part}": getattr(sp.csr_matrix(table), part)
        for name, table in tables.items()
        for part in _CSR_PARTS
    }
    np.savez(path, **parts)


def _read_ranking(path: Path) -> RankingProblem:
    with np.load(path) as stored:
        tables = []
        for name in ("X", "Y", "X_test"):
            *parts, shape = (stored[f"{name}_{part}"] for part in _CSR_PARTS)
            tables.append(sp.csr_matrix(tuple(parts), shape=tuple(shape)))
    return RankingProblem(*tables)


def serve_ranking(prepare: Callable[[RankingProblem, str], Callable[[], Trained]]) -> None:
    """Be the main program of a peer's process: read, train, rank, store, write.

    What ``prepare`` does with the problem and the name of a variant is not timed, what the function that it
    gives does is training.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("answer", type=Path)
    parser.add_argument("--variant", default="")
    arguments = parser.parse_args()
    problem = _read_ranking(arguments.problem)
    train = prepare(problem, arguments.variant)
    start = time.process_time()
    trained = train()
    middle = time.process_time()
    top = trained.rank(problem.X_test)
    end = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        trained.store(Path(folder))
        n_bytes = bytes_in(Path(folder))
    np.savez(arguments.answer, top=top, seconds=[middle - start, end - middle], bytes=n_bytes)


def bytes_in(folder: Path) -> int:
    """Add up the sizes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
