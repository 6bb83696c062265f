"""Two theorems as measurements: Tan et al. 2015, Theorem 2, and the M3L paper of 2012, appendix B.

rate: passes of the proximal solver over the rows of scene, with a Chow-Liu tree, until relative gaps.  The
theorem bounds them by a constant over lambda and the gap: the power of 1 / gap that fits them, and that of
1 / lambda at the last gap, are to be at most 1.

ends: iterations of Algorithm 1 (``solver="working_set"``, RBF kernel, C = 1) until the relative gap is 1e-8.
"""

from __future__ import annotations

from typing import Any

from benchmarks.frame import RESULTS, command, flag, slope
from benchmarks.papers import graph_runs
from benchmarks.problems import read_part
from benchmarks.recorded_runs import RecordedRuns
from labelweave import LabelGraphClassifier, MaxMarginClassifier

_GAPS = (0.1, 0.01, 0.001, 0.0001)
_LAMBDAS = (1.0, 0.3, 0.1, 0.03)
_NEAREST = 1e-8


def _rate(alpha: float) -> dict[str, Any]:
    part = read_part("scene", "train")
    model = LabelGraphClassifier(
        alpha=alpha, graph="chow-liu", solver="proximal", tol=_GAPS[-1], max_iter=5000, n_jobs=1
    )
    graph_runs.fit(model, part.X, part.Y)
    passes = [next((r.iteration for r in model.trace_ if r.gap <= gap), None) for gap in _GAPS]
    return {"passes": passes, "gap": float(model.duality_gap_)}


def _ends(name: str) -> dict[str, Any]:
    part = read_part(name, "train")
    model = MaxMarginClassifier(C=1.0, kernel="rbf", solver="working_set", tol=_NEAREST, max_iter=1_000_000)
    model.fit(part.X, part.Y)
    shares = sum(record.active_share for record in model.trace_)
    steps = round(shares * part.X.shape[0] * part.Y.shape[1] / 2)  # of two variables each
    return {"iterations": steps, "gap": float(model.duality_gap_), "status": model.status_}


def table(runs: list[dict[str, Any]]) -> str:
    """Write passes by lambda and gap with their powers, and iterations until the end."""
    rates = [run for run in runs if "passes" in run]
    lines = [f"{'lambda':>8s}" + "".join(f"{f'gap {gap:g}':>12s}" for gap in _GAPS) + f"{'power':>8s}"]
    for run in rates:
        known = [(1 / gap, n) for gap, n in zip(_GAPS, run["passes"], strict=True) if n]
        power = f"{slope(*zip(*known, strict=True)):8.2f}" if len(known) > 1 else ""
        lines.append(f"{run['alpha']:8g}" + "".join(f"{n or '':>12}" for n in run["passes"]) + power)
    last = [(1 / run["alpha"], run["passes"][-1]) for run in rates if run["passes"][-1]]
    if len(last) > 1:
        lines.append(f"power of 1 / lambda at the last gap: {slope(*zip(*last, strict=True)):.2f}")
    lines += [
        f"{run['set']:10s}{run['iterations']:12,d} iterations, gap {run['gap']:.1e}"
        for run in runs
        if "iterations" in run
    ]
    return "\n".join(lines)


@command(sets=flag(["scene", "yeast"], "of Mulan's"), records=RESULTS / "papers" / "theorems.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    for key, values, measure in (("alpha", _LAMBDAS, _rate), ("set", arguments.sets, _ends)):
        for value in values:
            if record.wants({key: value}):
                print(record.add({key: value}, measure(value)), flush=True)  # type: ignore[operator]
    record.show(table(record.runs))
