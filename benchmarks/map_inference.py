"""Examples a second of MAP inference, beside an integer program and a least cut.

Graphs: a tree, the complete graph of six labels (scene's), 159 labels (bibtex's) with 200 pairs drawn
evenly or with hubs, 1,000 labels with 2,000 pairs; the weaker the pairs are beside the labels' own
scores, the easier.  SciPy's ``milp`` solves the first examples of each; PyMaxflow all examples of
attractive problems.  All three are exact, and the scores found are compared.  The second part counts
edges: 159 labels with hubs and up to 300 pairs.

One thread; the fastest of the repeats counts, for all examples of a problem together.

Example: ``python -m benchmarks.map_inference --repeats 5``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import IMAGES, RESULTS, begin_picture, flag, read_options, save, write_picture
from benchmarks.map_peers import solve_by_cuts, solve_by_programs
from benchmarks.map_problems import PairProblem, draw_problem, graph_of
from benchmarks.needed_data import needs_data
from labelweave.inference.map import MapInference

_GRAPHS = {
    "tree, 159 labels": ("tree", 159, 158),
    "complete, 6 labels": ("complete", 6, 15),
    "even, 159 labels, 200 pairs": ("even", 159, 200),
    "hubs, 159 labels, 200 pairs": ("hubs", 159, 200),
    "even, 1,000 labels, 2,000 pairs": ("even", 1000, 2000),
}
_COUPLINGS = {
    "tree, 159 labels": (1.0,),
    "complete, 6 labels": (0.3, 1.0, 3.0),
    "even, 1,000 labels, 2,000 pairs": (0.1, 0.3),
}
_USUAL_COUPLINGS = (0.1, 0.3, 1.0, 3.0)
_EDGE_COUNTS = (0, 10, 25, 50, 75, 100, 150, 200, 250, 300)


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        examples=flag(500, "of a problem; a fiftieth for 1,000 labels"),
        programs=flag(3, "examples that milp solves"),
        repeats=5,
        out=RESULTS / "map_inference.json",
        figure=IMAGES / "map_edges.png",
    )
    speed = [_compare(*problem, arguments) for problem in _problems()]
    edges = [
        _count_edges(n_edges, coupling, arguments)
        for coupling in _USUAL_COUPLINGS
        for n_edges in _EDGE_COUNTS
    ]
    shared = {"examples": arguments.examples, "repeats": arguments.repeats}
    save(arguments.out, shared | {"speed": speed, "edges": edges})
    _draw(edges, arguments.figure)


def _problems() -> list[tuple[str, float, bool]]:
    mixed = [(name, c, False) for name in _GRAPHS for c in _COUPLINGS.get(name, _USUAL_COUPLINGS)]
    loopy = [name for name in _GRAPHS if name not in ("tree, 159 labels", "complete, 6 labels")]
    return mixed + [(name, 0.3, True) for name in loopy]


def _compare(name: str, coupling: float, attractive: bool, arguments: argparse.Namespace) -> dict[str, Any]:
    """Solve one problem in all ways that there are for it."""
    graph = graph_of(*_GRAPHS[name])
    n_examples = max(1, arguments.examples // (50 if graph.n_labels >= 1000 else 1))
    problem = draw_problem(graph, coupling, n_examples, attractive)
    found = {"graph": name, "width": graph.width, "coupling": coupling, "attractive": attractive}
    own, values = _own(problem, arguments.repeats)
    scores, seconds = solve_by_programs(problem.first(arguments.programs))
    _check(name, scores, values)
    found |= own | {"milp_per_second": float(1.0 / np.median(seconds))}
    if attractive:
        scores, spent = solve_by_cuts(problem, arguments.repeats)
        _check(name, scores, values)
        found["pymaxflow_per_second"] = n_examples / spent
    print(found, flush=True)
    return found


def _own(problem: PairProblem, repeats: int) -> tuple[dict[str, Any], Any]:
    """Solve a problem with this library; give figures and scores."""
    inference, tables = MapInference(problem.graph), problem.tables
    inference.solve(problem.unary[:1], tables[:1])
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = inference.solve(problem.unary, tables)
        seconds.append(time.perf_counter() - begin)
    speed = len(problem.unary) / min(seconds)
    return {"per_second": speed, "proven": float(result.proven.mean())}, result.values


def _check(name: str, scores: Any, values: Any) -> None:
    """Warn where another way found something else."""
    difference = np.abs(scores - values[: len(scores)]).max()
    if difference > 1e-6 * np.abs(values).max():
        print(f"{name}: scores differ by {difference:.3g}", flush=True)


def _count_edges(n_edges: int, coupling: float, arguments: argparse.Namespace) -> dict[str, Any]:
    graph = graph_of("hubs", 159, n_edges)
    figures, _ = _own(draw_problem(graph, coupling, arguments.examples), arguments.repeats)
    found = {"edges": n_edges, "coupling": coupling, "width": graph.width} | figures
    print(found, flush=True)
    return found


def _draw(edges: list[dict[str, Any]], path: Path) -> None:
    figure, axis = begin_picture(figsize=(6.4, 4.0))
    for coupling, color in zip(_USUAL_COUPLINGS, ("#9ec5e8", "#4f8fc4", "#1f5a92", "#0b2c4d"), strict=True):
        rows = [row for row in edges if row["coupling"] == coupling]
        micros = [1e6 / row["per_second"] for row in rows]
        axis.plot(
            [row["edges"] for row in rows], micros, "o-", color=color, label=f"{coupling:g}", markersize=4
        )
    axis.set_yscale("log")
    axis.set(xlabel="pairs among 159 labels, with hubs", ylabel="microseconds per example, one thread")
    axis.legend(title="size of the pairs' scores\n(the labels' own: 1)", frameon=False, loc="upper left")
    axis.grid(True, which="major", alpha=0.3)
    for row in rows:
        axis.annotate(
            f"{row['width']}", (row["edges"], 1.0), (0, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", fontsize=8, color="0.4",
        )  # fmt: skip
    axis.set_title("width of the graph's elimination order", fontsize=8, color="0.4", pad=16)
    write_picture(figure, path)


if __name__ == "__main__":
    main()
