"""AutoLabelClassifier beside one call of other methods, on the given splits of the sets of ``auto_quality``.

Forests are tuned by a grid on three folds; every other method has its defaults.  All of them get the best
thresholds for micro-F1 on left-out training rows, as AutoLabelClassifier has, by TunedThresholdClassifier.

    python -m benchmarks.auto_peers --sets flags emotions birds
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.auto_quality import load, rank_measures, set_measures
from labelweave import AutoLabelClassifier, KernelLogisticClassifier, TunedThresholdClassifier

_SHOWN = ("MICRO_F1", "MACRO_F1", "HAMMING_LOSS_example_based", "AUPRC_MICRO", "LABEL_RANKING_LOSS")


def _forest() -> Any:
    grid = {"max_features": ["sqrt", 0.3], "min_samples_leaf": [1, 3]}
    return GridSearchCV(RandomForestClassifier(200, random_state=0), grid, scoring=_average_precision, cv=3)


def _average_precision(model: Any, X: Any, y: Any) -> float:
    found = np.stack([part[:, -1] * (part.shape[1] > 1) for part in model.predict_proba(X)], axis=1)
    return rank_measures(y, found)["AUPRC_MICRO"]


def _chain() -> Any:
    chain = ClassifierChain(LogisticRegression(max_iter=2000), order="random", random_state=0)
    return make_pipeline(StandardScaler(with_mean=False), chain)


def _linear() -> Any:
    found = GridSearchCV(LinearSVC(), {"C": [0.03, 0.1, 0.3, 1.0, 3.0]}, scoring="average_precision", cv=3)
    return make_pipeline(StandardScaler(with_mean=False), OneVsRestClassifier(found))


PEERS: dict[str, Callable[[], Any]] = {
    "random forest, tuned": _forest,
    "histogram boosting, one against rest": lambda: OneVsRestClassifier(HistGradientBoostingClassifier()),
    "chain of logistic regressions": _chain,
    "linear SVM, C tuned by label": _linear,
    "KernelLogisticClassifier": lambda: KernelLogisticClassifier(scaling="auto"),
}


def measure(name: str, make: Callable[[], Any] | None) -> dict[str, float]:
    """Fit a method to the training rows of a set, and measure it on its test rows."""
    X, Y, X_test, Y_test = load(name)
    dense = [part.toarray() if sp.issparse(part) else part for part in (X, X_test)]
    table, truth = (part.positives.toarray().astype(int) for part in (Y, Y_test))
    begin = time.perf_counter()
    if make is None:
        model = AutoLabelClassifier(n_jobs=2).fit(X, Y)
        scores, sets = model.predict_proba(X_test), np.asarray(_dense(model.predict(X_test)))
    else:
        method = make()
        if isinstance(method, GridSearchCV):  # once, and not in every fold of the thresholds
            method = method.fit(dense[0], table).best_estimator_
        model = TunedThresholdClassifier(method, "micro_f1", cv=5).fit(dense[0], table)
        scores, sets = _scores(model.estimator_, dense[1]), np.asarray(model.predict(dense[1]))
    found = rank_measures(truth, scores) | set_measures(truth, sets)
    return {name: found[name] for name in _SHOWN} | {"seconds": time.perf_counter() - begin}


def _dense(table: Any) -> Any:
    return table.toarray() if sp.issparse(table) else table


def _scores(model: Any, X: Any) -> Any:
    if not hasattr(model, "predict_proba"):
        return model.decision_function(X)
    found = model.predict_proba(X)
    if isinstance(found, list):
        return np.stack([part[:, -1] * (part.shape[1] > 1) for part in found], axis=1)
    return np.asarray(found)


def main() -> None:
    """Print a line a method and set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["flags", "emotions", "birds", "scene", "yeast"])
    parser.add_argument("--methods", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.sets:
        print(f"{name}: {', '.join(_SHOWN)}")
        for method in ["AutoLabelClassifier", *options.methods]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of labels that a fold lacks
                found = measure(name, PEERS.get(method))
            results.setdefault(name, {})[method] = found
            numbers = "  ".join(f"{found[measure]:.4f}" for measure in _SHOWN)
            print(f"   {method:38s} {numbers}  {found['seconds']:.0f} s", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
