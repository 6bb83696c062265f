"""The parts of a fitted automatic model: forests with leaf labels, and weighted members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix
from labelweave.features.forest import Forest
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.model_files import storable
from labelweave.model_files.schema import Items, Made, Maybe, Numbers

_LEAVES_AT_ONCE = 65_536
_LEAST_SHARE = 1e-3


def log_odds(shares: RowsByLabels) -> RowsByLabels:
    """Convert shares to log-odds; 0 and 1, from few rows, stay finite."""
    found: RowsByLabels = logit(np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE))
    return found


@storable(
    "ForestScorer",
    {
        "intercept_": Numbers("L"),
        "forest": Made(Forest, {"v": "n_leaves"}),
        "values": Numbers("v L", sparse=True),
    },
)
@dataclass(frozen=True)
class ForestScorer(Scorer):
    """Log-odds of the mean over trees of the label shares in the leaves of a row.

    values (leaves, L): the share of positive rows in a leaf minus the intercept; CSR.
    """

    forest: Forest
    values: Any

    @classmethod
    def of_rows(cls, forest: Forest, data: Any, targets: RowsByLabels, weights: Array) -> ForestScorer:
        """Fill leaves with the labels (n, L) of rows, NaN if missing; empty leaves get the label's mean."""
        known = ~np.isnan(targets)
        seen = np.where(known, weights[:, None], 0.0)
        means = np.where(known, targets * seen, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-300)
        leaves = sp.csr_array(forest.indicators(data).T)
        sums = leaves @ sp.csr_array(np.where(known, targets, 0.0) * weights[:, None])
        if known.all():
            counts = np.maximum(leaves @ weights, 1e-300)
            sums.data *= np.repeat(1.0 / counts, np.diff(sums.indptr))
            return cls(np.zeros(len(means)), forest, sums.astype(np.float32))
        counts = leaves @ seen
        shares = np.where(counts > 0, sums.toarray() / np.maximum(counts, 1e-300), means)
        return cls(np.zeros(len(means)), forest, sp.csr_array(shares.astype(np.float32)))

    def takes(self, n_features: int) -> bool:
        return self.forest.n_features == n_features

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        scores = np.tile(self.intercept_, (len(features), 1))
        for rows in panels(len(features), max(1, _LEAVES_AT_ONCE // self.forest.n_trees)):
            leaves = self.forest.leaves(features.data[rows])
            places = np.arange(leaves.size + 1, dtype=np.int32)
            parts = np.full(leaves.size, 1.0 / self.forest.n_trees)
            means = sp.csr_array((parts, places[:-1], places[:: self.forest.n_trees]))
            # these leaves alone, since SciPy converts all that it multiplies to double precision
            scores[rows] += (means @ self.values[leaves.ravel()]).toarray()
        return log_odds(scores)


@storable(
    "CombinedScorer",
    {
        "intercept_": Numbers("L"),
        "members": Items(Made(Scorer, {"L": "n_labels"}), "m", tuple, 1),
        "slopes": Numbers("m L"),
        "coupling": Maybe(Numbers("L L")),
        "shift": Maybe(Numbers("L")),
    },
    {"its coupling has a shift": lambda s: (s["coupling"] is None) == (s["shift"] is None)},
)
@dataclass(frozen=True)
class CombinedScorer(Scorer):
    """Log-odds: a weighted sum of member scores, plus optional terms of other labels.

    slopes (m, L): factors of each member's scores.
    coupling (L, L): what the probability of one label adds to the log-odds of others.
    """

    members: tuple[Scorer, ...]
    slopes: Array
    coupling: Array | None = None
    shift: Array | None = None

    def takes(self, n_features: int) -> bool:
        return all(member.takes(n_features) for member in self.members)

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        odds = np.tile(self.intercept_, (len(features), 1))
        for member, slopes in zip(self.members, self.slopes, strict=True):
            odds += slopes * member.scores_at_home(features)
        if self.coupling is not None:
            odds += expit(odds) @ self.coupling + self.shift
        return odds
