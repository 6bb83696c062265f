"""How the cost of a step of conjugate gradients grows with observed entries, non-zeros of X and rank.

A step of the features' half step multiplies by the Hessian once: the image X S of a direction, the curvature
of the loss, and the gradient X^T B; then vectors are updated. Random patterns have columns as frequent as
words in text (Zipf). Each size grows by a factor of 32 while the others stay: observed entries, with the
logistic loss over them, as rows grow; non-zeros of X, with the squared loss and all labels observed, as rows
grow; the rank, with the logistic loss over observed entries.

Work of every kind is in a step, so beside the whole step stands the part that reads what grows. A step is the
difference of runs of 25 and of 5 iterations, of the processor's time of one thread. The slope of the
logarithms is 1 where time is in proportion to size.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import frame
from benchmarks.problems import text_pattern
from labelweave.features import FeatureMatrix
from labelweave.features.factor_maps import explicit_map
from labelweave.foundation.arrays import Workers
from labelweave.problems.label_entries import QuadraticEntries, SampledEntries
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.low_rank_factors import FactorStep
from labelweave.solvers.trust_region_newton import descent, truncated_gradients

_FEW, _MANY = 5, 25  # iterations
_TYPE = np.dtype(np.float32)


@dataclass(frozen=True)
class Shape:
    """The sizes of a problem; without observed entries per row the loss is the squared one, of all labels."""

    rows: int
    features: int
    words: int
    labels: int
    rank: int
    observed_a_row: int = 0


@dataclass(frozen=True)
class Panel:
    """The growing size, the parts of a step that read it, and their descriptions in the plot."""

    shapes: list[Shape]
    parts: tuple[str, ...]
    title: str
    caption: str


_GROWTH = (1, 2, 4, 8, 16, 32)
_PANELS = {
    "observed entries": Panel(
        [Shape(1_000 * g, 500, 2, 2_000, 64, 200) for g in _GROWTH],
        ("scores", "curvature"),
        "scores, sums",
        "200 a row, rank 64, logistic loss",
    ),
    "non-zeros of X": Panel(
        [Shape(1_000 * g, 2_000, 147, 500, 32) for g in _GROWTH],
        ("X S", "X^T B"),
        "X S, X^T B",
        "147 a row, rank 32, squared loss",
    ),
    "rank": Panel(
        [Shape(10_000, 2_000, 50, 2_000, 16 * g, 50) for g in _GROWTH],
        ("X S", "X^T B", "scores", "curvature"),
        "all products",
        "500,000 observed, 510,000 in X, logistic",
    ),
}


class StepProblem:
    """A half step of the features with timed parts."""

    def __init__(self, shape: Shape, workers: Workers) -> None:
        self.shape, self.seconds = shape, defaultdict[str, float](float)
        pattern = text_pattern(shape.rows, shape.features, shape.words, _TYPE)
        lengths = np.sqrt(np.asarray(pattern.multiply(pattern).sum(axis=1)))
        pattern.data /= np.repeat(lengths, shape.words)  # rows of unit length, as in a fit
        features = explicit_map(FeatureMatrix(pattern).with_constant(1.0).data, _TYPE, workers)
        self.products, self.entries = features.products, _entries(shape, workers)
        random = np.random.default_rng(3)
        fixed = (random.standard_normal((shape.labels, shape.rank)) / np.sqrt(shape.labels)).astype(_TYPE)
        features.image = self._timed("X S", features.image)
        features.gradient = self._timed("X^T B", features.gradient)
        if shape.observed_a_row:
            self.entries.signs.sampled = self._timed("scores", self.entries.signs.sampled)
        blocks: Any = "columns" if self.entries.has_uniform_curvature else "whole"
        self.step = FactorStep(self.entries, features, fixed, 1e-3, blocks, workers)
        point = self.step.evaluate(*(np.zeros((n, shape.rank), _TYPE) for n in features.shape[::-1]))
        self.start = descent(self.step, point)
        self.point = replace(point, bend=self._timed("curvature", point.bend))

    def _timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            result, seconds = frame.timed(work, *arguments, **options)
            self.seconds[part] += seconds
            return result

        return run

    def run(self, iterations: int) -> dict[str, float]:
        self.seconds.clear()
        found, total = frame.timed(truncated_gradients, self.step, self.point, self.start, 0.0, iterations)
        if found.n_iter != iterations:
            raise RuntimeError(f"{found.n_iter} iterations instead of {iterations}: nothing was left to do.")
        curvature = self.seconds["curvature"] - self.seconds["scores"]  # which are computed within
        return self.seconds | {"curvature": curvature, "step": total}


def _entries(shape: Shape, workers: Workers) -> Any:
    ones, each = np.ones(shape.rows, _TYPE), shape.observed_a_row
    if not each:
        positives = text_pattern(shape.rows, shape.labels, 2, np.int8, seed=1)
        positives.data[:] = 1
        return QuadraticEntries.from_pattern(positives, ones, 1.0, workers)
    random = np.random.default_rng(2)  # this many entries per row, all equally likely, in order
    steps = shape.labels / each * np.arange(each)
    columns = (steps + random.random((shape.rows, each)) * shape.labels / each).astype(np.int32)
    signs = np.where(random.random(columns.size) < 0.02, 1, -1).astype(np.int8)
    places = np.arange(0, columns.size + 1, each)
    parts = signs, np.minimum(columns, shape.labels - 1).ravel(), places
    observed = sp.csr_array(parts, shape=(shape.rows, shape.labels))
    return SampledEntries.from_signs(ENTRY_LOSSES["log_loss"](), observed, ones, 1.0, workers)


def _measure(name: str, panel: Panel, repeats: int) -> frame.Growth:
    sizes, seconds, parts = [], [], []
    with Workers(1).running() as workers:
        for shape in panel.shapes:
            problem = StepProblem(shape, workers)
            problem.run(1)
            runs = [(problem.run(_FEW), problem.run(_MANY)) for _ in range(repeats)]
            found = {part: median(long[part] - few[part] for few, long in runs) for part in runs[0][0]}
            read = problem.products if name == "non-zeros of X" else getattr(problem.entries, "signs", None)
            sizes.append(shape.rank if name == "rank" else int(read.nnz))
            seconds.append(found["step"] / (_MANY - _FEW))
            parts.append(sum(found[part] for part in panel.parts) / (_MANY - _FEW))
            print(f"{name} {sizes[-1]:,}: {1e3 * seconds[-1]:.2f}, {1e3 * parts[-1]:.2f} ms", flush=True)
    curves = {"step": seconds, panel.title: parts}
    return frame.Growth(name, sizes, curves, panel.caption)


@frame.command(
    repeats=frame.flag(5, "of each size; the median counts"),
    out=frame.RESULTS / "low_rank_scaling.json",
    figure=frame.IMAGES / "low_rank_scaling.png",
)
def main(arguments: Any) -> None:
    panels = [_measure(name, panel, arguments.repeats) for name, panel in _PANELS.items()]
    found = [
        panel._asdict() | {"slopes": {curve: panel.slopes(curve) for curve in panel.curves}}
        for panel in panels
    ]
    frame.save(arguments.out, {"repeats": arguments.repeats, "panels": found})
    frame.draw_growths(panels, arguments.figure, "seconds per step, one thread")
