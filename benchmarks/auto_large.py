"""AutoLabelClassifier on many synthetic rows: seconds, memory, and quality on other rows.

OMP_NUM_THREADS=1 python -m benchmarks.auto_large --rows 20000 OMP_NUM_THREADS=1 python -m
benchmarks.auto_large --out benchmarks/results/auto_large.json
"""

import time
from typing import Any

import numpy as np

from benchmarks.frame import OUT, command, timed
from benchmarks.large_fits import large_fit, tell
from labelweave import AutoLabelClassifier, metrics

_TEST_ROWS = 5000


def make_rows(n: int, n_features: int, n_labels: int, seed: int = 0) -> tuple[Any, Any]:
    """Make dense rows and labels that depend on sums and products of few features."""
    fixed = np.random.default_rng(12345)
    weights = fixed.normal(size=(n_features, n_labels)) * (fixed.random((n_features, n_labels)) < 0.05)
    one, other = fixed.integers(0, n_features, (2, 3, n_labels))
    levels = fixed.uniform(0.4, 1.3, n_labels)
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_features)).astype(np.float32)
    scores = X @ (weights / np.linalg.norm(weights, axis=0)).astype(np.float32)
    for first, second in zip(one, other, strict=True):
        scores += 0.4 * X[:, first] * X[:, second]
    scores += random.normal(0, 0.5, scores.shape).astype(np.float32)
    return X, (scores > levels * np.sqrt(1.73)).astype(np.int8)


@command(rows=200_000, features=500, labels=50, out=OUT)
def main(flags: Any) -> None:
    sizes = flags.features, flags.labels
    X_test, Y_test = make_rows(_TEST_ROWS, *sizes, seed=1)
    model, few = AutoLabelClassifier(n_jobs=2, verbose=1), AutoLabelClassifier(time_budget=1)
    found = large_fit(model, *make_rows(flags.rows, *sizes), few)
    predicted, seconds = timed(model.predict, X_test, clock=time.perf_counter)
    found |= {
        "predict_seconds": seconds,
        "plan": model.plan_,
        "members": model.members_,
        "out_of_fold_micro_f1": model.oof_score_,
        "standard_error": model.oof_standard_error_,
        "test_micro_f1": float(metrics.f1_score(Y_test, predicted, average="micro")),
    }
    tell(found, flags.out)
