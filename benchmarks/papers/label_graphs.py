"""Label graphs on scene, yeast and emotions (Tan et al. 2015, Table 3 and Figure 3).

All rows (the training and the test file), five folds, features standardized on the training rows. Everything
is chosen on those rows only: a third of them, the same for all methods, is held out; lambda minimizes the
held-out Hamming loss on a grid of half decades, and so does the number of rounds of a learned graph, one edge
per round (``early_stopping=True``). The model is then fitted to all training rows and the fold's test rows
are used once. The PASCAL VOC features of the paper are not available.

A learned graph has the penalty of equation 10, (sum of the edges' norms)^2; "learned, ridge" has its edges as
a given graph, whose penalty is that of equation 3 and of the other given graphs, and chooses lambda again.
"recall" and "precision" are those of all labels together; "proven" is the share of test predictions that
inference proves optimal. Times are CPU seconds, for the fit at the chosen lambda; a learned graph's include
the choice of the number of rounds. The inner solver is block-coordinate Frank-Wolfe, in "learned, proximal"
the paper's with its tolerance, and with dual variables kept in their simplex.

The plot shows scene's metrics against the number of learned edges, at each fold's lambdas, with standard
errors of the mean.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from benchmarks import frame
from benchmarks.papers import graph_runs
from benchmarks.problems import read_parts, stacked
from labelweave import LabelMatrix
from labelweave.metrics import hamming_loss
from labelweave.splits import IterativeStratifiedShuffleSplit

_GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
_HELD_OUT = 1 / 3
_PASSES = 300
_ROUNDS = {"scene": 15, "yeast": 30, "emotions": 15}
_CURVE = tuple(range(16))
# scene: Hamming loss, macro-F1, micro-F1, recall
_PAPER = {
    "learned": (0.094, 0.708, 0.703, 0.790),
    "none": (0.110, 0.678, 0.676, 0.706),
    "Chow-Liu": (0.100, 0.610, 0.682, 0.785),
    "learned, proximal": (0.094, 0.708, 0.703, 0.790),
    "binary relevance": (0.110, 0.678, 0.676, 0.706),
    "PLST": (0.118, 0.608, 0.608, 0.740),
    "HLLM-L1": (0.104, 0.687, 0.698, 0.789),
    "LEAD": (0.100, 0.679, 0.682, 0.785),
    "PLEM": (0.099, 0.693, 0.691, 0.773),
    "MMOC": (0.098, 0.696, 0.719, 0.745),
    # Table 4, where no Hamming loss and no recall is quoted
    "LSG21": (np.nan, 0.675, 0.682, np.nan),
    "MLF": (np.nan, 0.684, 0.690, np.nan),
    "MLRF": (np.nan, 0.682, 0.686, np.nan),
    "MLLS": (np.nan, 0.472, 0.472, np.nan),
}
_LEGEND = {"learned, curve": "penalty by rounds", "learned, ridge, curve": "ridge on the same edges"}
_MEASURES = {
    "hamming": "Hamming loss",
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "recall": "recall",
    "precision": "precision",
}


def _folds(X: Any, Y: LabelMatrix) -> Iterator[tuple[int, tuple[Any, LabelMatrix, Any, LabelMatrix]]]:
    splitter = KFold(5, shuffle=True, random_state=0)
    for number, (train, test) in enumerate(splitter.split(X)):
        scaler = StandardScaler().fit(X[train])
        yield number, (scaler.transform(X[train]), Y[train], scaler.transform(X[test]), Y[test])


def _measure(name: str, methods: list[str], record: frame.RecordedRuns) -> None:
    for fold, (X, Y, X_test, Y_test) in _folds(*stacked(read_parts(name))):
        for method in methods:
            case = {"set": name, "method": method, "fold": fold}
            if not record.wants(case) or (method in graph_runs.UP_TO_TEN_LABELS and name == "yeast"):
                continue
            options: graph_runs.Run = {"max_rounds": _ROUNDS[name], "max_iter": _PASSES, "random_state": fold}
            if method == "learned, ridge":
                options |= graph_runs.edges_of(record.known, set=name, fold=fold)
            model, run = _chosen(method, X, Y, options)
            found = record.add(case, {**run, **graph_runs.score(model, X_test, Y_test)})
            print({key: value for key, value in found.items() if key != "held_out"}, flush=True)


def _chosen(method: str, X: Any, Y: LabelMatrix, options: graph_runs.Run) -> tuple[Any, graph_runs.Run]:
    """Choose lambda, and the number of rounds, on held-out rows; fit all rows."""
    tries = [_try(method, X, Y, value, options) for value in _GRID]
    best = min(range(len(tries)), key=lambda place: tries[place][0])
    loss, model, run = tries[best]
    if model is None:
        model = graph_runs.make(method, _GRID[best], **options)
        run = graph_runs.fit(model, X, Y)
    held_out = {f"{value:g}": tried[0] for value, tried in zip(_GRID, tries, strict=True)}
    return model, {"alpha": _GRID[best], "held_out_loss": loss, "held_out": held_out, **run}


def _try(
    method: str, X: Any, Y: LabelMatrix, alpha: float, options: graph_runs.Run
) -> tuple[float, Any, graph_runs.Run]:
    """Return the held-out loss and, if the number of rounds was chosen, the model of all rows."""
    if graph_runs.GRAPHS.get(method, {}).get("graph") == "learn":
        stopping = {"early_stopping": True, "validation_fraction": _HELD_OUT, "graph_tol": 0.0}
        model = graph_runs.make(method, alpha, **stopping, **options)
        run = graph_runs.fit(model, X, Y)
        return min(record.held_out_loss for record in model.graph_trace_), model, run
    # the classifier's own seed, for the same rows
    seed = int(np.random.RandomState(options["random_state"]).randint(2**31 - 1))
    splitter = IterativeStratifiedShuffleSplit(1, test_size=_HELD_OUT, random_state=seed)
    train, held_out = next(splitter.split(X, Y))
    model = graph_runs.make(method, alpha, **options)
    graph_runs.fit(model, X[train], Y[train])
    return float(hamming_loss(Y[held_out], graph_runs.predict(model, X[held_out]))), None, {}


def _curve(record: frame.RecordedRuns) -> None:
    """Fit scene with every number of learned edges at the lambdas chosen in the fold."""
    scene = [run for run in record.known if run["set"] == "scene"]
    chosen = {(run["method"], run["fold"]): run["alpha"] for run in scene}
    for fold, (X, Y, X_test, Y_test) in _folds(*stacked(read_parts("scene"))):
        for rounds in _CURVE:
            for method in ("learned", "learned, ridge"):
                key = {"set": "scene", "method": f"{method}, curve", "fold": fold, "rounds": rounds}
                if not record.wants(key) or (method, fold) not in chosen:
                    continue
                options = _curve_options(method, record.known, fold, rounds)
                model = graph_runs.make(method, chosen[method, fold], max_iter=_PASSES, **options)
                record.add(key, {**graph_runs.fit(model, X, Y), **graph_runs.score(model, X_test, Y_test)})


def _curve_options(method: str, runs: list[graph_runs.Run], fold: int, rounds: int) -> graph_runs.Run:
    if method == "learned" and rounds:
        return {"max_rounds": rounds, "graph_tol": 0.0}
    if not rounds:
        return {"graph": "none"}
    learned = [run for run in runs if (run["method"], run["fold"]) == ("learned, curve", fold)]
    return {"graph": next(run["cliques"] for run in learned if run["rounds"] == rounds)}


def table(runs: list[graph_runs.Run]) -> str:
    head, lines = "".join(f"{title:>18s}" for title in _MEASURES.values()), []
    for (name,), chosen in frame.groups(runs, "set").items():
        costs = f"{'edges':>7s}{'lambda':>8s}{'proven %':>10s}{'rows/s':>10s}{'seconds':>9s}   paper"
        lines.append(f"{name:20s}{head}{costs}")
        for method in graph_runs.METHODS:
            own = [run for run in chosen if run["method"] == method]
            if own:
                lines.append(_line(method, own, _PAPER.get(method, ()) if name == "scene" else ()))
    return "\n".join(lines)


def _line(method: str, own: list[graph_runs.Run], paper: tuple[float, ...]) -> str:
    cells = [graph_runs.mean_and_deviation(own, key) if key in own[0] else "" for key in _MEASURES]
    scores = "".join(f"{cell:>18s}" for cell in cells)
    edges, proven, rows, seconds = (
        np.mean([run.get(key, np.nan) for run in own])
        for key in ("edges", "proven", "rows_per_second", "seconds")
    )
    chosen = float(np.exp(np.mean(np.log([run.get("alpha", np.nan) for run in own]))))
    costs = f"{edges:7.1f}{chosen:8.2f}{100 * proven:10.2f}{rows:10,.0f}{seconds:9.1f}"
    return f"{method:20s}{scores}{costs}   {' '.join(f'{value:.3f}' for value in paper)}"


def _draw(runs: list[graph_runs.Run], path: Path) -> None:
    if not runs:  # not requested so far
        return
    figure, axes = frame.begin_picture(1, 3, figsize=(11, 3.4), sharex=True)
    for axis, (key, title) in zip(axes, list(_MEASURES.items())[:3], strict=True):
        for method, legend in _LEGEND.items():
            points = [_values(runs, method, rounds, key) for rounds in _CURVE]
            mean, error = (np.array([reduce(own) for own in points]) for reduce in (np.mean, np.std))
            error /= np.sqrt(len(points[0]))
            axis.errorbar(_CURVE, mean, error, marker="o", markersize=4, capsize=2, label=legend)
        axis.set(xlabel="learned edges", title=title, xticks=_CURVE[::3])
        axis.grid(True, alpha=0.3)
    axes[0].legend(frameon=False)
    frame.write_picture(figure, path)


def _values(runs: list[graph_runs.Run], method: str, rounds: int, key: str) -> list[float]:
    return [run[key] for run in runs if (run["method"], run["rounds"]) == (method, rounds)]


@frame.command(
    sets=frame.several(_ROUNDS),
    methods=frame.several(graph_runs.METHODS),
    curve=frame.flag(False, "measure the picture's points as well"),
    picture=frame.IMAGES / "scene_edges.png",
    records=frame.RESULTS / "papers" / "label_graphs.json",
)
def main(arguments: Any) -> None:
    record = frame.RecordedRuns(arguments, threads=1, paper=_PAPER)
    for name in arguments.sets:
        if record.measures:
            _measure(name, arguments.methods, record)
        record.show(table([run for run in record.runs if run["set"] == name]))
    if arguments.curve and record.measures:
        _curve(record)
    _draw([run for run in record.runs if "curve" in run["method"]], arguments.picture)
