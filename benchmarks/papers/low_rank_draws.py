"""Draws of normal features and of labels of low rank, few entries of which are seen, and fits to them."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np

from benchmarks.recorded_runs import RecordedRuns, Run
from labelweave import LowRankClassifier

GRID = 2.0 ** np.arange(0, 13)


class Draw:
    """Rows, and labels whose probability is 1/2 plus a product of a rank, cut to [0, 1]."""

    def __init__(self, *, rows: int, features: int, rank: int, labels: int, seed: int) -> None:
        self.random = random = np.random.default_rng([seed, labels])
        weights = random.normal(size=(features, rank)) @ random.normal(size=(rank, labels))
        weights *= 0.2 / np.linalg.norm(weights, axis=0)
        self.X, self.X_test = random.normal(size=(rows, features)), random.normal(size=(2000, features))
        self.truth = (random.random((rows, labels)) < np.clip(0.5 + self.X @ weights, 0, 1)).astype(float)
        self.chances = np.clip(0.5 + self.X_test @ weights, 0, 1)


def measure(draw: Draw, seen: Any, grid: Any, penalty: str, **options: Any) -> tuple[float, Any, Any]:
    """Choose lambda on a fifth of the seen entries, and fit all of them.

    seen: the numbers of the labels that are seen, a row for each row.
    Returns: lambda, the excess risk of every label over the variance of the probabilities, and how often each
    label is seen.
    """
    Y = np.full_like(draw.truth, np.nan)
    np.put_along_axis(Y, seen, np.take_along_axis(draw.truth, seen, axis=1), axis=1)
    is_held = ~np.isnan(Y) & (draw.random.random(Y.shape) < 0.2)
    part = np.where(is_held, np.nan, Y)

    def scores(table: Any, rows: Any, value: float) -> Any:
        fixed: dict[str, Any] = {
            "penalty": penalty,
            "regularization": value,
            "n_jobs": 1,
            "fit_intercept": 30.0,
        }
        model = LowRankClassifier(1.0, **fixed, **options).fit(draw.X, table)
        return model.decision_function(rows) + model.thresholds_.min()

    errors = [np.square(scores(part, draw.X, float(value)) - Y)[is_held].mean() for value in grid]
    best = float(grid[int(np.argmin(errors))])
    excess = np.square(scores(Y, draw.X_test, best) - draw.chances).mean(axis=0) / draw.chances.var()
    return best, excess, (~np.isnan(Y)).sum(axis=0)


def measure_all(
    arguments: Namespace,
    choices: Mapping[str, Iterable[Any]],
    measure: Callable[..., Run],
    table: Callable[[list[Run]], str],
) -> None:
    """Measure all combinations of choices at the shape that is asked for, and show them."""
    warnings.simplefilter("ignore")
    record = RecordedRuns(arguments)
    shape = {name: getattr(arguments, name) for name in ("rows", "features", "rank", "seen")}
    for values in product(*choices.values()):
        case = shape | dict(zip(choices, values, strict=True))
        if record.wants(case):
            begin = time.process_time()
            found = measure(**case)
            record.add(case, found | {"processor seconds": time.process_time() - begin})
            print(case | found, flush=True)
    record.show(table([run for run in record.runs if shape.items() <= run.items()]))
