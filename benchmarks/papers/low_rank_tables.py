"""Low-rank learning on bibtex and delicious (Yu et al.  2014, Tables 2 and 4, Figures 2b and 2c).

Mulan's splits (the paper's are others), rows of unit length, a constant feature.

- Table 2: all labels observed, three losses, ranks of 20, 40 and 60 % of the labels; with CPLST, as in
  Figure 1.
- Table 4: 20 % of the training entries observed, rank 40 %, squared loss; binary relevance from the same
  entries, and the library's other classifiers.
- Variants of Table 2, rank 20 %, squared loss: what the paper leaves open.
- Figure 2b: shares of observed entries from 5 to 100 %; Figure 2c: ranks, at 20 % observed.

The penalty of every cell maximizes the top-3 accuracy on a fifth of the training rows (on their observed
entries), from a grid of half decades; the cell is then fitted to all training rows and tested once.  Top-3
accuracy is precision at 3, of test rows with all labels; the Hamming loss uses the threshold 1/2.  "AUC" is
averaged over rows: averaged over labels, delicious has about 0.79, far from the paper's figures.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import labelweave as lw
from benchmarks import frame
from benchmarks.opponents import BCS, CPLST, WSABIE
from benchmarks.problems import read_dense
from labelweave.metrics import average_auc, hamming_loss, precision_at_k

_RESULTS = frame.RESULTS / "papers" / "low_rank_tables.json"
_PICTURE = frame.IMAGES / "low_rank_missing.png"
_GRID = (0.1, 0.3, 1.0, 3.0, 10.0)
_SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_RANKS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

_LOSSES = ("squared", "squared, ridge", "logistic", "squared_hinge", "wsabie", "cplst")

_VARIANTS: dict[str, dict[str, Any]] = {
    "finer grid": {},
    "3 alternations": {"max_iter": 3},
    "10 alternations": {"max_iter": 10},
    "no intercept": {"fit_intercept": False},
    "rows as given": {},
}
_GRIDS = {
    "finer grid": (0.2, 0.3, 0.45, 0.65, 1.0, 1.5, 2.0, 3.0, 4.5),
    "rows as given": (1.0, 3.0, 10.0, 30.0, 100.0),
}

Case = dict[str, Any]
Maker = Callable[[float], Any]

# the paper's top-3 accuracy and AUC in Table 2, at ranks of 20, 40 and 60 %
_TABLE_2 = {
    ("bibtex", "squared"): ((34.16, 0.8910), (36.53, 0.9015), (38.00, 0.9040)),
    ("bibtex", "logistic"): ((25.65, 0.8677), (28.20, 0.8809), (28.68, 0.8861)),
    ("bibtex", "squared_hinge"): ((27.37, 0.8541), (24.81, 0.8467), (23.26, 0.8505)),
    ("bibtex", "wsabie"): ((28.77, 0.9055), (30.05, 0.9092), (31.11, 0.9089)),
    ("delicious", "squared"): ((61.20, 0.8854), (61.23, 0.8827), (61.15, 0.8814)),
    ("delicious", "logistic"): ((53.68, 0.8588), (49.13, 0.8534), (46.76, 0.8517)),
    ("delicious", "squared_hinge"): ((57.27, 0.8894), (52.95, 0.8868), (49.58, 0.8852)),
    ("delicious", "wsabie"): ((42.87, 0.8561), (42.05, 0.8553), (42.22, 0.8523)),
}
# by set, method, rank and share of observed entries; Table 4 has the Hamming loss too
_PAPER: dict[tuple[Any, ...], tuple[float, ...]] = {
    ("bibtex", "squared", 0.4, 0.2): (28.50, 0.8332, 0.0136),
    ("bibtex", "binary relevance", None, 0.2): (25.78, 0.8087, 0.0193),
    ("bibtex", "bcs", 0.4, 0.2): (23.84, 0.7871, 0.2496),
}
for _of, _figures in _TABLE_2.items():
    _PAPER |= {(*_of, rank, 1.0): found for rank, found in zip((0.2, 0.4, 0.6), _figures, strict=True)}


def _cases(name: str, parts: list[str]) -> Iterator[Case]:
    if "table2" in parts:
        for method in (*_LOSSES, *(["bcs"] if name == "bibtex" else [])):
            largest = (1.0,) if method in ("squared", "squared, ridge") else ()
            for rank in (0.2, 0.4, 0.6, *largest):
                yield {"set": name, "method": method, "rank": rank, "observed": 1.0}
        yield {"set": name, "method": "binary relevance", "rank": None, "observed": 1.0}
    if "variants" in parts and name == "bibtex":
        for variant in _VARIANTS:
            yield {"set": name, "method": f"squared, {variant}", "rank": 0.2, "observed": 1.0}
    if "table4" in parts and name == "bibtex":
        for method in ("squared", "squared, ridge", "logistic", "squared_hinge", "bcs"):
            yield {"set": name, "method": method, "rank": 0.4, "observed": 0.2}
        for method in ("binary relevance", "max margin", "kernel logistic"):
            yield {"set": name, "method": method, "rank": None, "observed": 0.2}
    if "figure2b" in parts and name == "bibtex":
        for share in _SHARES:
            for method in ("squared", "squared, ridge", "binary relevance"):
                rank = None if method == "binary relevance" else 0.4
                yield {"set": name, "method": method, "rank": rank, "observed": share}
    if "figure2c" in parts and name == "bibtex":
        for rank in _RANKS:
            for method in ("squared", "squared, ridge"):
                yield {"set": name, "method": method, "rank": rank, "observed": 0.2}


def _maker(case: Case) -> tuple[Maker, tuple[float, ...]]:
    """Return a function from a penalty to the model of a case, and the grid of penalties."""
    method, rank, grid = case["method"], case["rank"], _GRID
    if method == "binary relevance":
        return lambda strength: lw.BinaryRelevance("squared_error", alpha=strength), grid
    if method == "max margin":
        return lambda strength: lw.MaxMarginClassifier(1.0 / strength, n_jobs=1), grid
    if method == "kernel logistic":
        model = lw.KernelLogisticClassifier(
            "linear", n_jobs=1, hyperparameters=lw.HyperparameterSearch(learning_rows=2000)
        )
        return lambda strength: model, (1.0,)  # it learns its penalty
    if method == "bcs":
        return lambda strength: BCS(rank, strength), grid
    if method == "cplst":
        return lambda strength: CPLST(rank, alpha=strength), grid
    if method == "wsabie":
        return lambda rate: WSABIE(rank, learning_rate=rate), (0.01, 0.03, 0.1)
    loss, _, own = method.partition(", ")
    loss = {"squared": "squared_error", "logistic": "log_loss"}.get(loss, loss)
    penalty = "ridge" if own == "ridge" else "trace_norm"
    settings = {"penalty": penalty, "dtype": "float32", "n_jobs": 1, "tol": 3e-4} | _VARIANTS.get(own, {})
    return lambda strength: lw.LowRankClassifier(rank, loss, strength, **settings), _GRIDS.get(own, grid)


def _measure(data: tuple[Any, Any, Any, Any], case: Case) -> dict[str, Any]:
    X, Y, X_test, Y_test = data
    Y = np.where(np.random.default_rng(0).random(Y.shape) < case["observed"], Y, np.nan)
    make, grid = _maker(case)
    start = time.perf_counter()
    with frame.quiet():
        tried = {} if len(grid) == 1 else {value: _held_out(make(value), X, Y) for value in grid}
        best = max(tried, key=tried.__getitem__) if tried else grid[0]
        chosen = time.perf_counter()
        model = make(best).fit(X, Y)
    seconds = time.perf_counter() - chosen
    scores = model.decision_function(X_test)
    return {
        "alpha": best,
        "held out": {f"{value:g}": score for value, score in tried.items()},
        **{f"P@{k}": float(precision_at_k(Y_test, scores, k)) for k in (1, 3, 5)},
        "AUC": float(average_auc(Y_test, scores, average="example")),
        "AUC by label": float(average_auc(Y_test, scores)),
        "Hamming": float(hamming_loss(Y_test, model.predict(X_test))),
        "seconds to choose": chosen - start,
        "seconds": seconds,
    }


def _held_out(model: Any, X: Any, Y: Any) -> float:
    held = np.random.default_rng(1).permutation(len(Y)) < len(Y) // 5
    seen = ~np.isnan(Y[~held]).all(axis=0)  # a label may have lost all its entries
    model.fit(X[~held], Y[~held][:, seen])
    return float(precision_at_k(Y[held][:, seen], model.decision_function(X[held]), 3))


def table(runs: list[Case]) -> str:
    title = f"{'':10s}{'':24s}{'rank':>6s}{'seen %':>8s}{'lambda':>8s}{'P@1':>8s}{'P@3':>8s}{'P@5':>8s}"
    scores = f"{'AUC':>8s}{'by label':>9s}{'Hamming':>9s}"
    lines = [f"{title}{scores}{'seconds':>9s}   paper: top-3, AUC, Hamming"]
    order = sorted(runs, key=lambda run: (run["set"], -run["observed"], run["method"], run["rank"] or 2))
    return "\n".join([*lines, *(_line(run) for run in order)])


def _line(run: Case) -> str:
    rank = "" if run["rank"] is None else f"{run['rank']:.1f}"
    places = "".join(f"{100 * run[f'P@{k}']:8.2f}" for k in (1, 3, 5))
    paper = _PAPER.get((run["set"], run["method"], run["rank"], run["observed"]), ())
    chosen = f"{100 * run['observed']:8.0f}{run['alpha']:8.2g}"
    return (
        f"{run['set']:10s}{run['method']:24s}{rank:>6s}{chosen}"
        f"{places}{run['AUC']:8.4f}{run['AUC by label']:9.4f}{run['Hamming']:9.4f}{run['seconds']:9.1f}   "
        + ", ".join(f"{value:g}" for value in paper)
    )


def _draw(runs: list[Case]) -> None:
    """Draw top-3 accuracy by share of observed entries and by rank, with binary relevance."""
    names = {
        "squared": "low rank, trace norm",
        "squared, ridge": "low rank, ridge",
        "binary relevance": "binary relevance",
    }
    if not any(run["set"] == "bibtex" for run in runs):
        return
    figure, axes = frame.begin_picture(1, 2, figsize=(9, 3.6), sharey=True)
    for method, title in names.items():
        own = [run for run in runs if run["set"] == "bibtex" and run["method"] == method]
        shares = sorted((run["observed"], run["P@3"]) for run in own if run["rank"] in (0.4, None))
        ranks = sorted((run["rank"], run["P@3"]) for run in own if run["observed"] == 0.2 and run["rank"])
        for axis, points in zip(axes, (shares, ranks), strict=True):
            if points:
                x, y = 100 * np.transpose(points)
                axis.plot(x, y, marker="o", label=title)
    flat = [run for run in runs if run["method"] == "binary relevance" and run["observed"] == 0.2]
    if flat:
        axes[1].axhline(100 * flat[0]["P@3"], color="C2", linestyle="--", label="binary relevance")
    axes[0].set(
        xlabel="observed training entries, %", ylabel="top-3 accuracy, %", title="rank 40 % of the labels"
    )
    axes[1].set(xlabel="rank, % of the labels", title="20 % of the entries observed")
    axes[0].legend()
    frame.write_picture(figure, _PICTURE)


@frame.command(
    parts=frame.several(["table2", "variants", "table4", "figure2b", "figure2c"]),
    sets=frame.several(["bibtex", "delicious"]),
    methods=frame.flag(help="of Table 2; by default all", nargs="+"),
    records=_RESULTS,
)
def main(arguments: Any) -> None:
    record = frame.RecordedRuns(arguments)
    for name in arguments.sets if record.measures else ():
        data = read_dense(name, "unit")
        for case in _cases(name, arguments.parts):
            chosen = arguments.methods is None or case["method"] in arguments.methods
            if chosen and record.wants(case):
                rows = read_dense(name) if "as given" in case["method"] else data
                print(_line(record.add(case, _measure(rows, case))), flush=True)
    record.show(table(record.runs))
    if arguments.out == _RESULTS:
        _draw(record.known)
