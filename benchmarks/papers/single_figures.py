"""Single figures of the papers, one thread, CPU seconds.

machines: support vector machines that Seeger (2008) quotes; C and gamma have the least error in three folds
of the training rows, on USPS of 2,000.  linear kernel: M3L, Table 1, 2,000 rows, C = 1: a kernel matrix (gap
1e-3), scikit-learn's LIBSVM on every eighth label, scaled to all, and the solver of linear models.  media
mill: synthetic rows of its shape, 4.4 labels per row, C = 1, gap 1e-3.  SVMStruct is a cutting plane with one
slack (Joachims, Finley and Yu 2009), until 1 % above the dual value or 60 seconds.  rate: CGM, Theorem 2:
passes of the proximal solver on scene, a Chow-Liu tree, by lambda, until gaps; their power of 1 / gap is to
be at most 1.  kernel rows: LEML, section 3: rows of the kernel matrix as features, whose coefficients are
penalized, or a kernel, whose functions are.  Squared loss, ridge, half the rank, RBF of width 1 / features;
lambda by five folds.  Errors are relative to predicting each label's mean.  kernel graphs: scene's given
split; a graph on out-of-fold scores of ridge regressions with learned width and penalty, those scores alone,
a graph on the kernel's features, and one on the features.  ends: M3L 2012, appendix B: steps of Algorithm 1
(RBF, C = 1) until the gap is 1e-8.
"""

import time
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from benchmarks.frame import RESULTS, RecordedRuns, Run, command, several, slope, timed
from benchmarks.papers.graph_runs import fit
from benchmarks.problems import load_kernel_problem, read_dense, read_images, read_part, read_parts
from labelweave import GraphGrowth, LabelGraphClassifier, LowRankClassifier, MaxMarginClassifier
from labelweave.features import FeatureMatrix
from labelweave.metrics import f1_score, hamming_loss, subset_accuracy

_GAMMAS = {"satimage": [0.5, 1.0, 2.0], "usps": [1 / 256, 1 / 128, 1 / 64]}
_PENALTIES = (10.0 ** np.arange(-3, 3.5, 0.5)).tolist()
_GROWN = {"graph": GraphGrowth(early_stopping=True, refit=True), "alpha": 1e-3}
_GRAPHS: dict[str, dict[str, Any]] = {
    "out-of-fold scores": {"kernel": "rbf", "gamma": "learn", "inputs": "scores", **_GROWN},
    "ridge alone": {"kernel": "rbf", "gamma": "learn", "inputs": "scores", **_GROWN},
    "kernel features": {"kernel": "rbf", "gamma": "learn", **_GROWN},
    "linear": _GROWN,
}
_GAPS = (0.1, 0.01, 0.001, 0.0001)


def _machine(name: str, kind: str) -> Run:
    X, y, X_test, y_test = read_images(name)
    low, high = X.min(axis=0), X.max(axis=0)
    X, X_test = (2.0 * (rows - low) / (high - low) - 1.0 for rows in (X, X_test))
    order = np.random.default_rng(0).permutation(len(X))[: 2000 if name == "usps" else None]
    of, machine = ("estimator__", OneVsRestClassifier(SVC())) if kind.endswith("rest") else ("", SVC())
    grid = {f"{of}C": [4.0, 16.0, 64.0], f"{of}gamma": _GAMMAS[name]}
    chosen = GridSearchCV(machine, grid, cv=3, refit=False).fit(X[order], y[order]).best_params_
    right = machine.set_params(**chosen).fit(X, y).score(X_test, y_test)
    return {"error": 100.0 * (1.0 - right), "C": chosen[f"{of}C"], "gamma": chosen[f"{of}gamma"]}


def _linear_kernel(name: str, method: str) -> Run:
    problem = load_kernel_problem(name)
    X, Y = problem.X, problem.Y.toarray()
    if method != "LIBSVM":
        return _margins(X, Y, linear_kernel if method == "kernel matrix" else "linear")
    machine = SVC(C=problem.penalty, kernel="linear", cache_size=500)
    return {"seconds": float(np.mean([timed(machine.fit, X, column)[1] for column in Y.T[::8]])) * len(Y.T)}


def _margins(X: Any, Y: Any, kernel: Any) -> Run:
    model = MaxMarginClassifier(C=1.0, kernel=kernel, n_jobs=1).fit(X[:200], Y[:200])  # compiled
    return {"seconds": timed(model.fit, X, Y)[1], "gap": model.duality_gap_, "dual": model.trace_[-1].dual}


def _media_mill(method: str, rows: int) -> Run:
    """Make scores linear in a row's 120 features and its neighborhood in them, with 101 labels."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 120)) / np.sqrt(1 + np.arange(120))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    around = np.cos(4.0 * X @ random.normal(size=(120, 30)))
    scores = X @ random.normal(size=(120, 101)) + 0.2 * around @ random.normal(size=(30, 101))
    scores += 0.5 * random.normal(size=scores.shape)
    shares = 1.0 / (5.0 + np.arange(101))
    shares *= 4.4 / shares.sum()
    Y = scores > [np.quantile(column, 1.0 - share) for column, share in zip(scores.T, shares, strict=True)]
    found = _margins(X, Y, "linear" if method == "SVMStruct" else method)
    return _cut(X, np.where(Y, 1.0, -1.0), found["dual"]) if method == "SVMStruct" else found


def _cut(X: Any, Y: Any, dual: float) -> Run:
    """Add the plane of the most violated labels, with slack above 0; return the least primal value."""
    X, begin, gap, limit = np.column_stack([X, np.ones(len(X))]), time.process_time(), np.inf, 2.0
    planes, losses, gram = np.zeros((1, X.shape[1] * Y.shape[1])), np.zeros(1), np.zeros((1, 1))
    shares = np.array([limit])  # the plane without a loss takes the rest
    while gap > 0.01 and time.process_time() - begin < 60.0:
        Z = (shares @ planes).reshape(X.shape[1], -1)
        slack = 1.0 - Y * (X @ Z)
        primal = 0.5 * (Z**2).sum() + limit * np.maximum(slack, 0.0).sum()
        gap, plane = min(gap, float(primal) / dual - 1.0), (X.T @ (Y * (slack > 0))).ravel()
        inner = planes @ plane
        gram = np.block([[gram, inner[:, None]], [inner, plane @ plane]])
        planes, losses = np.vstack([planes, plane]), np.append(losses, (slack > 0).sum())
        shares = _solve(gram, losses, np.append(shares, 0.0))
    return {"seconds": time.process_time() - begin, "gap": gap, "planes": len(planes) - 1}


def _solve(gram: Any, losses: Any, shares: Any) -> Any:
    """Maximize ``losses @ a - a @ gram @ a / 2`` over a >= 0 with a fixed sum, one pair at a time."""
    gradient = losses - gram @ shares
    for _ in range(5000):
        up, down = int(np.argmax(gradient)), int(np.argmin(np.where(shares > 0, gradient, np.inf)))
        gain = gradient[up] - gradient[down]
        if gain <= 1e-4 * losses.max():
            break
        step = min(shares[down], gain / (gram[up, up] + gram[down, down] - 2.0 * gram[up, down]))
        shares[[up, down]] += step, -step
        gradient -= step * (gram[up] - gram[down])
    return shares


def _rate(alpha: float) -> Run:
    part, tree = read_part("scene", "train"), {"graph": "chow-liu", "solver": "proximal", "n_jobs": 1}
    model = LabelGraphClassifier(alpha=alpha, tol=_GAPS[-1], max_iter=5000, **tree)
    fit(model, part.X, part.Y)
    passes = [next(one.iteration for one in model.trace_ if one.gap <= gap) for gap in _GAPS]
    return {"passes": passes, "power": slope([1.0 / gap for gap in _GAPS], passes)}


def _ends(name: str) -> Run:
    part, way = read_part(name, "train"), {"solver": "working_set", "tol": 1e-8, "max_iter": 1_000_000}
    model = MaxMarginClassifier(C=1.0, kernel="rbf", **way).fit(part.X, part.Y)
    share = sum(one.active_share for one in model.trace_) / 2.0  # two variables per step
    return {"steps": round(share * part.X.shape[0] * part.Y.shape[1]), "gap": model.duality_gap_}


def _kernel_rows(name: str, kind: str) -> Run:
    X, Y, X_test, Y_test = read_dense(name, "scaled")
    errors = []
    for alpha in _PENALTIES:
        scores = np.zeros(Y.shape)
        for train, other in KFold(5, shuffle=True, random_state=0).split(X):
            scores[other] = _low_rank(X[train], Y[train], kind, alpha).decision_function(X[other])
        errors.append(_error(scores, Y))
    alpha = _PENALTIES[int(np.argmin(errors))]
    test = _error(_low_rank(X, Y, kind, alpha).decision_function(X_test), Y_test)
    return {"lambda": alpha, "folds": min(errors), "test": test}


def _low_rank(X: Any, Y: Any, kind: str, alpha: float) -> Any:
    gamma = 1.0 / X.shape[1]
    model = LowRankClassifier(max(2, Y.shape[1] // 2), alpha=alpha, penalty="ridge", threshold=0.0)
    if kind == "kernel's space":
        return model.set_params(kernel="rbf", gamma=gamma).fit(X, Y)
    rows = FunctionTransformer(rbf_kernel, kw_args={"Y": X, "gamma": gamma})
    return make_pipeline(rows, model).fit(X, Y)


def _error(scores: Any, Y: Any) -> float:
    return float(np.square(scores - Y).sum() / np.square(Y - Y.mean(axis=0)).sum())


def _kernel_graph(name: str) -> Run:
    train, test = read_parts("scene")
    model, seconds = timed(LabelGraphClassifier(**_GRAPHS[name]).fit, train.X, train.Y)
    found = {"seconds": seconds, "graph": repr(model.label_graph_)}
    labels = model.predict(test.X).toarray()
    if name == "ridge alone":
        found, labels = {}, (model.inputs_.of(FeatureMatrix(test.X)).data > 0).astype(np.int8)
    macro, micro = (float(f1_score(test.Y, labels, average=kind)) for kind in ("macro", "micro"))
    errors = {"Hamming": float(hamming_loss(test.Y, labels)), "macro F1": macro, "micro F1": micro}
    return errors | {"subset": float(subset_accuracy(test.Y, labels))} | found


_PARTS: dict[str, tuple[Callable[..., Run], Iterable[tuple[Any, ...]]]] = {
    "machines": (_machine, product(_GAMMAS, ("one against one", "one against rest"))),
    "linear kernel": (
        _linear_kernel,
        product(("awa-2000", "rcv1-2000", "tmc2007-2000"), ("kernel matrix", "LIBSVM", "linear")),
    ),
    "media mill": (
        _media_mill,
        (("linear", 10_000), ("linear", 30_993), ("rbf", 10_000), ("SVMStruct", 10_000)),
    ),
    "kernel rows": (_kernel_rows, product(("emotions", "scene"), ("kernel's space", "rows of K"))),
    "kernel graphs": (_kernel_graph, product(_GRAPHS)),
    "rate": (_rate, product((1.0, 0.3, 0.1, 0.03))),
    "ends": (_ends, (("scene",), ("yeast",))),
}


def table(runs: list[Run]) -> str:
    """Write all results, one line per run."""
    lines = [
        ", ".join(
            f"{key} {_shown(value)}" for key, value in run.items() if key not in ("part", "measured", "dual")
        )
        for run in runs
    ]
    return "\n".join(line.removeprefix("of ") for line in lines)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).strip("[]")


@command(parts=several(_PARTS), records=RESULTS / "papers" / "single_figures.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    for part in arguments.parts:
        measure, cases = _PARTS[part]
        for words in cases:
            case = {"part": part, "of": " ".join(map(str, words))}
            if record.wants(case):
                record.add(case, measure(*words))
    record.show(table([run for run in record.runs if run["part"] in arguments.parts]))
