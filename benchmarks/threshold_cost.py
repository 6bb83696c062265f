"""The cost of tuned thresholds: fits without and with them in turn, by the ratio of their seconds.

Thresholds are those of ``TunedThresholdClassifier`` around ``MaxMarginClassifier``; "global" is one for all
labels.  A fit holds out rows, fits the others to a looser gap, chooses thresholds and continues with all rows
from its dual variables.  "folds" holds out each fifth of up to 5,000 rows in turn, the
default, and then only one tenth.
"""

import warnings
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag, save, timed
from benchmarks.problems import load_problem, read_tables
from benchmarks.thresholds import read_rows
from labelweave import MaxMarginClassifier, TunedThresholdClassifier

_RULES = ("micro_f1", "macro_f1", "example_f1")
_FOLDED = ("emotions", "birds", "yeast")


def _training_rows(name: str) -> tuple[Any, Any]:
    is_given = name.startswith("rcv1")
    return load_problem(name) if is_given else read_tables(name, rows="scaled")[:2]


def _tuned(model: Any, rule: str = "micro_f1", **how: Any) -> TunedThresholdClassifier:
    return TunedThresholdClassifier(model, rule, validation_fraction=0.1, **how)


def _ratios(X: Any, Y: Any, rounds: int) -> dict[str, dict[str, float]]:
    plain = MaxMarginClassifier()
    tuned = {"without": plain, "micro_f1, global": _tuned(plain, "micro_f1", scope="global")}
    return _medians(X, Y, rounds, plain, tuned | {rule: _tuned(plain, rule) for rule in _RULES})


def _folds(X: Any, Y: Any, rounds: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for kernel in ("linear", "rbf"):
        plain = MaxMarginClassifier(kernel=kernel, scaling="standard")
        tuned = {kernel: TunedThresholdClassifier(plain), f"{kernel}, one tenth": _tuned(plain)}
        found |= _medians(X, Y, rounds, plain, tuned)
    return found


def _medians(X: Any, Y: Any, rounds: int, plain: Any, tuned: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return medians of seconds, and of the ratios to the fit without thresholds just before."""
    for model in tuned.values():  # compile
        model.fit(X[:500], Y[:500])
    runs: dict[str, list[tuple[float, float]]] = {title: [] for title in tuned}
    for _ in range(rounds):
        for title, model in tuned.items():
            base, seconds = (timed(one.fit, X, Y)[1] for one in (plain, model))
            runs[title].append((seconds, seconds / base))
    table = {title: np.median(pairs, axis=0) for title, pairs in runs.items()}
    return {title: {"seconds": float(s), "fits": float(ratio)} for title, (s, ratio) in table.items()}


@command(
    problems=flag(["rcv1-subset1", "debtags", "bibtex"], nargs="*"),
    folds=flag(_FOLDED, "sets of up to 5,000 rows", nargs="*"),
    rounds=3,
    out=RESULTS / "threshold_cost.json",
)
def main(arguments: Any) -> None:
    results: dict[str, Any] = {"threads": 1, "rounds": arguments.rounds}
    warnings.simplefilter("ignore")
    sets = [(f"{name}, folds", read_rows(name), _folds) for name in arguments.folds]
    sets += [(name, _training_rows(name), _ratios) for name in arguments.problems]
    for name, (X, Y), measure in sets:
        results[name] = {"rows": X.shape[0], "labels": Y.shape[1]} | measure(X, Y, arguments.rounds)
        print(name, results[name], flush=True)
        save(arguments.out, results)
