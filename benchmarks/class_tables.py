"""AutoLabelClassifier compared with forests and kernel machines on tables with one class per row.

    python -m benchmarks.class_tables                                # tables included in scikit-learn
    python -m benchmarks.class_tables --csv glass.csv:Type vowel.csv:Class

None of these tables was used to design the model.  Each table is split in half several times, stratified by
class; columns are read as on the command line.  The forest has 300 trees; the kernel machine has standardized
columns and the best of nine settings on three folds.  Both are scikit-learn's, otherwise with its defaults.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.frame import command, flag
from labelweave import AutoLabelClassifier, TableModel
from labelweave.datasets import TableColumns, read_table_columns

Table = tuple[str, pd.DataFrame, Any]
_BUNDLED = ("iris", "wine", "breast_cancer", "digits")
_LARGEST = 2000  # training rows


def bundled() -> Iterator[Table]:
    for name in _BUNDLED:
        found = getattr(datasets, f"load_{name}")(as_frame=True)
        yield name, found.data, np.asarray(found.target_names).astype(str)[found.target]


def from_files(paths: list[str]) -> Iterator[Table]:
    """Read tables as the command line does; each path ends in a colon and the column of classes."""
    for path in paths:
        file, _, column = path.rpartition(":")
        found = read_table_columns(file, TableColumns(labels=column))
        labels = found.Y.positives.tocoo()
        classes = np.empty(len(found.Y), object)
        classes[labels.coords[0]] = np.asarray(found.label_names)[labels.coords[1]]
        yield file, found.X, classes


def accuracies(frame: pd.DataFrame, classes: Any, seed: int) -> dict[str, float]:
    """Fit the three to half of the rows, and measure them on the others."""
    kinds = ["numeric" if kind.kind in "if" else "categorical" for kind in frame.dtypes]
    columns = {kind: [c for c, k in zip(frame, kinds, strict=True) if k == kind] for kind in set(kinds)}
    rows, others = train_test_split(np.arange(len(frame)), test_size=0.5, stratify=classes, random_state=seed)
    rows = rows[:_LARGEST]
    plain = pd.get_dummies(frame, columns=columns.get("categorical", [])).astype(float)
    plain = plain.fillna(plain.iloc[rows].mean()).to_numpy()
    share = 1.0 / plain.shape[1]
    grid = {"svc__C": [1, 10, 100], "svc__gamma": [0.1 * share, share, 4 * share]}
    machine = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3)
    one_call: Any = TableModel(AutoLabelClassifier(), missing_numeric="mean", **columns)
    one_call.fit(frame.iloc[rows], classes[rows])
    found = {"one call": one_call.score(frame.iloc[others], classes[others])}
    for name, model in {
        "forest": RandomForestClassifier(300, random_state=seed), "kernel machine": machine
    }.items():  # fmt: skip
        found[name] = model.fit(plain[rows], classes[rows]).score(plain[others], classes[others])
    return found | {"told": float(one_call.classifier_.oof_score_)}


@command(csv=flag(help="other tables", nargs="+", metavar="FILE:COLUMN"), draws=5)
def main(chosen: Any) -> None:
    print("accuracy, mean of draws; told: what the one call expects of new rows")
    for name, frame, classes in from_files(chosen.csv) if chosen.csv else bundled():
        draws = pd.DataFrame([accuracies(frame, classes, seed) for seed in range(chosen.draws)])
        print(f"{name:20}", "  ".join(f"{k} {v:.4f}" for k, v in draws.mean().items()), flush=True)
