"""One fit at the full size of the RCV1 topics problem, on synthetic text.

781,265 rows (RCV1-v2's test part), 47,236 features, about 75 non-zeros a row, 103
labels, 3.2 of them a row.  The data come from ``datasets.make_text_like``; they have
the shape of RCV1, not its words.  The fit runs to a relative duality gap of 1e-3.
One small fit before it loads or compiles the loops.  Seconds are those of ``fit``
whole; memory is the largest resident size that the process has had, before and
after the fit.

Example: ``python -m benchmarks.full_size --rows 50000``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.frame import RESULTS, flag, read_options, write_json
from benchmarks.machine import describe_machine, peak_memory_bytes

_ROWS, _FEATURES, _LABELS = 781_265, 47_236, 103


def main() -> None:
    arguments = read_options(
        __doc__,
        rows=flag(_ROWS, "fewer for a shorter run"),
        tol=flag(1e-3, "the relative duality gap to reach"),
        n_jobs=flag(2, "threads"),
        out=flag(help="a JSON file; default results/full_size[_ROWS].json", type=Path),
    )
    data, seconds_to_make = _make_data(arguments.rows)
    before = peak_memory_bytes()
    model, seconds = _timed_fit(data, arguments.tol, arguments.n_jobs)
    results = {
        **describe_machine(),
        "rows": arguments.rows,
        "features": _FEATURES,
        "non_zeros": int(data.X.nnz),
        "labels": _LABELS,
        "positives": int(data.Y.positives.nnz),
        "n_jobs": arguments.n_jobs,
        "tol": arguments.tol,
        "seconds_to_make_the_data": seconds_to_make,
        "seconds": seconds,
        "seconds_in_solver": float(model.trace_[-1].time),
        "rounds": int(model.n_iter_),
        "gap": float(model.duality_gap_),
        "converged": bool(model.converged_),
        "gigabytes_of_data": _gigabytes_of_data(data),
        "peak_gigabytes_before_fit": before / 1e9,
        "peak_gigabytes": peak_memory_bytes() / 1e9,
        "trace": [record._asdict() for record in model.trace_],
    }
    print(_sentence(results))
    write_json(arguments.out or _default_file(arguments.rows), results)


def _default_file(rows: int) -> Path:
    return RESULTS / ("full_size.json" if rows == _ROWS else f"full_size_{rows}.json")


def _make_data(rows: int) -> tuple[Any, float]:
    from labelweave.datasets import make_text_like

    start = time.perf_counter()
    data = make_text_like(rows, _FEATURES, _LABELS, labels_per_row=3.2, words_per_row=75, random_state=0)
    return data, time.perf_counter() - start


def _timed_fit(data: Any, tol: float, n_jobs: int) -> tuple[Any, float]:
    from labelweave import MaxMarginClassifier

    def make() -> MaxMarginClassifier:
        return MaxMarginClassifier(tol=tol, n_jobs=n_jobs, random_state=0)

    make().fit(data.X[:500], data.Y[:500])
    start = time.perf_counter()
    model = make().fit(data.X, data.Y)
    return model, time.perf_counter() - start


def _gigabytes_of_data(data: Any) -> float:
    matrices = (data.X, data.Y.positives)
    return float(sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in matrices) / 1e9)


def _sentence(results: dict[str, Any]) -> str:
    return (
        "{rows} rows, {non_zeros} non-zeros, {labels} labels, {n_jobs} thread(s): {seconds:.1f} s in fit "
        "({seconds_in_solver:.1f} s in the solver), {rounds} rounds, gap {gap:.1e}, peak memory "
        "{peak_gigabytes:.2f} GB (before the fit {peak_gigabytes_before_fit:.2f} GB, the data "
        "{gigabytes_of_data:.2f} GB)."
    ).format(**results)


if __name__ == "__main__":
    main()
