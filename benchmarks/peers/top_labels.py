"""Files between the driver and a peer that ranks labels: training and test data in, top labels out.

The problem (npz) holds X, Y and X_test in CSR form, and the number of threads.  The solution (npz) holds the
five labels of highest score of every test row, CPU and wall-clock seconds of training and of prediction, the
bytes of the stored model and the largest resident memory of the process.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.machine import peak_memory_bytes
from benchmarks.peers.exchange import packed, unpacked

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
