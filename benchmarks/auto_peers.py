"""AutoLabelClassifier compared with single calls of other methods, on given splits of Mulan's sets and
debtags.

Forests are tuned by a grid on three folds, and so is LIBLINEAR's C; every other method has its defaults.  All
get the best thresholds for micro-F1 on held-out training rows by TunedThresholdClassifier, as
AutoLabelClassifier has.  Texts stay sparse for linear models; the others get dense rows.  CatBoost and FLAML
take part if they are installed; FLAML searches for two minutes in all, an equal share for each label and
fold.

    python -m benchmarks.auto_peers --sets scene yeast
    python -m benchmarks.auto_peers --sets flags emotions birds --splits 5
    python -m benchmarks.auto_peers --sets debtags bibtex tmc2007 --methods "LIBLINEAR, tuned"
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.auto_quality import dense, rank_measures, set_measures, splits
from benchmarks.frame import OUT, command, flag, quiet, save
from labelweave import AutoLabelClassifier, KernelLogisticClassifier, TunedThresholdClassifier

FLAML = "FLAML, one against rest"
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


def _liblinear() -> Any:
    rows = make_pipeline(Normalizer(), OneVsRestClassifier(LinearSVC()))
    grid = {"onevsrestclassifier__estimator__C": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
    return GridSearchCV(rows, grid, scoring=_average_precision_of_scores, cv=3)


def _average_precision_of_scores(model: Any, X: Any, y: Any) -> float:
    return rank_measures(y, model.decision_function(X))["AUPRC_MICRO"]


def _catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        loss_function="MultiLogloss", thread_count=2, random_seed=0, verbose=0, allow_writing_files=False
    )


def _flaml(n_labels: int) -> Any:
    from flaml import AutoML

    search = AutoML(task="classification", time_budget=120.0 / n_labels / 6, n_jobs=2, verbose=0, seed=0)
    return OneVsRestClassifier(search)


PEERS: dict[str, Callable[[], Any]] = {
    "random forest, tuned": _forest,
    "histogram boosting, one against rest": lambda: OneVsRestClassifier(HistGradientBoostingClassifier()),
    "CatBoost, multi-label loss": _catboost,
    "chain of logistic regressions": _chain,
    "linear SVM, C tuned by label": _linear,
    "LIBLINEAR, tuned": _liblinear,
    "KernelLogisticClassifier": lambda: KernelLogisticClassifier(scaling="auto"),
}
_TAKES_SPARSE = {"linear SVM, C tuned by label", "LIBLINEAR, tuned", "KernelLogisticClassifier"}


def measure(parts: tuple[Any, Any, Any, Any], method: str | None) -> dict[str, float]:
    X, Y, X_test, Y_test = parts
    table, truth = (part.positives.toarray().astype(int) for part in (Y, Y_test))
    begin = time.perf_counter()
    if method is None:
        model = AutoLabelClassifier(n_jobs=2).fit(X, Y)
        scores, sets = model.predict_proba(X_test), np.asarray(dense(model.predict(X_test)))
    else:
        rows, test = (part if method in _TAKES_SPARSE else dense(part) for part in (X, X_test))
        given = _flaml(Y.n_labels) if method == FLAML else PEERS[method]()
        if isinstance(given, GridSearchCV):  # once, not in every fold of the thresholds
            given = given.fit(rows, table).best_estimator_
        model = TunedThresholdClassifier(given, "micro_f1", cv=5).fit(rows, table)
        scores, sets = _scores(model.estimator_, test), np.asarray(dense(model.predict(test)))
    found = rank_measures(truth, scores) | set_measures(truth, sets)
    return {name: found[name] for name in _SHOWN} | {"seconds": time.perf_counter() - begin}


def _scores(model: Any, X: Any) -> Any:
    if not hasattr(model, "predict_proba"):
        return model.decision_function(X)
    found = model.predict_proba(X)
    if isinstance(found, list):
        return np.stack([part[:, -1] * (part.shape[1] > 1) for part in found], axis=1)
    return np.asarray(found)


@command(
    sets=["flags", "emotions", "birds", "scene", "yeast"],
    splits=flag(0, "stratified 60/40 splits; 0 for the given one"),
    methods=flag([*PEERS, FLAML], nargs="*", choices=[*PEERS, FLAML]),
    out=OUT,
)
def main(options: Any) -> None:
    results: dict[str, Any] = {}
    for name in options.sets:
        print(f"{name}: {', '.join(_SHOWN)}")
        count = 0 if name == "debtags" else options.splits
        for method in [None, *options.methods]:
            shown = method or "AutoLabelClassifier"
            try:
                with quiet(Warning):  # of labels that a fold lacks
                    runs = [measure(parts, method) for parts in splits(name, count)]
            except ImportError as error:
                print(f"   {shown:38s} left out: {error}", flush=True)
                continue
            found = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            results.setdefault(name, {})[shown] = found
            numbers = "  ".join(f"{found[measure]:.4f}" for measure in _SHOWN)
            print(f"   {shown:38s} {numbers}  {found['seconds']:.0f} s", flush=True)
            save(options.out, results)
