"""``LowRankClassifierCV()`` beside ``LowRankClassifier()``: time and quality at default parameters.

Run ``python -m benchmarks.low_rank_choice [SET ...]``; sets of Mulan, chosen on training rows only.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from labelweave import LowRankClassifier, LowRankClassifierCV, datasets, metrics

DATA = Path(__file__).parents[2] / "shared" / "data" / "mulan"
SETS = ["flags", "emotions", "birds", "yeast", "scene", "enron"]


def main(names: list[str]) -> None:
    """Print a line a set and model."""
    print(f"{'set':10s} {'model':20s} {'CPU s':>7s} {'micro-F1':>9s} {'macro-F1':>9s} {'lambda':>7s}")
    for name in names:
        labels = DATA / name / f"{name}.xml"
        train, test = (
            datasets.read_mulan(DATA / name / f"{name}-{part}.arff", labels) for part in ("train", "test")
        )
        LowRankClassifier().fit(train.X, train.Y)  # compiles
        for model in (LowRankClassifier(), LowRankClassifierCV()):
            start = time.process_time()
            model.fit(train.X, train.Y)
            seconds, predicted = time.process_time() - start, model.predict(test.X)
            scores = [metrics.f1_score(test.Y, predicted, average=kind) for kind in ("micro", "macro")]
            print(
                f"{name:10s} {type(model).__name__:20s} {seconds:7.2f} {scores[0]:9.3f} {scores[1]:9.3f} "
                f"{model.regularization_:7.3g}"
            )


if __name__ == "__main__":
    main(sys.argv[1:] or SETS)
