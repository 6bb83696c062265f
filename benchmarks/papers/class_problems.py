"""Sets with one class per row and a tree of the classes: ImCLEF07A, and Debian packages by purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from benchmarks.problems import DEFAULT_DATA
from labelweave import Taxonomy
from labelweave.datasets import load_debtags, read_hierarchical_arff

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
        return drawn if sp.issparse(X) else drawn._standardized()

    def _standardized(self) -> ClassProblem:
        scaler = StandardScaler().fit(self.X)
        return replace(self, X=scaler.transform(self.X), X_test=scaler.transform(self.X_test))


def read_problem(name: str) -> ClassProblem:
    return PROBLEMS[name]()


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
