"""Other independent methods beside M3L (M3L paper of 2012, section 7.2.1 and Table 3).

Label power sets (one class a set of labels that training rows have, support vector machines, one against
one), the five nearest rows (a label that most of them have), and ridge regression of the labels on the
rows, around their means.  The rows are those that ``benchmarks.papers.changed_correlations`` and
``benchmarks.papers.zero_shot_awa`` draw; penalties and kernel widths are chosen as those choose them for
independent support vector machines.  BoostTexter and ranking by perceptrons (Crammer and Singer 2003) are
not here: no kept library has them.
"""

import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.frame import RESULTS, command, flag
from benchmarks.papers import changed_correlations
from benchmarks.papers.animals import Animals, held_out_classes, read_animals, sample_training_rows
from benchmarks.papers.zero_shot_awa import kernel_pairs
from benchmarks.recorded_runs import RecordedRuns

Run = dict[str, Any]

_ANIMALS = "animals"
_CASES = [*product(changed_correlations.PROBLEMS, changed_correlations.RULES), (_ANIMALS, "unseen classes")]
_PAPER = {
    "yeast": {"power set": 32.32, "5-NN": 28.82, "regression": 26.70},
    "tmc2007": {"power set": 14.01, "5-NN": 12.51, "regression": 11.19},
    "rcv1": {"power set": 3.71, "5-NN": 4.47, "regression": 4.26},
    _ANIMALS: {"power set": 32.70, "5-NN": 31.79, "regression": 29.38},
}


def _of_draw(problem: changed_correlations.Problem, rule: str, seed: int, method: str) -> Run:
    """Measure a method on rows whose labels go together otherwise than those of the test set."""
    scores_of, has_choice = _METHODS[method]
    draw = changed_correlations.draw_rows(problem, rule, seed)
    chosen = (
        changed_correlations.choose(draw, changed_correlations.candidates(draw), scores_of, seed)
        if has_choice
        else {}
    )
    scores = scores_of(chosen, draw.X, draw.Y, problem.X_test)
    return {"hamming": 100.0 * float(_is_wrong(scores, problem.Y_test).mean()), **chosen}


def _of_unseen_classes(animals: Animals, _: str, seed: int, method: str) -> Run:
    """Measure a method on images of classes that it has not seen, chosen on training classes left out."""
    scores_of, has_choice = _METHODS[method]
    rows = sample_training_rows(animals, seed)
    X, classes = animals.X[rows], animals.classes[rows]
    Y, truth = (animals.signatures[of] > 0 for of in (classes, animals.classes_test))
    grid: list[changed_correlations.Parameters] = (
        [{"C": C, "gamma": gamma} for C, gamma in kernel_pairs(X)] if has_choice else [{}]
    )
    wrong = np.zeros(len(grid))
    for held in held_out_classes(animals, classes, seed) if has_choice else ():
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
        warnings.filterwarnings("ignore", "The number of unique classes")  # many sets are of one row
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


_METHODS = {"power set": (_power_set, True), "5-NN": (_nearest, False), "regression": (_regression, True)}


def table(runs: list[Run]) -> str:
    """Write means over the draws, with deviations, beside the paper's losses."""
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


@command(seeds=flag(5, "draws of training rows"), records=RESULTS / "papers" / "independent_methods.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, paper=_PAPER)
    for name, rule in _CASES if record.measures else ():
        rows: Any = read_animals() if name == _ANIMALS else changed_correlations.read(name)
        of = _of_unseen_classes if name == _ANIMALS else _of_draw
        seeds = range(arguments.seeds)
        for case in record.missing(problem=[name], rule=[rule], seed=seeds, method=_METHODS):
            record.add(case, of(rows, rule, case["seed"], case["method"]))
        print(f"{name}, {rule}: measured", flush=True)
    record.show(table(record.runs))
