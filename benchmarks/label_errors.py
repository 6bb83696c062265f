"""Finding wrong labels: ``find_label_errors`` compared with cleanlab, on the same out-of-fold probabilities.

Entries of the training labels of bibtex, and of 3,000 training rows of debtags, are flipped at random: 5 % or
10 % of all entries, or 10 % of the present ones, which are forgotten. Ridge regressions on the flipped labels
score out-of-fold rows of five folds, with the penalty of the least error, and logistic curves convert these
scores to probabilities, which all methods use; the metric is the average precision over all entries of
finding the flips.

``cleanlab`` (in .venv-peers) is the best of its three quality scores and of its multi-label filter, flagged
entries first; ``negatives`` is the best of these if only absent labels may be wrong. ``known rates`` is
Bayes' rule with the true rates on the probabilities, without label structure.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp
from sklearn.metrics import average_precision_score

from benchmarks.frame import RESULTS, RecordedRuns, command, groups, mean_and_error, several
from benchmarks.problems import read_tables
from benchmarks.programs import Program, ask
from labelweave.labels import LabelMatrix
from labelweave.noise import find_label_errors
from labelweave.postprocessing import calibrate_labels

Array = npt.NDArray[Any]

_PEER = Program("cleanlab", "benchmarks.peers.cleanlab_labels", "cleanlab")
NOISES = {"5 % of entries": (0.05, 0.05), "10 % of entries": (0.1, 0.1), "10 % forgotten": (0.1, 0.0)}
SETS = ("bibtex", "debtags")
FEWEST, _DRAWS = 5, 5
_PENALTIES, _FOLDS, _DEBTAGS_ROWS = (2.0, 6.0, 20.0), 5, 3000
_METHODS = ("related", "alone", "cleanlab", "negatives", "known rates")


def _measure_set(name: str, arguments: Any, recorded: RecordedRuns) -> None:
    cases = list(recorded.missing(set=[name], noise=NOISES, draw=range(arguments.draws)))
    if not cases:
        return
    X, Y, _ = training_rows(name)
    drawn = [flipped(Y, NOISES[case["noise"]], case["draw"]) for case in cases]
    scores = out_of_fold(X, np.hstack([given for given, _ in drawn]), len(cases))
    for case, (given, flips), table in zip(cases, drawn, scores, strict=True):
        found = _measure(given, flips, table, NOISES[case["noise"]])
        recorded.add(case, found)
        print(*case.values(), {key: round(value, 4) for key, value in found.items()}, flush=True)


def training_rows(name: str) -> tuple[sp.csr_array, Array, Array]:
    """Return rows, labels of 0 and 1 with at least five positives, and their numbers among all labels."""
    X, labels, *_ = read_tables(name, rows="unit" if name == "bibtex" else "as given")
    if name == "debtags":
        rows = np.sort(np.random.default_rng(0).choice(X.shape[0], _DEBTAGS_ROWS, replace=False))
        X, labels = X[rows], labels[rows]
    Y = labels.toarray()
    kept = np.flatnonzero(Y.sum(axis=0) >= FEWEST)
    return X, Y[:, kept].astype(np.float64), kept


def flipped(Y: Array, rates: tuple[float, float], draw: int) -> tuple[Array, Array]:
    """Flip present and absent entries at these rates; return the recorded labels and the wrong entries."""
    flips = np.random.default_rng(draw).random(Y.shape) < np.where(Y == 1, *rates)
    return np.where(flips, 1.0 - Y, Y), flips


def out_of_fold(X: sp.csr_array, targets: Array, cases: int) -> Iterator[Array]:
    """Score rows by ridge regressions on other folds; every case has the penalty of its least error."""
    folds = np.random.default_rng(0).permutation(X.shape[0]) % _FOLDS
    tables = [np.empty_like(targets) for _ in _PENALTIES]
    for fold in range(_FOLDS):
        train, held = X[folds != fold], X[folds == fold]
        mean = targets[folds != fold].mean(axis=0)
        is_wide = train.shape[0] <= train.shape[1]
        gram = np.asarray((train @ train.T if is_wide else train.T @ train).todense())
        right = targets[folds != fold] - mean
        for penalty, table in zip(_PENALTIES, tables, strict=True):
            factor = sl.cho_factor(gram + penalty * np.eye(len(gram)), check_finite=False)
            solved = sl.cho_solve(factor, right if is_wide else train.T @ right, check_finite=False)
            table[folds == fold] = held @ (train.T @ solved if is_wide else solved) + mean
    for places in np.split(np.arange(targets.shape[1]), cases):
        errors = [np.square(table[:, places] - targets[:, places]).sum() for table in tables]
        yield tables[int(np.argmin(errors))][:, places]


def _measure(recorded: Array, flips: Array, scores: Array, rates: tuple[float, float]) -> dict[str, float]:
    calibration = calibrate_labels(LabelMatrix.from_any(recorded), scores, "sigmoid")
    probabilities = calibration.probabilities(scores)

    def precision(suspicion: Array) -> float:
        return float(average_precision_score(flips.ravel(), suspicion.ravel()))

    found = {}
    for name, related in (("related", True), ("alone", False)):
        errors = find_label_errors(None, recorded, scores=probabilities, related=related)
        found[name] = precision(np.abs(errors.probabilities - recorded))
        found |= {f"{name}: expected": errors.expected, f"{name}: missed": errors.flip_rates.missed.mean()}
        found[f"{name}: false"] = errors.flip_rates.false.mean()
    tables = list(ask(_PEER, probabilities=probabilities, labels=recorded).values())
    found["cleanlab"] = max(precision(table) for table in tables)
    lowest = [np.where(recorded == 1, table.min() - 1.0, table) for table in tables]
    if rates[1] == 0:
        found["negatives"] = max(precision(table) for table in lowest)
    found["known rates"] = precision(_by_known_rates(recorded, probabilities, rates))
    return {name: float(value) for name, value in found.items()} | {"flips": float(flips.sum())}


def _by_known_rates(recorded: Array, probabilities: Array, rates: tuple[float, float]) -> Array:
    missed, false = rates
    truth = np.clip((probabilities - false) / (1.0 - missed - false), 1e-5, 1.0 - 1e-5)
    there = np.where(recorded == 1, 1.0 - missed, missed) * truth
    absent = np.where(recorded == 1, false, 1.0 - false) * (1.0 - truth)
    return np.asarray(np.where(recorded == 1, absent, there) / (there + absent))


def _table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'':30}" + "".join(f"{method:>18}" for method in _METHODS)]
    for (name, noise), own in groups(runs, "set", "noise").items():
        cells = [mean_and_error([run[method] for run in own if method in run]) for method in _METHODS]
        lines.append(f"{name + ', ' + noise:30}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join([*lines, "average precision of finding the flips, mean ± standard error over draws"])


@command(sets=several(SETS), draws=_DRAWS, records=RESULTS / "label_errors.json")
def main(arguments: Any) -> None:
    recorded = RecordedRuns(arguments)
    for name in arguments.sets:
        _measure_set(name, arguments, recorded)
    recorded.show(_table(recorded.runs))
