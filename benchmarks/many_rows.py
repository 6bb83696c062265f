"""One fit with the RBF kernel on more rows than a kernel matrix in memory allows.

50,000 rows, 20 normal features, 20 labels.  A label's score is a sum of 40 Gaussian bumps at random places
with random heights, plus noise; its positives are the rows with the largest scores, between 5 and 50 percent
of them.  The kernel matrix in float32 would take 10 GB; the memory budget is the default, 2,000 MB. gamma is
1 / (d var X).

The time is that of the complete ``fit``, on two threads, to a relative duality gap of 1e-3; a small fit
before it loads or compiles the loops.  Memory is the largest resident size of the process.  The error of new
rows is compared with that of the model that knows the scores without noise.
"""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.frame import command, flag
from benchmarks.large_fits import large_fit, tell
from labelweave import MaxMarginClassifier

_ROWS, _FEATURES, _LABELS = 50_000, 20, 20
_BUMPS, _NEW_ROWS = 40, 5_000
_NOISE = 0.3  # of the scores' standard deviation


def make_bumps(n_rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
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


@command(
    rows=flag(_ROWS, "fewer for a shorter run"),
    out=flag(help="a JSON file; default results/many_rows[_ROWS].json", type=Path),
)
def main(arguments: Any) -> None:
    n, (X, Y, clean) = arguments.rows, make_bumps(arguments.rows + _NEW_ROWS)
    settings = {"tol": 1e-3, "solver": "auto", "n_jobs": 2}
    model = MaxMarginClassifier(kernel="rbf", **settings)
    found = settings | {"memory_budget": 2000.0} | large_fit(model, X[:n], Y[:n])
    found["support_rows"] = len(model.support_)
    found["error_percent"] = 100 * float((model.predict(X[n:]) != Y[n:]).mean())
    found["error_percent_of_clean_scores"] = 100 * float((clean[n:] != Y[n:]).mean())
    tell(found, arguments.out, "many_rows" if n == _ROWS else f"many_rows_{n}")
