"""``RankSearch()`` compared with ``LowRankClassifier()``: how its default was chosen, and its effect.

The candidates are compared on training rows only: every one is fitted to two thirds of a set's training rows
and measured on the rest, three times.  The test rows are used once, at the end, with the default only
(``--test``).  CPU seconds are compared with those of no search.

Run ``python -m benchmarks.low_rank_choice [--test] [--out FILE] [SET ...]``; sets of Mulan.
"""

from typing import Any

import numpy as np

from benchmarks.frame import OUT, command, flag, save, timed, without_name
from benchmarks.problems import read_part
from labelweave import LowRankClassifier, RankSearch, metrics
from labelweave.splits import IterativeStratifiedKFold

SETS = ["flags", "emotions", "birds", "yeast", "scene", "enron"]
FOLDS = 3
MOST_FITS = 10  # of folds and lambdas together


LAMBDAS = [(10.0, 1.0), (30.0, 3.0), (10.0, 3.0, 1.0), (30.0, 10.0, 3.0, 1.0), (100.0, 30.0, 10.0, 3.0)]
CANDIDATES: dict[str, Any] = {"no search": LowRankClassifier()} | {
    f"{', '.join(f'{value:g}' for value in values)}; {cv} folds": LowRankClassifier(
        RankSearch(alphas=values, cv=cv)
    )
    for cv in (2, 3, 4)
    for values in LAMBDAS
    if cv * len(values) <= MOST_FITS
}


def measured(model: Any, train: tuple[Any, Any], rest: tuple[Any, Any]) -> dict[str, float]:
    _, seconds = timed(model.fit, *train)
    predicted = model.predict(rest[0])
    found = {f"{kind}-F1": metrics.f1_score(rest[1], predicted, average=kind) for kind in ("micro", "macro")}
    return {**found, "seconds": seconds, "lambda": model.alpha_}


def of_folds(X: Any, Y: Any) -> dict[str, dict[str, float]]:
    """Measure every candidate on folds of training rows; means over them."""
    folds = list(IterativeStratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, Y))
    found = {}
    for name, model in CANDIDATES.items():
        runs = [measured(model, (X[kept], Y[kept]), (X[held], Y[held])) for kept, held in folds]
        found[name] = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    return found


def read(name: str, part: str) -> tuple[Any, Any]:
    found = read_part(name, part)
    return found.X, found.Y


@command(sets=without_name(SETS), test=flag(False, "the default alone, on the test rows"), out=OUT)
def main(given: Any) -> None:
    table: dict[str, Any] = {}
    print(f"{'set':10s} {'candidates':28s} {'CPU s':>7s} {'ratio':>6s} {'micro-F1':>9s} {'macro-F1':>9s}")
    for name in given.sets:
        train = read(name, "train")
        LowRankClassifier().fit(*train)  # compiles
        if given.test:
            models = {"no search": LowRankClassifier(), "default": LowRankClassifier(RankSearch())}
            rest = read(name, "test")
            table[name] = {kind: measured(model, train, rest) for kind, model in models.items()}
        else:
            table[name] = of_folds(*train)
        plain = table[name]["no search"]["seconds"]
        for kind, row in table[name].items():
            print(
                f"{name:10s} {kind:28s} {row['seconds']:7.2f} {row['seconds'] / plain:6.1f} "
                f"{row['micro-F1']:9.3f} {row['macro-F1']:9.3f}",
                flush=True,
            )
    for kind in next(iter(table.values())):
        rows = [row[kind] for row in table.values()]
        ratios = [row[kind]["seconds"] / row["no search"]["seconds"] for row in table.values()]
        means = [np.mean([row[f"{average}-F1"] for row in rows]) for average in ("micro", "macro")]
        print(f"{'mean':10s} {kind:28s} {'':7s} {np.max(ratios):6.1f} {means[0]:9.3f} {means[1]:9.3f}")
    save(given.out, table)
