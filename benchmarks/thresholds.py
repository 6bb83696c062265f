"""What thresholds chosen on training rows are worth on test rows: by several ways of holding rows out.

Every set's rows are split again, two thirds to train and one third to test, stratified by labels, with
several seeds; everything is chosen from the training rows.  "none" is a threshold of 0; "a fifth" chooses on
one fifth of the training rows, with the same pooling and floor as "folds", which scores every training row by
a model of the other folds (``validation_fraction="auto"``), of which there are five, and "three folds" by a
model of two thirds; "bare" is one fifth without pooling and floor.  "labels" is the number of predicted
labels over that of true ones.  Numbers are means over seeds; the error is that of the mean of the differences
from "a fifth".

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.thresholds --seeds 4``.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import RESULTS, flag, read_options, write_json
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA
from labelweave import MaxMarginClassifier, TunedThresholdClassifier, metrics
from labelweave.datasets import read_mulan
from labelweave.splits import IterativeStratifiedShuffleSplit

_SETS = ("emotions", "birds", "yeast", "enron", "bibtex")
_WAYS: dict[str, dict[str, Any]] = {
    "bare": {"validation_fraction": 0.2, "pooling": 0},
    "a fifth": {"validation_fraction": 0.2},
    "folds": {},
    "three folds": {"cv": 3},
}
_MEASURES = ("micro_f1", "macro_f1", "hamming_loss", "labels", "seconds")


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        problems=_SETS,
        seeds=4,
        data=flag(DEFAULT_DATA, "the folder that has mulan/"),
        out=RESULTS / "thresholds.json",
    )
    results: dict[str, Any] = describe_machine() | {"seeds": arguments.seeds}
    warnings.simplefilter("ignore")
    for name in arguments.problems:
        X, Y = read_rows(name, arguments.data)
        runs = [_run(X, Y, seed) for seed in range(arguments.seeds)]
        results[name] = {"rows": X.shape[0], "labels": Y.shape[1], "ways": _summary(runs)}
        for way, found in results[name]["ways"].items():
            numbers = "  ".join(f"{what} {value:.4f}" for what, value in found.items())
            print(f"{name:9} {way:20} {numbers}", flush=True)
        write_json(arguments.out, results)


def read_rows(name: str, data: Path) -> tuple[Any, Any]:
    folder = data / "mulan" / name
    parts = [read_mulan(path, folder / f"{name}.xml") for path in sorted(folder.glob(f"{name}-t*.arff"))]
    if not parts:
        parts = [read_mulan(folder / f"{name}.arff", folder / f"{name}.xml")]
    stack = sp.vstack if sp.issparse(parts[0].X) else np.vstack
    X, Y = stack([part.X for part in parts]), sp.vstack([part.Y.positives for part in parts])
    return sp.csr_array(X) if sp.issparse(X) else X, sp.csr_array(Y)


def _run(X: Any, Y: Any, seed: int) -> dict[str, dict[str, float]]:
    """Fit on two thirds of the rows in every way, and measure on the others."""
    splitter = IterativeStratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
    train, test = next(splitter.split(np.arange(X.shape[0]), Y))
    plain = MaxMarginClassifier(scaling="unit" if sp.issparse(X) else "standard")
    models: dict[str, Any] = {"none": plain}
    for objective in ("micro_f1", "macro_f1"):
        for way, how in _WAYS.items():
            models[f"{objective}, {way}"] = TunedThresholdClassifier(
                plain, objective, random_state=seed, **how
            )
    return {title: _measured(model, X, Y, train, test) for title, model in models.items()}


def _measured(model: Any, X: Any, Y: Any, train: Any, test: Any) -> dict[str, float]:
    started = time.process_time()
    model.fit(X[train], Y[train])
    seconds = time.process_time() - started
    predicted, truth = sp.csr_array(model.predict(X[test])), Y[test]
    return {
        "micro_f1": float(metrics.f1_score(truth, predicted)),
        "macro_f1": float(metrics.f1_score(truth, predicted, average="macro")),
        "hamming_loss": float(metrics.hamming_loss(truth, predicted)),
        "labels": predicted.sum() / max(1, truth.sum()),
        "seconds": seconds,
    }


def _summary(runs: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Give means over seeds, and the standard error of the difference from one fifth."""
    found = {}
    for title in runs[0]:
        line = {what: float(np.mean([run[title][what] for run in runs])) for what in _MEASURES}
        objective = title.split(",")[0]
        if title.endswith("folds") and len(runs) > 1:
            gains = [run[title][objective] - run[f"{objective}, a fifth"][objective] for run in runs]
            line |= {
                "gain": float(np.mean(gains)),
                "error": float(np.std(gains, ddof=1) / np.sqrt(len(gains))),
            }
        found[title] = line
    return found


if __name__ == "__main__":
    main()
