"""Training times on Animals with Attributes compared with Table 1(a) of the M3L paper, one thread.

The paper (M3L, Hariharan et al. 2012, section 7.1) trains on 2,000 to 24,292 images, 252 PHOG features, 85
labels, independent labels, on an Intel Xeon of 2.67 GHz; C, gamma and the stopping rule are not stated. Here
C = 1, gamma is 1 / (d var X), and every program trains all labels to a relative duality gap of 1e-3 of its
own problem: linear ``MaxMarginClassifier()`` on dense rows, and LIBLINEAR ``-s 3``, whose gap is computed
against the largest known dual value; ``MaxMarginClassifier(kernel="rbf")`` with a memory budget of 3,000 MB,
and LIBSVM up to 2,000 images. A blank cell means that the program was not run; nothing is scaled or
extrapolated.
"""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.frame import RESULTS, command, markdown, save
from benchmarks.kernel_runs import ToleranceSearch, own_runs, peer_runs, trained
from benchmarks.linear_speed import primal_value
from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import load_kernel_problem
from benchmarks.programs import KERNEL_PROGRAMS, PROGRAMS

_GAP = 1e-3
_LIBSVM_ROWS, _MEGABYTES = 2_000, 3_000.0
_SIZES = (2_000, 10_000, 15_000, 24_295)
_LIBLINEAR_SERIES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
# seconds, by images: LIBLINEAR, LM3L, LIBSVM, KM3L with the linear kernel; LIBSVM, KM3L with RBF
_PAPER = {
    2_000: (3, 7, 234, 15, 250, 20),
    10_000: (48, 51, 5_438, 245, 6_208, 501),
    15_000: (68, 74, 11_990, 500, 13_875, 922),
    24_295: (102, 104, 29_328, 1_087, 34_770, 3_016),  # the paper has 24,292
}
_COLUMNS = ("LIBLINEAR", "labelweave linear", "LIBSVM RBF", "labelweave RBF")


@dataclass(frozen=True)
class LinearRun:
    """One tolerance of a linear program on all labels."""

    tolerance: float
    seconds: float
    primal: float
    dual: float
    gap: float


def measure_linear(problem: PeerProblem) -> dict[str, Any]:
    own = _linear_run(problem, "labelweave", _GAP, 0.0)

    def train(tolerance: float) -> LinearRun:
        return _linear_run(problem, "liblinear", tolerance, own.dual)

    search = ToleranceSearch(_LIBLINEAR_SERIES, train, per_gap=50.0)
    return {"LIBLINEAR": search.loosest(_GAP), "labelweave linear": own}


def _linear_run(problem: PeerProblem, name: str, tolerance: float, known_dual: float) -> LinearRun:
    with tempfile.TemporaryDirectory() as scratch:
        (one,) = trained(problem, PROGRAMS[name], [tolerance], Path(scratch))
        primal = primal_value(problem.X, problem.Y, problem.penalty / 2.0, one.weights)
    if one.dual is None:
        raise RuntimeError("A linear run told no dual value.")
    dual = max(one.dual, known_dual)
    return LinearRun(one.tolerance, one.seconds, primal, dual, (primal - dual) / primal)


def measure_rbf(problem: PeerProblem, *, with_libsvm: bool) -> dict[str, Any]:
    (own,) = own_runs(problem, KERNEL_PROGRAMS["labelweave"], [_GAP])
    if not with_libsvm:
        return {"labelweave RBF": own}
    n_labels = problem.Y.shape[1]
    on_matrix = peer_runs(problem, KERNEL_PROGRAMS["precomputed"], n_labels).loosest(_GAP)
    libsvm = peer_runs(problem, KERNEL_PROGRAMS["libsvm"], n_labels)
    found = None if on_matrix is None else libsvm.from_tolerance(_GAP, on_matrix.tolerance)
    return {"labelweave RBF": own, "LIBSVM RBF": found}


def _header() -> list[str]:
    paper = ("LIBLINEAR", "LM3L", "LIBSVM linear", "KM3L linear", "LIBSVM RBF", "KM3L RBF")
    titles = ["images", *_COLUMNS, *(f"paper: {name}" for name in paper)]
    return markdown(titles)


def _row(size: int, runs: dict[str, Any]) -> str:
    own = [_cell(runs, column) for column in _COLUMNS]
    paper = [f"{seconds:,}" for seconds in _PAPER.get(size, ())] or [""] * 6
    return "| " + " | ".join([f"{size:,}", *own, *paper]) + " |"


def _cell(runs: dict[str, Any], column: str) -> str:
    if column not in runs:
        return ""
    run = runs[column]
    return "not reached" if run is None else f"{run.seconds:.1f} (gap {run.gap:.1e})"


def _plain(found: dict[int, dict[str, Any]]) -> dict[str, Any]:
    return {
        str(size): {name: None if run is None else asdict(run) for name, run in runs.items()}
        for size, runs in found.items()
    }


@command(sizes=_SIZES, out=RESULTS / "paper_table1.json")
def main(arguments: Any) -> None:
    found: dict[int, dict[str, Any]] = {}
    for size in arguments.sizes:
        problem = load_kernel_problem(f"awa-{size}", 1.0, _MEGABYTES)
        found[size] = measure_linear(problem) | measure_rbf(problem, with_libsvm=size <= _LIBSVM_ROWS)
        print(_row(size, found[size]), flush=True)
    table = [*_header(), *(_row(size, runs) for size, runs in found.items())]
    print("", *table, sep="\n")
    settings = {"gap": _GAP, "C": 1.0, "kernel_megabytes": _MEGABYTES, "threads": 1}
    save(arguments.out, settings | {"runs": _plain(found), "table": table})
