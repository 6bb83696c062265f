"""What a setting or a wrapper changes: F1 of test rows, and CPU seconds of the fit, one thread.

- ``scaling``: unscaled features and the model's choice of scaling, on Mulan's sets.
- ``rank``: ``RankSearch()`` compared with ``LowRankClassifier()``, on Mulan's sets.
- ``columns``: a kernel matrix, and factors of it with some columns, on satimage and USPS, a label per class.
- ``thresholds``: thresholds tuned on synthetic texts, compared with scikit-learn's tuning inside one-vs-rest.
  "tuned" holds out a fifth of the training rows and costs less than one more fit.  Oracles choose on the test
  rows, a quarter as many as training rows.

Everything else has its defaults, and no choice uses test rows.  ``--folds`` shows how the default of
``RankSearch`` was chosen: every candidate is fitted to two thirds of a set's training rows and measured on
the rest, three times.  Ratios are those of seconds to the first model's.

    python -m benchmarks.model_choices --of thresholds --out benchmarks/results/decisions.json
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import labelweave as lw
from benchmarks.frame import OUT, command, flag, quiet, save, timed, without_name
from benchmarks.problems import read_images, read_parts
from labelweave.datasets import LabeledData, make_text_like
from labelweave.metrics import f1_score
from labelweave.postprocessing import choose_thresholds
from labelweave.splits import IterativeStratifiedKFold

_FOLDS = 3
_MOST_FITS = 10  # of folds and lambdas together
_LAMBDAS = [(10.0, 1.0), (30.0, 3.0), (10.0, 3.0, 1.0), (30.0, 10.0, 3.0, 1.0), (100.0, 30.0, 10.0, 3.0)]
_SCALED: dict[str, Any] = {
    "max-margin": lw.MaxMarginClassifier(),
    "max-margin, RBF": lw.MaxMarginClassifier(kernel="rbf"),
    "kernel logistic": lw.KernelLogisticClassifier(),
    "low rank": lw.LowRankClassifier(),
    "label graph": lw.LabelGraphClassifier(),
}
_REST = OneVsRestClassifier(LinearSVC(random_state=0))
_CV = OneVsRestClassifier(TunedThresholdClassifierCV(LinearSVC(random_state=0), scoring="f1"))
_RANKS: dict[str, Any] = {
    f"{', '.join(f'{value:g}' for value in values)}; {cv} folds": lw.RankSearch(alphas=values, cv=cv)
    for cv in (2, 3, 4)
    for values in _LAMBDAS
    if cv * len(values) <= _MOST_FITS
}
MODELS: dict[str, dict[str, Any]] = {
    "scaling": {
        f"{name}, {scaling}": clone(model).set_params(scaling=scaling)
        for name, model in _SCALED.items()
        for scaling in ("none", "auto")
    },
    "rank": {"no search": lw.LowRankClassifier(), "default": lw.LowRankClassifier(lw.RankSearch())},
    "candidates": {"no search": lw.LowRankClassifier()}
    | {name: lw.LowRankClassifier(search) for name, search in _RANKS.items()},
    "columns": {
        "kernel matrix" if rank is None else f"{rank} columns": lw.MaxMarginClassifier(
            kernel="rbf", kernel_rank=rank
        )
        for rank in (None, 50, 200, 500, 1000)
    },
    "thresholds": {
        "one against the rest": _REST,
        "TunedThresholdClassifier": lw.TunedThresholdClassifier(_REST),
        "TunedThresholdClassifier, one threshold": lw.TunedThresholdClassifier(_REST, scope="global"),
        "TunedThresholdClassifier, 5 folds": lw.TunedThresholdClassifier(_REST, cv=5),
        "MaxMarginClassifier": lw.MaxMarginClassifier(),
        "TunedThresholdClassifier, MaxMarginClassifier": lw.TunedThresholdClassifier(
            lw.MaxMarginClassifier()
        ),
        "scikit-learn's TunedThresholdClassifierCV": _CV,
    },
}
_SETS = {
    "scaling": ["birds", "emotions", "flags", "scene", "yeast"],
    "rank": ["flags", "emotions", "birds", "yeast", "scene", "enron"],
    "columns": ["satimage", "usps"],
    "thresholds": ["texts"],
}
_ORACLES = ("one against the rest", "MaxMarginClassifier")


def _read(name: str, n: int) -> tuple[LabeledData, LabeledData]:
    if name in _SETS["columns"]:
        X, y, X_test, y_test = read_images(name)
        Y, Y_test = (lw.LabelMatrix((part[:, None] == np.unique(y)).astype(int)) for part in (y, y_test))
        return LabeledData(X, Y), LabeledData(X_test, Y_test)
    if name != "texts":
        return read_parts(name)
    made = make_text_like(n + n // 4, 5_000, 100, words_per_row=9, random_state=0)
    return LabeledData(made.X[:n], made.Y[:n]), LabeledData(made.X[n:], made.Y[n:])


def measured(title: str, train: tuple[Any, Any], rest: tuple[Any, Any], models: dict[str, Any]) -> Any:
    with quiet(Warning):  # for nearly constant kernels, and for gaps
        fitted, seconds = timed(clone(models[title]).fit, *train)
    predicted = fitted.predict(rest[0])
    if models[title] is _CV:  # one-vs-rest uses decision_function, without thresholds
        predicted = np.column_stack([one.predict(rest[0]) for one in fitted.estimators_])
    found = {f"{kind}-F1": float(f1_score(rest[1], predicted, average=kind)) for kind in ("micro", "macro")}
    if title in _ORACLES:
        found["oracle"] = float(choose_thresholds(rest[1], fitted.decision_function(rest[0])).value)
    if getattr(fitted, "scaling_", None) is not None:
        found["scaling"] = fitted.scaling_.kind
    return found | {"seconds": seconds} | ({"lambda": fitted.alpha_} if hasattr(fitted, "alpha_") else {})


def of_folds(title: str, train: Any, test: Any, models: dict[str, Any]) -> dict[str, float]:
    """Measure a candidate on folds of training rows; means over them."""
    X, Y = train
    folds = IterativeStratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(X, Y)
    runs = [measured(title, (X[kept], Y[kept]), (X[held], Y[held]), models) for kept, held in folds]
    return {key: float(np.mean([run[key] for run in runs])) for key in ("micro-F1", "macro-F1", "seconds")}


@command(
    sets=without_name([], "by default those of the choice"),
    of=flag("scaling", choices=list(_SETS)),
    folds=flag(False, "candidates for the search of ranks, on folds of training rows"),
    text_rows=20_000,
    out=OUT,
)
def main(given: Any) -> None:
    results: dict[str, Any] = {}
    models = MODELS["candidates" if given.folds else given.of]
    for name in given.sets or _SETS["rank" if given.folds else given.of]:
        train, test = ((part.X, part.Y.positives) for part in _read(name, given.text_rows))
        with quiet(Warning):
            next(iter(models.values())).fit(*train)  # compiles
        results[name] = {}
        for title in models:
            measure = of_folds if given.folds else measured
            found = results[name][title] = measure(title, train, test, models)
            found["ratio"] = found["seconds"] / next(iter(results[name].values()))["seconds"]
            numbers = (
                f"{key} {value:.3f}" if key != "scaling" else str(value) for key, value in found.items()
            )
            print(f"{name:10s} {title:46s} {'  '.join(numbers)}", flush=True)
    for title in models:
        runs = [of[title] for of in results.values()]
        micro, macro = (np.mean([run[f"{kind}-F1"] for run in runs]) for kind in ("micro", "macro"))
        most = f"at most {max(run['ratio'] for run in runs):.1f} times"
        print(f"{'mean':10s} {title:46s} micro-F1 {micro:.3f}  macro-F1 {macro:.3f}  {most}")
    save(given.out, results)
