"""Omikuji: label trees with linear machines at every node, as in Parabel or Bonsai.

Variants, three trees each, by the settings of Omikuji's own tables: ``parabel``, balanced 2-means;
``bonsai``, 100-means in three levels; ``collapsed``, balanced 2-means with six levels merged into one.
``n_trees=1`` and other numbers of its hyperparameters may follow.  All others have defaults: hinge loss, C =
1, weights below 0.1 dropped, a beam of 10.  Timed: the training call.  Not timed: writing the rows to
Omikuji's text format and reading it.  Test rows are predicted one by one, as its Python package allows.

References: Prabhu, Kag, Harsola, Agrawal, Varma (2018), Parabel: Partitioned label trees for extreme
classification; Khandagale, Xiao, Babbar (2020), Bonsai.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import omikuji
from omikuji._libomikuji import ffi, lib

from benchmarks.peers.exchange import TOP, RankingProblem, Trained, serve_ranking, settings_of

_VARIANTS: dict[str, dict[str, Any]] = {
    "parabel": {},
    "bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
    "collapsed": {"collapse_every_n_layers": 5},
}


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


@serve_ranking
def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Read the problem into Omikuji once; the function returned trains."""
    threads = lib.init_omikuji_thread_pool(problem.threads)
    word, numbers = settings_of(variant)
    settings = omikuji.Model.default_hyper_param()
    for name, value in (_VARIANTS[word] | numbers).items():
        setattr(settings, name, type(getattr(settings, name))(value))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        _write_rows(file, problem.X, problem.Y)
        data = lib.load_omikuji_data_set(ffi.new("char[]", file.name.encode()), threads)

    def train() -> Trained:
        # the class trains only from a file
        model = omikuji.Model(lib.train_omikuji_model(data, settings, threads))
        model.init_prediction_thread_pool(problem.threads)

        def store(folder: Path) -> None:
            model.save(str(folder / "model"))

        return Trained(lambda rows: _top(model, rows), store)

    return train
