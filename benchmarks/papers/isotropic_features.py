"""Where low rank wins (LEML, Yu et al.  2014, section 4): isotropic features, few observed labels, many
labels.

The paper bounds the excess risk of the trace norm by a number that does not grow with the labels if features
are normal and some labels of each row are observed, and shows that a ridge cannot have such a bound; it
has no table.  Here rows are normal, and a label has the probability 1/2 + x^T z_j, clipped to [0, 1], with
weights of rank 3 that give probabilities a standard deviation of 0.2.  The squared loss of observed
entries is fitted with the trace norm and with a ridge, at ranks that constrain neither; intercepts, which the
bound does not have, are nearly unpenalized. lambda minimizes the error on a fifth of the observed entries,
after which all of them are fitted.  The result is the excess risk, the mean squared distance of scores to
probabilities on 2,000 other rows, over the variance of these.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, RecordedRuns, Run, command, groups, timed
from labelweave import LowRankClassifier

_PENALTIES = ("trace_norm", "ridge")
GRID = 2.0 ** np.arange(0, 13)


class Draw:
    """Rows, and labels whose probability is 1/2 plus a low-rank product, clipped to [0, 1]."""

    def __init__(self, *, rows: int, features: int, rank: int, labels: int, seed: int) -> None:
        self.random = random = np.random.default_rng([seed, labels])
        weights = random.normal(size=(features, rank)) @ random.normal(size=(rank, labels))
        weights *= 0.2 / np.linalg.norm(weights, axis=0)
        self.X, self.X_test = random.normal(size=(rows, features)), random.normal(size=(2000, features))
        self.truth = (random.random((rows, labels)) < np.clip(0.5 + self.X @ weights, 0, 1)).astype(float)
        self.chances = np.clip(0.5 + self.X_test @ weights, 0, 1)


def measure(draw: Draw, seen: Any, grid: Any, penalty: str, **options: Any) -> tuple[float, Any, Any]:
    """Choose lambda on a fifth of the observed entries, and fit all of them.

    seen: the numbers of the observed labels of each row.
    Returns: lambda, the excess risk of every label over the variance of the probabilities, and the number of
    times that each label is observed.
    """
    Y = np.full_like(draw.truth, np.nan)
    np.put_along_axis(Y, seen, np.take_along_axis(draw.truth, seen, axis=1), axis=1)
    is_held = ~np.isnan(Y) & (draw.random.random(Y.shape) < 0.2)
    part = np.where(is_held, np.nan, Y)

    def scores(table: Any, rows: Any, value: float) -> Any:
        fixed: dict[str, Any] = {"penalty": penalty, "alpha": value, "n_jobs": 1, "fit_intercept": 30.0}
        model = LowRankClassifier(1.0, **fixed, **options).fit(draw.X, table)
        return model.decision_function(rows) + model.thresholds_.min()

    errors = [np.square(scores(part, draw.X, float(value)) - Y)[is_held].mean() for value in grid]
    best = float(grid[int(np.argmin(errors))])
    excess = np.square(scores(Y, draw.X_test, best) - draw.chances).mean(axis=0) / draw.chances.var()
    return best, excess, (~np.isnan(Y)).sum(axis=0)


def measure_all(
    arguments: Any,
    choices: Mapping[str, Iterable[Any]],
    measure: Callable[..., Run],
    table: Callable[[list[Run]], str],
) -> None:
    """Measure all combinations of choices at the requested shape, and print them."""
    warnings.simplefilter("ignore")
    record = RecordedRuns(arguments)
    shape = {"rows": arguments.rows, "features": 50, "rank": 3, "seen": 5}
    for case in record.missing(**{name: [value] for name, value in shape.items()}, **choices):
        found, seconds = timed(measure, **case)
        record.add(case, found | {"processor seconds": seconds})
        print(case | found, flush=True)
    record.show(table([run for run in record.runs if shape.items() <= run.items()]))


def _measure(*, rows: int, labels: int, seen: int, penalty: str, **more: int) -> dict[str, float]:
    draw = Draw(rows=rows, labels=labels, **more)
    order = draw.random.random((rows, labels)).argsort(axis=1)[:, : min(seen, labels)]
    best, excess, _ = measure(draw, order, GRID, penalty)
    return {"alpha": best, "excess": float(excess.mean())}


def table(runs: list[dict[str, Any]]) -> str:
    """Write the excess risks of both penalties, and their medians of lambda."""
    lines = [f"{'labels':>8s}{'trace norm':>20s}{'ridge':>20s}{'lambdas':>20s}"]
    for (n_labels,), some in sorted(groups(runs, "labels").items()):
        own = {name: [run for run in some if run["penalty"] == name] for name in _PENALTIES}
        cells = [np.array([run["excess"] for run in own[name]]) for name in _PENALTIES]
        chosen = " / ".join(f"{np.median([run['alpha'] for run in own[name]]):g}" for name in own)
        shown = "".join(f"{f'{cell.mean():.3f} ± {cell.std():.3f}':>20s}" for cell in cells)
        lines.append(f"{n_labels:8d}{shown}{chosen:>20s}")
    return "\n".join(lines)


@command(
    labels=[10, 40, 160, 640], seeds=5, rows=2000, records=RESULTS / "papers" / "isotropic_features.json"
)
def main(arguments: Any) -> None:
    choices = {"labels": arguments.labels, "seed": range(arguments.seeds), "penalty": _PENALTIES}
    measure_all(arguments, choices, _measure, table)
