"""The cost of a small memory budget: fits with a tenth of the kernel matrix, compared with unlimited fits.

Animals with Attributes, RBF, gamma 1 / (d var X), C = 1, a relative duality gap of 1e-3, one thread.  A tenth
is a tenth of the matrix in float32: 14.4 MB for 6,000 images, 57.6 MB for 12,000.  The unlimited fit has the
whole matrix and its Cholesky factor.

Each fit runs in a separate process, with the data in memory and the loops compiled by a fit of a few rows.
The peak is the largest resident memory during ``fit`` beyond that before.  The budget is for kernel values
and their factors; the excess of the peak is shown in megabytes and in arrays of rows x labels in float64.  P
is recomputed from the coefficients, in float64.  Scores and labels of 1,000 other images are compared with
those of the unlimited fit: the root mean square of the difference of scores over that of the scores, and the
share of labels predicted differently.
"""

import os
import time
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag, markdown, save, timed
from benchmarks.machine import MemoryClimb, in_own_process
from benchmarks.programs import threads

_NO_LIMIT = 1e6
_SOLVERS = ("auto", "block_ascent")  # within the budget
_UNSEEN = 1000
_WARM_UP_ROWS = 300
_COLUMNS = {
    "budget": "budget, MB",
    "solver": "solver",
    "seconds": "seconds",
    "times": "times",
    "rounds": "rounds",
    "primal": "P",
    "gap": "gap",
    "difference": "difference of scores",
    "differing": "labels that differ, %",
    "peak": "peak, MB",
    "beyond": "beyond the budget, MB",
    "arrays": "... in arrays n x L",
}


def _measure_size(size: int) -> list[dict[str, Any]]:
    tenth = 4.0 * size**2 / 10 / 1e6
    plans = [("auto", None), *((solver, tenth) for solver in _SOLVERS)]
    rows: list[dict[str, Any]] = []
    for solver, budget in plans:
        row = in_own_process(measure_fit, size, solver, budget)
        scores = row.pop("scores")
        if not rows:
            first_scores, first_seconds = scores, row["seconds"]
        row["difference"] = float(np.linalg.norm(scores - first_scores) / np.linalg.norm(first_scores))
        row["differing"] = 100.0 * float(((scores > 0) != (first_scores > 0)).mean())
        row["times"] = row["seconds"] / first_seconds
        rows.append(row)
    return rows


def measure_fit(size: int, solver: str, budget: float | None) -> dict[str, Any]:
    from benchmarks.problems import load_animals, scale_gamma
    from labelweave import MaxMarginClassifier, set_config

    X, Y = load_animals(size + _UNSEEN)
    X, Y, unseen = X[:size].copy(), Y[:size], X[size:].copy()
    gamma = scale_gamma(X)
    set_config(memory_budget=budget or _NO_LIMIT)
    model = MaxMarginClassifier(kernel="rbf", gamma=gamma, solver=solver, n_jobs=1)
    model.fit(X[:_WARM_UP_ROWS], Y[:_WARM_UP_ROWS])
    memory, (_, seconds) = MemoryClimb(), timed(model.fit, X, Y, clock=time.perf_counter)
    peak = memory.peak() / 1e6
    return {
        "solver": solver,
        "budget": budget,
        "seconds": seconds,
        "rounds": int(model.n_iter_),
        "primal": _primal(model, X, Y, gamma),
        "gap": float(model.duality_gap_),
        "status": model.status_,
        "peak": peak,
        "beyond": None if budget is None else peak - budget,
        "arrays": None if budget is None else (peak - budget) * 1e6 / (8 * size * Y.shape[1]),
        "scores": model.decision_function(unseen),
    }


def _primal(model: Any, X: Any, Y: Any, gamma: float) -> float:
    from benchmarks.labelweave_margins import coefficients_of
    from benchmarks.margin_runs import label_values
    from benchmarks.peers.exchange import PeerProblem

    problem = PeerProblem(X, Y, 2.0, gamma=gamma)
    return float(label_values(problem, coefficients_of(model, Y.shape))[0].sum())


def _table(rows: list[dict[str, Any]]) -> list[str]:
    return markdown([*_COLUMNS.values()], [[_cell(key, row[key]) for key in _COLUMNS] for row in rows])


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "no limit" if key == "budget" else ""
    if isinstance(value, float):
        return f"{value:.1e}" if key in ("gap", "difference") else f"{value:,.1f}"
    return str(value)


@command(sizes=flag([6000, 12000], "numbers of images"), out=RESULTS / "memory_budget.json")
def main(arguments: Any) -> None:
    os.environ.update(threads(1))
    tables: dict[str, Any] = {}
    for size in arguments.sizes:
        rows = _measure_size(size)
        tables[str(size)] = rows
        print(f"\n{size:,} images", *_table(rows), sep="\n", flush=True)
    settings = {"tol": 1e-3, "C": 1.0, "threads": 1}
    save(arguments.out, settings | {"images": tables})
