"""The value of labeled entries chosen by ``suggest_queries`` or at random: micro-F1 by their number.

A draw has up to 1,000 training rows, 10 of them fully labeled; labels with at least five positives among
these rows are learned.  Then batches of entries are requested; after each the model is fitted again, and
micro-F1 of the test rows is measured, up to 30 % of all entries.  The model is kernel logistic with the same
fixed parameters everywhere.  Labels are predicted above the probability with the best expected micro-F1 on
the training rows, which needs no label.  Nothing is chosen on test rows.

Strategies of modAL (Esuli and Sebastiani's, of rows) choose with the same model; they need ``pip install
--no-deps modAL-python==0.4.1``; without it exclude them with ``--strategies``.
"""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import f1_score

from benchmarks import frame
from benchmarks.problems import read_parts
from labelweave import KernelLogisticClassifier, suggest_queries
from labelweave.app.active.expected_error import micro_f1_cut

PROBLEMS = ["scene", "yeast", "emotions", "enron", "bibtex", "debtags"]
STRATEGIES = {
    "expected_error": ("expected error (default)", "#0b6e4f"),
    "uncertainty": ("uncertainty", "#c2571a"),
    "uncertain_rows": ("uncertain rows", "#8a4fbf"),
    "modal_avg_score_rows": ("modAL avg_score (rows)", "#d81b60"),
    "modal_max_score_rows": ("modAL max_score (rows)", "#b08900"),
    "random_rows": ("random rows", "#8d99ae"),
    "random": ("random entries", "#1d3557"),
}
ROWS, TEST_ROWS, FIRST_ROWS, LEAST_POSITIVES, SHARE = 1000, 2000, 10, 5, 0.3


class Draw(NamedTuple):
    """Training and test rows; labels (n, L) of 0 and 1."""

    X: Any
    Y: np.ndarray
    X_test: Any
    Y_test: np.ndarray


def read(name: str) -> Draw:
    train, test = read_parts(name)
    X, X_test, Y, Y_test = train.X, test.X, train.Y.positives.toarray(), test.Y.positives.toarray()
    if not sp.issparse(X) and np.count_nonzero(X) < X.size / 2:
        X, X_test = sp.csr_array(X), sp.csr_array(X_test)
    return Draw(X, Y.astype(float), X_test, Y_test.astype(int))


def draw(whole: Draw, number: int) -> Draw:
    """Draw training rows, and the same test rows in every draw."""
    rows = np.random.default_rng([number, 1]).permutation(len(whole.Y))[:ROWS]
    tested = np.random.default_rng(0).permutation(len(whole.Y_test))[:TEST_ROWS]
    kept = whole.Y[rows].sum(axis=0) >= LEAST_POSITIVES
    return Draw(whole.X[rows], whole.Y[rows][:, kept], whole.X_test[tested], whole.Y_test[tested][:, kept])


def model_of(X: Any) -> Any:
    words = {"kernel": "linear", "scaling": "unit"} if sp.issparse(X) else {"scaling": "standard"}
    return KernelLogisticClassifier(**words, hyperparameters="fixed", warm_start=True)


def curve(data: Draw, strategy: str, number: int, rounds: int) -> list[list[float]]:
    """Request entries in batches; return the number known and micro-F1 of the test rows after each."""
    n = len(data.Y)
    known = np.full(data.Y.shape, np.nan)
    first = np.random.default_rng([number, 2]).permutation(n)[:FIRST_ROWS]
    known[first] = data.Y[first]
    sizes = np.geomspace(known[first].size, SHARE * data.Y.size, rounds).round().astype(int)
    model, found = model_of(data.X), []
    for turn in range(rounds):
        model.fit(data.X, known)
        shares = model.predict_proba(data.X)
        predicted = model.predict_proba(data.X_test) >= micro_f1_cut(shares)
        found.append(
            [int((~np.isnan(known)).sum()), float(f1_score(data.Y_test, predicted, average="micro"))]
        )
        if turn + 1 < rounds:
            missing = sizes[turn + 1] - found[-1][0]
            places = asked(model, data.X, known, shares, (strategy, missing, 1000 * number + turn))
            known.flat[places] = data.Y.flat[places]
    return found


def asked(
    model: Any, X: Any, known: np.ndarray, shares: np.ndarray, what: tuple[str, int, int]
) -> np.ndarray:
    strategy, count, seed = what
    n_labels = known.shape[1]
    if not strategy.endswith("rows"):
        found = suggest_queries(model, X, count, known, strategy=strategy, random_state=seed)
        return found.rows * n_labels + found.labels
    free = np.flatnonzero(np.isnan(known).any(axis=1))
    count = min(len(free), max(1, round(count / n_labels)))
    if strategy.startswith("modal_"):
        from modAL import multilabel

        choose = getattr(multilabel, strategy.removeprefix("modal_").removesuffix("_rows"))
        rows = free[choose(model, X[free], n_instances=count)]
    else:
        value = np.random.default_rng(seed).random(len(known))
        if strategy == "uncertain_rows":  # the mean closeness of probabilities to 1/2 over labels
            value = (0.5 - np.abs(shares - 0.5)).mean(axis=1)
        rows = free[np.argsort(-value[free], kind="stable")[:count]]
    return (rows[:, None] * n_labels + np.arange(n_labels)).ravel()


def curves(runs: list[dict[str, Any]], problem: str, strategy: str, grid: np.ndarray) -> np.ndarray:
    """Return micro-F1 of every draw at given numbers of entries, shape (draws, points)."""
    found = [run["curve"] for run in runs if (run["problem"], run["strategy"]) == (problem, strategy)]
    return np.array(
        [np.interp(np.log(grid), np.log([at for at, _ in one]), [f1 for _, f1 in one]) for one in found]
    )


def grid_of(runs: list[dict[str, Any]], problem: str) -> np.ndarray | None:
    """Return numbers of entries that all random draws of a problem reach; None without any."""
    found = [run["curve"] for run in runs if (run["problem"], run["strategy"]) == (problem, "random")]
    return np.geomspace(max(c[0][0] for c in found), min(c[-1][0] for c in found), 40) if found else None


def entries_for(grid: np.ndarray, values: np.ndarray, level: float) -> float:
    """Find the number of entries at which a curve first reaches a level; infinity if it never does."""
    above = np.flatnonzero(values >= level)
    if not len(above):
        return np.inf
    first = above[0]
    if first == 0:
        return float(grid[0])
    share = (level - values[first - 1]) / (values[first] - values[first - 1])
    return float(np.exp(np.log(grid[first - 1]) + share * np.log(grid[first] / grid[first - 1])))


def share_of_entries(grid: np.ndarray, found: np.ndarray, random: np.ndarray) -> tuple[float, float]:
    """Divide the entries needed for the final level of random ones by theirs; with a jackknife error."""

    def share(kept: np.ndarray) -> float:
        return entries_for(grid, found[kept].mean(axis=0), random[kept].mean(axis=0)[-1]) / grid[-1]

    every = np.arange(len(found))
    out_of_fold = np.array([share(every != one) for one in every])
    spread = np.sqrt((len(every) - 1) * out_of_fold.var()) if np.isfinite(out_of_fold).all() else np.nan
    return share(every >= 0), float(spread)


def table(runs: list[dict[str, Any]]) -> str:
    lines = [
        "problem    strategy                  last F1          mean F1 - random   worst t  entries/random"
    ]
    for problem in PROBLEMS:
        grid = grid_of(runs, problem)
        if grid is None:
            continue  # nothing to compare with
        random = curves(runs, problem, "random", grid)
        for strategy, (name, _) in STRATEGIES.items():
            found = curves(runs, problem, strategy, grid)
            if len(found) != len(random):
                continue
            gap = found - random
            errors = np.maximum(frame.standard_error(gap), 1e-9)
            t = (gap.mean(axis=0) / errors)[1:].min() if strategy != "random" else 0.0
            means = gap.mean(axis=1)
            share, spread = share_of_entries(grid, found, random)
            last = frame.mean_and_error(found[:, -1], 3, between=" +- ")
            more = frame.mean_and_error(means, 3, "+", " +- ")
            words = f"{last}   {more}   {t:+6.1f}   {share:.2f} +- {spread:.2f}"
            lines.append(f"{problem:10} {name:25} {words}")
    return "\n".join(lines)


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = frame.begin_picture(2, 3, figsize=(12, 7))
    for axis, problem in zip(axes.ravel(), PROBLEMS, strict=True):
        grid = grid_of(runs, problem)
        axis.set_title(problem)
        if grid is None:
            continue
        for strategy, (name, color) in STRATEGIES.items():
            found = curves(runs, problem, strategy, grid)
            if len(found) < 2:
                continue
            mean, error = found.mean(axis=0), frame.standard_error(found)
            style = "--" if strategy.startswith("random") else "-"
            axis.plot(grid, mean, style, color=color, label=name)
            axis.fill_between(grid, mean - error, mean + error, color=color, alpha=0.15, lw=0)
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_xlabel("labeled entries")
        axis.set_ylabel("micro-F1 of test rows")
        axis.grid(alpha=0.25)
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncol=4, frameon=False)
    frame.write_picture(figure, path, dpi=110)


@frame.command(
    problems=frame.several(PROBLEMS),
    strategies=frame.several(STRATEGIES),
    draws=5,
    rounds=14,
    plot=frame.flag(help="draw the curves to this file", type=Path),
    records=frame.RESULTS / "active_learning.json",
)
def main(arguments: Any) -> None:
    recorded = frame.RecordedRuns(arguments)
    warnings.simplefilter("ignore")
    for problem in arguments.problems if recorded.measures else []:
        whole = read(problem)
        choices = {"problem": [problem], "strategy": arguments.strategies, "draw": range(arguments.draws)}
        for case in recorded.missing(**choices):
            drawn = draw(whole, case["draw"])
            recorded.add(case, {"curve": curve(drawn, case["strategy"], case["draw"], arguments.rounds)})
        print(f"{problem}: measured", flush=True)
    recorded.show(table(recorded.runs))
    if arguments.plot:
        plot(recorded.runs, arguments.plot)
