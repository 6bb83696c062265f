"""Theorem 6's setting (LEML, Yu et al. 2014, section 4): the constrained form, labels seen unevenly.

As ``benchmarks.papers.isotropic_features``: normal features, ``--seen`` labels of each row, probabilities 1/2
plus a product of rank 3.  Labels are not seen uniformly but in proportion to ``rank^-skew``.  The constrained
form of the paper, the least squared loss within a bound of the trace norm, is compared with a ridge and with
the penalised form; bound and lambda are those of least error on a fifth of the observed entries.  Shown is
the excess risk over the variance of the probabilities, entries of the test rows counted as often as their
label is seen, as in the theorem; and evenly.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.sampled_labels``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag
from benchmarks.recorded_runs import RecordedRuns
from labelweave import LowRankClassifier

_GRIDS = {
    "trace_bound": 2.0 ** np.arange(-3, 8),
    "trace_norm": 2.0 ** np.arange(0, 13),
    "ridge": 2.0 ** np.arange(0, 13),
}


def _measure(
    *, rows: int, features: int, rank: int, seen: int, labels: int, skew: float, seed: int, penalty: str
) -> dict[str, Any]:
    random, begin = np.random.default_rng([seed, labels]), time.process_time()
    weights = random.normal(size=(features, rank)) @ random.normal(size=(rank, labels))
    weights *= 0.2 / np.linalg.norm(weights, axis=0)
    X, X_test = random.normal(size=(rows, features)), random.normal(size=(2000, features))
    truth = (random.random((rows, labels)) < np.clip(0.5 + X @ weights, 0, 1)).astype(float)
    shares = np.arange(1.0, labels + 1) ** -skew
    shares /= shares.sum()
    # the largest of exponential clocks: draws without replacement in proportion to the shares
    order = (random.exponential(size=(rows, labels)) / shares).argsort(axis=1)[:, : min(seen, labels)]
    Y = np.full_like(truth, np.nan)
    np.put_along_axis(Y, order, np.take_along_axis(truth, order, axis=1), axis=1)
    is_held = ~np.isnan(Y) & (random.random(Y.shape) < 0.2)
    part = np.where(is_held, np.nan, Y)
    errors = [
        float(np.square(_scores(X, part, X, penalty, float(value)) - Y)[is_held].mean())
        for value in _GRIDS[penalty]
    ]
    best = float(_GRIDS[penalty][int(np.argmin(errors))])
    chances = np.clip(0.5 + X_test @ weights, 0, 1)
    excess = np.square(_scores(X, Y, X_test, penalty, best) - chances).mean(axis=0) / chances.var()
    return {
        "regularization": best,
        "excess": float(np.average(excess, weights=(~np.isnan(Y)).sum(axis=0))),
        "even excess": float(excess.mean()),
        "processor seconds": time.process_time() - begin,
    }


def _scores(X: Any, Y: Any, X_test: Any, penalty: str, regularization: float) -> Any:
    options: dict[str, Any] = {"penalty": penalty, "regularization": regularization, "n_jobs": 1, "tol": 1e-3}
    model = LowRankClassifier(1.0, **options, fit_intercept=30.0).fit(X, Y)
    return model.decision_function(X_test) + model.thresholds_.min()


def table(runs: list[dict[str, Any]]) -> str:
    """Write the excess risks of all forms by skew and labels."""
    lines = [f"{'skew':>5s}{'labels':>8s}" + "".join(f"{name:>28s}" for name in _GRIDS)]
    for skew, n_labels in sorted({(run["skew"], run["labels"]) for run in runs}):
        cells = []
        for name in _GRIDS:
            own = [
                run for run in runs if (run["skew"], run["labels"], run["penalty"]) == (skew, n_labels, name)
            ]
            excess, even = (np.array([run[key] for run in own]) for key in ("excess", "even excess"))
            cells.append(f"{excess.mean():.3f} ± {excess.std():.3f} ({even.mean():.3f})")
        lines.append(f"{skew:5.1f}{n_labels:8d}" + "".join(f"{cell:>28s}" for cell in cells))
    return "\n".join(lines)


@command(
    labels=[40, 160],
    skews=[0.0, 0.5, 1.0],
    seeds=3,
    rows=2000,
    features=50,
    rank=3,
    seen=flag(5, "labels of a row"),
    records=RESULTS / "papers" / "sampled_labels.json",
)
def main(arguments: Any) -> None:
    warnings.simplefilter("ignore")
    record = RecordedRuns(arguments)
    shape = {name: getattr(arguments, name) for name in ("rows", "features", "rank", "seen")}
    for skew in arguments.skews:
        for n_labels in arguments.labels:
            for seed in range(arguments.seeds):
                for penalty in _GRIDS:
                    case = shape | {"labels": n_labels, "skew": skew, "seed": seed, "penalty": penalty}
                    if record.wants(case):
                        run = record.add(case, _measure(**case))
                        print({**case, "excess": run["excess"], "s": run["processor seconds"]}, flush=True)
    record.show(table([run for run in record.runs if shape.items() <= run.items()]))
