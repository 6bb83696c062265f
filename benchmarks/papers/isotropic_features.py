"""Where low rank wins (LEML, Yu et al. 2014, section 4): isotropic features, few observed labels, many
labels.

The paper bounds the excess risk of the trace norm by a number that does not grow with the labels if features
are normal and some labels of each row are observed, and shows that a ridge cannot have such a bound; it
has no table.  Here rows are normal, and a label has the probability 1/2 + x^T z_j, clipped to [0, 1], with
weights of rank 3 that give probabilities a standard deviation of 0.2.  The squared loss of observed
entries is fitted with the trace norm and with a ridge, at ranks that constrain neither; intercepts, which the
bound does not have, are nearly unpenalized. lambda minimizes the error on a fifth of the observed entries,
after which all of them are fitted.  The result is the excess risk, the mean squared distance of scores to
probabilities on 2,000 other rows, over the variance of these.

``--skews``, the setting of Theorem 6: labels are observed in proportion to ``rank^-skew``, and the
constrained form of the paper, the least squared loss within a bound of the trace norm, is fitted too.
Entries of the test rows are weighted by the frequency of observation of their label, as in the theorem; and
equally, in brackets.
"""

import warnings
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, RecordedRuns, Run, command, flag, groups, timed
from labelweave import LowRankClassifier

_GRID = 2.0 ** np.arange(0, 13)
_GRIDS = {"trace_bound": 2.0 ** np.arange(-3, 8), "trace_norm": _GRID, "ridge": _GRID}
_SHAPE = {"features": 50, "rank": 3, "seen": 5}


class Draw:
    """Rows, and labels whose probability is 1/2 plus a low-rank product, clipped to [0, 1]."""

    def __init__(self, *, rows: int, features: int, rank: int, labels: int, seed: int) -> None:
        self.random = random = np.random.default_rng([seed, labels])
        weights = random.normal(size=(features, rank)) @ random.normal(size=(rank, labels))
        weights *= 0.2 / np.linalg.norm(weights, axis=0)
        self.X, self.X_test = random.normal(size=(rows, features)), random.normal(size=(2000, features))
        self.truth = (random.random((rows, labels)) < np.clip(0.5 + self.X @ weights, 0, 1)).astype(float)
        self.chances = np.clip(0.5 + self.X_test @ weights, 0, 1)


def _fitted(draw: Draw, seen: Any, penalty: str, **options: Any) -> tuple[float, Any, Any]:
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

    errors = [np.square(scores(part, draw.X, float(value)) - Y)[is_held].mean() for value in _GRIDS[penalty]]
    best = float(_GRIDS[penalty][int(np.argmin(errors))])
    excess = np.square(scores(Y, draw.X_test, best) - draw.chances).mean(axis=0) / draw.chances.var()
    return best, excess, (~np.isnan(Y)).sum(axis=0)


def _measure(
    *, rows: int, labels: int, seen: int, penalty: str, skew: float | None = None, **more: int
) -> Run:
    draw = Draw(rows=rows, labels=labels, **more)
    if skew is None:
        order = draw.random.random((rows, labels)).argsort(axis=1)[:, : min(seen, labels)]
        best, excess, _ = _fitted(draw, order, penalty)
        return {"alpha": best, "excess": float(excess.mean())}
    shares = np.arange(1.0, labels + 1) ** -skew
    shares /= shares.sum()
    # the largest of exponential clocks: draws without replacement in proportion to the shares
    clocks = draw.random.exponential(size=(rows, labels)) / shares
    best, excess, counts = _fitted(draw, clocks.argsort(axis=1)[:, : min(seen, labels)], penalty, tol=1e-3)
    weighted = float(np.average(excess, weights=counts))
    return {"alpha": best, "excess": weighted, "even excess": float(excess.mean())}


def table(runs: list[Run]) -> str:
    """Write the excess risks of all forms, and their medians of lambda, by skew and labels."""
    names = [name for name in _GRIDS if any(run["penalty"] == name for run in runs)]
    lines = [f"{'skew':>5s}{'labels':>8s}" + "".join(f"{name:>24s}" for name in names) + "  lambdas"]
    found = groups([{"skew": "-"} | run for run in runs], "skew", "labels")
    for (skew, n_labels), some in sorted(found.items()):
        cells, chosen = [], []
        for name in names:
            own = [run for run in some if run["penalty"] == name]
            excess, even = ([run.get(key, np.nan) for run in own] for key in ("excess", "even excess"))
            brackets = "" if np.isnan(even).all() else f" ({np.mean(even):.3f})"
            cells.append(f"{np.mean(excess):.3f} ± {np.std(excess):.3f}{brackets}")
            chosen.append(f"{np.median([run['alpha'] for run in own]):g}")
        shown = "".join(f"{cell:>24s}" for cell in cells)
        lines.append(f"{skew:>5}{n_labels:8d}{shown}  {'/'.join(chosen)}")
    return "\n".join(lines)


@command(
    labels=[10, 40, 160, 640],
    seeds=5,
    rows=2000,
    skews=flag([], "of the frequencies of observation", type=float),
    records=None,
)
def main(arguments: Any) -> None:
    name = "sampled_labels" if arguments.skews else "isotropic_features"
    arguments.out = arguments.out or RESULTS / "papers" / f"{name}.json"
    warnings.simplefilter("ignore")
    record, shape = RecordedRuns(arguments), {"rows": arguments.rows} | _SHAPE
    choices: dict[str, Any] = {"skew": arguments.skews} if arguments.skews else {}
    choices |= {"labels": arguments.labels, "seed": range(arguments.seeds)}
    choices["penalty"] = list(_GRIDS)[0 if arguments.skews else 1 :]
    for case in record.missing(**{key: [value] for key, value in shape.items()}, **choices):
        found, seconds = timed(_measure, **case)
        record.add(case, found | {"processor seconds": seconds})
        print(case | found, flush=True)
    record.show(table([run for run in record.runs if shape.items() <= run.items()]))
