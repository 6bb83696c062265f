"""Problems of one class per row by name, for the benchmarks of kernel logistic classification.

``satimage`` (4,435 training rows, 6 classes), ``imclef-<n>`` (n training rows of ImCLEF07A, drawn at
random, 63 leaves of a tree), ``patents-D`` and ``patents-B`` (synthetic text of the paper's sizes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.patent_texts import SECTIONS, make_patent_texts
from benchmarks.problems import DEFAULT_DATA

_SATIMAGE_ROWS = 4435  # the training set comes first


@dataclass(frozen=True)
class ClassProblem:
    """Rows, one class each.

    codes: the class of each row.
    classes: the classes' names.
    tree: the tree whose leaves they are; or None.
    """

    name: str
    X: Any
    codes: Any
    classes: list[str]
    tree: Any

    @property
    def labels(self) -> Any:
        return np.asarray(self.classes, dtype=object)[self.codes]

    def first(self, n_rows: int) -> ClassProblem:
        return replace(self, X=self.X[:n_rows], codes=self.codes[:n_rows])

    def paper_gamma(self) -> float:
        """Compute 1 / (2 sum of the features' variances), where the paper starts from."""
        return float(0.5 / self.X.var(axis=0).sum())


def load_class_problem(name: str, data: Path = DEFAULT_DATA) -> ClassProblem:
    kind, _, detail = name.partition("-")
    if name == "satimage":
        return _load_satimage(data)
    if kind == "imclef" and detail.isdigit():
        return _load_imclef(int(detail), data)
    if kind == "patents" and detail in SECTIONS:
        return _make_patents(detail)
    raise ValueError(
        f"The problem {name!r} is not known; use satimage, imclef-<rows>, patents-D or patents-B."
    )


def _load_satimage(data: Path) -> ClassProblem:
    with np.load(data / "satimage" / "satimage.npz") as file:
        X, y = file["X"][:_SATIMAGE_ROWS].astype(np.float64), file["y"][:_SATIMAGE_ROWS]
    order = np.random.default_rng(0).permutation(len(X))  # so that the first rows are a fair sample
    classes, codes = np.unique(y[order], return_inverse=True)
    return ClassProblem("satimage", X[order], codes, classes.tolist(), None)


def _load_imclef(n_rows: int, data: Path) -> ClassProblem:
    from labelweave.datasets import read_hierarchical_arff
    from labelweave.labels import Taxonomy

    read = read_hierarchical_arff(data / "imclef07a" / "ImCLEF07A_Train.arff")
    tree = Taxonomy(read.parents)
    if n_rows > len(read.X):
        raise ValueError(f"imclef-{n_rows} asks for more rows than the {len(read.X)} there are.")
    rows = np.random.default_rng(0).permutation(len(read.X))[:n_rows]
    names = list(read.label_names)
    leaves = [names.index(leaf) for leaf in tree.leaves]
    positives = read.Y.positives.toarray()[rows][:, leaves]
    X = np.asarray(read.X, dtype=np.float64)[rows]
    return ClassProblem(f"imclef-{n_rows}", X, positives.argmax(axis=1), list(tree.leaves), tree)


def _make_patents(section: str) -> ClassProblem:
    from labelweave.labels import Taxonomy

    made = make_patent_texts(SECTIONS[section])
    return ClassProblem(f"patents-{section}", made.X, made.leaves, made.names, Taxonomy(made.pairs))
