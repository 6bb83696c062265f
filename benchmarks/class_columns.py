"""Columns of classes as groups, compared with the same classes as free labels and with scikit-learn.

Every model is fitted twice to the same rows: to columns of classes, with one predicted class per column, and
to the same classes as free labels.  A cell is correct if exactly its class is predicted; "best" takes the
class with the highest score of free labels in every column instead of their predictions.  Probabilities of
free labels are divided by their sums.  Hyperparameters are chosen on training rows only: those of the kernel
logistic model by its cross-validated loss, C on three folds.

The set ``flags`` is Mulan's, where landmass, zone, language and religion of countries are predicted from
their flags, area and population.  MEKA's ``solar_flare.arff`` and ``thyroid-L7.arff`` are read from a folder.

    python -m benchmarks.class_columns
    python -m benchmarks.class_columns --meka FOLDER --sets solar_flare thyroid-L7
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.io.arff import loadarff
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, groups, mean_and_error
from benchmarks.problems import DEFAULT_DATA
from labelweave import (
    AutoLabelClassifier,
    HyperparameterSearch,
    KernelLogisticClassifier,
    LabelMatrix,
    MaxMarginClassifier,
)
from labelweave.datasets import read_mulan
from labelweave.labels import read_class_columns
from labelweave.labels.class_columns import coded_columns
from labelweave.splits import IterativeStratifiedKFold

_TARGETS = ["landmass", "zone", "language", "religion"]
_ROWS = {"flags": 130, "solar_flare": 215, "thyroid-L7": 1500}
_MOST_TEST_ROWS = 4000


def _max_margin() -> Any:
    return GridSearchCV(MaxMarginClassifier(), {"C": [0.03, 0.1, 0.3, 1.0]}, cv=IterativeStratifiedKFold(3))


def _logistic() -> Any:
    return KernelLogisticClassifier(hyperparameters=HyperparameterSearch(learning_rows=500))


OURS: dict[str, Callable[[], Any]] = {
    "max-margin, linear": _max_margin,
    "kernel logistic": _logistic,
    "automatic": lambda: AutoLabelClassifier(time_budget=30),
}
THEIRS: dict[str, Callable[[], Any]] = {
    "MultiOutputClassifier, logistic": lambda: MultiOutputClassifier(LogisticRegressionCV(max_iter=2000)),
    "MultiOutputClassifier, forest": lambda: MultiOutputClassifier(
        RandomForestClassifier(300, random_state=0)
    ),
}


def _flags() -> tuple[Any, LabelMatrix]:
    parts = [
        loadarff(DEFAULT_DATA / "mulan" / "flags" / f"flags-{part}.arff")[0] for part in ("train", "test")
    ]
    frame = pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    frame = frame.map(lambda cell: cell.decode() if isinstance(cell, bytes) else cell)
    rest = frame.drop(columns=_TARGETS)
    return rest.astype(float).to_numpy(), read_class_columns(frame[_TARGETS])


def _read(name: str, meka: Path) -> tuple[Any, LabelMatrix]:
    if name == "flags":
        return _flags()
    rows = read_mulan(meka / f"{name}.arff")
    return np.asarray(rows.X, float), rows.Y


def _free(labels: LabelMatrix) -> LabelMatrix:
    return LabelMatrix(labels.positives, labels.observed, labels.names)


def _measures(sets: Any, shares: Any, codes: Any, parts: list[slice]) -> dict[str, float]:
    """Measure label sets (n, L) and probabilities, if any, by the true codes (n, m)."""
    own = [np.asarray(sets[:, part]) > 0 for part in parts]
    rows = np.arange(len(codes))
    right = np.column_stack(
        [one[rows, code] & (one.sum(axis=1) == 1) for one, code in zip(own, codes.T, strict=True)]
    )
    found = {"accuracy": float(right.mean()), "exact": float(right.all(axis=1).mean())}
    if shares is None:
        return found
    tables = [np.maximum(shares[:, part], 1e-12) for part in parts]
    losses = [-np.log(table / table.sum(axis=1, keepdims=True))[rows, code]
              for table, code in zip(tables, codes.T, strict=True)]  # fmt: skip
    return found | {"log_loss": float(np.mean(losses))}


def _of_ours(model: Any, X: Any, columns: Any, codes: Any, *, is_free: bool) -> dict[str, dict[str, float]]:
    fitted = getattr(model, "best_estimator_", model)
    scores = fitted.decision_function(X)
    shares = fitted.predict_proba(X) if hasattr(fitted, "predict_proba") else None
    shares = np.hstack(shares) if isinstance(shares, list) else shares
    best = _measures(columns.sets(scores), shares, codes, columns.slices)
    if not is_free:
        return {"columns": best}
    return {"free": _measures(fitted.predict(X).toarray(), shares, codes, columns.slices), "best": best}


def _of_theirs(model: Any, X: Any, columns: Any, codes: Any) -> dict[str, dict[str, float]]:
    shares = np.zeros((len(X), columns.slices[-1].stop))
    for part, table, known in zip(columns.slices, model.predict_proba(X), model.classes_, strict=True):
        shares[:, part.start + known] = table
    return {"columns": _measures(columns.sets(shares), shares, codes, columns.slices)}


def _draw(X: Any, labels: LabelMatrix, n_rows: int, seed: int) -> tuple[Any, Any, Any, Any]:
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:n_rows], order[n_rows : n_rows + _MOST_TEST_ROWS]
    ready = make_pipeline(SimpleImputer(), StandardScaler()).fit(X[train])
    return ready.transform(X[train]), ready.transform(X[test]), train, test


def _fits(name: str, seed: int, X: Any, labels: LabelMatrix, runs: RecordedRuns) -> None:
    codes, columns = np.column_stack([one.codes for one in coded_columns(labels)]), labels.class_columns
    ready, unseen, train, test = _draw(X, labels, _ROWS[name], seed)
    for case in runs.missing(set=[name], seed=[seed], method=OURS | THEIRS, free=(False, True)):
        method, is_free = case["method"], case["free"]
        begin = time.process_time()
        if method in OURS:
            y = _free(labels[train]) if is_free else labels[train]
            found = _of_ours(OURS[method]().fit(ready, y), unseen, columns, codes[test], is_free=is_free)
        elif is_free:
            continue
        else:
            found = _of_theirs(THEIRS[method]().fit(ready, codes[train]), unseen, columns, codes[test])
        runs.add(case, {"found": found, "fit_seconds": time.process_time() - begin})


def _show(runs: RecordedRuns) -> None:
    for (name,), chosen in groups(runs.runs, "set").items():
        print(f"{name}: accuracy of cells, exact match, log loss, seconds of a fit")
        kinds = dict.fromkeys((run["method"], kind) for run in chosen for kind in run["found"])
        for method, kind in kinds:
            own = [run for run in chosen if run["method"] == method and kind in run["found"]]
            measures = [
                mean_and_error([run["found"][kind][key] for run in own if key in run["found"][kind]])
                for key in ("accuracy", "exact", "log_loss")
            ]
            seconds = np.mean([run["fit_seconds"] for run in own])
            print(f"  {method:32} {kind:8} {'  '.join(measures)}  {seconds:6.1f}")


@command(
    records=RESULTS / "class_columns.json",
    meka=flag(Path("meka"), "the folder of MEKA's ARFF files"),
    sets=["flags"],
    draws=10,
)
def main(arguments: Any) -> None:
    runs = RecordedRuns(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    for name in arguments.sets if runs.measures else ():
        X, labels = _read(name, arguments.meka)
        for seed in range(arguments.draws):
            _fits(name, seed, X, labels, runs)
    _show(runs)
