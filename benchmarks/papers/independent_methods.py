"""Other independent methods compared with M3L (M3L paper of 2012, section 7.2.1 and Table 3).

Rows, penalties and kernel widths are those of ``benchmarks.papers.changed_correlations`` and
``benchmarks.papers.zero_shot_awa`` for independent support vector machines. Methods: label power sets (one
class per label set of the training rows, support vector machines, one against one), the five nearest rows
(labels that most of them have), and ridge regression of the labels on the rows, around their means.

Boosting is BoosTexter's (Schapire and Singer 2000): AdaBoost.MH with stumps, one question per round for all
labels and a confidence per label and answer. A question is whether a word is present, or whether a dense
feature is above one of seven of its quantiles. Ranking is the multilabel perceptron (Crammer and Singer 2003)
with the kernel of the other methods; a row's first labels are its predictions. The number of rounds or
passes, and the number of first labels relative to the mean of training rows, are chosen on held-out rows or
classes.
"""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise_kernels
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.frame import RESULTS, RecordedRuns, Run, command, flag, several
from benchmarks.papers import changed_correlations
from benchmarks.papers.zero_shot_awa import kernel_pairs
from benchmarks.problems import Animals, read_animals

Scores = Callable[[changed_correlations.Parameters, Any, Any, Any], Any]
Grid = Callable[[list[changed_correlations.Parameters]], list[changed_correlations.Parameters]]

_ANIMALS = "animals"
_QUANTILES = np.linspace(0.0, 1.0, 9)[1:-1]
_ROUNDS = (1, 2, 4, 8, 16, 32, 64)
_PASSES = (1, 10)
_SHARES = (0.25, 0.5, 0.75, 1.0)
_CASES = [*product(changed_correlations.PROBLEMS, changed_correlations.RULES), (_ANIMALS, "unseen classes")]
_NAMES = ("power set", "5-NN", "regression", "boosting", "ranking")
_PAPER = {
    "yeast": dict(zip(_NAMES, (32.32, 28.82, 26.70, 31.82, 28.02), strict=True)),
    "tmc2007": dict(zip(_NAMES, (14.01, 12.51, 11.19, 12.91, 9.41), strict=True)),
    "rcv1": dict(zip(_NAMES, (3.71, 4.47, 4.26, 4.12, 5.67), strict=True)),
    _ANIMALS: dict(zip(_NAMES, (32.70, 31.79, 29.38, 30.28, 34.84), strict=True)),
}


def _of_draw(problem: changed_correlations.Problem, rule: str, seed: int, method: str) -> Run:
    """Measure a method on rows whose label correlations differ from those of the test set."""
    scores_of, grid_of = _METHODS[method]
    draw = changed_correlations.draw_rows(problem, rule, seed)
    grid = grid_of(changed_correlations.candidates(draw))
    chosen = changed_correlations.choose(draw, grid, scores_of, seed) if grid else {}
    scores = scores_of(chosen, draw.X, draw.Y, problem.X_test)
    return {"hamming": 100.0 * float(_is_wrong(scores, problem.Y_test).mean()), **chosen}


def _of_unseen_classes(animals: Animals, _: str, seed: int, method: str) -> Run:
    """Measure a method on images of unseen classes, chosen on held-out training classes."""
    scores_of, grid_of = _METHODS[method]
    X, classes = animals.draw(seed)
    Y, truth = (animals.signatures[of] > 0 for of in (classes, animals.classes_test))
    grid = grid_of([{"C": C, "gamma": gamma} for C, gamma in kernel_pairs(X)]) or [{}]
    wrong = np.zeros(len(grid))
    for held in animals.held_out(classes, seed) if len(grid) > 1 else ():
        left = held.rows
        for number, one in enumerate(grid):
            wrong[number] += _is_wrong(scores_of(one, X[~left], Y[~left], X[left]), Y[left]).sum()
    chosen = grid[int(np.argmin(wrong))]
    scores = scores_of(chosen, X, Y, animals.X_test)
    return {"hamming": 100.0 * float(_is_wrong(scores, truth).mean()), **chosen}


def _is_wrong(scores: Any, truth: Any) -> Any:
    return (scores > 0) != (truth > 0)


def _power_set(parameters: changed_correlations.Parameters, X: Any, Y: Any, X_new: Any) -> Any:
    sets, classes = np.unique(Y > 0, axis=0, return_inverse=True)
    machine = SVC(C=parameters["C"], **_kernel(parameters))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # many label sets have one row
        machine.fit(X, classes.ravel())
    return sets[machine.predict(X_new)] - 0.5


def _nearest(parameters: changed_correlations.Parameters, X: Any, Y: Any, X_new: Any) -> Any:
    return KNeighborsClassifier(5).fit(X, Y > 0).predict(X_new) - 0.5


def _regression(parameters: changed_correlations.Parameters, X: Any, Y: Any, X_new: Any) -> Any:
    signs = np.where(Y > 0, 1.0, -1.0)
    means = signs.mean(axis=0)
    model = KernelRidge(alpha=0.5 / parameters["C"], **_kernel(parameters))
    return model.fit(X, signs - means).predict(X_new) + means


def _kernel(parameters: changed_correlations.Parameters) -> dict[str, Any]:
    return {"kernel": "rbf", "gamma": parameters["gamma"]} if "gamma" in parameters else {"kernel": "linear"}


def _boosting(parameters: changed_correlations.Parameters, X: Any, Y: Any, X_new: Any) -> Any:
    return boost(int(parameters["rounds"]), X, Y, X_new)


def _ranking(parameters: changed_correlations.Parameters, X: Any, Y: Any, X_new: Any) -> Any:
    K, K_new = (pairwise_kernels(rows, X, filter_params=True, **_kernel(parameters)) for rows in (X, X_new))
    return rank(int(parameters["passes"]), parameters["share"], K, Y, K_new)


def _ranking_grid(grid: list[changed_correlations.Parameters]) -> list[changed_correlations.Parameters]:
    """Combine each kernel of a grid with numbers of passes and shares of labels."""
    kernels = [{k: v for k, v in one.items() if k == "gamma"} for one in grid if one["C"] == grid[0]["C"]]
    choices = product(kernels, _PASSES, _SHARES)
    return [kernel | {"passes": passes, "share": share} for kernel, passes, share in choices]


_METHODS: dict[str, tuple[Scores, Grid]] = {
    "power set": (_power_set, list),
    "5-NN": (_nearest, lambda _: []),
    "regression": (_regression, list),
    "boosting": (_boosting, lambda _: [{"rounds": number} for number in _ROUNDS]),
    "ranking": (_ranking, _ranking_grid),
}


def boost(rounds: int, X: Any, Y: Any, X_new: Any) -> Any:
    """Sum the confidences of stumps, one question per round for all labels (real AdaBoost.MH)."""
    asked, asked_new = _questions(X, X), _questions(X, X_new)
    signs = np.where(Y > 0, 1.0, -1.0).astype(np.float32)
    scores, scores_new = np.zeros_like(signs), np.zeros((X_new.shape[0], Y.shape[1]))
    smoothing = 1.0 / signs.size
    for _ in range(rounds):
        weights = np.exp(-signs * scores)
        weights /= weights.sum()
        parts = np.stack([weights * (signs > 0), weights * (signs < 0)])
        yes = np.stack([asked.T @ part for part in parts])  # (side, question, label)
        no = parts.sum(axis=1)[:, None] - yes
        losses = np.sqrt(np.maximum(yes[0] * yes[1], 0)) + np.sqrt(np.maximum(no[0] * no[1], 0))
        best = int(np.argmin(losses.sum(axis=1)))
        answers = np.maximum(np.stack([no[:, best], yes[:, best]]), 0.0) + smoothing
        confidences = 0.5 * np.log(answers[:, 0] / answers[:, 1])  # (answer, label)
        scores += confidences[_column(asked, best)].astype(np.float32)
        scores_new += confidences[_column(asked_new, best)]
    return scores_new


def _questions(X: Any, X_new: Any) -> Any:
    """Compute for new rows, 0/1, whether a word is present, or a feature above a quantile of the rows X."""
    if sp.issparse(X):
        return sp.csc_array((X_new[:, np.unique(X.indices)] != 0).astype(np.float32))
    levels = np.quantile(X, _QUANTILES, axis=0)
    return (X_new[:, None] > levels).reshape(len(X_new), -1).astype(np.float32)


def _column(asked: Any, place: int) -> Any:
    column = asked[:, [place]]
    return (column.toarray() if sp.issparse(column) else column).ravel().astype(np.intp)


def rank(passes: int, share: float, K: Any, Y: Any, K_new: Any) -> Any:
    """Train the perceptron with uniform updates; rows have a multiple of the mean number of labels.

    K, K_new: kernel values of training rows, and of new rows with training rows.  Returns: 1/2 for the
    predicted labels of new rows, and -1/2 for the others.
    """
    duals = np.zeros(Y.shape)
    for row in np.tile(np.arange(len(Y)), passes):
        scores, has = K[row] @ duals, Y[row] > 0
        wrong = scores[has][:, None] <= scores[~has]
        if wrong.any():
            duals[row, has] += wrong.sum(axis=1) / wrong.sum()
            duals[row, ~has] -= wrong.sum(axis=0) / wrong.sum()
    order = np.argsort(np.argsort(-(K_new @ duals), axis=1), axis=1)
    return (order < round(share * float((Y > 0).sum(axis=1).mean()))) - 0.5


def table(runs: list[Run]) -> str:
    """Write means over the draws, with deviations, next to the paper's losses."""
    lines = [f"{'test Hamming loss %':26s}" + "".join(f"{f'{name} (paper)':>28s}" for name in _METHODS)]
    for problem, rule in _CASES:
        cells = ""
        for method in _METHODS:
            losses = [
                run["hamming"]
                for run in runs
                if (run["problem"], run["rule"], run["method"]) == (problem, rule, method)
            ]
            if losses:
                paper = _PAPER[problem][method]
                cells += f"{f'{np.mean(losses):.2f} ± {np.std(losses):.2f} ({paper:.2f})':>28s}"
        if cells:
            lines.append(f"{f'{problem}, {rule}':26s}{cells}")
    return "\n".join(lines)


@command(
    seeds=flag(5, "draws of training rows"),
    methods=several(_METHODS),
    records=RESULTS / "papers" / "independent_methods.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, paper=_PAPER)
    for name, rule in _CASES if record.measures else ():
        rows: Any = read_animals() if name == _ANIMALS else changed_correlations.read(name)
        of = _of_unseen_classes if name == _ANIMALS else _of_draw
        seeds = range(arguments.seeds)
        for case in record.missing(problem=[name], rule=[rule], seed=seeds, method=arguments.methods):
            record.add(case, of(rows, rule, case["seed"], case["method"]))
        print(f"{name}, {rule}: measured", flush=True)
    record.show(table(record.runs))
