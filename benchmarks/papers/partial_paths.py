"""Rows whose class is known in part, by an inner node of the tree (Seeger 2008, section 7.4.1).

Random splits of ImCLEF07A, features standardised, RBF kernel, a function for every node
with a scale a level (H1 of :mod:`benchmarks.papers.hierarchies`).  Of a random half of
the training rows, or nine in ten, only the parent of the leaf, or the node under the
root, is known.  Compared are the fit that uses these rows (the likelihood of a node is the
sum over its leaves), the fit without them, and the fit that knows all leaves.
Hyper-parameters are learned anew for each, on at most ``--learning-rows`` of the rows
whose leaf is known.  Results are kept after every fit; ``--go-on`` measures only what is missing.

Example: ``python -m benchmarks.papers.partial_paths --rows 2000 --seeds 3``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, flag, read_options, several
from benchmarks.needed_data import needs_data
from benchmarks.papers.class_problems import ClassProblem, read_problem
from benchmarks.papers.hierarchies import class_figures
from benchmarks.recorded_runs import RecordedRuns
from labelweave import KernelLogisticClassifier

_KNOWN = ("all leaves", "dropped", "parent", "top node")
_COLUMNS = ("accuracy", "taxonomic loss", "parent accuracy", "log loss", "seconds")


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        rows=2000,
        seeds=3,
        shares=flag([0.5], "of rows known in part"),
        known=several(_KNOWN),
        learning_rows=2000,
        records=RESULTS / "papers" / "partial_paths.json",
    )
    record = RecordedRuns(arguments)
    images = read_problem("imclef07a") if record.measures else None
    for seed in range(arguments.seeds if images else 0):
        problem = images.split(seed, arguments.rows)
        for share in arguments.shares:
            for known in arguments.known:
                case = {"rows": arguments.rows, "seed": seed, "share": share, "known": known}
                if record.wants(case):
                    found = measure(problem, known, share, seed, arguments.learning_rows)
                    print(record.add(case, found), flush=True)
    record.show(table(record.runs))


def measure(problem: ClassProblem, known: str, share: float, seed: int, learning_rows: int) -> dict[str, Any]:
    """Fit with some rows known in part, and test.

    problem: the rows, their leaves known.
    known: "all leaves", "dropped", "parent" or "top node".
    share: of the training rows, those known in part.
    seed: draws them.
    learning_rows: the most rows on which hyper-parameters are learned.
    Returns: scores, seconds and hyper-parameters.
    """
    drawn = _with_partial(problem, known, share, seed)
    model = KernelLogisticClassifier(
        problem.kernel,
        tie=("level", "shared"),
        taxonomy=problem.taxonomy,
        learning_rows=learning_rows,
        n_jobs=1,
    )
    start = time.perf_counter()
    model.fit(drawn.X, drawn.classes)
    return {
        **class_figures(drawn, model),
        "rows used": len(drawn.classes),
        "seconds": time.perf_counter() - start,
        "status": model.status_,
        "hyperparameters": {name: float(value) for name, value in model.hyperparameters_.items()},
    }


def _with_partial(problem: ClassProblem, known: str, share: float, seed: int) -> ClassProblem:
    """Forget the leaf of random rows; of each class at least one row is known in whole."""
    random = np.random.default_rng([seed, 1])
    order = random.permutation(len(problem.classes))
    firsts = order[np.unique(problem.classes[order].astype(str), return_index=True)[1]]
    partial = random.random(len(problem.classes)) < share
    partial[firsts] = False
    if known == "all leaves":
        return problem
    if known == "dropped":
        return replace(problem, X=problem.X[~partial], classes=problem.classes[~partial])
    tree, classes = problem.taxonomy, problem.classes.copy()
    for row in np.flatnonzero(partial):
        path = tree.path(classes[row])
        classes[row] = path[0] if known == "top node" else path[-2]
    return replace(problem, classes=classes)


def table(runs: list[dict[str, Any]]) -> str:
    """Write means over the seeds."""
    lines = [f"{'rows':>6s}{'share':>7s} {'known':12s}" + "".join(f"{name:>18s}" for name in _COLUMNS)]
    groups = sorted({(run["rows"], run["share"]) for run in runs})
    for rows, share in groups:
        for known in _KNOWN:
            own = [run for run in runs if (run["rows"], run["share"], run["known"]) == (rows, share, known)]
            if own:
                cells = "".join(_shown(name, [run[name] for run in own]) for name in _COLUMNS)
                lines.append(f"{rows:6d}{share:7.1f} {known:12s}{cells}")
    return "\n".join(lines)


def _shown(name: str, values: list[float]) -> str:
    factor = 100.0 if "accuracy" in name else 1.0
    mean = f"{factor * np.mean(values):.3f}"
    return (mean if len(values) == 1 else f"{mean} ({factor * np.std(values):.3f})").rjust(18)


if __name__ == "__main__":
    main()
