"""labelweave's models that rank many labels, as a program of ``benchmarks.ranking_peers``.

Variants: ``tree`` (``LabelTreeClassifier``); ``one-vs-rest`` (``MaxMarginClassifier(tol=1e-2,
prune="certified")``); ``low-rank`` (``LowRankClassifier``, on one thread), whose ``rank`` is a share of the
labels.  Parameters follow, such as ``tree,n_trees=3``.  The complete ``fit`` is timed.  A fit to a few rows
loads compiled loops before.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from benchmarks.frame import quiet
from benchmarks.peers.exchange import TOP, RankingProblem, Trained, serve_ranking, settings_of
from labelweave import LabelTreeClassifier, LowRankClassifier, MaxMarginClassifier


@serve_ranking
def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    word, settings = settings_of(variant)
    X, Y = sp.csr_array(problem.X), sp.csr_array(problem.Y)
    some = slice(None) if word == "low-rank" else slice(200)  # labels of the first fit
    if word == "low-rank":
        settings["rank"] = max(1, round(settings["rank"] * Y.shape[1]))

    def make(**other: Any) -> Any:
        if word == "tree":
            return LabelTreeClassifier(**settings, n_jobs=problem.threads)
        if word == "low-rank":
            return LowRankClassifier(**settings | other, dtype="float32", n_jobs=1)
        return MaxMarginClassifier(**{"prune": "certified", "tol": 1e-2} | settings, n_jobs=problem.threads)

    with quiet(Warning):  # labels without positives among a few rows
        make(rank=5).fit(X[:400], Y[:400, some]).predict_top(X[:300], TOP)

    def train() -> Trained:
        model = make().fit(X, Y)

        def store(folder: Path) -> None:
            model.save(folder / "model.lw")

        return Trained(lambda rows: model.predict_top(sp.csr_array(rows), TOP)[0], store)

    return train
