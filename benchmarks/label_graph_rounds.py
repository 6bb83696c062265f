"""Passes and seconds of the processor to a gap, for label graphs over rows in partitions.

- visits: the weights visit the partitions one after the other, several times a pass, each visit a pass of
  block-coordinate Frank-Wolfe over some of the rows there.  This is what ``labelweave.dask`` does.
- searched: so too, with the worst labelings of all rows found by all partitions at once, at the weights that
  the pass begins with; only steps are one after the other.
- added: all partitions make a local pass at the same time, and the moves of the weights are added (CoCoA+ of
  Ma et al., "Adding vs. averaging in distributed primal-dual optimization", ICML 2015): local curvature is
  taken times the number of partitions, which keeps the dual from falling.
- measured: so too, with that number as small as the moves of the pass before would have allowed; a pass that
  lowers the dual is undone.

These are counted without Dask; with ``--workers 1 2`` the classifier of ``labelweave.dask`` is fitted too,
with so many processes, and its seconds are those of a clock.

python -m benchmarks.label_graph_rounds --problems scene:full yeast:chow-liu --partitions 2 4 16
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

import dask
from benchmarks.clusters import workers
from benchmarks.frame import flag, read_options
from benchmarks.needed_data import needs_data
from benchmarks.papers.label_graphs import read_rows
from benchmarks.problems import DEFAULT_DATA
from labelweave.dask import LabelGraphClassifier
from labelweave.estimators.label_graph.choice import choose_graph, usual_regularization
from labelweave.estimators.label_graph.fit import GraphData
from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import Workers
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import MarginData, RidgePenalty, StructuredMargin
from labelweave.solvers.frame import relative_gap
from labelweave.solvers.passes import BlockFrankWolfe, pass_over

_INFERENCE = {"method": "auto", "exact_width": 12, "max_nodes": 1000}
_MOST_PASSES, _SWEEPS, _VISITS = 300, 30, 16
_GROWTH, _SHARE = 1.5, 0.5

Way = Callable[["Partitions", Any], Any]


@dataclass
class Problem:
    """Rows with a graph.

    data: with the constant feature.
    """

    data: GraphData
    graph: CliqueGraph
    regularization: float

    def over(self, data: MarginData) -> StructuredMargin:
        """State the problem of some of the rows."""
        penalty = RidgePenalty(self.graph.n_cliques)
        return StructuredMargin(data, self.graph, penalty, self.regularization, _INFERENCE, Workers())


def load(name: str, graph: str, folder: Path) -> Problem:
    """Load a set, standardised."""
    X, labels = read_rows(name, folder)
    features = FeatureMatrix(StandardScaler().fit_transform(X)).with_constant(1.0)
    data = GraphData(features, labels, np.ones(len(labels)), np.ones(labels.shape))
    return Problem(data, choose_graph(graph, data, None), usual_regularization(data))


class Partitions:
    """Partitions of rows, drawn at random, with the dual point of each; ``sums`` are those of all."""

    def __init__(self, problem: Problem, count: int) -> None:
        whole = MarginData(*problem.data)
        order = np.random.default_rng(5).permutation(whole.n_rows)
        pieces = [np.sort(rows) for rows in np.array_split(order, count)]
        parts = [MarginData.part(problem.data.features.rows(rows), whole.arrays_of(rows)) for rows in pieces]
        self.problems = [problem.over(part) for part in parts]
        self.points = [one.first_point() for one in self.problems]
        self.sums, self.curvature = self.points[0].sums.copy(), float(count)
        self.dual, self.undone = -np.inf, 0

    def values(self, points: list[Any], sums: Any) -> tuple[float, float]:
        """Compute primal and dual value over all partitions."""
        first, lam = self.problems[0], self.problems[0].regularization
        label_square, squares = first.squares(replace(points[0], sums=sums))
        bend = lam * (label_square + first.penalty.primal(squares))
        loss = cost = 0.0
        for problem, point in zip(self.problems, points, strict=True):
            own = replace(point, sums=sums)
            record = problem.evaluate(own)
            loss += record.primal - bend
            cost += record.dual + bend
        return bend + loss, cost - bend


def visits(parts: Partitions, random: Any, found: list[Any] | None = None) -> tuple[float, float]:
    """Let the weights visit all partitions; give primal and dual value."""
    count = len(parts.problems)
    turns = max(1, round(_VISITS / count))
    orders = [
        np.array_split(random.permutation(problem.n_rows), turns if count > 1 else 1)
        for problem in parts.problems
    ]
    for turn in range(len(orders[0])):
        for at in random.permutation(count):
            problem = parts.problems[at]
            parts.points[at] = replace(parts.points[at], sums=parts.sums)
            if found is not None:
                problem.worst_labelings = _given(found[at])  # type: ignore[method-assign]
            pass_over(problem, parts.points[at], random, _SWEEPS, orders[at][turn])
            vars(problem).pop("worst_labelings", None)
    return parts.values(parts.points, parts.sums)


def searched(parts: Partitions, random: Any) -> tuple[float, float]:
    """Find labelings at once, then visit."""
    found = [
        problem.worst_labelings(
            replace(point, sums=parts.sums), rows, problem.data.multiply(rows, parts.sums)
        )
        for problem, point in zip(parts.problems, parts.points, strict=True)
        for rows in [np.arange(problem.n_rows)]
    ]
    return visits(parts, random, found)


def _given(found: Any) -> Callable[..., Any]:
    return lambda point, rows, products: type(found)(*(part[rows] for part in found))


def added(parts: Partitions, random: Any, *, is_measured: bool = False) -> tuple[float, float]:
    """Make local passes at once, and add their moves."""
    moved, moves = [], []
    for problem, point in zip(parts.problems, parts.points, strict=True):
        arrays = {name: getattr(point, name).copy() for name in ("means", "vertices", "shares", "gaps")}
        own, lam = replace(point, sums=parts.sums.copy(), **arrays), problem.regularization
        problem.regularization = lam / parts.curvature
        pass_over(problem, own, random, _SWEEPS)
        problem.regularization = lam
        moves.append((own.sums - parts.sums) / parts.curvature)
        moved.append(own)
    total = np.sum(moves, axis=0)
    primal, dual = parts.values(moved, parts.sums + total)
    if is_measured:
        if dual < parts.dual:
            parts.curvature, parts.undone = min(len(moves), _GROWTH * parts.curvature), parts.undone + 1
            return np.inf, -np.inf
        needed = max(1.0, float(np.square(total).sum() / sum(np.square(move).sum() for move in moves)))
        parts.curvature = _SHARE * needed + (1 - _SHARE) * parts.curvature
    parts.sums, parts.points, parts.dual = parts.sums + total, moved, dual
    return primal, dual


def measured(parts: Partitions, random: Any) -> tuple[float, float]:
    """Add moves with a curvature that follows from those before."""
    return added(parts, random, is_measured=True)


_WAYS: dict[str, Way] = {"visits": visits, "searched": searched, "added": added, "measured": measured}


def run(problem: Problem, way: Way, count: int, tol: float) -> tuple[int, float, float]:
    """Give passes, gap, and seconds of the processor, the measurement of the gap among them."""
    parts, random, begun = Partitions(problem, count), np.random.RandomState(0), time.process_time()
    gap, number = np.inf, 0
    while gap > tol and number < _MOST_PASSES:
        number += 1
        primal, dual = way(parts, random)
        gap = relative_gap(primal, dual) if np.isfinite(primal) else np.inf
    return number, gap, time.process_time() - begun


class Searches:
    """Counts the seconds of the processor that a problem takes to find labelings."""

    def __init__(self, problem: StructuredMargin) -> None:
        self.seconds, self._find = 0.0, problem.worst_labelings
        problem.worst_labelings = self  # type: ignore[method-assign,assignment]

    def __call__(self, *given: Any) -> Any:
        begun = time.process_time()
        found = self._find(*given)
        self.seconds += time.process_time() - begun
        return found


def run_on_dask(problem: Problem, count: int, tol: float, n_workers: int) -> str:
    """Fit the same by the classifier on Dask's collections."""
    X, labels = problem.data.features.data[:, :-1], problem.data.labels
    order = np.random.default_rng(5).permutation(len(X))
    pieces = [np.sort(rows) for rows in np.array_split(order, count)]
    X_parts, Y_parts = ([dask.delayed(table[rows]) for rows in pieces] for table in (X, labels))
    apart = 18e-6 * X.size  # megabytes, three quarters of what all rows take
    given = {"graph": problem.graph, "memory_budget": apart, "tol": tol}
    with workers(n_workers) as client:
        LabelGraphClassifier(client, **given | {"tol": 0.5}).fit(X_parts, Y_parts)  # loops are compiled
        begun = time.perf_counter()
        model = LabelGraphClassifier(client, **given).fit(X_parts, Y_parts)
        seconds = time.perf_counter() - begun
    return f"{n_workers} workers: {model.n_iter_} passes, gap {model.duality_gap_:.1e}, {seconds:.1f} s"


@needs_data
def main() -> None:
    given = read_options(
        __doc__,
        problems=["scene:full", "yeast:chow-liu"],
        partitions=[2, 4, 16],
        ways=flag(list(_WAYS), nargs="*", choices=list(_WAYS)),
        workers=flag([], type=int),
        tol=1e-2,
        data=DEFAULT_DATA,
    )
    for name in given.problems:
        problem = load(*name.split(":"), given.data)
        whole, solver = problem.over(MarginData(*problem.data)), BlockFrankWolfe(given.tol, _MOST_PASSES, 0)
        BlockFrankWolfe(1.0, 1, 0).solve(whole)  # loops are compiled
        searches, begun = Searches(whole), time.process_time()
        result, _ = solver.solve(whole)
        seconds = time.process_time() - begun
        share = f"{searches.seconds / seconds:.0%} of them for labelings"
        print(f"{name}, ordinary: {result.n_iter} passes, {seconds:.2f} s, {share}", flush=True)
        for n_workers in given.workers:
            for count in given.partitions:
                print(f"{name}, {count} partitions, {run_on_dask(problem, count, given.tol, n_workers)}")
        for count in given.partitions:
            for way in given.ways:
                passes, gap, seconds = run(problem, _WAYS[way], count, given.tol)
                print(
                    f"{name}, {count} partitions, {way}: {passes} passes, gap {gap:.1e}, {seconds:.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
