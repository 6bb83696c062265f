"""Compare `solver="auto"` with the best solver of the max-margin model with a kernel.

Every problem is fitted by alternating directions, by blocks and by "auto" to the same certified gap, on one
thread; times are CPU seconds, medians of interleaved rounds.  The data are those of a folder of public sets;
a problem whose file is missing is skipped.

    python -m benchmarks.solver_choice --rounds 3 --out benchmarks/results/solver_choice.json

``--linear`` does so for linear models, with coordinate ascent instead of blocks.  Vectors are Debian's texts
by truncated SVD, of unit length, with their most frequent tags; synthetic rows are normal, with labels by a
linear rule and noise, and shifted from 0 by a number of standard deviations.  The last six problems were made
after the rule was fixed.
"""

from statistics import median
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.frame import OUT, command, cost_of, flag, quiet, save
from benchmarks.needed_data import missing
from benchmarks.problems import (
    DEFAULT_DATA,
    load_animals,
    load_class_problem,
    load_problem,
    read_images,
    read_part,
    read_vectors,
)
from labelweave import LabelCovariance, MaxMarginClassifier

SOLVERS = ("alternating_directions", "block_ascent", "auto")
LINEAR_SOLVERS = ("alternating_directions", "coordinate_ascent", "auto")
# data with their sizes, then the parameters of the fit, the gap last
KERNELS = """
    satimage, 1e-3; satimage, 1e-5; satimage, C = 10, 1e-5; usps 3000, 1e-3; usps 3000, 1e-5; AwA 2000,
    1e-3; AwA 4000, 1e-3; scene, 1e-3; yeast, 1e-3; yeast, C = 10, 1e-4; bibtex 2000, 1e-3; enron, 1e-3;
    ImCLEF07A 2000, 1e-3; RCV1 3000, 1e-4; RCV1 6000, 1e-4; yeast, coupled, 1e-3; AwA 2000, coupled,
    1e-3; scene, coupled, 1e-4
"""
LINEAR = """
    vectors 15000 x 384 x 50, C = 0.5, 1e-2; vectors 15000 x 384 x 50, C = 0.5, 1e-3; vectors 5000 x 384
    x 50, C = 5, 1e-3; vectors 2000 x 384 x 300, 1e-3; vectors 3000 x 384 x 10, C = 100, 1e-2; vectors
    3000 x 384 x 10, C = 0.01, 1e-4; vectors 3000 x 384 x 10, 1e-5; vectors 20000 x 64 x 20, 1e-3;
    vectors 20000 x 16 x 5, C = 0.1, 1e-3; made 50000 x 16 x 5, 1e-2; made 50000 x 64 x 1, C = 0.01,
    1e-3; made 500 x 1024 x 10, 1e-3; made 3000 x 1024 x 5, C = 0.1, 1e-3; made 3000 x 40 x 6, 1e-3;
    made 3000 x 40 x 6, offset 10, 1e-3; satimage, 1e-3; satimage scaled, 1e-3; usps 2000, C = 0.1,
    1e-3; usps 2000 scaled, C = 0.01, 1e-3; scene, 1e-3; yeast, 1e-3; yeast, C = 100, 1e-3; AwA 3000,
    1e-3; delicious 5000 x 500 x 100, C = 0.1, 1e-3; vectors 5000 x 64 x 20, coupled, 1e-3; scene,
    coupled, 1e-3; RCV1 6000 sparse, 1e-3; RCV1 2000 sparse, coupled, 1e-2; emotions, C = 10, 1e-3;
    birds, 1e-3; vectors 8000 x 256 x 100, C = 2, 3e-3; made 20000 x 200 x 3, offset 3, 1e-2; made 1000
    x 128 x 40, C = 0.1, 1e-4; enron sparse, coupled, 1e-2
"""


def problem_of(name: str, is_linear: bool) -> tuple[Any, Any, dict[str, Any]]:
    """Load the rows and labels of a name, and read the parameters of its fit."""
    what, *told, tol = name.split(", ")
    given = dict(part.replace(" = ", " ").partition(" ")[::2] for part in told)
    kind, *words = what.split()
    sizes = [int(word) for word in words if word.isdigit()] + [float(given.pop("offset", 0.0))]
    X, y = (_linear_rows if is_linear else _rows)(kind, sizes, words)
    settings = {"kernel": "linear", "threshold": 0.0} if is_linear else {"kernel": "rbf"}
    if "coupled" in given:
        settings["label_covariance"] = LabelCovariance.dense(0.7 * np.eye(y.shape[1]) + 0.3)
    return X, y, settings | {"tol": float(tol)} | ({"C": float(given["C"])} if "C" in given else {})


def _rows(kind: str, sizes: list[Any], _: list[str]) -> tuple[Any, Any]:
    n = sizes[0] if len(sizes) > 1 else None
    if kind == "usps":
        X, y, *_ = read_images(kind)
        return X[:n], y[:n]
    if kind in ("satimage", "ImCLEF07A"):
        problem = load_class_problem(kind if n is None else f"imclef-{n}")
        return problem.X, problem.labels
    if kind == "AwA":
        return load_animals(n)
    if kind == "RCV1":
        X, Y = load_problem("rcv1-subset1")
        used = np.flatnonzero(np.asarray((Y[:n] > 0).sum(axis=0)).ravel())
        return X[:n], Y[:n][:, used]
    found = read_part(kind, "train")
    return found.X[:n], found.Y[:n]


def _linear_rows(kind: str, sizes: list[Any], words: list[str]) -> tuple[Any, Any]:
    if kind == "made":
        return made_rows(*sizes)
    if kind == "vectors":
        X, Y, *_ = read_vectors(sizes[1])
        return X[: sizes[0]], Y[: sizes[0], : sizes[2]]
    if kind in ("satimage", "usps"):  # pixels, and a label per class
        n = 4435 if kind == "satimage" else sizes[0]
        with np.load(DEFAULT_DATA / kind / f"{kind}.npz") as file:
            part = "_train" if kind == "usps" else ""
            X, y = file[f"X{part}"][:n].astype(float), file[f"y{part}"][:n]
        X = StandardScaler().fit_transform(X) if "scaled" in words else X
        return X, (y[:, None] == np.unique(y)).astype(int)
    X, Y = _rows(kind, sizes, words)
    if kind == "AwA" or "sparse" in words:
        return X, Y
    some = np.arange(sizes[2] if len(sizes) > 3 else Y.shape[1])
    return X.toarray() if hasattr(X, "toarray") else X, Y.select_labels(some)


def made_rows(n: int, d: int, n_labels: int, offset: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    scores = X @ generator.normal(size=(d, n_labels)) + 3 * generator.normal(size=(n, n_labels))
    return X + offset, (scores > 0).astype(int)


def _measure(X: Any, y: Any, settings: dict[str, Any], solver: str) -> dict[str, Any]:
    model = MaxMarginClassifier(solver=solver, n_jobs=1, **settings)
    with quiet():
        _, wall, seconds = cost_of(model.fit, X, y)
    return {
        "seconds": seconds,
        "wall": wall,
        "gap": model.duality_gap_,
        "converged": bool(model.converged_),
        "rounds": model.n_iter_,
    }


@command(linear=flag(False, "linear models"), rounds=3, out=OUT)
def main(options: Any) -> None:
    problems = " ".join((LINEAR if options.linear else KERNELS).split()).split("; ")
    solvers = LINEAR_SOLVERS if options.linear else SOLVERS
    found: dict[str, Any] = {}
    for name in problems:
        try:
            X, y, settings = problem_of(name, options.linear)
        except (FileNotFoundError, ValueError) as error:
            if not missing(error):
                raise
            print(f"{name}: left out. {missing(error)}", flush=True)
            continue
        runs: dict[str, list[dict[str, Any]]] = {solver: [] for solver in solvers}
        for _ in range(options.rounds):
            for solver in solvers:
                runs[solver].append(_measure(X, y, settings, solver))
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
