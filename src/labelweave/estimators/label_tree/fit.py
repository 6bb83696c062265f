"""The trees that a fit builds, and the optimization problem of their nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from labelweave.estimators.journal import Journal
from labelweave.estimators.label_tree.weighted_tree import WeightedTree
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.costs import warn_of_memory
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.labels.label_names import rows_by_name
from labelweave.labels.label_tree import LabelTree, cluster_labels, single_rows, tree_of_taxonomy
from labelweave.problems.tree_blocks import ForestBlocks, TreeBlocks, margin_data
from labelweave.solvers import SolverResult
from labelweave.solvers.pruned_ascent import PrunedAscent

LabelVectors: TypeAlias = ArrayLike | sp.csr_array

_KEPT_SHARE, _BYTES_A_WEIGHT = 0.2, 12  # of texts; of a weight in its block and its tree
_SHORT_TOL = 1e-3  # from here on two bytes per weight are enough
_SINGLE_TOL, _LARGEST_SINGLE = 1e-4, 1e5  # single precision needs a larger gap, smaller bounds


@dataclass(frozen=True)
class TreeFit:
    """The solver's result: the trees with their weights, and the cost of pruning."""

    result: SolverResult
    trees: tuple[WeightedTree, ...]
    pruning: dict[str, float]


class RowsOfTrees(Protocol):
    """Rows to learn from, in memory or not."""

    @property
    def marks(self) -> dict[str, Any]:
        """The values that identify the rows in a digest."""

    @property
    def n_labels(self) -> int:
        """The number of labels."""

    def problem(
        self, given: Taxonomy | LabelVectors | None, names: list[str], settings: TreeSettings
    ) -> ForestBlocks:
        """Build the trees, see :func:`make_trees`, and state the problem of their nodes."""


@dataclass(frozen=True)
class TreeRows:
    """Rows in memory, all of positive weight.

    entries (n, L): entry weights, which multiply the row weights; sparse where others are 1, or None.
    """

    features: FeatureMatrix
    labels: LabelMatrix
    weights: Array
    entries: Any

    @property
    def marks(self) -> dict[str, Any]:
        return {"X": self.features.data, "y": self.labels.parts(), "weights": (self.weights, self.entries)}

    @property
    def n_labels(self) -> int:
        return self.labels.n_labels

    def problem(
        self, given: Taxonomy | LabelVectors | None, names: list[str], settings: TreeSettings
    ) -> ForestBlocks:
        trees = make_trees(given, self, names, settings)
        problem = tree_problem(trees, self, settings)
        warn_of_size(self.n_labels, len(problem.trees), problem.possible_weights())
        return problem


@dataclass(frozen=True)
class TreeSettings:
    """Settings of a fit, see :class:`LabelTreeClassifier`.

    upper: C for squared hinge losses, else 2 C.
    sees_all: whether labels learn from all rows; squared: whether hinge losses are squared.
    """

    branching: int
    leaf_size: int
    n_trees: int
    upper: float
    sees_all: bool
    squared: bool
    intercept: bool
    prune: str | float
    tol: float
    max_iter: int
    seed: int
    workers: Workers
    journal: Journal
    on_check: Callable[[Any, Any], bool]

    @property
    def solver(self) -> PrunedAscent:
        return PrunedAscent(self.tol, self.max_iter, self.seed, self.prune)

    def solve(self, problem: ForestBlocks) -> TreeFit:
        def made(result: SolverResult, state: Any) -> TreeFit:
            trees = tuple(map(WeightedTree.of, problem.trees, result.answer))
            return TreeFit(result, trees, problem.cost(state.blocks))

        return made(*self.journal.run("nodes", self.solver, problem, None, self.on_check, made))


def make_trees(
    given: Taxonomy | LabelVectors | None, rows: TreeRows, names: list[str], settings: TreeSettings
) -> list[LabelTree]:
    """Return the trees: a given one, or trees built from vectors, by default weighted sums of positive rows.

    Raises ValueError if there is not one vector per label, or the taxonomy is no tree over the labels.
    """
    if isinstance(given, Taxonomy):
        if settings.n_trees > 1:
            raise ValueError(
                f"n_trees={settings.n_trees} needs trees from different starts, but tree is one taxonomy; "
                "use n_trees=1, or tree=None."
            )
        return [tree_of_taxonomy(given, names, settings.leaf_size)]
    if given is None:
        positives, shares = rows.labels.positives.astype(np.float32), rows.weights / rows.weights.max()
        positives.data *= np.repeat(shares, np.diff(positives.indptr))
        vectors = positives.T @ single_rows(rows.features.data)
    else:
        vectors = FeatureMatrix(rows_by_name(given, names, "tree")).data
        if vectors.shape[0] != rows.n_labels:
            raise ValueError(
                f"tree has {vectors.shape[0]} rows but y has {rows.n_labels} labels; pass one per label."
            )
    sizes = settings.leaf_size, settings.branching
    n_trees = settings.n_trees if rows.n_labels > settings.leaf_size else 1  # single nodes are alike
    seeds = np.random.SeedSequence(settings.seed).generate_state(n_trees)
    return [cluster_labels(vectors, *sizes, int(seed), settings.workers) for seed in seeds]


def tree_problem(trees: list[LabelTree], rows: TreeRows, settings: TreeSettings) -> ForestBlocks:
    upper, entries = settings.upper * rows.weights, rows.entries
    largest = upper.max(initial=0.0) * (1.0 if entries is None else max(1.0, entries.max()))
    is_single = settings.solver.block_tol >= max(_SINGLE_TOL, largest / _LARGEST_SINGLE)
    data = margin_data(
        rows.features, rows.labels, upper, intercept=settings.intercept, squared=settings.squared
    )
    made = [
        TreeBlocks(
            tree,
            data,
            settings.workers,
            dtype=np.float32 if is_single else np.float64,
            is_short=settings.tol >= _SHORT_TOL,
            sees_all=settings.sees_all,
            entries=entries,
        )
        for tree in trees
    ]
    return ForestBlocks(made)


def warn_of_size(n_labels: int, n_trees: int, possible_weights: float) -> None:
    n_bytes = _KEPT_SHARE * _BYTES_A_WEIGHT * possible_weights
    fewer = "n_trees=1 takes less" if n_trees > 1 else "a larger prune= keeps fewer"
    warn_of_memory(f"A model of {n_labels} labels by {_counted(n_trees)}", n_bytes, f"{fewer}.")


def _counted(n_trees: int) -> str:
    return "one tree" if n_trees == 1 else f"{n_trees} trees"
