"""Time and memory of thresholds and calibration at 100,000 labels, each in a process of its own.

A ``LowRankClassifier`` of rank 16 (three rounds) is fitted to sparse texts with sparse labels.  Memory is the
largest resident size of the whole process, the data and both models included.  ``benchmarks.decisions`` runs
them.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.machine import in_own_process, peak_memory_bytes

_FEATURES, _LABELS = 20_000, 100_000
_TEST_ROWS = 1_000
_PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "the model alone": ("", {}),
    "calibrated": ("CalibratedLabelClassifier", {}),
    "calibrated, isotonic": ("CalibratedLabelClassifier", {"method": "isotonic"}),
    "calibrated, 3 folds": ("CalibratedLabelClassifier", {"cv": 3}),
    "calibrated, prefit": ("CalibratedLabelClassifier", {"cv": "prefit"}),
    "tuned, micro-F1": ("TunedThresholdClassifier", {}),
    "tuned, macro-F1": ("TunedThresholdClassifier", {"objective": "macro_f1"}),
    "tuned, one threshold": ("TunedThresholdClassifier", {"scope": "global"}),
    "tuned, top k": ("TunedThresholdClassifier", {"scope": "top_k"}),
}


def measure_memory(rows: int) -> dict[str, dict[str, float]]:
    """Run every program in a process of its own on so many training rows.

    Returns: by program: seconds to fit and to predict 1,000 rows, and gigabytes at most.
    """
    return {name: in_own_process(_run, name, rows) for name in _PROGRAMS}


def _run(program: str, n_rows: int) -> dict[str, float]:
    import labelweave
    from labelweave.datasets import make_text_like

    warnings.simplefilter("ignore")  # three rounds are not enough to converge
    data = make_text_like(n_rows + _TEST_ROWS, _FEATURES, _LABELS, random_state=0)
    Y = data.Y.positives
    before = peak_memory_bytes()
    model: Any = labelweave.LowRankClassifier(rank=16, max_iter=3)
    wrapper, options = _PROGRAMS[program]
    started = time.perf_counter()
    if options.get("cv") == "prefit":
        model.fit(data.X[:n_rows], Y[:n_rows])
    if wrapper:
        model = getattr(labelweave, wrapper)(model, **options)
    model.fit(data.X[:n_rows], Y[:n_rows])
    fitted = time.perf_counter()
    model.predict(data.X[n_rows:])
    return {
        "seconds to fit": fitted - started,
        "seconds to predict": time.perf_counter() - fitted,
        "gigabytes before": before / 1e9,
        "gigabytes": peak_memory_bytes() / 1e9,
    }
