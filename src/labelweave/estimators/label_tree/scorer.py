"""Scores by one tree over labels, or the mean probabilities of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.array_types import Array, RowsByLabels
from labelweave.estimators.label_tree.weighted_tree import SHARPNESS, FoundLabels, WeightedTree
from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix
from labelweave.labels.label_tree import LabelTree
from labelweave.model_files import storable
from labelweave.model_files.schema import FLAG, Items, Made, Numbers, count

_LEAST = 1e-300  # a probability, so that logarithms are finite
_ROUNDING = 1e-9  # of joint scores, by which one must be above the bound of all others
_NO_BUDGET = int(np.iinfo(np.int64).max)
_FEWEST, _TIMES = 64, 4  # labels of each of several trees that are kept for k of all: so many, or times k


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

    trees: of each the score of a label is that of the path to it.
    by_margin: whether the score of a label is its own margin, and the tree above it only finds it.
    """

    trees: tuple[WeightedTree, ...]
    n_features: int
    by_margin: bool

    @classmethod
    def of(cls, trees: tuple[WeightedTree, ...], n_features: int, *, by_margin: bool) -> LabelTreeScorer:
        """Make one, with the intercepts of the first tree's labels."""
        return cls(trees[0].label_intercepts, trees, n_features, by_margin)

    @property
    def label_trees_(self) -> tuple[LabelTree, ...]:
        """The trees without their weights."""
        return tuple(one.tree for one in self.trees)

    @property
    def coef_(self) -> Any:
        """The weights of the labels, CSR of shape (L, d), where scores are linear in them."""
        if not self.is_linear:
            raise AttributeError(
                "Scores are those of paths, not weights times features; negatives='all' makes labels linear."
            )
        return self.trees[0].label_weights(self.n_features)

    @property
    def is_linear(self) -> bool:
        """Whether the scores of labels are their own margins."""
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
        """Find the k best labels of each row below the best nodes, and their scores, two of shape (n, k)."""
        if len(self.trees) == 1:
            found = self.trees[0].by_beam(features, k, beam, by_margin=self.by_margin)[:2]
        else:
            found = self._joint_top(features, k, beam)
        return _filled(*found, self.n_labels)

    def _joint_top(self, features: FeatureMatrix, k: int, beam: int) -> tuple[Array, Array]:
        """Add up the probabilities of the best labels of each tree; a label not among them has none there."""
        each = min(self.n_labels, max(_FEWEST, _TIMES * k))
        parts = [tree.by_beam(features, each, beam, by_margin=False)[:2] for tree in self.trees]
        labels, scores = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        order = np.argsort(labels, axis=1, kind="stable")
        labels, scores = (np.take_along_axis(part, order, axis=1) for part in (labels, scores))
        on, off = np.zeros_like(scores), np.zeros_like(scores)
        _add(on, off, scores)
        is_last = np.ones(labels.shape, bool)
        is_last[:, :-1] = labels[:, 1:] != labels[:, :-1]
        n_trees, counts = len(self.trees), np.ones(labels.shape)
        for column in range(1, labels.shape[1]):
            same = labels[:, column] == labels[:, column - 1]
            for sums in (on, off, counts):
                sums[:, column] += np.where(same, sums[:, column - 1], 0)
        joint = _log_odds(on, off + n_trees - counts)
        joint[~is_last | (labels < 0)] = -np.inf
        best = np.lexsort((labels, -joint), axis=1)[:, :k]
        found = np.take_along_axis(joint, best, axis=1)
        chosen = np.take_along_axis(labels, best, axis=1)
        return np.where(np.isfinite(found), chosen, -1), found

    def opened(self, number: int, features: FeatureMatrix, beam: int, most: int) -> Array:
        """Give the nodes of a tree that a beam looks into, (n, most), -1 for none."""
        return self.trees[number].by_beam(features, 1, beam, by_margin=self.by_margin, n_opened=most)[2]

    def proven_top(self, features: FeatureMatrix, k: int, budget: int) -> FoundLabels:
        """Find the k best of all labels, as far as ``budget`` nodes a row prove them."""
        if len(self.trees) == 1:
            found = self.trees[0].by_bound(features, k, budget, by_margin=self.by_margin)
        else:
            found = self._joint_proven(features, k, budget)
        labels, scores = _filled(found.labels, found.scores, self.n_labels)
        return found._replace(labels=labels, scores=scores)

    def _joint_proven(self, features: FeatureMatrix, k: int, budget: int) -> FoundLabels:
        """Find the k best of several trees: score all that are among the m best of some tree.

        Any other label has at most the probability of the m-th best in each; where the k-th is not above
        the mean of these, m grows (the threshold algorithm of Fagin, Lotem and Naor 2003, section 4).  A
        budget is shared by the trees, and then there is no second m.
        """
        n_rows, n_trees, n_labels = len(features), len(self.trees), self.n_labels
        found = FoundLabels(
            np.full((n_rows, k), -1), np.full((n_rows, k), -np.inf), np.zeros(n_rows, bool),
            np.zeros(n_rows, np.int64),
        )  # fmt: skip
        left, m = np.arange(n_rows), min(n_labels, max(_FEWEST, _TIMES * k))
        while len(left):
            some = features.rows(left)
            parts = [
                tree.by_bound(some, m, max(1, budget // n_trees), by_margin=False) for tree in self.trees
            ]
            labels = np.concatenate([part.labels for part in parts], axis=1)
            pairs = (n_labels * np.arange(len(left))[:, None] + labels)[labels >= 0]
            rows, columns = np.divmod(np.unique(pairs), n_labels)
            best = _best_pairs(rows, columns, self._of_pairs(some, rows, columns), len(left), k)
            on, off = np.zeros(len(left)), np.zeros(len(left))
            for part in parts:
                _add(on, off, part.scores[:, -1])
            is_clear = best[1][:, -1] > _log_odds(on, off) + _ROUNDING
            is_proven = np.all([part.proven for part in parts], axis=0) & (is_clear | (m == n_labels))
            found.labels[left], found.scores[left], found.proven[left] = *best, is_proven
            found.opened[left] += np.sum([part.opened for part in parts], axis=0)
            if budget < _NO_BUDGET:
                break
            left, m = left[~is_proven], min(n_labels, _TIMES * m)
        return found

    def _of_pairs(self, features: FeatureMatrix, rows: Array, labels: Array) -> Array:
        """Score pairs of a row and a label, the rows rising, by the mean of all trees."""
        on, off = np.zeros(len(rows)), np.zeros(len(rows))
        for tree in self.trees:
            _add(on, off, tree.of_pairs(features, rows, labels))
        return _log_odds(on, off)

    def positive(self, features: FeatureMatrix) -> tuple[Array, Array]:
        """Find all entries with scores above 0: rows and labels.

        The mean of probabilities is above a half only where one of them is.
        """
        parts = [self._positive_of(tree, features) for tree in self.trees]
        if len(parts) == 1:
            return parts[0]
        keys = np.unique(np.concatenate([rows * self.n_labels + labels for rows, labels in parts]))
        rows, labels = np.divmod(keys, self.n_labels)
        is_above = self._of_pairs(features, rows, labels) > 0
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


def _best_pairs(rows: Array, labels: Array, scores: Array, n_rows: int, k: int) -> tuple[Array, Array]:
    """Give the k best of scored pairs, rows rising, of every row: labels and scores, -1 where there are fewer."""
    order = np.lexsort((labels, -scores, rows))
    places = np.arange(len(rows)) - np.searchsorted(rows, rows)
    best, found = np.full((n_rows, k), -1), np.full((n_rows, k), -np.inf)
    kept = places < k
    best[rows[kept], places[kept]] = labels[order][kept]
    found[rows[kept], places[kept]] = scores[order][kept]
    return best, found


def _add(on: Array, off: Array, scores: Array) -> None:
    """Add the probabilities of scores and their complements; see ``joined`` in the loops."""
    with np.errstate(over="ignore"):
        on += 1 / (1 + np.exp(-SHARPNESS * scores))
        off += 1 / (1 + np.exp(SHARPNESS * scores))


def _log_odds(on: Array, off: Array) -> Array:
    return np.asarray((np.log(on + _LEAST) - np.log(off + _LEAST)) / SHARPNESS)


def _filled(labels: Array, scores: Array, n_labels: int) -> tuple[Array, Array]:
    """Name other labels where fewer were found than asked for, with scores below those of all that were."""
    for row in np.flatnonzero(labels[:, -1] < 0):
        missing = labels[row] < 0
        others = np.setdiff1d(np.arange(n_labels), labels[row], assume_unique=False)
        labels[row, missing] = others[: missing.sum()]
        lowest = scores[row, ~missing].min(initial=0.0)
        scores[row, missing] = lowest - 1.0
    return labels, scores
