"""Training times on Animals with Attributes compared with Table 1(a) of the M3L paper, one thread.

The paper (M3L, Hariharan et al. 2012, section 7.1) trains on 2,000 to 24,292 images, 252 PHOG features, 85
labels, independent labels, on an Intel Xeon of 2.67 GHz; C, gamma and the stopping rule are not stated. Here
C = 1, gamma is 1 / (d var X), and every program trains all labels to a relative duality gap of 1e-3 of its
own problem (``benchmarks.margin_runs``): linear ``MaxMarginClassifier()`` on dense rows, and LIBLINEAR
``-s 3``; ``MaxMarginClassifier(kernel="rbf")`` with a memory budget of 3,000 MB, and LIBSVM up to 2,000
images. A blank cell means that the program was not run; nothing is scaled or extrapolated.
"""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, markdown, save
from benchmarks.margin_runs import Run, Search, best_dual
from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import load_kernel_problem
from benchmarks.programs import KERNEL_PROGRAMS, OWN, PROGRAMS

_GAP = 1e-3
_LIBSVM_ROWS, _MEGABYTES = 2_000, 3_000.0
_SIZES = (2_000, 10_000, 15_000, 24_295)
# seconds, by images: LIBLINEAR, LM3L, LIBSVM, KM3L with the linear kernel; LIBSVM, KM3L with RBF
_PAPER = {
    2_000: (3, 7, 234, 15, 250, 20),
    10_000: (48, 51, 5_438, 245, 6_208, 501),
    15_000: (68, 74, 11_990, 500, 13_875, 922),
    24_295: (102, 104, 29_328, 1_087, 34_770, 3_016),  # the paper has 24,292
}
_COLUMNS = ("LIBLINEAR", "labelweave linear", "LIBSVM RBF", "labelweave RBF")
_OF_PAPER = ("LIBLINEAR", "LM3L", "LIBSVM linear", "KM3L linear", "LIBSVM RBF", "KM3L RBF")


def measure(problem: PeerProblem, *, with_libsvm: bool) -> dict[str, Run | None]:
    linear = replace(problem, gamma=np.nan)
    liblinear = Search(linear, PROGRAMS["liblinear"], known_dual=best_dual(linear))
    found = {"LIBLINEAR": liblinear.loosest(_GAP), "labelweave linear": Search(linear, OWN).at(_GAP)}
    if with_libsvm:
        on_matrix = Search(problem, KERNEL_PROGRAMS["precomputed"]).loosest(_GAP)
        libsvm = Search(problem, KERNEL_PROGRAMS["libsvm"])
        found["LIBSVM RBF"] = on_matrix and libsvm.from_tolerance(_GAP, on_matrix.tolerance)
    return found | {"labelweave RBF": Search(problem, OWN).at(_GAP)}


def _row(size: int, runs: dict[str, Run | None]) -> list[str]:
    paper = [f"{seconds:,}" for seconds in _PAPER.get(size, ())] or [""] * 6
    return [f"{size:,}", *(_cell(runs[name]) if name in runs else "" for name in _COLUMNS), *paper]


def _cell(run: Run | None) -> str:
    return "not reached" if run is None else f"{run.seconds:.1f} (gap {run.gap:.1e})"


@command(sizes=_SIZES, out=RESULTS / "paper_table1.json")
def main(arguments: Any) -> None:
    found: dict[int, dict[str, Run | None]] = {}
    for size in arguments.sizes:
        problem = load_kernel_problem(f"awa-{size}", 1.0, _MEGABYTES)
        found[size] = measure(problem, with_libsvm=size <= _LIBSVM_ROWS)
        print(_row(size, found[size]), flush=True)
    columns = ["images", *_COLUMNS, *(f"paper: {name}" for name in _OF_PAPER)]
    table = markdown(columns, [_row(size, runs) for size, runs in found.items()])
    print("", *table, sep="\n")
    plain = {size: {name: run and asdict(run) for name, run in runs.items()} for size, runs in found.items()}
    settings = {"gap": _GAP, "C": 1.0, "kernel_megabytes": _MEGABYTES, "threads": 1}
    save(arguments.out, settings | {"runs": plain, "table": table})
