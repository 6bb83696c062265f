"""labelweave's trees and one-vs-rest as programs of ``benchmarks.tree_peers``.

Variants: ``tree`` (``LabelTreeClassifier``) and ``one-vs-rest`` (``MaxMarginClassifier(tol=1e-2,
prune="certified")``); parameters may follow, such as ``n_trees=3``.  Timed: ``fit``, whole.
Compiled loops are loaded before by a fit to a few rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from benchmarks.peers.top_labels import TOP, RankingProblem, Trained, serve_ranking, settings_of
from labelweave import LabelTreeClassifier, MaxMarginClassifier


def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Load what is compiled; the function returned fits."""
    word, settings = settings_of(variant)
    X, Y = sp.csr_array(problem.X), sp.csr_array(problem.Y)

    def make() -> Any:
        if word == "tree":
            return LabelTreeClassifier(**settings, n_jobs=problem.threads)
        return MaxMarginClassifier(**{"prune": "certified", "tol": 1e-2} | settings, n_jobs=problem.threads)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels without positives among a few rows
        make().fit(X[:400], Y[:400, :200]).predict_top(X[:300], TOP)

    def train() -> Trained:
        model = make().fit(X, Y)

        def store(folder: Path) -> None:
            model.save(folder / "model.lw")

        return Trained(lambda rows: model.predict_top(sp.csr_array(rows), TOP)[0], store)

    return train


if __name__ == "__main__":
    serve_ranking(prepare)
