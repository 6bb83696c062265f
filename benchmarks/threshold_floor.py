"""Thresholds for macro-F1: the floor of ``choose_thresholds``, SCutFBR.1 of the papers, and the optimum.

Every set's rows are split, two thirds to train and one third to test, with several seeds.  Training rows are
scored by fits to the other four folds, and all thresholds but the last are chosen on these scores.

"own" is the best of every label as it is; "floor" what ``pooling="auto"`` makes of it, the default of tuned
thresholds.  "SCutFBR.1" (Lewis, Yang, Rose and Li 2004; Fan and Lin 2007): the mean over five folds of the
best threshold on four, or of the highest score of the fifth where the label's F1 score there is below fbr;
fbr, from 0 to 0.8, is that of the best macro-F1 on four folds of the training rows.  "best on the test rows"
is what macro-F1 itself asks for.  "labels" is the number of predicted labels over that of true ones.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.threshold_floor``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.frame import RESULTS, flag, read_options, write_json
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA
from benchmarks.thresholds import read_rows
from labelweave import MaxMarginClassifier, metrics
from labelweave.inference import choose_thresholds
from labelweave.splits import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit

_FBR = np.arange(0.0, 0.81, 0.1)
Table = npt.NDArray[Any]


@needs_data
def main() -> None:
    chosen = read_options(
        __doc__,
        problems=["emotions", "birds", "yeast", "enron"],
        seeds=4,
        data=flag(DEFAULT_DATA, "the folder that has mulan/"),
        out=RESULTS / "threshold_floor.json",
    )
    warnings.simplefilter("ignore")
    results: dict[str, Any] = describe_machine() | {"seeds": chosen.seeds}
    for name in chosen.problems:
        X, Y = read_rows(name, chosen.data)
        runs = [_run(X, Y, seed) for seed in range(chosen.seeds)]
        results[name] = {
            way: {what: float(np.mean([run[way][what] for run in runs])) for what in runs[0][way]}
            for way in runs[0]
        }
        for way, found in results[name].items():
            print(f"{name:9} {way:22}", *(f"{what} {value:.3f}" for what, value in found.items()), flush=True)
        write_json(chosen.out, results)


def _run(X: Any, Y: Any, seed: int) -> dict[str, dict[str, float]]:
    splitter = IterativeStratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
    train, test = next(splitter.split(np.arange(X.shape[0]), Y))
    model = MaxMarginClassifier(scaling="unit" if sp.issparse(X) else "standard")
    scores = np.empty((len(train), Y.shape[1]))
    for kept, held in IterativeStratifiedKFold(5, shuffle=True, random_state=seed).split(train, Y[train]):
        fitted = model.fit(X[train[kept]], Y[train[kept]])
        scores[held] = fitted.decision_function(X[train[held]])
    labels, truth = Y[train].toarray(), Y[test].toarray()
    new = model.fit(X[train], Y[train]).decision_function(X[test])
    ways = {
        "own": _best(labels, scores),
        "floor": choose_thresholds(labels, scores, "macro_f1", pooling="auto").thresholds,
        "SCutFBR.1": _scut_fbr(labels, scores, _chosen_fbr(labels, scores)),
        "best on the test rows": _best(truth, new),
    }
    return {way: _measured(truth, (new > thresholds).astype(int)) for way, thresholds in ways.items()}


def _measured(truth: Table, predicted: Table) -> dict[str, float]:
    return {
        "macro_f1": float(metrics.f1_score(truth, predicted, average="macro")),
        "micro_f1": float(metrics.f1_score(truth, predicted)),
        "labels": float(predicted.sum() / truth.sum()),
    }


def _best(labels: Table, scores: Table) -> Table:
    return choose_thresholds(labels, scores, "macro_f1").thresholds


def _f1(labels: Table, predicted: Table) -> Table:
    """Give the F1 score of every label, 0 where it is neither there nor predicted."""
    total = labels.sum(axis=0) + predicted.sum(axis=0)
    return np.asarray(2.0 * (labels * predicted).sum(axis=0) / np.maximum(total, 1))


def _folds(n_rows: int, count: int, seed: int) -> list[tuple[Table, Table]]:
    parts = np.array_split(np.random.default_rng(seed).permutation(n_rows), count)
    return [(np.setdiff1d(np.arange(n_rows), part), part) for part in parts]


def _scut_fbr(labels: Table, scores: Table, fbr: float) -> Table:
    found = []
    for rest, fold in _folds(len(labels), 5, 0):
        thresholds = _best(labels[rest], scores[rest])
        is_low = _f1(labels[fold], scores[fold] > thresholds) < fbr
        found.append(np.where(is_low, scores[fold].max(axis=0), thresholds))
    return np.asarray(np.mean(found, axis=0))


def _chosen_fbr(labels: Table, scores: Table) -> float:
    values = np.zeros(len(_FBR))
    for rest, fold in _folds(len(labels), 4, 1):
        for place, fbr in enumerate(_FBR):
            thresholds = _scut_fbr(labels[rest], scores[rest], fbr)
            values[place] += _f1(labels[fold], scores[fold] > thresholds).mean()
    return float(_FBR[values.argmax()])


if __name__ == "__main__":
    main()
