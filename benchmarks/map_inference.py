"""Examples per second of MAP inference, compared with integer programming and minimum cuts.

Graphs: a tree, the complete graph of six labels (scene's), 159 labels (bibtex's) with 200 pairs drawn evenly
or with hubs (label k with a probability proportional to 1 / (k + 1)), 1,000 labels with 2,000 pairs. A
label's own score is drawn from N(0, 1). A pair adds +w if its two labels agree and -w if they differ, with w
from N(0, coupling^2); in an attractive problem w is |w|, and the problem is a minimum cut.

SciPy's ``milp`` solves the first examples of each problem; PyMaxflow (``.venv-peers``) all examples of
attractive ones, with its graph built again for every example. All three are exact, and the scores found are
compared. The second part measures the number of edges: 159 labels with hubs and up to 300 pairs. One thread;
the fastest of the repeats counts, for all examples of a problem together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks import frame
from benchmarks.programs import Program, ask
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.postprocessing.map import MapInference

_COUPLINGS = (0.1, 0.3, 1.0, 3.0)
_GRAPHS: dict[str, tuple[str, int, int, tuple[float, ...]]] = {
    "tree, 159 labels": ("tree", 159, 158, (1.0,)),
    "complete, 6 labels": ("complete", 6, 15, (0.3, 1.0, 3.0)),
    "even, 159 labels, 200 pairs": ("even", 159, 200, _COUPLINGS),
    "hubs, 159 labels, 200 pairs": ("hubs", 159, 200, _COUPLINGS),
    "even, 1,000 labels, 2,000 pairs": ("even", 1000, 2000, (0.1, 0.3)),
}
_EDGE_COUNTS = (0, 10, 25, 50, 75, 100, 150, 200, 250, 300)
_CUTS = Program("PyMaxflow", "benchmarks.peers.pymaxflow_pairs", "PyMaxflow")


@dataclass(frozen=True)
class PairProblem:
    """A graph of pairs with the scores of some examples: of labels, and w of pairs."""

    graph: CliqueGraph
    unary: Any
    pairs: Any

    @classmethod
    def drawn(cls, graph: CliqueGraph, coupling: float, n_examples: int, attractive: bool) -> PairProblem:
        generator = np.random.default_rng(2)
        unary = generator.normal(size=(n_examples, graph.n_labels))
        pairs = coupling * generator.normal(size=(n_examples, graph.n_cliques))
        return cls(graph, unary, np.abs(pairs) if attractive else pairs)


def graph_of(kind: str, n_labels: int, n_edges: int) -> CliqueGraph:
    generator = np.random.default_rng(1)
    if kind == "complete":
        return CliqueGraph.complete(n_labels)
    if kind == "tree":
        return CliqueGraph(n_labels, [(int(generator.integers(k)), k) for k in range(1, n_labels)])
    shares = 1.0 / np.arange(1, n_labels + 1) if kind == "hubs" else np.ones(n_labels)
    edges: dict[tuple[int, ...], None] = {}
    while len(edges) < n_edges:
        pair = generator.choice(n_labels, 2, replace=False, p=shares / shares.sum())
        edges[tuple(sorted(pair.tolist()))] = None
    return CliqueGraph(n_labels, edges)


def _compare(name: str, coupling: float, attractive: bool, arguments: Any) -> dict[str, Any]:
    graph = graph_of(*_GRAPHS[name][:3])
    n_examples = max(1, arguments.examples // (50 if graph.n_labels >= 1000 else 1))
    problem = PairProblem.drawn(graph, coupling, n_examples, attractive)
    found = {"graph": name, "width": graph.width, "coupling": coupling, "attractive": attractive}
    own, values = _own(problem, arguments.repeats)
    scores, seconds = solve_by_programs(problem, arguments.programs)
    _check(name, scores, values)
    found |= own | {"milp_per_second": float(1.0 / np.median(seconds))}
    if attractive:
        scores, spent = solve_by_cuts(problem, arguments.repeats)
        _check(name, scores, values)
        found["pymaxflow_per_second"] = n_examples / spent
    print(found, flush=True)
    return found


def _own(problem: PairProblem, repeats: int) -> tuple[dict[str, Any], Any]:
    # the scores of the four states of every pair
    tables = np.repeat(problem.pairs, 4, axis=1) * np.tile([1.0, -1.0, -1.0, 1.0], problem.graph.n_cliques)
    inference = MapInference(problem.graph)
    inference.solve(problem.unary[:1], tables[:1])
    calls = {"all": lambda: inference.solve(problem.unary, tables)}
    result, seconds = calls["all"](), frame.in_turns(calls, repeats, time.perf_counter)["all"]
    figures = {"per_second": len(problem.unary) / min(seconds), "proven": float(result.proven.mean())}
    return figures, result.values


def _check(name: str, scores: Any, values: Any) -> None:
    difference = np.abs(scores - values[: len(scores)]).max()
    if difference > 1e-6 * np.abs(values).max():
        print(f"{name}: scores differ by {difference:.3g}", flush=True)


def solve_by_programs(problem: PairProblem, count: int) -> tuple[Any, Any]:
    """Solve some examples as integer programs; return scores and the seconds of ``milp``.

    With products z of the two labels of a pair the score is linear: ``w (2 y_a - 1)(2 y_b - 1)`` is ``w (1 -
    2 y_a - 2 y_b + 4 z)``, with z at most y_a and y_b and at least ``y_a + y_b - 1``.
    """
    ends = np.array(problem.graph.cliques).reshape(-1, 2)
    n_labels, n_pairs = problem.graph.n_labels, len(ends)
    rows, own = np.arange(n_pairs), sp.eye_array(n_pairs)
    one, other = (sp.csr_array((np.ones(n_pairs), (rows, ends[:, k])), (n_pairs, n_labels)) for k in (0, 1))
    products = sp.csr_array(sp.block_array([[-one, own], [-other, own], [one + other, -own]]))
    constraint = LinearConstraint(products, -np.inf, np.repeat([0.0, 0.0, 1.0], n_pairs))
    whole, options = np.repeat([1, 0], [n_labels, n_pairs]), {"mip_rel_gap": 0.0, "time_limit": 60.0}
    values, seconds = [], []
    for unary, pairs in zip(problem.unary[:count], problem.pairs[:count], strict=True):
        gains = np.concatenate([unary, 4.0 * pairs])
        np.add.at(gains, ends.ravel(), np.repeat(-2.0 * pairs, 2))
        given = {"integrality": whole, "bounds": Bounds(0, 1), "constraints": constraint, "options": options}
        found, spent = frame.timed(milp, -gains, clock=time.perf_counter, **given)
        seconds.append(spent)
        values.append(pairs.sum() - found.fun)
    return np.array(values), np.array(seconds)


def solve_by_cuts(problem: PairProblem, repeats: int) -> tuple[Any, float]:
    """Solve an attractive problem with PyMaxflow; return scores and the seconds of the fastest run."""
    ends = np.array(problem.graph.cliques)
    found = ask(_CUTS, unary=problem.unary, ends=ends, pairs=problem.pairs, repeats=repeats)
    return found["values"], float(found["seconds"])


def _count_edges(n_edges: int, coupling: float, arguments: Any) -> dict[str, Any]:
    graph = graph_of("hubs", 159, n_edges)
    figures, _ = _own(PairProblem.drawn(graph, coupling, arguments.examples, False), arguments.repeats)
    found = {"edges": n_edges, "coupling": coupling, "width": graph.width} | figures
    print(found, flush=True)
    return found


def _draw(edges: list[dict[str, Any]], path: Path) -> None:
    figure, axis = frame.begin_picture(figsize=(6.4, 4.0))
    for coupling, color in zip(_COUPLINGS, ("#9ec5e8", "#4f8fc4", "#1f5a92", "#0b2c4d"), strict=True):
        rows = [row for row in edges if row["coupling"] == coupling]
        counts, micros = [row["edges"] for row in rows], [1e6 / row["per_second"] for row in rows]
        axis.plot(counts, micros, "o-", color=color, label=f"{coupling:g}", markersize=4)
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
    frame.write_picture(figure, path)


@frame.command(
    examples=frame.flag(500, "of a problem; a fiftieth for 1,000 labels"),
    programs=frame.flag(3, "examples that milp solves"),
    repeats=5,
    out=frame.RESULTS / "map_inference.json",
    figure=frame.IMAGES / "map_edges.png",
)
def main(arguments: Any) -> None:
    problems = [(name, coupling, False) for name, (*_, some) in _GRAPHS.items() for coupling in some]
    problems += [(name, 0.3, True) for name in list(_GRAPHS)[2:]]
    speed = [_compare(*problem, arguments) for problem in problems]
    edges = [
        _count_edges(n_edges, coupling, arguments) for coupling in _COUPLINGS for n_edges in _EDGE_COUNTS
    ]
    shared = {"examples": arguments.examples, "repeats": arguments.repeats}
    frame.save(arguments.out, shared | {"speed": speed, "edges": edges})
    _draw(edges, arguments.figure)
