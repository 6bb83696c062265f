"""Omikuji's Parabel: three balanced trees of labels, linear machines at every node.

Default settings (hinge loss, C = 1, weights below 0.1 dropped, beam of 10), one thread.  Timed: the
training call.  Not timed: writing the rows to Omikuji's text format and reading it.

References: Prabhu, Kag, Harsola, Agrawal, Varma (2018), Parabel: Partitioned label trees for extreme
classification.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import omikuji
from omikuji._libomikuji import ffi, lib

from benchmarks.peers.top_labels import TOP, RankingProblem, Trained, serve_ranking

__all__ = ["prepare"]


def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Read the problem into Omikuji once; the function returned trains."""
    threads = lib.init_omikuji_thread_pool(1)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        _write_rows(file, problem.X, problem.Y)
        data = lib.load_omikuji_data_set(ffi.new("char[]", file.name.encode()), threads)

    def train() -> Trained:
        # the class offers no training apart from reading a file
        model = omikuji.Model(lib.train_omikuji_model(data, omikuji.Model.default_hyper_param(), threads))
        model.init_prediction_thread_pool(1)

        def store(folder: Path) -> None:
            model.save(str(folder / "model"))

        return Trained(lambda rows: _top(model, rows), store)

    return train


def _write_rows(file: Any, X: Any, Y: Any) -> None:
    file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
    for row in range(X.shape[0]):
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        file.write(",".join(map(str, labels)))
        file.writelines(f" {feature}:{value:.9g}" for feature, value in _pairs(X, row))
        file.write("\n")
    file.flush()


def _pairs(X: Any, row: int) -> list[tuple[int, float]]:
    entries = slice(X.indptr[row], X.indptr[row + 1])
    return sorted(zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True))


def _top(model: omikuji.Model, X: Any) -> Any:
    found = np.full((X.shape[0], TOP), -1)
    for row in range(X.shape[0]):
        best = [label for label, _ in model.predict(_pairs(X, row), top_k=TOP)]
        found[row, : len(best)] = best
    return found


if __name__ == "__main__":
    serve_ranking(prepare)
