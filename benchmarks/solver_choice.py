"""Compare `solver="auto"` with the best solver of the max-margin model with a kernel.

Every problem is fitted by alternating directions, by blocks and by "auto" to the same certified gap, on one
thread; times are CPU seconds, medians of interleaved rounds.  The data are those of a folder of public sets;
a problem whose file is missing is skipped.

    python -m benchmarks.solver_choice --rounds 3 --out benchmarks/results/solver_choice.json

``--linear`` does so for linear models, with coordinate ascent instead of blocks.  Vectors are Debian's texts
by truncated SVD, of unit length, with their most frequent tags; synthetic rows are normal, with labels by a
linear rule and noise, and shifted from 0 by a number of standard deviations.  The problems of ``AFTERWARDS``
were made after the rule was fixed.
"""

import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from benchmarks.frame import command, flag, save
from benchmarks.kernel_problems import load_animals
from benchmarks.logistic_problems import load_class_problem
from benchmarks.needed_data import missing
from benchmarks.problems import DEFAULT_DATA, load_problem, read_part
from labelweave import LabelCovariance, MaxMarginClassifier, datasets

SOLVERS = ("alternating_directions", "block_ascent", "auto")
LINEAR_SOLVERS = ("alternating_directions", "coordinate_ascent", "auto")


class Problem(NamedTuple):
    """A fit by name.

    load: returns X and y.
    settings: parameters of the fit.
    """

    load: Callable[[Path], tuple[Any, Any]]
    settings: dict[str, Any]


def made_rows(n: int, d: int, n_labels: int, offset: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    scores = X @ generator.normal(size=(d, n_labels)) + 3 * generator.normal(size=(n, n_labels))
    return X + offset, (scores > 0).astype(int)


def _later(read: Callable[..., tuple[Any, Any]]) -> Callable[..., Callable[[Path], tuple[Any, Any]]]:
    """Make a function of the folder by the other arguments."""
    return lambda *given, **more: lambda data: read(data, *given, **more)


@_later
def _mulan(data: Path, name: str, rows: int | None = None) -> tuple[Any, Any]:
    found = read_part(name, "train", data)
    return found.X[:rows], found.Y[:rows]


@_later
def _classes(data: Path, name: str, rows: int | None = None) -> tuple[Any, Any]:
    problem = load_class_problem(name, data)
    return problem.X[:rows], problem.labels[:rows]


@_later
def _pixels(data: Path, name: str, rows: int, *, scaled: bool | None) -> tuple[Any, Any]:
    """Read pixels and a label per class, or (None) USPS from -1 to 1 and its classes."""
    with np.load(data / name / f"{name}.npz") as file:
        part = "_train" if name == "usps" else ""
        X, y = file[f"X{part}"][:rows].astype(float), file[f"y{part}"][:rows]
    if scaled is None:
        return X / 1000.0 - 1, y
    return StandardScaler().fit_transform(X) if scaled else X, (y[:, None] == np.unique(y)).astype(int)


@_later
def _animals(data: Path, rows: int) -> tuple[Any, Any]:
    return load_animals(rows, data)


@_later
def _news(data: Path, rows: int) -> tuple[Any, Any]:
    X, Y = load_problem("rcv1-subset1", data)
    used = np.flatnonzero(np.asarray((Y[:rows] > 0).sum(axis=0)).ravel())
    return X[:rows], Y[:rows][:, used]


PROBLEMS = {
    "satimage, 1e-3": Problem(_classes("satimage"), {"tol": 1e-3}),
    "satimage, 1e-5": Problem(_classes("satimage"), {"tol": 1e-5}),
    "satimage, C = 10, 1e-5": Problem(_classes("satimage"), {"tol": 1e-5, "C": 10.0}),
    "usps 3000, 1e-3": Problem(_pixels("usps", 3000, scaled=None), {"tol": 1e-3}),
    "usps 3000, 1e-5": Problem(_pixels("usps", 3000, scaled=None), {"tol": 1e-5}),
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


@cache
def _texts(n_columns: int) -> tuple[Any, Any]:
    X, Y, _, _ = datasets.load_debtags(return_X_y=True)
    vectors = TruncatedSVD(n_columns, random_state=0).fit_transform(X)
    frequent = np.argsort(-np.asarray((Y > 0).sum(axis=0)).ravel(), kind="stable")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), Y[:, frequent]


@_later
def _vectors(data: Path, rows: int, columns: int, labels: int) -> tuple[Any, Any]:
    X, Y = _texts(columns)
    return X[:rows], Y[:rows, :labels].toarray()


@_later
def _made(data: Path, *sizes: Any) -> tuple[Any, Any]:
    return made_rows(*sizes)


@_later
def _as_table(
    data: Path, load: Callable[[Path], tuple[Any, Any]], labels: int | None = None
) -> tuple[Any, Any]:
    X, Y = load(data)
    some = np.arange(Y.shape[1] if labels is None else labels)
    return X.toarray() if hasattr(X, "toarray") else X, Y.select_labels(some)


_COUPLED = {"label_covariance": "some"}
LINEAR = {
    "vectors 15000 x 384 x 50, C = 0.5, 1e-2": Problem(_vectors(15000, 384, 50), {"C": 0.5, "tol": 1e-2}),
    "vectors 15000 x 384 x 50, C = 0.5, 1e-3": Problem(_vectors(15000, 384, 50), {"C": 0.5}),
    "vectors 5000 x 384 x 50, C = 5, 1e-3": Problem(_vectors(5000, 384, 50), {"C": 5.0}),
    "vectors 2000 x 384 x 300, 1e-3": Problem(_vectors(2000, 384, 300), {}),
    "vectors 3000 x 384 x 10, C = 100, 1e-2": Problem(_vectors(3000, 384, 10), {"C": 100.0, "tol": 1e-2}),
    "vectors 3000 x 384 x 10, C = 0.01, 1e-4": Problem(_vectors(3000, 384, 10), {"C": 0.01, "tol": 1e-4}),
    "vectors 3000 x 384 x 10, 1e-5": Problem(_vectors(3000, 384, 10), {"tol": 1e-5}),
    "vectors 20000 x 64 x 20, 1e-3": Problem(_vectors(20000, 64, 20), {}),
    "vectors 20000 x 16 x 5, C = 0.1, 1e-3": Problem(_vectors(20000, 16, 5), {"C": 0.1}),
    "made 50000 x 16 x 5, 1e-2": Problem(_made(50000, 16, 5), {"tol": 1e-2}),
    "made 50000 x 64 x 1, C = 0.01, 1e-3": Problem(_made(50000, 64, 1), {"C": 0.01}),
    "made 500 x 1024 x 10, 1e-3": Problem(_made(500, 1024, 10), {}),
    "made 3000 x 1024 x 5, C = 0.1, 1e-3": Problem(_made(3000, 1024, 5), {"C": 0.1}),
    "made 3000 x 40 x 6, 1e-3": Problem(_made(3000, 40, 6), {}),
    "made 3000 x 40 x 6, offset 10, 1e-3": Problem(_made(3000, 40, 6, 10.0), {}),
    "satimage, 1e-3": Problem(_pixels("satimage", 4435, scaled=False), {}),
    "satimage scaled, 1e-3": Problem(_pixels("satimage", 4435, scaled=True), {}),
    "usps 2000, C = 0.1, 1e-3": Problem(_pixels("usps", 2000, scaled=False), {"C": 0.1}),
    "usps 2000 scaled, C = 0.01, 1e-3": Problem(_pixels("usps", 2000, scaled=True), {"C": 0.01}),
    "scene, 1e-3": Problem(_as_table(_mulan("scene")), {}),
    "yeast, 1e-3": Problem(_as_table(_mulan("yeast")), {}),
    "yeast, C = 100, 1e-3": Problem(_as_table(_mulan("yeast")), {"C": 100.0}),
    "AwA 3000, 1e-3": Problem(_animals(3000), {}),
    "delicious 5000 x 500 x 100, C = 0.1, 1e-3": Problem(
        _as_table(_mulan("delicious", 5000), 100), {"C": 0.1}
    ),
    "vectors 5000 x 64 x 20, coupled, 1e-3": Problem(_vectors(5000, 64, 20), _COUPLED),
    "scene, coupled, 1e-3": Problem(_as_table(_mulan("scene")), _COUPLED),
    "RCV1 6000 sparse, 1e-3": Problem(_news(6000), {}),
    "RCV1 2000 sparse, coupled, 1e-2": Problem(_news(2000), _COUPLED | {"tol": 1e-2}),
}
AFTERWARDS = {
    "emotions, C = 10, 1e-3": Problem(_as_table(_mulan("emotions")), {"C": 10.0}),
    "birds, 1e-3": Problem(_as_table(_mulan("birds")), {}),
    "vectors 8000 x 256 x 100, C = 2, 3e-3": Problem(_vectors(8000, 256, 100), {"C": 2.0, "tol": 3e-3}),
    "made 20000 x 200 x 3, offset 3, 1e-2": Problem(_made(20000, 200, 3, 3.0), {"tol": 1e-2}),
    "made 1000 x 128 x 40, C = 0.1, 1e-4": Problem(_made(1000, 128, 40), {"C": 0.1, "tol": 1e-4}),
    "enron sparse, coupled, 1e-2": Problem(_mulan("enron"), _COUPLED | {"tol": 1e-2}),
}
LINEAR |= AFTERWARDS


def _measure(X: Any, y: Any, settings: dict[str, Any], solver: str) -> dict[str, Any]:
    parameters = dict(settings)
    if "label_covariance" in parameters:
        parameters["label_covariance"] = LabelCovariance.dense(0.7 * np.eye(y.shape[1]) + 0.3)
    parameters = {"kernel": "rbf", "solver": solver, "n_jobs": 1} | parameters
    model = MaxMarginClassifier(**parameters)
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


@command(
    linear=flag(False, "linear models"),
    problems=flag(nargs="*"),
    solvers=flag(nargs="*"),
    rounds=3,
    data=DEFAULT_DATA,
    out=flag(type=Path),
)
def main(options: Any) -> None:
    problems = LINEAR if options.linear else PROBLEMS
    solvers = options.solvers or (LINEAR_SOLVERS if options.linear else SOLVERS)
    more = {"kernel": "linear", "threshold": 0.0} if options.linear else {}
    found: dict[str, Any] = {}
    for name in options.problems or problems:
        problem = problems[name]
        try:
            X, y = problem.load(options.data)
        except (FileNotFoundError, ValueError) as error:
            if not missing(error):
                raise
            print(f"{name}: left out. {missing(error)}", flush=True)
            continue
        runs: dict[str, list[dict[str, Any]]] = {solver: [] for solver in solvers}
        for _ in range(options.rounds):
            for solver in solvers:
                runs[solver].append(_measure(X, y, problem.settings | more, solver))
        found[name] = runs
        texts = []
        for solver, ends in runs.items():
            mark = "" if ends[-1]["converged"] else f" (gap {ends[-1]['gap']:.1e})"
            texts.append(
                f"{solver} {ends[-1]['rounds']} rounds, {median(end['seconds'] for end in ends):.2f} s{mark}"
            )
        print(f"{name} ({X.shape[0]} rows): " + ", ".join(texts), flush=True)
    if not found:
        raise SystemExit(2)  # the reason was printed for each
    save(options.out, found)
