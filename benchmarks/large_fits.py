"""One fit to many rows: its seconds, its status, and the memory of the process."""

from pathlib import Path
from typing import Any

import scipy.sparse as sp

from benchmarks.frame import RESULTS, cost_of, quiet, save
from benchmarks.machine import peak_memory_bytes


def large_fit(model: Any, X: Any, Y: Any, few: Any = None) -> dict[str, Any]:
    """Fit, and return the cost.

    A small fit before, to ``few`` where the same model would not do, loads or compiles the loops.  Memory is
    the largest resident size of the process so far.
    """
    with quiet(Warning):  # the number of rounds may be fixed, not convergence
        (model if few is None else few).fit(X[:500], Y[:500])
        before, (_, seconds, spent) = peak_memory_bytes(), cost_of(model.fit, X, Y)
    found = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "labels": Y.shape[1],
        "seconds": seconds,
        "cpu_seconds": spent,
        "peak_gigabytes_before_fit": before / 1e9,
        "peak_gigabytes": peak_memory_bytes() / 1e9,
    }
    if sp.issparse(X):
        found["non_zeros"] = int(X.nnz)
    if hasattr(model, "duality_gap_"):
        found |= {
            "rounds": int(model.n_iter_),
            "gap": float(model.duality_gap_),
            "status": model.status_,
            "seconds_in_solver": float(model.trace_[-1].time),
            "trace": [record._asdict() for record in model.trace_],
        }
    return found


def tell(found: dict[str, Any], out: Path | None, name: str = "") -> None:
    """Print the results without traces, and write them, by default to the results file of a name."""
    for key, value in found.items():
        if key != "trace":
            print(f"{key:26} {value:.5g}" if isinstance(value, float) else f"{key:26} {value}")
    save(out or (RESULTS / f"{name}.json" if name else None), found)
