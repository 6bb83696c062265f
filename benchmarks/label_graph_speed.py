"""Training time of ``LabelGraphClassifier``: to a duality gap, and by the number of edges.

- Solvers: the toy of Tan et al. 2015, section 5.2 (2,000 rows, its four true edges, lambda 1e-4), and all of
  scene (standardized, all 15 pairs, lambda 0.3), by block-coordinate Frank-Wolfe and by the paper's inner
  solver, on the same problem. "gap" is the seconds to a relative duality gap of 1e-1, 1e-2, 1e-3 that the
  solver itself has proven, "objective" those to within that share of the lowest objective that either has
  found.
- Edges: a pass over 2,000 rows of 20 features and 50 labels by the number of edges, in a band (neighbors,
  then labels two apart, and so on) or at random: the difference between fits of twelve passes and of two,
  over ten.
- Rounds: emotions, scene and yeast, standardized, all rows, lambda 0.3, by the cliques that a round takes and
  the labels that a clique may have; no round is left out for changing little. "relaxation" is the share of
  the objective by which other cliques could lower it at most.

Times are CPU seconds, with one thread: a solver's clock is scaled by the processor's share of it.
"""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks import frame
from benchmarks.machine import describe_machine
from benchmarks.problems import read_parts, stacked
from labelweave import GraphGrowth, LabelGraphClassifier
from labelweave.datasets import make_clique_toy

_GAPS = (1e-1, 1e-2, 1e-3)
_LABELS = 50
_PASSES = 1000  # at most, of a solver
_EDGES = (0, 10, 25, 49, 75, 100, 150, 200)


def _dated(runs: list[frame.Run]) -> list[frame.Run]:
    machine = describe_machine()
    return [run | {"measured": machine} for run in runs]


def _fit(X: Any, Y: Any, **parameters: Any) -> tuple[LabelGraphClassifier, float, float]:
    """Return the model, the seconds of its fit by the clock, and its CPU seconds."""
    with frame.quiet():
        return frame.cost_of(LabelGraphClassifier(n_jobs=1, **parameters).fit, X, Y)


def _measure_solvers() -> list[frame.Run]:
    toy, edges = make_clique_toy(2000)
    X, Y = stacked(read_parts("scene"))
    problems = {
        "toy": (toy.X, toy.Y, {"graph": list(edges), "alpha": 1e-4}),
        "scene": (StandardScaler().fit_transform(X), Y, {"graph": "full", "alpha": 0.3}),
    }
    choices: dict[str, frame.Run] = {"Frank-Wolfe": {}, "proximal": {"solver": "proximal"}}
    runs = []
    for problem, (features, labels, parameters) in problems.items():
        for name, solver in choices.items():
            _fit(features, labels, **parameters, **solver, max_iter=1)  # compiled
            runs.append({"problem": problem, "solver": name})
            runs[-1] |= _trace(features, labels, **parameters, **solver, max_iter=_PASSES)
    return runs


def _trace(X: Any, Y: Any, **parameters: Any) -> frame.Run:
    model, clock, seconds = _fit(X, Y, tol=min(_GAPS), **parameters)
    share = seconds / clock
    trace = [[share * record.time, record.iteration, record.primal, record.gap] for record in model.trace_]
    return {"seconds": seconds, "passes": int(model.n_iter_), "trace": trace}


def _solver_table(runs: list[frame.Run]) -> str:
    rows = []
    for run in runs:
        same = (other for other in runs if other["problem"] == run["problem"])
        best = min(point[2] for other in same for point in other["trace"])
        times = _first(run["trace"], 3, list(_GAPS))
        times += _first(run["trace"], 2, [(1 + gap) * best for gap in _GAPS])
        shown = ["-" if value is None else f"{value:.2f}" for value in times]
        lowest = f"{min(point[2] for point in run['trace']):.5f}"
        rows.append(
            [run["problem"], run["solver"], *shown, lowest, str(run["passes"]), f"{run['seconds']:.1f}"]
        )
    heads = [f"{kind} {gap:g}" for kind in ("gap", "objective") for gap in _GAPS]
    return "\n".join(frame.markdown(["problem", "solver", *heads, "lowest", "passes", "seconds"], rows))


def _first(trace: list[list[float]], column: int, limits: list[float]) -> list[float | None]:
    """Return the seconds at which a column of the trace was first within each limit."""
    return [next((point[0] for point in trace if point[column] <= limit), None) for limit in limits]


def _measure_rounds() -> list[frame.Run]:
    runs = []
    for name in ("emotions", "scene", "yeast"):
        X, Y = stacked(read_parts(name))
        for per_round, size in ((1, 2), (2, 2), (3, 2), (1, 3)):
            growth = GraphGrowth(cliques_per_round=per_round, clique_size=size, graph_tol=0.0)
            model, _, seconds = _fit(StandardScaler().fit_transform(X), Y, graph=growth, alpha=0.3)
            graph, asked = model.label_graph_, {"set": name, "per_round": per_round, "size": size}
            found = {"objective": model.objective_, "gap": model.duality_gap_, "seconds": seconds}
            counts = {"rounds": len(model.graph_trace_) - 1, "cliques": graph.n_cliques, "width": graph.width}
            runs.append(asked | found | {"relaxation": model.relaxation_gap_} | counts)
    return runs


def _round_table(runs: list[frame.Run]) -> str:
    formats = {"objective": ".4f", "gap": ".1e", "relaxation": ".1e", "seconds": ".1f"}
    columns = [name for name in runs[0] if name != "measured"]
    rows = [[format(run[name], formats.get(name, "")) for name in columns] for run in runs]
    return "\n".join(frame.markdown(columns, rows))


def _measure_edges() -> list[frame.Run]:
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 20))
    shared = random.normal(size=(2000, 5)) @ random.normal(size=(5, _LABELS))
    Y = (X @ random.normal(size=(20, _LABELS)) / 4 + shared > 0).astype(np.int8)
    band = [(one, one + apart) for apart in range(1, _LABELS) for one in range(_LABELS - apart)]
    anywhere = [band[place] for place in random.permutation(len(band))]
    runs = []
    for kind, order in (("band", band), ("random", anywhere)):
        for count in _EDGES:
            options = {"graph": order[:count] or "none", "alpha": 0.01, "tol": 1e-12}
            few, many = (_fit(X, Y, **options, max_iter=passes) for passes in (2, 12))
            width = many[0].label_graph_.width
            runs.append({"kind": kind, "edges": count, "width": width, "seconds": (many[2] - few[2]) / 10})
            print(runs[-1], flush=True)
    return runs


def _draw(runs: list[frame.Run], path: Path) -> None:
    figure, axis = frame.begin_picture(figsize=(6, 3.8))
    styles = {"band": ("edges in a band", "C0", -14), "random": ("random edges", "C1", 7)}
    for kind, (title, color, lift) in styles.items():
        own = [run for run in runs if run["kind"] == kind]
        edges, milliseconds = [run["edges"] for run in own], [1e3 * run["seconds"] for run in own]
        axis.plot(edges, milliseconds, marker="o", color=color, label=title)
        for run, x, y in zip(own, edges, milliseconds, strict=True):
            axis.annotate(
                run["width"], (x, y), (-3, lift), textcoords="offset points", color=color, fontsize=8
            )
    axis.set(xlabel="edges (at each point: the width)", ylabel="milliseconds per pass over 2,000 rows")
    axis.margins(y=0.12)  # room for the numbers
    axis.legend(frameon=False)
    axis.grid(True, alpha=0.3)
    frame.write_picture(figure, path)


@frame.command(
    parts=frame.several(["solvers", "edges", "rounds"]),
    out=frame.RESULTS / "label_graph_speed.json",
    picture=frame.IMAGES / "graph_edges_cost.png",
)
def main(arguments: Any) -> None:
    results: dict[str, Any] = frame.read_json(arguments.out)
    if "solvers" in arguments.parts:
        results["solvers"] = _dated(_measure_solvers())
        print(_solver_table(results["solvers"]), flush=True)
    if "edges" in arguments.parts:
        results["edges"] = _dated(_measure_edges())
        _draw(results["edges"], arguments.picture)
    if "rounds" in arguments.parts:
        results["rounds"] = _dated(_measure_rounds())
        print(_round_table(results["rounds"]), flush=True)
    frame.write_json(arguments.out, results | {"threads": 1})
