"""Sparse weights with a certificate compared with dense ones: file, quality, gap, and rows predicted per
second.

The case is synthetic texts whose labels follow a power law.  Test rows are drawn with the training rows and
are not used in any fit.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import labelweave as lw
from benchmarks.frame import RESULTS, command, flag, timed, write_json
from benchmarks.machine import describe_machine, peak_memory_bytes
from labelweave.datasets import LabeledData, make_text_like

_SETTINGS: dict[str, Any] = {"C": 1.0, "tol": 1e-2, "n_jobs": 2}
_REPEATS = 5
_SINGLE_ROWS = 300
_ENOUGH = 10.0  # seconds of calls


def measure_model(name: str, prune: Any, train: LabeledData, test: LabeledData) -> Any:
    lw.set_config(memory_budget=1e4)
    model = lw.MaxMarginClassifier(**_SETTINGS, prune=prune)
    _, seconds = timed(model.fit, train.X, train.Y, clock=time.perf_counter)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lw"
        lw.save(model, path)
        size, loaded = path.stat().st_size, lw.load(path)
        best, scores = loaded.predict_top(test.X, 5)  # compiles, and reads what is measured next
        is_same = all(map(np.array_equal, model.predict_top(test.X, 5), (best, scores)))
        batches, alone = list[float](), list[float]()
        while (
            len(alone) < _REPEATS and sum(alone) < _ENOUGH
        ):  # in turn, since other programs may use the machine
            batches += _seconds(lambda number: loaded.predict_top(test.X, 5), 1)
            with threadpool_limits(1):
                alone += _seconds(lambda number: loaded.predict_top(test.X, 5), 1)
        singles = _seconds(lambda number: loaded.predict_top(test.X[[number]], 5), _SINGLE_ROWS)
        inner = _seconds(lambda number: _top(loaded, test.X[[number]]), _SINGLE_ROWS)
    truth = np.take_along_axis(test.Y.positives.toarray(), best, axis=1)
    return {
        "model": name,
        "fit_seconds": seconds,
        "file_bytes": size,
        "gap": float(model.duality_gap_),
        "pruning": getattr(model, "pruning_", None),
        **{f"precision_at_{k}": 100 * float(truth[:, :k].mean()) for k in (1, 3, 5)},
        "rows_a_second": len(test.Y) / min(batches),
        "rows_a_second_of_one_thread": len(test.Y) / min(alone),
        "microseconds_of_a_row": 1e6 * float(np.median(singles)),
        "microseconds_of_its_products": 1e6 * float(np.median(inner)),
        "words_of_a_row": test.X.nnz / len(test.Y),
        "same_bits_from_the_file": is_same,
        "peak_gigabytes": peak_memory_bytes() / 1e9,
    }


def _top(model: Any, row: Any) -> Any:
    features = model._read_features(row, reset=False)
    if not hasattr(model.scorer_, "top"):
        return features.matmul(model.coef_.T)
    return model.scorer_.top(features, 5)


def _seconds(work: Callable[[int], Any], most: int) -> list[float]:
    found: list[float] = []
    while len(found) < most and sum(found) < _ENOUGH:
        found.append(timed(work, len(found), clock=time.perf_counter)[1])
    return found


@command(
    rows=36_000,
    features=50_000,
    labels=3_000,
    test_rows=4_000,
    models=flag(["certified", "off"], "certified, off, or a size", nargs="*"),
    out=RESULTS / "sparse_weights.json",
)
def main(options: Any) -> None:
    sizes = options.rows + options.test_rows, options.features, options.labels
    data = make_text_like(*sizes, labels_per_row=5)
    train = LabeledData(data.X[: options.rows], data.Y[: options.rows])
    test = LabeledData(data.X[options.rows :], data.Y[options.rows :])
    models = []
    for name in options.models:
        prune = name if name in ("certified", "off") else float(name)
        models.append(measure_model(name, prune, train, test))
        print({key: value for key, value in models[-1].items() if key != "pruning"}, flush=True)
    case = {key: value for key, value in vars(options).items() if key not in ("out", "models")}
    case |= {"C": 1.0, "tol": 1e-2, "jobs": 2}
    write_json(options.out, {"machine": describe_machine(), "case": case, "models": models})
