"""Evidence from the other labels of a row: ridge regressions in which no label predicts itself.

With r the residuals of recorded labels from their expectation by their own scores, and Q the known labels
of a row, the matrix B minimizes ``|r - (Q - mean) B|^2 + penalty |B|^2`` with zeros on its diagonal.  With A
the centered Q, C = (A^T A + penalty)^-1 and B0 = C A^T r it is

    B = B0 - C diag(diag(B0) / diag(C))

(the zero diagonal of Steck, "Embarrassingly shallow autoencoders for sparse data", 2019).  Rows use the
matrix of the other folds; the penalty has the least squared error there.

If strengths S_kl of relations between labels are given, from 0 to 1, a second regression of a label uses
only the labels most related to it, entry B_kl with the penalty ``penalty / S_kl``; and the regression on all
labels fits its residuals.  Either is omitted if it does not reduce the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.arrays import ratios
from labelweave.labels import CliqueGraph, LabelCovariance, LabelMatrix, Taxonomy
from labelweave.labels.covariance.base import read_covariance

_PENALTIES = 3.0 * 10.0 ** (np.arange(9) / 2.0)
_MOST_RELATED = 50


class RelatedLabels(NamedTuple):
    """Contributions of other labels to the expectation of a label, by the matrix of other folds.

    known (n, L): the probabilities of labels that predict the others.
    Shapes: evidence (n, L), means (folds, L), matrices (folds, L, L), folds (n,).
    """

    evidence: RowsByLabels
    known: RowsByLabels
    means: Array
    matrices: Array
    folds: PerRow

    def effects(self, row: int, label: int) -> Array:
        """Return the contribution of each label of a row to the expectation of one, (L,)."""
        fold = self.folds[row]
        effects: Array = (self.known[row] - self.means[fold]) * self.matrices[fold][:, label]
        return effects


def label_strengths(structure: Any, labels: LabelMatrix) -> Array:
    """Return the strengths of relations between labels, from 0 to 1: shape (L, L), with a zero diagonal.

    structure: a covariance, by its absolute correlations; a taxonomy or matrix, converted to a covariance; or
        a graph, by its cliques.
    """
    n_labels = labels.n_labels
    is_structure = isinstance(structure, CliqueGraph | LabelCovariance | Taxonomy)
    if not is_structure and (not hasattr(structure, "__len__") or isinstance(structure, str | dict)):
        raise ValueError(
            f"related is {shown(structure)}; use True, False, or a covariance, taxonomy or graph of labels."
        )
    names = labels.words
    if isinstance(structure, CliqueGraph):
        found = _in_cliques(structure, names)
    else:
        covariance = read_covariance(structure, n_labels, names)
        table, spread = np.abs(covariance.to_dense()), np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        found = ratios(table, np.outer(spread, spread))
    np.fill_diagonal(found, 0.0)
    return np.minimum(found, 1.0)


def _in_cliques(graph: CliqueGraph, names: list[str]) -> Array:
    if graph.n_labels != len(names):
        raise ValueError(f"The graph has {graph.n_labels} labels, but y has {len(names)}; they must agree.")
    theirs = [str(name) for name in graph.shown_labels()]
    if sorted(theirs) != sorted(names):
        theirs = names  # by position
    found = np.zeros((len(names), len(names)))
    for clique in graph.cliques:
        places = [names.index(theirs[label]) for label in clique]
        found[np.ix_(places, places)] = 1.0
    return found


def relate_labels(
    residuals: RowsByLabels, tables: list[RowsByLabels], folds: PerRow, strengths: Array | None = None
) -> RelatedLabels | None:
    """Select the table that predicts labels best; return None if none predicts anything.

    residuals (n, L): of recorded labels from their expectation, NaN where unobserved.
    tables: the candidate tables of known labels, (n, L) each.
    folds (n,): from 0 on.
    strengths (L, L): of relations between labels; None if unknown.
    """
    seen = ~np.isnan(residuals)
    residuals = np.where(seen, residuals, 0.0)
    best, least = None, float(np.square(residuals).sum())
    for table in tables:
        parts = [_Part(table, residuals, folds, fold, strengths) for fold in range(int(folds.max()) + 1)]
        if strengths is not None:
            _explain(parts, [part.among() for part in parts], seen)
        error = _explain(parts, [part.of_all() for part in parts], seen)
        if error < least:
            best, least = (table, parts), error
    if best is None:
        return None
    table, parts = best
    evidence = np.empty_like(residuals)
    for part in parts:
        evidence[part.held] = part.rows @ part.matrix
    matrices = np.stack([part.matrix for part in parts])
    return RelatedLabels(evidence, table, np.stack([part.mean for part in parts]), matrices, folds)


def _explain(parts: list[_Part], ways: list[Callable[[float], Array]], seen: Array) -> float:
    """Apply the matrices of the penalty with the least error on other folds, or none; return this error."""
    least, best = sum(part.error(np.zeros_like(part.gram), seen) for part in parts), None
    for penalty in _PENALTIES:
        matrices = [at(penalty) for at in ways]
        error = sum(part.error(matrix, seen) for part, matrix in zip(parts, matrices, strict=True))
        if error < least:
            best, least = matrices, error
    for part, matrix in zip(parts, best or [], strict=bool(best)):
        part.take(matrix)
    return least


class _Part:
    """The regression on the rows outside a fold.

    matrix (L, L): the sum so far; ``left`` and ``residuals`` refer to its residuals.
    """

    def __init__(
        self, table: RowsByLabels, residuals: RowsByLabels, folds: PerRow, fold: int, strengths: Array | None
    ) -> None:
        train, self.held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        self.mean = table[train].mean(axis=0)
        rows = table[train] - self.mean
        self.gram = rows.T @ rows
        self.moments = rows.T @ residuals[train]
        self.rows, self.residuals = table[self.held] - self.mean, residuals[self.held]
        self.matrix: Array = np.zeros_like(self.gram)
        self.strengths = strengths

    def take(self, matrix: Array) -> None:
        self.matrix = self.matrix + matrix
        self.moments = self.moments - self.gram @ matrix
        self.residuals = self.residuals - self.rows @ matrix

    def of_all(self) -> Callable[[float], Array]:
        """Return a function from a penalty to the matrix of all labels."""
        values, vectors = sl.eigh(self.gram, check_finite=False)

        def at(penalty: float) -> Array:
            inverse = (vectors / (np.maximum(values, 0.0) + penalty)) @ vectors.T
            found = inverse @ self.moments
            found = found - inverse * (found.diagonal() / inverse.diagonal())
            np.fill_diagonal(found, 0.0)  # exact up to rounding
            return np.asarray(found)

        return at

    def among(self) -> Callable[[float], Array]:
        """Return a function from a penalty to the matrix of related labels."""
        assert self.strengths is not None, "something is known of labels"
        lines = [self._line(label, strengths) for label, strengths in enumerate(self.strengths.T)]

        def at(penalty: float) -> Array:
            found: Array = np.zeros_like(self.gram)
            for label, (near, vectors, values, pulled) in enumerate(lines):
                found[near, label] = vectors @ (pulled / (values + penalty))
            return found

        return at

    def _line(self, label: int, strengths: Array) -> tuple[Array, Array, Array, Array]:
        """Return the labels most related to one, and its regression on them in their eigenvectors."""
        near = np.flatnonzero(strengths)
        near = near[np.argsort(-strengths[near], kind="stable")[:_MOST_RELATED]]
        scale = np.sqrt(strengths[near])
        values, vectors = np.linalg.eigh(self.gram[np.ix_(near, near)] * np.outer(scale, scale))
        pulled = vectors.T @ (scale * self.moments[near, label])
        return near, scale[:, None] * vectors, np.maximum(values, 0.0), pulled

    def error(self, matrix: Array, seen: Array) -> float:
        return float(np.square(np.where(seen[self.held], self.residuals - self.rows @ matrix, 0.0)).sum())
