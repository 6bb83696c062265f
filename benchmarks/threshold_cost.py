"""The cost of tuned thresholds: fits without and with them in turn, by the ratio of their seconds.

Thresholds are those of ``TunedThresholdClassifier`` around ``MaxMarginClassifier``; "global" is one for all
labels.  A fit holds out rows, fits the others to a looser gap, chooses thresholds and continues with all rows
from its dual variables.  "folds" holds out each fifth of up to 5,000 rows in turn, the
default, and then only one tenth.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.frame import RESULTS, command, flag, timed, write_json
from benchmarks.machine import describe_machine
from benchmarks.problems import load_problem, read_tables
from benchmarks.thresholds import read_rows
from labelweave import MaxMarginClassifier, TunedThresholdClassifier

_RULES = ("micro_f1", "macro_f1", "example_f1")
_FOLDED = ("emotions", "birds", "yeast")


def _training_rows(name: str) -> tuple[Any, Any]:
    is_given = name.startswith("rcv1")
    return load_problem(name) if is_given else read_tables(name, rows="scaled")[:2]


def _tuned(rule: str, **how: Any) -> TunedThresholdClassifier:
    return TunedThresholdClassifier(MaxMarginClassifier(), rule, validation_fraction=0.1, **how)


def _ratios(X: Any, Y: Any, rounds: int) -> dict[str, dict[str, float]]:
    """Return medians of seconds, and of the ratios to the fit without thresholds just before."""
    models: dict[str, Any] = {"without": MaxMarginClassifier()}
    models["micro_f1, global"] = _tuned("micro_f1", scope="global")
    models |= {rule: _tuned(rule) for rule in _RULES}
    for model in models.values():  # compile
        model.fit(X[:500], Y[:500])
    seconds: dict[str, list[tuple[float, float]]] = {title: [] for title in models}
    for _ in range(rounds):
        for title, model in models.items():
            plain, tuned = (timed(one.fit, X, Y)[1] for one in (models["without"], model))
            seconds[title].append((tuned, tuned / plain))
    table = {title: np.median(pairs, axis=0) for title, pairs in seconds.items()}
    return {title: {"seconds": float(s), "fits": float(ratio)} for title, (s, ratio) in table.items()}


def _folds(X: Any, Y: Any, rounds: int) -> dict[str, dict[str, float]]:
    """Return medians of seconds with every fifth held out in turn, and of the ratios to a fit without."""
    found: dict[str, dict[str, float]] = {}
    for kernel in ("linear", "rbf"):
        plain = MaxMarginClassifier(kernel=kernel, scaling="standard")
        folds = TunedThresholdClassifier(clone(plain))
        part = TunedThresholdClassifier(clone(plain), validation_fraction=0.1)
        for model in (plain, folds, part):  # compile
            model.fit(X, Y)
        runs = [[timed(model.fit, X, Y)[1] for model in (plain, folds, part)] for _ in range(rounds)]
        for title, column in ((kernel, 1), (f"{kernel}, one tenth", 2)):
            pairs = [(seconds[column], seconds[column] / seconds[0]) for seconds in runs]
            seconds, ratio = np.median(pairs, axis=0)
            found[title] = {"seconds": float(seconds), "fits": float(ratio)}
    return found


@command(
    problems=flag(["rcv1-subset1", "debtags", "bibtex"], nargs="*"),
    folds=flag(_FOLDED, "sets of up to 5,000 rows", nargs="*"),
    rounds=3,
    out=RESULTS / "threshold_cost.json",
)
def main(arguments: Any) -> None:
    results: dict[str, Any] = describe_machine() | {"threads": 1, "rounds": arguments.rounds}
    warnings.simplefilter("ignore")
    for name in arguments.folds:
        X, Y = read_rows(name)
        shape = {"rows": X.shape[0], "labels": Y.shape[1]}
        results[f"{name}, folds"] = shape | _folds(X, Y, arguments.rounds)
        print(name, results[f"{name}, folds"], flush=True)
        write_json(arguments.out, results)
    for name in arguments.problems:
        X, Y = _training_rows(name)
        results[name] = {"rows": X.shape[0], "labels": Y.shape[1], "ratios": _ratios(X, Y, arguments.rounds)}
        print(name, results[name], flush=True)
        write_json(arguments.out, results)
