"""The effect of thresholds chosen on training rows on test rows, for several ways of holding out rows.

Every set's rows are split again, two thirds for training and one third for testing, stratified by labels,
with several seeds; everything is chosen on the training rows. "none" is a threshold of 0; "a fifth" chooses
on one fifth of the training rows, "folds" (the default) on scores of every training row by a model of the
other four folds, "three folds" by a model of two thirds; "bare" is one fifth without shrinkage and floor.
"labels" is the number of predicted labels over that of true ones. Numbers are means over seeds; the error is
that of the mean of the differences from "a fifth".

``--floor`` compares thresholds for macro-F1, on scores of fits to the other four folds. "own" is the best
threshold of every label; "floor" the result of ``shrinkage="auto"``, the default of tuned thresholds.
"SCutFBR.1" (Lewis, Yang, Rose and Li 2004; Fan and Lin 2007): the mean over five folds of the best threshold
on four, or of the highest score of the fifth if the label's F1 score there is below fbr; fbr, from 0 to 0.8,
has the best macro-F1 on four folds of the training rows. "best on the test rows" is the bound for macro-F1.
"""

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.frame import RESULTS, command, flag, save, standard_error, timed
from benchmarks.problems import read_parts, stacked
from labelweave import MaxMarginClassifier, TunedThresholdClassifier, metrics
from labelweave.postprocessing import choose_thresholds
from labelweave.splits import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit

_SETS = ("emotions", "birds", "yeast", "enron", "bibtex")
_WAYS: dict[str, dict[str, Any]] = {
    "bare": {"validation_fraction": 0.2, "shrinkage": 0},
    "a fifth": {"validation_fraction": 0.2},
    "folds": {},
    "three folds": {"cv": 3},
}
_FBR = np.arange(0.0, 0.81, 0.1)
Table = npt.NDArray[Any]


def read_rows(name: str) -> tuple[Any, Any]:
    X, Y = stacked(reversed(read_parts(name)))
    return X, Y.positives


def _split(Y: Any, seed: int) -> tuple[Table, Table]:
    splitter = IterativeStratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
    return next(splitter.split(np.arange(Y.shape[0]), Y))


def _plain(X: Any) -> MaxMarginClassifier:
    return MaxMarginClassifier(scaling="unit" if sp.issparse(X) else "standard")


def _tuned(X: Any, Y: Any, train: Table, test: Table, seed: int) -> dict[str, dict[str, float]]:
    """Fit to two thirds of the rows in every way, and measure on the others."""
    models: dict[str, Any] = {"none": _plain(X)}
    for objective, (way, how) in product(("micro_f1", "macro_f1"), _WAYS.items()):
        models[f"{objective}, {way}"] = TunedThresholdClassifier(
            _plain(X), objective, random_state=seed, **how
        )
    found = {}
    for title, model in models.items():
        _, seconds = timed(model.fit, X[train], Y[train])
        found[title] = _measured(Y[test], sp.csr_array(model.predict(X[test]))) | {"seconds": seconds}
    return found


def _measured(truth: Any, predicted: Any) -> dict[str, float]:
    return {
        "micro_f1": float(metrics.f1_score(truth, predicted)),
        "macro_f1": float(metrics.f1_score(truth, predicted, average="macro")),
        "hamming_loss": float(metrics.hamming_loss(truth, predicted)),
        "labels": float(predicted.sum() / max(1, truth.sum())),
    }


def _floors(X: Any, Y: Any, train: Table, test: Table, seed: int) -> dict[str, dict[str, float]]:
    """Choose thresholds for macro-F1 on out-of-fold scores of training rows, and measure on the others."""
    model, scores = _plain(X), np.empty((len(train), Y.shape[1]))
    for kept, held in IterativeStratifiedKFold(5, shuffle=True, random_state=seed).split(train, Y[train]):
        fitted = model.fit(X[train[kept]], Y[train[kept]])
        scores[held] = fitted.decision_function(X[train[held]])
    labels, truth = Y[train].toarray(), Y[test].toarray()
    new = model.fit(X[train], Y[train]).decision_function(X[test])
    ways = {
        "own": _best(labels, scores),
        "floor": choose_thresholds(labels, scores, "macro_f1", shrinkage="auto").thresholds,
        "SCutFBR.1": _scut_fbr(labels, scores, _chosen_fbr(labels, scores)),
        "best on the test rows": _best(truth, new),
    }
    return {way: _measured(truth, (new > thresholds).astype(int)) for way, thresholds in ways.items()}


def _best(labels: Table, scores: Table) -> Table:
    return choose_thresholds(labels, scores, "macro_f1").thresholds


def _f1(labels: Table, predicted: Table) -> Table:
    """Return the F1 score of every label, 0 if it is neither present nor predicted."""
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


def _summary(runs: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return means over seeds, and the standard error of the difference from one fifth."""
    found = {}
    for title in runs[0]:
        line = {what: float(np.mean([run[title][what] for run in runs])) for what in runs[0][title]}
        objective = title.split(",")[0]
        if title.endswith("folds") and len(runs) > 1:
            gains = [run[title][objective] - run[f"{objective}, a fifth"][objective] for run in runs]
            line |= {"gain": float(np.mean(gains)), "error": float(standard_error(gains))}
        found[title] = line
    return found


@command(
    problems=_SETS,
    seeds=4,
    floor=flag(False, "thresholds for macro-F1 by the floor and by SCutFBR.1"),
    out=flag(help="the results file", type=Path),
)
def main(arguments: Any) -> None:
    out = arguments.out or RESULTS / f"threshold{'_floor' if arguments.floor else 's'}.json"
    results: dict[str, Any] = {"seeds": arguments.seeds}
    warnings.simplefilter("ignore")
    for name in arguments.problems:
        X, Y = read_rows(name)
        ways = _floors if arguments.floor else _tuned
        runs = [ways(X, Y, *_split(Y, seed), seed) for seed in range(arguments.seeds)]
        results[name] = {"rows": X.shape[0], "labels": Y.shape[1], "ways": _summary(runs)}
        for way, found in results[name]["ways"].items():
            numbers = "  ".join(f"{what} {value:.4f}" for what, value in found.items())
            print(f"{name:9} {way:22} {numbers}", flush=True)
        save(out, results)
