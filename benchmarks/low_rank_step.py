"""What one step of conjugate gradients costs in a low-rank fit, part by part, beside the machine's limits.

The features' half step multiplies by the Hessian once a step: the image X S of a direction, the
curvature of the loss, and the gradient X^T B; then vectors are updated.  The curvature is

- ``quadratic`` (squared loss, all labels observed): a product with the k x k matrix H^T H;
- ``sampled`` (logistic loss, few entries observed): scores of the observed entries and sums over them;
- ``dense`` (logistic loss, all entries): products of blocks with H and its transpose.

Random patterns whose columns are as frequent as words in text (Zipf) take the shapes of bibtex, delicious and
a tenth of the rows of the Wikipedia set of the LEML paper, with a constant feature; labels likewise.
``sampled`` takes 20 % of the entries, of Wikipedia's 20 a row.  A step is the
difference of runs of 25 and of 5 iterations (of Wikipedia 4 and 1), of the processor's time of one
thread; the median of the repeats counts.

Operations are multiplications and additions.  Bytes are what every operation reads and writes: a row of
a table for each entry of a sparse product, its entries and results; matrix factors and products; and
of vectors what the operations on them go through one by one.  The limit of a sparse product is that of
``benchmarks.product_limits``, of a dense one the rate of BLAS, of vectors the rate at which BLAS adds a
multiple of one to another in the smallest cache that holds them all, or in memory.  The share is the
limit over the measured time; ``of rows`` takes our rates for rows in random order from a table of the size of
each cache, and well beyond, instead of those of streams.

Sets that are not asked for keep their results.

Example: ``python -m benchmarks.low_rank_step --repeats 5``.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import RESULTS, flag, read_json, read_options, write_json
from benchmarks.machine import describe_machine
from benchmarks.product_limits import Limits, level_sizes, measure_limits, row_rate, seconds_of, text_pattern

_ITERATIONS, _FEW_ITERATIONS = (5, 25), (1, 4)
_MANY_ENTRIES = 10**7
_IMAGE, _GRADIENT, _SCORES, _CURVATURE, _VECTORS = "X S", "X^T B", "scores", "curvature", "vectors"
_PASSES = {"factor": 19, "image": 6}  # over arrays as large as a factor or its image, in a step


@dataclass(frozen=True)
class Shape:
    """A problem's sizes."""

    rows: int
    features: int
    words: int
    labels: int
    labels_a_row: int
    rank: int
    loss: str
    observed_a_row: int = 0

    @property
    def title(self) -> str:
        """What it is called in the results."""
        return f"{self.rows} x {self.features}, {self.labels} labels, rank {self.rank}, {self.loss}"


def _shapes() -> dict[str, list[Shape]]:
    bibtex, delicious = (4_880, 1_836, 68, 159, 2), (12_920, 500, 18, 983, 19)
    wikipedia = (88_181, 366_932, 147, 213_707, 7)
    kinds = [("quadratic", 0), ("sampled", 0.2), ("dense", 0)]
    small = [
        (name, Shape(*sizes, rank, loss, round(share * sizes[3])))
        for name, sizes, ranks in (("bibtex", bibtex, (64, 159)), ("delicious", delicious, (200,)))
        for rank in ranks
        for loss, share in kinds
    ]
    large = [Shape(*wikipedia, 250, "quadratic"), Shape(*wikipedia, 250, "sampled", 20)]
    found: dict[str, list[Shape]] = defaultdict(list)
    for name, shape in small:
        found[name].append(shape)
    return {**found, "Wikipedia / 10": large}


class PartClock:
    """Seconds of the parts of a step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Give a function that does the work and adds its time to a part."""

        def run(*arguments: Any, **options: Any) -> Any:
            start = time.process_time()
            result = work(*arguments, **options)
            self.seconds[part] += time.process_time() - start
            return result

        return run


class StepProblem:
    """A features' half step whose parts are timed."""

    def __init__(self, shape: Shape, dtype: Any, workers: Any) -> None:
        from labelweave.features import FeatureMatrix
        from labelweave.features.factor_maps import explicit_map
        from labelweave.problems.low_rank_factors import FactorStep
        from labelweave.solvers.trust_region_newton import descent

        self.shape, self.clock = shape, PartClock()
        pattern = text_pattern(shape.rows, shape.features, shape.words, dtype)
        lengths = np.sqrt(np.asarray(pattern.multiply(pattern).sum(axis=1)))
        pattern.data /= np.repeat(lengths, shape.words)  # rows of unit length, as in a fit
        features = explicit_map(FeatureMatrix(pattern).with_constant(1.0).data, dtype, workers)
        self.products, self.entries = features.products, _entries(shape, dtype, workers)
        random = np.random.default_rng(3)
        fixed = (random.standard_normal((shape.labels, shape.rank)) / np.sqrt(shape.labels)).astype(dtype)
        blocks: Any = "columns" if self.entries.has_uniform_curvature else "whole"
        self._time_parts(features)
        self.step = FactorStep(self.entries, features, fixed, 1e-3, blocks, workers)
        factor, image = (np.zeros((n_rows, shape.rank), dtype) for n_rows in features.shape[::-1])
        point = self.step.evaluate(factor, image)
        self.start = descent(self.step, point)
        self.point = replace(point, bend=self.clock.timed(_CURVATURE, point.bend))

    def _time_parts(self, features: Any) -> None:
        features.image = self.clock.timed(_IMAGE, features.image)
        features.gradient = self.clock.timed(_GRADIENT, features.gradient)
        if self.shape.loss == "sampled":
            self.entries.signs.sampled = self.clock.timed(_SCORES, self.entries.signs.sampled)

    def run(self, iterations: int) -> dict[str, float]:
        """Give the seconds of each part, and of all."""
        from labelweave.solvers.trust_region_newton import truncated_gradients

        self.clock.seconds.clear()
        start = time.process_time()
        found = truncated_gradients(self.step, self.point, self.start, 0.0, iterations)
        total = time.process_time() - start
        if found.n_iter != iterations:
            raise RuntimeError(f"{found.n_iter} iterations instead of {iterations}: nothing was left to do.")
        parts = dict(self.clock.seconds)
        parts[_VECTORS] = total - sum(parts[part] for part in (_IMAGE, _GRADIENT, _CURVATURE))
        if _SCORES in parts:
            parts[_CURVATURE] -= parts[_SCORES]
        return parts | {"step": total}


def _entries(shape: Shape, dtype: Any, workers: Any) -> Any:
    from labelweave.problems.label_entries import DenseEntries, EntryTable, QuadraticEntries, SampledEntries
    from labelweave.problems.losses.entry_losses import ENTRY_LOSSES

    ones = np.ones(shape.rows, dtype)
    positives = text_pattern(shape.rows, shape.labels, shape.labels_a_row, np.int8, seed=1)
    positives.data[:] = 1
    if shape.loss == "quadratic":
        return QuadraticEntries.from_pattern(positives, ones, 1.0, workers)
    loss = ENTRY_LOSSES["logistic"]()
    if shape.loss == "dense":
        positives.sum_duplicates()
        table = EntryTable(positives, False, ones, np.ones(shape.labels, dtype), 1.0)
        return DenseEntries(loss, table, workers)
    return SampledEntries.from_signs(loss, _observed(shape), ones, 1.0, workers)


def _observed(shape: Shape) -> sp.csr_array:
    """Draw so many entries a row, all equally likely, in order."""
    random, each = np.random.default_rng(2), shape.observed_a_row
    steps = shape.labels / each * np.arange(each)
    columns = (steps + random.random((shape.rows, each)) * shape.labels / each).astype(np.int32)
    signs = np.where(random.random(columns.size) < 0.02, 1, -1).astype(np.int8)
    places = np.arange(0, columns.size + 1, each)
    return sp.csr_array(
        (signs, np.minimum(columns, shape.labels - 1).ravel(), places), shape=(shape.rows, shape.labels)
    )


def step_seconds(problem: StepProblem, repeats: int) -> dict[str, float]:
    """Give the median seconds of a step and of its parts."""
    few, many = _FEW_ITERATIONS if problem.products.nnz > _MANY_ENTRIES else _ITERATIONS
    problem.run(1)
    found = []
    for _ in range(repeats):
        short, long = problem.run(few), problem.run(many)
        found.append({part: (long[part] - short[part]) / (many - few) for part in long})
    return {part: median(one[part] for one in found) for part in found[0]}


@dataclass(frozen=True)
class Work:
    """What a part does: operations, bytes, and the least seconds: of streams, and of rows in random order."""

    operations: float
    n_bytes: float
    seconds: float
    row_seconds: float


def _work(problem: StepProblem, limits: Limits, update_rates: dict[str, float]) -> dict[str, Work]:
    """Count the work of every part."""
    shape, products = problem.shape, problem.products
    size, rank = products.dtype.itemsize, problem.shape.rank
    n_rows, n_features = products.shape
    of_features, of_rows = np.bincount(products.indices, minlength=n_features), np.diff(products.indptr)
    rows = {level: row_rate(n_bytes, rank, products.dtype) for level, n_bytes in level_sizes().items()}
    found = {
        _IMAGE: _gather(of_features, n_rows * rank * size, rank, size, limits, rows),
        _GRADIENT: _gather(of_rows, n_features * rank * size, rank, size, limits, rows),
    }
    in_image = n_rows * rank * size
    if shape.loss == "sampled":
        signs = problem.entries.signs
        counts = np.bincount(signs.indices, minlength=shape.labels)
        found[_SCORES] = _gather(counts, in_image, rank, size, limits, rows)
        found[_CURVATURE] = _gather(counts, in_image + 3 * size * signs.nnz, rank, size, limits, rows)
    else:
        found[_CURVATURE] = _dense(shape, in_image, size, limits)
    found[_VECTORS] = _vectors(n_features * rank, n_rows * rank, size, update_rates, limits)
    return found


def _gather(
    counts: Any, other: float, rank: int, size: int, limits: Limits, row_rates: dict[str, float]
) -> Work:
    n_entries = float(counts.sum())
    other += n_entries * (4 + size)
    operations = 2.0 * n_entries * rank
    work = counts, rank * size, other, operations
    least, rows = limits.gather_seconds(*work), limits.gather_seconds(*work, row_rates)
    return Work(operations, n_entries * rank * size + other, least, rows)


def _dense(shape: Shape, in_image: float, size: int, limits: Limits) -> Work:
    if shape.loss == "quadratic":
        operations = 2.0 * shape.rows * shape.rank**2
        n_bytes = 4 * in_image  # the product, then its rows times weights
    else:
        operations = 4.0 * shape.rows * shape.labels * shape.rank
        n_bytes = 2 * in_image + size * shape.rows * shape.labels  # and second derivatives
    streams = limits.stream_seconds(n_bytes, n_bytes)
    least = max(operations / limits.operation_rate, streams)
    return Work(operations, n_bytes, least, least)


def _vectors(factor: int, image: int, size: int, rates: dict[str, float], limits: Limits) -> Work:
    entries = _PASSES["factor"] * factor + _PASSES["image"] * image
    resident = size * (6 * factor + 4 * image)
    second, third = limits.cache_bytes
    level = "second" if resident <= second else "third" if resident <= third else "memory"
    # of three passes, an update has a multiplication and an addition
    least = size * entries / rates[level]
    return Work(2.0 * entries / 3, size * entries, least, least)


def _update_rates(dtype: Any) -> dict[str, float]:
    """Measure bytes a second of ``y += a x`` with BLAS: two readings, one writing."""
    from scipy.linalg.blas import get_blas_funcs

    from labelweave.foundation.arrays import aligned_empty

    add = get_blas_funcs("axpy", dtype=dtype)
    rates = {}
    for level, size in level_sizes().items():
        pair = aligned_empty((2, size // 2 // np.dtype(dtype).itemsize), dtype)
        pair[:] = 1
        times = max(1, 2**26 // size)

        def update(pair: Any = pair, times: int = times) -> None:
            for _ in range(times):
                add(pair[0], pair[1], a=1e-3)

        rates[level] = times * 1.5 * size / min(seconds_of(update) for _ in range(10))
    return rates


def _measure(shape: Shape, arguments: argparse.Namespace, workers: Any, limits: Limits, rates: Any) -> Any:
    problem = StepProblem(shape, np.dtype(arguments.precision), workers)
    work = _work(problem, limits, rates)
    seconds = step_seconds(problem, arguments.repeats)
    total = Work(*(sum(getattr(part, name) for part in work.values()) for name in Work.__annotations__))
    return {
        part: {
            "seconds": seconds[part],
            "gflops": done.operations / seconds[part] / 1e9,
            "gb_per_s": done.n_bytes / seconds[part] / 1e9,
            "limit_seconds": done.seconds,
            "share": done.seconds / seconds[part],
            "row_share": done.row_seconds / seconds[part],
        }
        for part, done in {**work, "step": total}.items()
    }


_HEADER = (
    "| shape | rank | curvature | part | ms | GFlop/s | GB/s | limit, ms | share | of rows |\n"
    + "|---" * 10
    + "|"
)


def _rows(name: str, shape: Shape, parts: dict[str, dict[str, float]]) -> list[str]:
    return [
        f"| {name} | {shape.rank} | {shape.loss} | {part} | {1e3 * one['seconds']:.2f} "
        f"| {one['gflops']:.1f} | {one['gb_per_s']:.1f} | {1e3 * one['limit_seconds']:.2f} "
        f"| {one['share']:.0%} | {one['row_share']:.0%} |"
        for part, one in parts.items()
    ]


def main() -> None:
    from labelweave.foundation.arrays import Workers

    sets = ["bibtex", "delicious", "Wikipedia / 10"]
    arguments = read_options(
        __doc__,
        sets=flag(sets, nargs="*", choices=sets),
        repeats=5,
        precision=flag("float32", choices=("float64", "float32")),
        out=RESULTS / "low_rank_step.json",
    )
    dtype = np.dtype(arguments.precision)
    results: dict[str, Any] = read_json(arguments.out)
    results |= {"precision": arguments.precision, "steps": results.get("steps", {})}
    with Workers(1).running() as workers:
        limits, rates = measure_limits(dtype), _update_rates(dtype)
        results["limits"] = {
            "gemm_gflops": limits.operation_rate / 1e9,
            "read_gb_per_s": {level: rate / 1e9 for level, rate in limits.read_rates.items()},
            "update_gb_per_s": {level: rate / 1e9 for level, rate in rates.items()},
            "measured": describe_machine(),
        }
        print(results["limits"], _HEADER, sep="\n", flush=True)
        for name, shapes in _shapes().items():
            for shape in shapes if name in arguments.sets else []:
                parts = _measure(shape, arguments, workers, limits, rates)
                results["steps"][f"{name}: {shape.title}"] = parts | {"measured": describe_machine()}
                print(*_rows(name, shape, parts), sep="\n", flush=True)
    write_json(arguments.out, results)


if __name__ == "__main__":
    main()
