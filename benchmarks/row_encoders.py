"""The value of an encoder's vectors in addition to words: micro-F1 of TableModel on test rows with and
without.

The bundled Debian packages, with their one-line description as the only column.  Rows are drawn from the
training rows, 3,000 test rows (packages of other sources) are scored, and nothing is chosen on them: the
weight of the vectors is chosen on training rows.  Both models of a draw have the same rows.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.row_encoders --sizes 300 1000``.
"""

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd

import labelweave as lw
from benchmarks.frame import RESULTS, command, markdown, mean_and_error, read_json, save, several
from labelweave.datasets import load_debtags
from labelweave.metrics import f1_score

_TEST_ROWS = 3000
_MODELS = {
    "thresholds": lambda: lw.TunedThresholdClassifier(lw.MaxMarginClassifier()),
    "auto": lambda: lw.AutoLabelClassifier(random_state=0),
}


def _measured(model: Any, rows: Any, test: Any) -> dict[str, float]:
    """Fit a model to rows and their labels; return micro-F1 of test rows, seconds and the weight."""
    clock = time.process_time()
    model.fit(*rows)
    seconds = time.process_time() - clock
    vectorizer = model.vectorizer_
    weight = 0.0 if vectorizer.encoder_ is None else vectorizer.encoder_weight
    score = f1_score(test[1], model.predict(test[0]), average="micro")
    return {"micro-F1": float(score), "seconds": seconds, "weight": weight}


def _draw(tags: Any, size: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(tags.Y.shape[0])[:size])
    held = np.sort(np.random.default_rng(0).permutation(tags.Y_test.shape[0])[:_TEST_ROWS])
    frames = (
        pd.DataFrame({"text": texts}) for texts in (tags.descriptions[rows], tags.descriptions_test[held])
    )
    return tuple(zip(frames, (tags.Y[rows], tags.Y_test[held]), strict=True))


def _line(name: str, size: int, draws: list[dict[str, dict[str, float]]]) -> list[str]:
    words, both = ([draw[kind] for draw in draws] for kind in ("words", "static"))
    scores = [[one["micro-F1"] for one in kind] for kind in (words, both)]
    cost = [np.mean([one["seconds"] for one in kind]) for kind in (words, both)]
    weights = sorted({f"{one['weight']:g}" for one in both})
    gain = mean_and_error(np.subtract(*scores[::-1]), 3, "+")
    means = [f"{np.mean(kind):.3f}" for kind in scores]
    return [name, f"{size:,}", *means, gain, ", ".join(weights), *(f"{one:.1f}" for one in cost)]


@command(
    sizes=[300, 1000, 20000],
    models=several(_MODELS),
    draws=3,
    out=RESULTS / "row_encoders.json",
)
def main(chosen: argparse.Namespace) -> None:
    """Measure every model at every size; keep earlier measurements."""
    tags, found = load_debtags(), read_json(chosen.out)
    lines = []
    for name in chosen.models:
        for size in chosen.sizes:
            draws = []
            for seed in range(chosen.draws):
                rows, test = _draw(tags, size, seed)
                encoders = {"words": None, "static": "static"}
                made = {
                    k: lw.TableModel(_MODELS[name](), text="text", encoder=e) for k, e in encoders.items()
                }
                draws.append({kind: _measured(model, rows, test) for kind, model in made.items()})
                print(name, size, seed, draws[-1], flush=True)
            found[f"{name}, {size}"] = draws
            lines.append(_line(name, size, draws))
            save(chosen.out, found)
    columns = ["model", "rows", "words", "and vectors", "gain", "weights", "s, words", "s, and vectors"]
    print("\n".join(markdown(columns, lines)))
