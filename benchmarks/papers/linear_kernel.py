"""The linear kernel by solvers of kernel matrices (M3L paper, Table 1), 2,000 rows, one thread.

labelweave with the kernel as a function, to a gap of 1e-3, and LIBSVM, as scikit-learn's ``SVC`` has it, on
every eighth label at its default tolerance, scaled to all.  C = 1 and R = I; LIBSVM's penalty is twice C.
"linear" is labelweave's solver for linear models.  Seconds are the processor's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import linear_kernel
from sklearn.svm import SVC

from benchmarks.frame import RESULTS, command, flag, timed
from benchmarks.kernel_problems import load_kernel_problem
from benchmarks.recorded_runs import RecordedRuns
from labelweave import MaxMarginClassifier

_EVERY = 8
_PAPER = {
    "awa-2000": {"kernel matrix": 15, "LIBSVM": 234, "linear": 7},
    "rcv1-2000": {"kernel matrix": 6, "LIBSVM": 54, "linear": 4},
    "tmc2007-2000": {"kernel matrix": 5, "LIBSVM": 27, "linear": 1},
}
_KERNELS = {"kernel matrix": linear_kernel, "linear": "linear"}


def _measure(name: str, method: str) -> dict[str, Any]:
    problem = load_kernel_problem(name)
    X, Y = problem.X, problem.Y.toarray()
    if method == "LIBSVM":
        machine = SVC(C=problem.penalty, kernel="linear", cache_size=500)
        columns = Y.T[::_EVERY]
        seconds = [timed(machine.fit, X, column)[1] for column in columns]
        return {"seconds": float(np.sum(seconds)) * len(Y.T) / len(columns)}
    model = MaxMarginClassifier(C=problem.penalty / 2.0, kernel=_KERNELS[method], n_jobs=1)
    model.fit(X[:200], Y[:200])  # compiled
    return {"seconds": timed(model.fit, X, Y)[1], "gap": model.duality_gap_}


def table(runs: list[dict[str, Any]]) -> str:
    """Write seconds next to the paper's."""
    lines = [f"{'problem':14s}{'method':16s}{'seconds':>9s}{'gap':>10s}{'paper, seconds':>16s}"]
    for run in runs:
        gap = f"{run['gap']:.1e}" if "gap" in run else ""
        paper = _PAPER[run["problem"]][run["method"]]
        lines.append(f"{run['problem']:14s}{run['method']:16s}{run['seconds']:9.2f}{gap:>10s}{paper:16d}")
    return "\n".join(lines)


@command(problems=flag(list(_PAPER)), records=RESULTS / "papers" / "linear_kernel.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    for name in arguments.problems:
        for method in _PAPER[name]:
            case = {"problem": name, "method": method}
            if record.wants(case):
                print(record.add(case, _measure(name, method)), flush=True)
    record.show(table(record.runs))
