"""Scores of one tree over labels, or the mean probabilities of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.estimators.label_tree.weighted_tree import SHARPNESS, FoundLabels, WeightedTree
from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.labels.label_tree import LabelTree
from labelweave.model_files import storable
from labelweave.model_files.schema import FLAG, Items, Made, Numbers, count

_LEAST = 1e-300  # smallest probability, to keep logarithms finite
_ROUNDING = 1e-9  # margin by which a joint score must exceed the bound of all others
_NO_BUDGET = int(np.iinfo(np.int64).max)
_FEWEST, _TIMES = 64, 4  # number of labels searched first, and its factor per further search


@storable(
    "LabelTreeScorer",
    {
        "intercept_": Numbers("L"),
        "trees": Items(Made(WeightedTree, {"L": "n_labels"}), kind=tuple, least=1),
        "n_features": count(least=1),
        "by_margin": FLAG,
    },
)
@dataclass(frozen=True)
class LabelTreeScorer(Scorer):
    """Weighted trees over the same labels.

    trees: in each the score of a label is that of the path to it.
    by_margin: whether the score of a label is its own margin, and the tree only finds it.
    """

    trees: tuple[WeightedTree, ...]
    n_features: int
    by_margin: bool

    @classmethod
    def of(cls, trees: tuple[WeightedTree, ...], n_features: int, *, by_margin: bool) -> LabelTreeScorer:
        return cls(trees[0].label_intercepts, trees, n_features, by_margin)

    @property
    def label_trees_(self) -> tuple[LabelTree, ...]:
        return tuple(one.tree for one in self.trees)

    @property
    def coef_(self) -> Any:
        """The weights of the labels, CSR of shape (L, d), where scores are linear in the features."""
        if not self.is_linear:
            raise AttributeError(
                "Scores of paths have no weights per label; fit with negatives='all' for linear scores."
            )
        return self.trees[0].label_weights(self.n_features)

    @property
    def is_linear(self) -> bool:
        return len(self.trees) == 1 and (self.by_margin or self.trees[0].tree.n_nodes == 1)

    def takes(self, n_features: int) -> bool:
        return n_features == self.n_features and all(tree.takes(n_features) for tree in self.trees)

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        found = self.trees[0].scores(features, by_margin=self.by_margin)
        if len(self.trees) == 1:
            return found
        on, off = np.zeros_like(found), np.zeros_like(found)
        for number, tree in enumerate(self.trees):
            one = tree.scores(features, by_margin=self.by_margin) if number else found
            _add(on, off, one)
        return _log_odds(on, off)

    def top(self, features: FeatureMatrix, k: int, beam: int) -> tuple[Array, Array]:
        """Return the k best labels of each row below the best nodes, and their scores, both (n, k)."""
        if len(self.trees) == 1:
            found = self.trees[0].by_beam(features, k, beam, by_margin=self.by_margin)[:2]
        else:
            m = self._first(k)
            parts = [tree.by_beam(features, m, beam, by_margin=False)[:2] for tree in self.trees]
            found = self._best_of(features, parts, k)
        return _filled(*found, self.n_labels)

    def opened(self, number: int, features: FeatureMatrix, beam: int, most: int) -> Array:
        """Return the nodes of a tree that a beam visits, (n, most), -1 for none."""
        return self.trees[number].by_beam(features, 1, beam, by_margin=self.by_margin, n_opened=most)[2]

    def proven_top(self, features: FeatureMatrix, k: int, budget: int) -> FoundLabels:
        """Return the k best of all labels, as far as ``budget`` nodes per row prove them."""
        if len(self.trees) == 1:
            found = self.trees[0].by_bound(features, k, budget, by_margin=self.by_margin)
        else:
            found = self._joint_proven(features, k, budget)
        labels, scores = _filled(found.labels, found.scores, self.n_labels)
        return found._replace(labels=labels, scores=scores)

    def _joint_proven(self, features: FeatureMatrix, k: int, budget: int) -> FoundLabels:
        """Return the k best of several trees, by widening the search in each.

        This is the threshold algorithm of Fagin, Lotem and Naor (2003, section 4).  The trees share a
        budget; with a budget there is no second search.
        """
        m, share = self._first(k), max(1, budget // len(self.trees))
        found = self._joint_best(features, k, m, share)
        left = np.flatnonzero(~found.proven)
        while len(left) and budget == _NO_BUDGET:
            m = min(self.n_labels, _TIMES * m)
            more = self._joint_best(features.rows(left), k, m, share)
            for whole, part in zip(found[:3], more[:3], strict=True):
                whole[left] = part
            found.opened[left] += more.opened
            left = left[~more.proven]
        return found

    def _first(self, k: int) -> int:
        """Return how many labels to search first in each of several trees, for the k best of all."""
        return min(self.n_labels, max(k, min(2 * k, _FEWEST)))

    def _joint_best(self, features: FeatureMatrix, k: int, m: int, budget: int) -> FoundLabels:
        """Return the k best, by the mean of all trees, of the m best per tree; -1 where there are fewer.

        Any other label is at most as probable as the m-th best in each tree, which may prove the k best.
        """
        parts = [tree.by_bound(features, m, budget, by_margin=False) for tree in self.trees]
        best, scores = self._best_of(features, [part[:2] for part in parts], k)
        on, off = np.zeros(len(features)), np.zeros(len(features))
        for part in parts:
            _add(on, off, part.scores[:, -1])
        is_clear = (scores[:, -1] > _log_odds(on, off) + _ROUNDING) | (m == self.n_labels)
        is_proven = is_clear & np.all([part.proven for part in parts], axis=0)
        return FoundLabels(best, scores, is_proven, np.sum([part.opened for part in parts], axis=0))

    def _best_of(
        self, features: FeatureMatrix, parts: list[tuple[Array, Array]], k: int
    ) -> tuple[Array, Array]:
        """Choose the k best of labels (n, m) per tree, -1 for none, by the mean of all trees; with scores."""
        labels = np.sort(np.concatenate([part[0] for part in parts], axis=1), axis=1)
        is_new = labels >= 0
        is_new[:, 1:] &= labels[:, 1:] != labels[:, :-1]
        scores = np.full(labels.shape, -np.inf)
        scores[is_new] = self._of_pairs(features, np.nonzero(is_new)[0], labels[is_new], parts)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best, found = (np.take_along_axis(table, order, axis=1) for table in (labels, scores))
        best[found == -np.inf] = -1
        return best, found

    def _of_pairs(self, features: FeatureMatrix, rows: Array, labels: Array, known: list[Any]) -> Array:
        """Score pairs of a row and a label, sorted by row, by the mean of all trees.

        known: per tree labels (n, m) and their scores, or None.
        """
        on, off = np.zeros(len(rows)), np.zeros(len(rows))
        for tree, part in zip(self.trees, known, strict=True):
            _add(on, off, tree.of_pairs(features, rows, labels, part))
        return _log_odds(on, off)

    def positive(self, features: FeatureMatrix) -> tuple[Array, Array]:
        """Return rows and labels of positive score; a mean exceeds probability 1/2 only where a tree does."""
        parts = [self._positive_of(tree, features) for tree in self.trees]
        if len(parts) == 1:
            return parts[0]
        keys = np.unique(np.concatenate([rows * self.n_labels + labels for rows, labels in parts]))
        rows, labels = np.divmod(keys, self.n_labels)
        is_above = self._of_pairs(features, rows, labels, [None] * len(parts)) > 0
        return rows[is_above], labels[is_above]

    def _positive_of(self, tree: WeightedTree, features: FeatureMatrix) -> tuple[Array, Array]:
        rows, labels = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        left, k = np.arange(len(features)), min(self.n_labels, _FEWEST)
        while len(left):
            found = tree.by_bound(features.rows(left), k, _NO_BUDGET, by_margin=self.by_margin, above=0.0)
            is_whole = (found.labels[:, -1] < 0) | (k == self.n_labels)
            places, columns = np.nonzero((found.labels >= 0) & is_whole[:, None])
            rows.append(left[places])
            labels.append(found.labels[places, columns])
            left, k = left[~is_whole], min(self.n_labels, _TIMES * k)
        return np.concatenate(rows), np.concatenate(labels)


def _add(on: Array, off: Array, scores: Array) -> None:
    """Add the probabilities of scores, and their complements; see ``joined`` in the loops."""
    with np.errstate(over="ignore"):
        on += 1 / (1 + np.exp(-SHARPNESS * scores))
        off += 1 / (1 + np.exp(SHARPNESS * scores))


def _log_odds(on: Array, off: Array) -> Array:
    return np.asarray((np.log(on + _LEAST) - np.log(off + _LEAST)) / SHARPNESS)


def _filled(labels: Array, scores: Array, n_labels: int) -> tuple[Array, Array]:
    """Fill in other labels where fewer were found than requested, scored below all found ones."""
    for row in np.flatnonzero(labels[:, -1] < 0):
        missing = labels[row] < 0
        others = np.setdiff1d(np.arange(n_labels), labels[row], assume_unique=False)
        labels[row, missing] = others[: missing.sum()]
        lowest = scores[row, ~missing].min(initial=0.0)
        scores[row, missing] = lowest - 1.0
    return labels, scores
