"""How near `solver="auto"` comes to the best solver of the max-margin model with a kernel.

Every problem is fitted by alternating directions, by blocks and by "auto" to the same certified gap, on one
thread; seconds are of the processor, medians of interleaved rounds.  The data are those of a folder of public
sets; a problem whose file is not there is left out.

    python -m benchmarks.solver_choice --rounds 3 --out benchmarks/results/solver_choice.json
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.kernel_problems import load_animals
from benchmarks.logistic_problems import load_class_problem
from benchmarks.machine import describe_machine
from benchmarks.needed_data import missing, needs_data
from benchmarks.problems import DEFAULT_DATA, load_problem
from benchmarks.results_file import write_json
from labelweave import LabelCovariance, MaxMarginClassifier, datasets

__all__ = ["PROBLEMS", "Problem"]

SOLVERS = ("alternating_directions", "block_ascent", "auto")


class Problem(NamedTuple):
    """A fit by name.

    load: gives X and y.
    settings: parameters of the fit.
    """

    load: Callable[[Path], tuple[Any, Any]]
    settings: dict[str, Any]


def _mulan(name: str, rows: int | None = None) -> Callable[[Path], tuple[Any, Any]]:
    def load(data: Path) -> tuple[Any, Any]:
        folder = data / "mulan" / name
        found = datasets.read_mulan(folder / f"{name}-train.arff", folder / f"{name}.xml")
        return found.X[:rows], found.Y[:rows]

    return load


def _classes(name: str, rows: int | None = None) -> Callable[[Path], tuple[Any, Any]]:
    def load(data: Path) -> tuple[Any, Any]:
        problem = load_class_problem(name, data)
        return problem.X[:rows], problem.labels[:rows]

    return load


def _digits(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    def load(data: Path) -> tuple[Any, Any]:
        with np.load(data / "usps" / "usps.npz") as file:
            X, y = file["X_train"], file["y_train"]
        return X[:rows] / 1000.0 - 1, y[:rows]

    return load


def _animals(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    return lambda data: load_animals(rows, data)


def _news(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    def load(data: Path) -> tuple[Any, Any]:
        X, Y = load_problem("rcv1-subset1", data)
        used = np.flatnonzero(np.asarray((Y[:rows] > 0).sum(axis=0)).ravel())
        return X[:rows], Y[:rows][:, used]

    return load


PROBLEMS = {
    "satimage, 1e-3": Problem(_classes("satimage"), {"tol": 1e-3}),
    "satimage, 1e-5": Problem(_classes("satimage"), {"tol": 1e-5}),
    "satimage, C = 10, 1e-5": Problem(_classes("satimage"), {"tol": 1e-5, "C": 10.0}),
    "usps 3000, 1e-3": Problem(_digits(3000), {"tol": 1e-3}),
    "usps 3000, 1e-5": Problem(_digits(3000), {"tol": 1e-5}),
    "AwA 2000, 1e-3": Problem(_animals(2000), {"tol": 1e-3}),
    "AwA 4000, 1e-3": Problem(_animals(4000), {"tol": 1e-3}),
    "scene, 1e-3": Problem(_mulan("scene"), {"tol": 1e-3}),
    "yeast, 1e-3": Problem(_mulan("yeast"), {"tol": 1e-3}),
    "yeast, C = 10, 1e-4": Problem(_mulan("yeast"), {"tol": 1e-4, "C": 10.0}),
    "bibtex 2000, 1e-3": Problem(_mulan("bibtex", 2000), {"tol": 1e-3}),
    "enron, 1e-3": Problem(_mulan("enron"), {"tol": 1e-3}),
    "ImCLEF07A 2000, 1e-3": Problem(_classes("imclef-2000"), {"tol": 1e-3}),
    "RCV1 3000, 1e-4": Problem(_news(3000), {"tol": 1e-4}),
    "RCV1 6000, 1e-4": Problem(_news(6000), {"tol": 1e-4}),
    "yeast, coupled, 1e-3": Problem(_mulan("yeast"), {"tol": 1e-3, "label_covariance": "some"}),
    "AwA 2000, coupled, 1e-3": Problem(_animals(2000), {"tol": 1e-3, "label_covariance": "some"}),
    "scene, coupled, 1e-4": Problem(_mulan("scene"), {"tol": 1e-4, "label_covariance": "some"}),
}


def _measure(X: Any, y: Any, settings: dict[str, Any], solver: str) -> dict[str, Any]:
    parameters = dict(settings)
    if parameters.get("label_covariance") == "some":
        n_labels = y.shape[1]
        parameters["label_covariance"] = LabelCovariance.dense(0.7 * np.eye(n_labels) + 0.3)
    model = MaxMarginClassifier(kernel="rbf", solver=solver, n_jobs=1, **parameters)
    begin, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds = time.process_time() - begin
    return {
        "seconds": seconds,
        "wall": time.perf_counter() - wall,
        "gap": model.duality_gap_,
        "converged": bool(model.converged_),
        "rounds": model.n_iter_,
    }


@needs_data
def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for name in options.problems:
        problem = PROBLEMS[name]
        try:
            X, y = problem.load(options.data)
        except (FileNotFoundError, ValueError) as error:
            if not missing(error):
                raise
            print(f"{name}: left out. {missing(error)}", flush=True)
            continue
        runs: dict[str, list[dict[str, Any]]] = {solver: [] for solver in options.solvers}
        for _ in range(options.rounds):
            for solver in options.solvers:
                runs[solver].append(_measure(X, y, problem.settings, solver))
        found[name] = runs
        texts = []
        for solver, ends in runs.items():
            mark = "" if ends[-1]["converged"] else f" (gap {ends[-1]['gap']:.1e})"
            texts.append(
                f"{solver} {ends[-1]['rounds']} rounds, {median(end['seconds'] for end in ends):.2f} s{mark}"
            )
        print(f"{name} ({X.shape[0]} rows): " + ", ".join(texts), flush=True)
    if not found:
        raise SystemExit(2)  # why was said of each
    if options.out:
        write_json(options.out, describe_machine() | found)


if __name__ == "__main__":
    main()
