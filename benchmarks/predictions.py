"""Prediction times of every estimator and the wrappers, compared with the plain products that bound them.

Rows are texts (20,000 words as frequent as in text, 60 per row, 300 labels), dense rows of 384 columns with
50 labels, or such rows with an RBF kernel to 2,000 training rows. Labels follow random weights, and fits are
short, since times do not depend on the quality of a model. Scores are timed in memory and from a mapped model
file; predictions, probabilities and the five best labels in memory.  "checks" are those of the structure of
sparse arrays (indices in range, ascending row starts) and of finite numbers, once per call.

The bound is the time of NumPy or SciPy for only the products, with tables ready in the best order: rows by
weights; by the factors of a low-rank model; by support rows and by coefficients for kernels, without
exponentials. For trees, graphs and combined models it is the product with one weight per feature and label.

Calls alternate, in CPU seconds on one thread, and medians count; threads need ``--clock``.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

import labelweave as lw
from benchmarks.frame import RESULTS, RecordedRuns, Run, command, flag, quiet
from benchmarks.problems import text_pattern
from labelweave.features import FeatureMatrix

_METHODS = ("decision_function", "predict", "predict_top", "predict_proba")
_COLUMNS, _SUPPORT = 384, 2000
_EXPLAINED_FROM = 1.5  # times the bound
Call = Callable[[], Any]


def _models() -> dict[str, dict[str, Any]]:
    margin = lw.MaxMarginClassifier(tol=0.1)
    texts: dict[str, Any] = {
        "MaxMargin": margin,
        "MaxMargin, pruned": lw.MaxMarginClassifier(tol=0.1, prune="certified"),
        "BinaryRelevance": lw.BinaryRelevance("log_loss"),
        "LowRank, 50": lw.LowRankClassifier(50, max_iter=3),
        "LabelTree": lw.LabelTreeClassifier(),
        "LabelTree, margins": lw.LabelTreeClassifier(n_trees=1, negatives="all"),
        "TunedThreshold": lw.TunedThresholdClassifier(margin, cv=2),
        "Calibrated": lw.CalibratedLabelClassifier(margin, cv=2),
        "Conformal": lw.ConformalLabelClassifier(margin),
    }
    dense: dict[str, Any] = {
        "MaxMargin": margin,
        "KernelLogistic, linear": lw.KernelLogisticClassifier("linear", gamma=1.0, tol=0.1),
        "BinaryRelevance": lw.BinaryRelevance("log_loss"),
        "LowRank, 10": lw.LowRankClassifier(10, max_iter=3),
        "LabelGraph": lw.LabelGraphClassifier(graph="chow-liu", tol=0.5, max_iter=5),
        "LabelTree": lw.LabelTreeClassifier(),
        "Calibrated": lw.CalibratedLabelClassifier(margin, cv=2),
        "AutoLabel": lw.AutoLabelClassifier(time_budget=20),
    }
    kernels: dict[str, Any] = {
        "MaxMargin, RBF": lw.MaxMarginClassifier(kernel="rbf", tol=0.1),
        "KernelLogistic, RBF": lw.KernelLogisticClassifier("rbf", gamma=1 / _COLUMNS, tol=0.1),
        "LowRank, RBF": lw.LowRankClassifier(10, kernel="rbf", max_iter=3),
    }
    return {"texts": texts, "dense": dense, "kernels": kernels}


def _rows(kind: str, n_rows: int, n_words: int, seed: int) -> Any:
    if kind == "texts":
        return text_pattern(n_rows, n_words, 60, np.float64, seed)
    return np.random.default_rng(seed).normal(size=(n_rows, _COLUMNS))


def _labels(X: Any, n_labels: int) -> Any:
    """Assign to texts the three labels with the highest random scores, to other rows a tenth of all."""
    weights = np.random.default_rng(0).normal(size=(X.shape[1], n_labels))
    scores = X @ weights
    if not sp.issparse(X):
        return (scores > np.quantile(scores, 0.9, axis=1)[:, None]).astype(int)
    columns = np.argpartition(scores, -3, axis=1)[:, -3:].ravel()
    ends = np.arange(0, 3 * len(scores) + 1, 3)
    return sp.csr_array((np.ones(len(columns), int), columns, ends), shape=scores.shape)


def _bound(kind: str, model: Any, X: Any, n_labels: int) -> Call:
    random, scorer = np.random.default_rng(0), getattr(model, "scorer_", None)
    if kind == "kernels":
        support = random.normal(size=(_COLUMNS, _SUPPORT))
        width = getattr(scorer, "label_factors_", np.empty((1, n_labels))).shape[1]
        coefficients = random.normal(size=(_SUPPORT, width))
        return lambda: (X @ support) @ coefficients
    if hasattr(scorer, "feature_factors_"):
        features, labels = scorer.feature_factors_, np.ascontiguousarray(scorer.label_factors_.T)
        return lambda: (X @ features) @ labels
    if hasattr(scorer, "gaps"):
        weights = sp.csr_array(scorer.coef_.T)
        return lambda: (X @ weights).toarray()  # noqa: PLW0108 - the product is timed
    table = random.normal(size=(X.shape[1], n_labels))
    return lambda: X @ table


def _medians(calls: dict[str, Call], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """Time calls in turn for some seconds, at least three times: milliseconds of each."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    begin = time.perf_counter()
    while len(found["bound"]) < 3 or time.perf_counter() < begin + seconds:
        for name, call in calls.items():
            start = clock()
            call()
            found[name].append(1e3 * (clock() - start))
    return {name: round(median(times), 4) for name, times in found.items()}


def _loaded(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        lw.save(model, Path(folder) / "model.lw")
        return lw.load(Path(folder) / "model.lw", verify=False)  # a mapped file stays while it is mapped


def _measure(kind: str, model: Any, runs: RecordedRuns, cases: dict[int, Run], options: Any) -> None:
    n_labels = options.labels if kind == "texts" else 50
    X = _rows(kind, 1500 if kind == "texts" else _SUPPORT, options.words, seed=1)
    clock = time.perf_counter if options.clock else time.process_time
    with quiet(Warning):  # of fits that end early
        model.fit(X, _labels(X, n_labels))
    loaded = _loaded(model)
    for n_rows, case in cases.items():
        rows = _rows(kind, n_rows, options.words, seed=2)
        calls = {"bound": _bound(kind, model, rows, n_labels)}
        calls |= {name: partial(getattr(model, name), rows) for name in _METHODS if hasattr(model, name)}
        calls["from a file"] = partial(loaded.decision_function, rows)
        calls["checks"] = partial(FeatureMatrix, rows)
        runs.add(case, {"milliseconds": _medians(calls, options.seconds, clock)})


def _lines(runs: list[Run]) -> Iterator[str]:
    names = [*_METHODS, "from a file", "checks"]
    yield f"{'':34}{'rows':>6} {'bound, ms':>10} " + " ".join(f"{name:>18}" for name in names)
    for run in runs:
        times, bound = run["milliseconds"], run["milliseconds"]["bound"]
        told = [
            f"{times[name]:10.3g} {times[name] / bound:6.1f}x" if name in times else f"{'-':>18}"
            for name in names
        ]
        yield f"{run['data']:8}{run['model']:26}{run['rows']:6} {bound:10.3g} " + " ".join(told)
    many = [(run, run["milliseconds"]) for run in runs if run["rows"] > 1]
    ratios = [(run, times["decision_function"] / times["bound"]) for run, times in many]
    slow = {f"{run['data']} {run['model']}" for run, ratio in ratios if ratio > _EXPLAINED_FROM}
    yield f"scores above {_EXPLAINED_FROM} times the bound: {', '.join(sorted(slow)) or 'none'}"


@command(
    rows=[1, 100, 10_000],
    data=["texts", "dense", "kernels"],
    models=flag(help="the names of some", nargs="+"),
    seconds=flag(1.0, "of each case at least"),
    words=flag(20_000, "of texts"),
    labels=flag(300, "of texts"),
    clock=flag(False, "time by the clock, for several threads"),
    records=RESULTS / "predictions.json",
)
def main(options: Any) -> None:
    runs = RecordedRuns(options)
    for kind in options.data:
        for name, model in _models()[kind].items():
            if options.models and name not in options.models:
                continue
            cases = {n_rows: {"data": kind, "model": name, "rows": n_rows} for n_rows in options.rows}
            wanted = {n_rows: case for n_rows, case in cases.items() if runs.wants(case)}
            if wanted:
                _measure(kind, model, runs, wanted, options)
    runs.show("\n".join(_lines(runs.runs)))
