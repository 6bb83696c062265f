"""Flat against hierarchical classification with learned kernels (Seeger 2008, section 6.1, Tables 1 and 2).

The patents of the paper are not available; instead ImCLEF07A is used, 63 kinds of X-ray images in a tree of
three levels (RBF kernel, features standardized), and Debian packages with one tag of the facets that describe
their purpose, facet -> tag (linear kernel on rows of unit length).  Methods, as in the paper:

- F1: flat, all classes with one scale; F2: flat, a scale for the classes of each subtree of the root;
- H1: a function for every node, a scale for each level; H2: a scale for each subtree of the root;
- F2c: flat, a scale for each class;
- H1w: as H1, with a width of the RBF kernel for each level too.

Hyperparameters are learned again for every method and split, on 2,000 of the training rows, with the same
folds for all.  "taxonomic loss" and "parent accuracy"
are of the decisions optimized for them, by expected loss; [0-1] marks those of the most probable class.  The
split "given" is that of the set; the others are drawn from all rows, and test on the remaining rows (5,000 at
most).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, mean_and_error, several, timed
from benchmarks.papers.likelihood_runs import made
from benchmarks.problems import DEFAULT_DATA
from labelweave import KernelLogisticClassifier, Taxonomy
from labelweave.datasets import load_debtags, read_hierarchical_arff
from labelweave.metrics import class_summary
from labelweave.postprocessing import best_parent, least_expected_loss

_METHODS: dict[str, dict[str, Any]] = {
    "F1": {"tie": "shared"},
    "F2": {"tie": ("subtree", "shared"), "tree": True, "label_covariance": "identity"},
    "F2c": {"tie": "scale"},
    "H1": {"tie": ("level", "shared"), "tree": True},
    "H1w": {"tie": "level", "tree": True},
    "H2": {"tie": ("subtree", "shared"), "tree": True},
}
_COLUMNS = {
    "accuracy": "acc %",
    "mean reciprocal rank": "prec %",
    "taxonomic loss": "taxo",
    "taxonomic loss [0-1]": "[0-1]",
    "parent accuracy": "pacc %",
    "parent accuracy [0-1]": "[0-1]",
    "log loss": "log loss",
    "seconds": "seconds",
    "evaluations": "evals",
    "kernel products": "products",
}
_PERCENT = {"accuracy", "mean reciprocal rank", "parent accuracy", "parent accuracy [0-1]"}


# the purpose of a package; the other facets describe how it is made, or used
_PURPOSES = (
    "admin", "biology", "devel", "field", "game", "hardware", "mail", "network", "office", "science",
    "security", "sound", "use", "web", "works-with",
)  # fmt: skip
_FEWEST = 5


@dataclass(frozen=True)
class ClassProblem:
    """Rows to train on and to test on.

    classes, classes_test: the leaf of each row.
    kernel: the kernel of all methods.
    """

    X: Any
    classes: Any
    X_test: Any
    classes_test: Any
    taxonomy: Taxonomy
    kernel: str

    def split(self, seed: int | None, rows: int | None, most_tests: int = 5000) -> ClassProblem:
        count = len(self.classes) if rows is None else rows
        if seed is None:
            train = np.arange(len(self.classes))
            test = len(train) + np.arange(len(self.classes_test))
            if count < len(train):
                train = np.sort(np.random.default_rng(0).permutation(train)[:count])
        else:
            order = np.random.default_rng(seed).permutation(len(self.classes) + len(self.classes_test))
            train, test = np.sort(order[:count]), np.sort(order[count : count + most_tests])
        stack = sp.vstack if sp.issparse(self.X) else np.concatenate
        X = stack([self.X, self.X_test])
        X = sp.csr_array(X) if sp.issparse(X) else X
        classes = np.concatenate([self.classes, self.classes_test])
        test = test[np.isin(classes[test], np.unique(classes[train]))]
        drawn = replace(self, X=X[train], classes=classes[train], X_test=X[test], classes_test=classes[test])
        if sp.issparse(X):
            return drawn
        scaler = StandardScaler().fit(X[train])
        return replace(drawn, X=scaler.transform(X[train]), X_test=scaler.transform(X[test]))


def _read_images() -> ClassProblem:
    train, test = (
        read_hierarchical_arff(DEFAULT_DATA / "imclef07a" / f"ImCLEF07A_{part}.arff")
        for part in ("Train", "Test")
    )
    tree = train.taxonomy
    assert tree is not None, "the header has class paths"
    return ClassProblem(train.X, tree.deepest(train.Y), test.X, tree.deepest(test.Y), tree, "rbf")


def _read_packages() -> ClassProblem:
    """Keep packages with exactly one tag of the facets that describe their purpose."""
    packages = load_debtags()
    facets, names = packages.parents[:, 0], packages.parents[:, 1]
    columns = np.flatnonzero(np.isin(facets, _PURPOSES))
    Y, Y_test = packages.Y[:, columns], packages.Y_test[:, columns]
    single = np.asarray(Y.sum(axis=1)).ravel() == 1
    frequent = np.flatnonzero(np.asarray(Y[single].sum(axis=0)).ravel() >= _FEWEST)
    parts = []
    for features, labels in ((packages.X, Y), (packages.X_test, Y_test)):
        rows = np.flatnonzero(np.asarray(labels.sum(axis=1)).ravel() == 1)
        rows = rows[np.isin(labels[rows].indices, frequent)]
        parts += [features[rows], names[columns][labels[rows].indices].astype(object)]
    pairs = [(str(facets[columns[k]]), str(names[columns[k]])) for k in frequent]
    return ClassProblem(*parts, Taxonomy(pairs), "linear")


PROBLEMS: dict[str, Callable[[], ClassProblem]] = {"imclef07a": _read_images, "debtags": _read_packages}


def measure(problem: ClassProblem, method: str) -> dict[str, Any]:
    choice = _METHODS[method]
    model = made(
        0,
        kernel=problem.kernel,
        taxonomy=problem.taxonomy if choice.get("tree") else None,
        label_covariance=choice.get("label_covariance"),
        learning_rows=2000,
        tie=choice["tie"],
    )
    _, seconds = timed(model.fit, problem.X, problem.classes, clock=time.perf_counter)
    return {
        **class_figures(problem, model),
        "classes": len(model.classes_),
        "test rows": len(problem.classes_test),
        "cross-validated log loss": float(model.cross_validation_loss_),
        "learning status": model.learning_status_,
        "seconds": seconds,
        "evaluations": len(model.learning_trace_),
        "status": model.status_,
        "newton steps": int(model.n_iter_),
        "kernel products": float(model.kernel_products_),
        "hyperparameters": {name: float(value) for name, value in model.hyperparameters_.items()},
    }


def class_figures(problem: ClassProblem, model: KernelLogisticClassifier) -> dict[str, float]:
    """Evaluate the classes predicted for the test rows, each score with the decision optimized for it."""
    tree, classes = problem.taxonomy, model.classes_
    names = [str(name) for name in classes]
    probabilities = model.predict_proba(problem.X_test)
    decisions = {
        "most probable": probabilities.argmax(axis=1),
        "least loss": least_expected_loss(probabilities, tree.distances(names)),
        "best parent": best_parent(probabilities, tree.parents_of(names)),
    }
    given = problem.classes_test, probabilities, classes
    scores = {
        name: class_summary(*given, taxonomy=tree, y_pred=classes[chosen])
        for name, chosen in decisions.items()
    }
    plain = scores["most probable"]
    return {
        "accuracy": plain["accuracy"],
        "mean reciprocal rank": plain["mean_reciprocal_rank"],
        "taxonomic loss": scores["least loss"]["taxonomic_loss"],
        "taxonomic loss [0-1]": plain["taxonomic_loss"],
        "parent accuracy": scores["best parent"]["parent_accuracy"],
        "parent accuracy [0-1]": plain["parent_accuracy"],
        "log loss": plain["log_loss"],
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Show every run, and means over random splits with their differences from F1."""
    lines = [f"{'rows':>6s} {'split':>6s} {'':5s}" + "".join(f"{title:>10s}" for title in _COLUMNS.values())]
    order = list(_METHODS).index
    lines += map(_line, sorted(runs, key=lambda run: (run["rows"], run["split"], order(run["method"]))))
    for rows in sorted({run["rows"] for run in runs}):
        drawn = [run for run in runs if run["rows"] == rows and run["split"] != "given"]
        for method in _METHODS:
            own = {run["split"]: run for run in drawn if run["method"] == method}
            if len(own) > 1:
                lines.append(_line(_mean(list(own.values()), rows, method)))
        flat = {run["split"]: run for run in drawn if run["method"] == "F1"}
        for method in _METHODS:
            own = {run["split"]: run for run in drawn if run["method"] == method and run["split"] in flat}
            if method != "F1" and len(own) > 1:
                lines.append(_difference(own, flat, rows, method))
    return "\n".join(lines)


def _mean(runs: list[dict[str, Any]], rows: int, method: str) -> dict[str, Any]:
    means = {name: float(np.mean([run[name] for run in runs])) for name in _COLUMNS}
    return {"rows": rows, "split": "mean", "method": method, **means}


def _line(run: dict[str, Any]) -> str:
    cells = [_shown(name, run[name]) for name in _COLUMNS]
    return f"{run['rows']:6d} {run['split']:>6s} {run['method']:5s}" + "".join(cells)


def _difference(own: dict[str, Any], flat: dict[str, Any], rows: int, method: str) -> str:
    """Show the mean and the standard error of the differences from F1 on the same splits."""
    parts = []
    for name in ("accuracy", "taxonomic loss", "parent accuracy", "log loss"):
        factor = 100.0 if name in _PERCENT else 1.0
        gaps = factor * np.array([run[name] - flat[split][name] for split, run in own.items()])
        parts.append(f"{_COLUMNS[name]} {mean_and_error(gaps, 3, '+')}")
    return f"{rows:6d} {method} - F1: " + ", ".join(parts)


def _shown(name: str, value: float) -> str:
    if name in _PERCENT:
        return f"{100 * value:10.2f}"
    return f"{value:10.4f}" if name.startswith(("taxonomic", "log")) else f"{value:10.1f}"


@command(
    problem=flag("imclef07a", choices=sorted(PROBLEMS)),
    rows=flag(help="rows to train on; default: as the given split", type=int),
    splits=flag(["given"], "given, or seeds of random splits"),
    methods=several(_METHODS),
    records=None,
)
def main(arguments: Any) -> None:
    arguments.out = arguments.out or RESULTS / "papers" / f"hierarchies_{arguments.problem}.json"
    record = RecordedRuns(arguments, problem=arguments.problem)
    problem = PROBLEMS[arguments.problem]() if record.measures else None
    for split in arguments.splits if problem else ():
        drawn = problem.split(None if split == "given" else int(split), arguments.rows)
        for case in record.missing(rows=[len(drawn.classes)], split=[split], method=arguments.methods):
            run = record.add(case, measure(drawn, case["method"]))
            print(_line(run), run["hyperparameters"], flush=True)
    record.show(table(record.runs))
