"""One fit with the RBF kernel on more rows than a kernel matrix has room for.

50,000 rows, 20 normal features, 20 labels.  A label's score is a sum of 40 Gaussian
bumps at random places with random heights, plus noise; its positives are the rows
with the largest scores, between 5 and 50 per cent of them.  The kernel matrix in float32
would take 10 GB; the memory budget is the default, 2,000 MB.  gamma is 1 / (d var X).

Seconds are those of ``fit`` whole, on two threads, to a relative duality gap of 1e-3; a small
fit before it loads or compiles the loops.  Memory is the largest resident size that
the process has had.  The error of new rows is shown beside that of the model that knows
the scores without noise.

Example: ``python -m benchmarks.many_rows --rows 10000``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, flag, read_options, write_json
from benchmarks.machine import describe_machine, peak_memory_bytes

_ROWS, _FEATURES, _LABELS = 50_000, 20, 20
_BUMPS, _NEW_ROWS = 40, 5_000
_NOISE = 0.3  # of the scores' standard deviation


def main() -> None:
    arguments = read_options(
        __doc__,
        rows=flag(_ROWS, "fewer for a shorter run"),
        tol=flag(1e-3, "the relative duality gap to reach"),
        memory_budget=flag(2000.0, "megabytes for kernel values"),
        solver="auto",
        n_jobs=flag(2, "threads"),
        out=flag(help="a JSON file; default results/many_rows[_ROWS].json", type=Path),
    )
    X, Y, clean = make_bumps(arguments.rows + _NEW_ROWS)
    before = peak_memory_bytes()
    model, seconds = _timed_fit(X[: arguments.rows], Y[: arguments.rows], arguments)
    peak = peak_memory_bytes()
    new = slice(arguments.rows, None)
    results = {
        **describe_machine(),
        "rows": arguments.rows,
        "features": _FEATURES,
        "labels": _LABELS,
        "n_jobs": arguments.n_jobs,
        "tol": arguments.tol,
        "memory_budget": arguments.memory_budget,
        "solver": arguments.solver,
        "seconds": seconds,
        "rounds": int(model.n_iter_),
        "gap": float(model.duality_gap_),
        "status": model.status_,
        "support_rows": len(model.support_),
        "peak_gigabytes_before_fit": before / 1e9,
        "peak_gigabytes": peak / 1e9,
        "error_percent": 100 * float((model.predict(X[new]) != Y[new]).mean()),
        "error_percent_of_clean_scores": 100 * float((clean[new] != Y[new]).mean()),
        "trace": [record._asdict() for record in model.trace_],
    }
    print(_sentence(results))
    write_json(arguments.out or _default_file(arguments.rows), results)


def _default_file(rows: int) -> Path:
    return RESULTS / ("many_rows.json" if rows == _ROWS else f"many_rows_{rows}.json")


def make_bumps(n_rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Make rows and labels.

    seed: fixes the data.
    X: Features.
    Y: Labels 0/1.
    clean: The labels that the scores without noise give.
    """
    from sklearn.metrics.pairwise import rbf_kernel

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, _FEATURES))
    scores = np.empty((n_rows, _LABELS))
    for label in range(_LABELS):
        centers = rng.standard_normal((_BUMPS, _FEATURES))
        scores[:, label] = rbf_kernel(X, centers, gamma=0.5 / _FEATURES) @ rng.standard_normal(_BUMPS)
    scores /= scores.std(axis=0)
    noisy = scores + _NOISE * rng.standard_normal(scores.shape)
    shares = np.linspace(0.05, 0.5, _LABELS)
    Y, clean = (_largest(table, shares) for table in (noisy, scores))
    return X, Y, clean


def _largest(scores: Any, shares: Any) -> Any:
    thresholds = [np.quantile(column, 1 - share) for column, share in zip(scores.T, shares, strict=True)]
    return (scores > thresholds).astype(np.int8)


def _timed_fit(X: Any, Y: Any, arguments: argparse.Namespace) -> tuple[Any, float]:
    from labelweave import MaxMarginClassifier

    model = MaxMarginClassifier(
        kernel="rbf",
        tol=arguments.tol,
        solver=arguments.solver,
        memory_budget=arguments.memory_budget,
        n_jobs=arguments.n_jobs,
    )
    model.fit(X[:300], Y[:300])
    start = time.perf_counter()
    model.fit(X, Y)
    return model, time.perf_counter() - start


def _sentence(results: dict[str, Any]) -> str:
    return (
        "{rows} rows, {features} features, {labels} labels, RBF, {n_jobs} thread(s): {seconds:.0f} s in fit, "
        "{rounds} rounds, gap {gap:.1e} ({status}), {support_rows} support rows, peak memory "
        "{peak_gigabytes:.2f} GB (before the fit {peak_gigabytes_before_fit:.2f} GB; memory_budget "
        "{memory_budget:g} MB), error of new rows {error_percent:.1f} % (without noise "
        "{error_percent_of_clean_scores:.1f} %)."
    ).format(**results)


if __name__ == "__main__":
    main()
