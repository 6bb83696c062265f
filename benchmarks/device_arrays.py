"""The dense solvers on arrays of other libraries, such as CuPy's on a GPU, against NumPy's.

    python -m benchmarks.device_arrays --libraries cupy torch:cuda --rows 8000 --jobs 16
    python -m benchmarks.device_arrays --libraries array_api_strict --rows 300

Four fits of synthetic rows whose kernel matrix, or features, are put into arrays of the library first:
alternating directions for independent and for coupled labels, Newton's method for one class a row, and half
steps of low-rank learning.  Tables stay where the library has them; see "Arrays and devices" in
docs/architecture.md.  Each fit is made once, and once more with the clock.  NumPy has as many threads as are
asked for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.arrays import Workers
from labelweave.arrays.linear_algebra import to_numpy
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.factor_maps import DenseMap
from labelweave.features.gram import StoredGram
from labelweave.features.gram.sources import KernelSource
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.losses import SoftmaxLoss
from labelweave.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems import MarginBox, Resources, kernel_margins
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.label_entries import DenseEntries, EntryTable
from labelweave.problems.low_rank_factors import LowRankFactors
from labelweave.solvers import AlternatingDirections
from labelweave.solvers.alternating_minimization import AlternatingMinimization
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState

__all__ = ["main"]

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
        """Fit max-margin labels by alternating directions."""
        box = MarginBox.make(LabelMatrix(self.Y), np.full(len(self.Y), 2.0), np.ones((2, _LABELS)))
        box = MarginBox(make(box.targets), make(box.lower), make(box.upper))
        how = "cholesky" if covariance.is_diagonal else "eigenvalues"  # pivots are NumPy's alone
        resources = Resources(self.workers, np.float64, 1e12, how)
        gram = StoredGram(make(self.kernel_matrix), self.workers)
        problem = kernel_margins(box, self.source, 0.5, covariance, resources, gram)
        result, _ = AlternatingDirections(1e-3, 1000).solve(problem)
        return result.answer.kept_scores, result.n_iter, result.gap

    def independent(self, make: Make) -> tuple[Any, int, float]:
        """Fit labels that do not covary."""
        return self.directions(make, LabelCovariance.identity(_LABELS))

    def coupled(self, make: Make) -> tuple[Any, int, float]:
        """Fit labels that do."""
        return self.directions(make, LabelCovariance.from_labels(LabelMatrix(self.Y)).shrink(0.5))

    def newton(self, make: Make) -> tuple[Any, int, float]:
        """Fit one class a row by Newton's method."""
        loss = SoftmaxLoss(self.classes, 10, np.ones((len(self.classes), 1)))
        gram = StoredGram(make(self.kernel_matrix), self.workers)
        operator = CoupledGram([GramTerm(gram, LabelCovariance.identity(10))], 1.0, self.workers)
        problem = KernelLikelihood(operator, loss, 0, 0)
        start = NewtonState.at(make(np.zeros(loss.shape)))
        result, state = NewtonConjugateGradient(1e-6, 50).solve(problem, start)
        return state.scores, result.n_iter, result.gap

    def low_rank(self, make: Make) -> tuple[Any, int, float]:
        """Fit factors to features by half steps."""
        table = EntryTable(sp.csr_array(self.Y), False, np.ones(len(self.Y)), np.ones(_LABELS), 1.0)
        entries = DenseEntries(ENTRY_LOSSES["logistic"](), table, self.workers)
        own = DenseMap(make(self.wide), self.workers)
        problem = LowRankFactors(entries, own, "trace_norm", 1.0, make(self.start), self.workers)
        result, state = AlternatingMinimization(1e-9, 5, 30, 10).solve(problem)
        return state.pair.image @ state.pair.labels.T, result.n_iter, float("nan")


def _timed(fit: Callable[[Make], tuple[Any, int, float]], make: Make) -> tuple[np.ndarray, int, float, float]:
    fit(make)
    begin = time.perf_counter()
    answer, n_rounds, gap = fit(make)
    found = np.asarray(to_numpy(answer))  # which waits for a device
    return found, n_rounds, gap, time.perf_counter() - begin


def main() -> None:
    """Fit with all libraries, compare and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--libraries", nargs="+", default=["cupy"], help="modules with asarray, and devices: torch:cuda"
    )
    parser.add_argument("--fits", nargs="+", choices=_FITS, default=_FITS)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--jobs", type=int, default=2, help="threads of NumPy")
    given = parser.parse_args()
    makers: dict[str, Make] = {}
    for name in given.libraries:
        module, _, device = name.partition(":")
        try:
            library = import_module(module)
        except ImportError:
            parser.exit(2, f"{module} is not installed; give --libraries array_api_strict, or install it.\n")
        makers[name] = partial(library.asarray, device=device) if device else library.asarray
    with Workers(given.jobs).running() as workers:
        problem = Problem(given.rows, workers)
        for fit in given.fits:
            own, n_rounds, gap, seconds = _timed(getattr(problem, fit), np.asarray)
            print(f"{fit}: NumPy {seconds:.2f} s, {n_rounds} rounds, gap {gap:.1e}", flush=True)
            for name, make in makers.items():
                answer, n_rounds, gap, seconds = _timed(getattr(problem, fit), make)
                difference = float(abs(own - answer).max() / abs(own).max())
                print(
                    f"  {name} {seconds:.2f} s, {n_rounds} rounds, gap {gap:.1e}; scores differ by "
                    f"{difference:.1e} of the largest",
                    flush=True,
                )


if __name__ == "__main__":
    main()
