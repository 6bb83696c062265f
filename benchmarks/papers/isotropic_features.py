"""Where low rank wins (LEML, Yu et al. 2014, section 4): isotropic features, few labels seen, many labels.

The paper bounds the excess risk of the trace norm by a number that does not grow with the labels where
features are normal and ``--seen`` labels of each row are observed, and shows that a ridge cannot have such a
bound; it has no table.  Here rows are normal, and a label has the probability 1/2 + x^T z_j, cut to [0, 1],
of weights of rank ``--rank`` that give probabilities a standard deviation of 0.2.  The squared loss of
observed entries is fitted with the trace norm and with a ridge, at ranks that bind neither; intercepts, which
the bound does not have, are as good as not penalised.  lambda is that of least error on a fifth of the
observed entries, after which all of them are fitted.  Shown is the excess risk, the mean squared distance of
scores to probabilities on 2,000 other rows, over the variance of these.

Results are kept after every run; ``--go-on`` measures only what is missing.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.isotropic_features``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag
from benchmarks.recorded_runs import RecordedRuns
from labelweave import LowRankClassifier

_GRID = 2.0 ** np.arange(0, 13)
_PENALTIES = ("trace_norm", "ridge")


def _measure(
    *, rows: int, features: int, rank: int, seen: int, labels: int, seed: int, penalty: str
) -> dict[str, Any]:
    random, begin = np.random.default_rng([seed, labels]), time.process_time()
    weights = random.normal(size=(features, rank)) @ random.normal(size=(rank, labels))
    weights *= 0.2 / np.linalg.norm(weights, axis=0)
    X, X_test = random.normal(size=(rows, features)), random.normal(size=(2000, features))
    truth = (random.random((rows, labels)) < np.clip(0.5 + X @ weights, 0, 1)).astype(float)
    order = random.random((rows, labels)).argsort(axis=1)[:, : min(seen, labels)]
    Y = np.full_like(truth, np.nan)
    np.put_along_axis(Y, order, np.take_along_axis(truth, order, axis=1), axis=1)
    is_held = ~np.isnan(Y) & (random.random(Y.shape) < 0.2)
    part = np.where(is_held, np.nan, Y)
    errors = []
    for value in _GRID:
        scores = _scores(X, part, X, penalty, float(value))
        errors.append(float(np.square(scores - Y)[is_held].mean()))
    best = float(_GRID[int(np.argmin(errors))])
    chances = np.clip(0.5 + X_test @ weights, 0, 1)
    excess = np.square(_scores(X, Y, X_test, penalty, best) - chances).mean() / chances.var()
    return {"regularization": best, "excess": float(excess), "processor seconds": time.process_time() - begin}


def _scores(X: Any, Y: Any, X_test: Any, penalty: str, regularization: float) -> Any:
    options: dict[str, Any] = {"penalty": penalty, "regularization": regularization, "n_jobs": 1}
    model = LowRankClassifier(1.0, **options, fit_intercept=30.0).fit(X, Y)
    return model.decision_function(X_test) + model.thresholds_.min()


def table(runs: list[dict[str, Any]]) -> str:
    """Write the excess risks of both penalties, and their medians of lambda."""
    lines = [f"{'labels':>8s}{'trace norm':>20s}{'ridge':>20s}{'lambdas':>20s}"]
    for n_labels in sorted({run["labels"] for run in runs}):
        own = {
            name: [run for run in runs if (run["labels"], run["penalty"]) == (n_labels, name)]
            for name in _PENALTIES
        }
        cells = [np.array([run["excess"] for run in own[name]]) for name in _PENALTIES]
        chosen = " / ".join(f"{np.median([run['regularization'] for run in own[name]]):g}" for name in own)
        shown = "".join(f"{f'{cell.mean():.3f} ± {cell.std():.3f}':>20s}" for cell in cells)
        lines.append(f"{n_labels:8d}{shown}{chosen:>20s}")
    return "\n".join(lines)


@command(
    labels=[10, 40, 160, 640],
    seeds=5,
    rows=2000,
    features=50,
    rank=3,
    seen=flag(5, "labels of a row"),
    records=RESULTS / "papers" / "isotropic_features.json",
)
def main(arguments: Any) -> None:
    warnings.simplefilter("ignore")
    record = RecordedRuns(arguments)
    shape = {name: getattr(arguments, name) for name in ("rows", "features", "rank", "seen")}
    for n_labels in arguments.labels:
        for seed in range(arguments.seeds):
            for penalty in _PENALTIES:
                case = shape | {"labels": n_labels, "seed": seed, "penalty": penalty}
                if record.wants(case):
                    run = record.add(case, _measure(**case))
                    print({name: run[name] for name in ("labels", "seed", "penalty", "excess")}, flush=True)
    record.show(table([run for run in record.runs if shape.items() <= run.items()]))
