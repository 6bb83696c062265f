"""labelweave's low-rank model as one of the programs of ``benchmarks.low_rank_peers``.

The variant is ``penalty,rank,lambda`` with the rank as a share of the labels.  Timed: ``fit``, whole.
Compiled loops are loaded before by a fit to a few rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from benchmarks.peers.top_labels import TOP, RankingProblem, Trained, serve_ranking
from labelweave import LowRankClassifier


def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Load what is compiled; the function returned fits."""
    penalty, share, strength = variant.split(",")
    X, Y = sp.csr_array(problem.X), sp.csr_array(problem.Y)
    rank = max(1, round(float(share) * Y.shape[1]))

    def make(rank: int) -> Any:
        return LowRankClassifier(
            rank, regularization=float(strength), penalty=penalty, precision="float32", n_jobs=1
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels without positives among a few rows
        make(5).fit(X[:400], Y[:400]).predict_top(X[:5], TOP)

    def train() -> Trained:
        model = make(rank).fit(X, Y)

        def store(folder: Path) -> None:
            model.save(folder / "model.lw")

        return Trained(lambda rows: model.predict_top(sp.csr_array(rows), TOP)[0], store)

    return train


if __name__ == "__main__":
    serve_ranking(prepare)
