"""The dense solvers on arrays of other libraries, such as CuPy's on a GPU, compared with NumPy's.

    python -m benchmarks.device_arrays --libraries cupy torch:cuda --rows 8000 --jobs 16
    python -m benchmarks.device_arrays --libraries array_api_strict --rows 300

Four fits of synthetic rows whose kernel matrix, or features, are converted to arrays of the library first:
alternating directions for independent and for coupled labels, Newton's method for one class per row, and half
steps of low-rank learning.  Tables stay on the device; see "Arrays and devices" in docs/reproducibility.md.
Each fit runs once, and then is timed up to ``--repeats`` times; the median counts, while this takes less than
20 seconds together.  NumPy has as many threads as requested.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, several
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.factor_maps import DenseMap
from labelweave.features.gram import StoredGram
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import to_numpy
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginBox, Resources, kernel_margins
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.label_entries import DenseEntries, EntryTable
from labelweave.problems.losses import SoftmaxLoss
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.low_rank_factors import LowRankFactors
from labelweave.solvers import AlternatingDirections
from labelweave.solvers.alternating_minimization import AlternatingMinimization
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState

_LONG = 20.0  # seconds after which a fit is not repeated
_FITS = ["independent", "coupled", "newton", "low_rank"]
_FEATURES, _LABELS, _RANK = 30, 100, 50
_KERNEL = RBFKernel(0.02)
Make = Callable[[Any], Any]


class Problem:
    """Synthetic rows, and fits of them."""

    def __init__(self, n_rows: int, workers: Workers) -> None:
        random = np.random.default_rng(0)
        self.workers, self.X = workers, random.normal(size=(n_rows, _FEATURES))
        scores = np.tanh(self.X @ random.normal(size=(_FEATURES, 40)) / 3) @ random.normal(size=(40, _LABELS))
        self.Y = (scores + random.normal(size=scores.shape) > 2).astype(int)
        self.classes = (scores[:, :10] + random.gumbel(size=(n_rows, 10))).argmax(axis=1)
        self.features = FeatureMatrix(self.X)
        self.source = KernelSource(_KERNEL, self.features)
        self.kernel_matrix = StoredGram.from_source(self.source, 0.5, np.float64, workers).table
        self.start = random.normal(size=(_LABELS, _RANK))
        self.wide = np.hstack([self.X, random.normal(size=(n_rows, 500))])

    def directions(self, make: Make, covariance: LabelCovariance) -> tuple[Any, int, float]:
        box = MarginBox.make(LabelMatrix(self.Y), np.full(len(self.Y), 2.0), np.ones((2, _LABELS)))
        box = MarginBox(make(box.targets), make(box.lower), make(box.upper))
        how = "cholesky" if covariance.is_diagonal else "eigenvalues"  # only NumPy chooses pivots
        resources = Resources(self.workers, np.float64, 1e12, how)
        gram = StoredGram(make(self.kernel_matrix), self.workers)
        problem = kernel_margins(box, self.source, 0.5, covariance, resources, gram)
        result, _ = AlternatingDirections(1e-3, 1000).solve(problem)
        return result.answer.kept_scores, result.n_iter, result.gap

    def independent(self, make: Make) -> tuple[Any, int, float]:
        return self.directions(make, LabelCovariance.identity(_LABELS))

    def coupled(self, make: Make) -> tuple[Any, int, float]:
        return self.directions(make, LabelCovariance.from_labels(LabelMatrix(self.Y)).shrink(0.5))

    def newton(self, make: Make) -> tuple[Any, int, float]:
        loss = SoftmaxLoss(self.classes, 10, np.ones((len(self.classes), 1)))
        gram = StoredGram(make(self.kernel_matrix), self.workers)
        operator = CoupledGram([GramTerm(gram, LabelCovariance.identity(10))], 1.0, self.workers)
        problem = KernelLikelihood(operator, loss, 0, 0)
        start = NewtonState.at(make(np.zeros(loss.shape)))
        result, state = NewtonConjugateGradient(1e-6, 50).solve(problem, start)
        return state.scores, result.n_iter, result.gap

    def low_rank(self, make: Make) -> tuple[Any, int, float]:
        table = EntryTable(sp.csr_array(self.Y), False, np.ones(len(self.Y)), np.ones(_LABELS), 1.0)
        entries = DenseEntries(ENTRY_LOSSES["log_loss"](), table, self.workers)
        own = DenseMap(make(self.wide), self.workers)
        problem = LowRankFactors(entries, own, "trace_norm", 1.0, make(self.start), self.workers)
        result, state = AlternatingMinimization(1e-9, 5, 30, 10).solve(problem)
        return state.pair.image @ state.pair.labels.T, result.n_iter, float("nan")


def _timed(
    fit: Callable[[Make], tuple[Any, int, float]], make: Make, repeats: int
) -> tuple[np.ndarray, dict[str, Any]]:
    fit(make)
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < _LONG:
        begin = time.perf_counter()
        answer, n_rounds, gap = fit(make)
        found = np.asarray(to_numpy(answer))  # which waits for the device
        seconds.append(time.perf_counter() - begin)
    return found, {
        "seconds": float(np.median(seconds)),
        "repeats": len(seconds),
        "rounds": n_rounds,
        "gap": gap,
    }


def maker(name: str) -> Make:
    """Return how NumPy's arrays are moved to a library, and to its device after a colon."""
    module, _, device = name.partition(":")
    try:
        library = import_module(module)
    except ImportError:
        print(f"{module} is not installed; install it, or name another library.", file=sys.stderr)
        raise SystemExit(2) from None
    return partial(library.asarray, device=device) if device else library.asarray


def accelerator() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'':14}{'library':18}{'rows':>8}{'seconds':>9}{'rounds':>8}{'gap':>9}  difference of scores"]
    for run in sorted(runs, key=lambda one: _FITS.index(one["fit"])):
        numbers = f"{run['rows']:8,}{run['seconds']:9.2f}{run['rounds']:8}{run['gap']:9.1e}"
        lines.append(f"{run['fit']:14}{run['library']:18}{numbers}  {run['difference']:.1e}")
    return "\n".join(lines)


@command(
    libraries=flag(["cupy"], "modules with asarray, and devices: torch:cuda"),
    fits=several(_FITS),
    rows=8000,
    jobs=flag(2, "threads of NumPy"),
    repeats=5,
    records=RESULTS / "device_arrays.json",
)
def main(given: Any) -> None:
    record = RecordedRuns(given, accelerator=accelerator())
    if not record.measures:
        record.show(table(record.runs))
        return
    makers: dict[str, Make] = {f"numpy, {given.jobs} threads": np.asarray}
    makers |= {name: maker(name) for name in given.libraries}
    with Workers(given.jobs).running() as workers:
        problem = Problem(given.rows, workers)
        for fit in given.fits:
            own: Any = None
            for name, make in makers.items():
                answer, run = _timed(getattr(problem, fit), make, given.repeats)
                own = answer if own is None else own
                run["difference"] = float(abs(own - answer).max() / abs(own).max())
                record.add({"fit": fit, "library": name, "rows": given.rows}, run)
    record.show(table(record.runs))
