"""Stochastic descent on the weighted approximate-rank loss, an epoch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave._loops.ranking_steps import rank_pairs
from labelweave.array_types import Array
from labelweave.arrays import panels
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix

__all__ = ["RankingFit", "RankingSettings"]


_VISITS_AT_ONCE = 20_000  # between them an interrupt is served


@dataclass(frozen=True)
class RankingSettings:
    """How steps are taken.

    rank: the dimension of the embedding.
    margin: by how much a positive is to score above a negative.
    max_norm: the largest norm of the vector of a feature or a label.
    max_trials: the largest number of negatives drawn in a visit.
    seed: fixes the start, the order of visits and the negatives drawn.
    """

    rank: int
    rate: float
    adapts: bool
    margin: float
    max_norm: float
    max_trials: int
    seed: int


class RankingFit:
    """Factors that learn to rank the observed positives of a row above its observed negatives.

    weights (n,): the weights of the rows.
    Shapes: features (n, d), labels (n, L).
    Raises ValueError if no row has both an observed positive and an observed negative label.
    """

    def __init__(
        self, features: FeatureMatrix, labels: LabelMatrix, weights: Array, settings: RankingSettings
    ) -> None:
        self.settings, self.weights, self.visits = settings, weights, 0
        self.rows_of_features = features.sparse_rows(np.float64)
        self.random = np.random.default_rng(settings.seed)
        self.state = self.random.integers(2**63, size=1, dtype=np.uint64)
        self.harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, labels.n_labels + 1)))
        self._read_labels(labels)
        self.all_feature_factors = self._start(features.shape[1])
        self.all_label_factors = self._start(labels.n_labels)

    def _read_labels(self, labels: LabelMatrix) -> None:
        n, n_labels = labels.shape
        self.positive_indptr = labels.positives.indptr.astype(np.int64)
        self.labels = labels.positives.indices.astype(np.int64)
        counts = np.diff(self.positive_indptr)
        self.rows = np.repeat(np.arange(n), counts)
        self.all_observed = labels.observed is None
        if labels.observed is None:
            self.negative_indptr, self.negatives = np.zeros(n + 1, np.int64), np.zeros(0, np.int64)
            n_negatives = n_labels - counts
        else:
            is_negative = labels.observed.data < 0
            ends = np.append(0, np.cumsum(is_negative))
            self.negative_indptr = ends[labels.observed.indptr].astype(np.int64)
            self.negatives = labels.observed.indices[is_negative].astype(np.int64)
            n_negatives = np.diff(self.negative_indptr)
        self.pairs = np.flatnonzero(n_negatives[self.rows] > 0)
        if len(self.pairs) == 0:
            raise ValueError(
                "No row of Y has both an observed positive and an observed negative label, so there is "
                "nothing to rank; give at least one such row."
            )

    def _start(self, n_vectors: int) -> Array:
        """Draw vectors of about unit length, with a last column for AdaGrad's sums of squares."""
        rank = self.settings.rank
        factors = np.zeros((n_vectors, rank + 1))
        factors[:, :rank] = self.random.normal(scale=1.0 / np.sqrt(rank), size=(n_vectors, rank))
        lengths = np.linalg.norm(factors, axis=1, keepdims=True)
        factors *= np.minimum(1.0, self.settings.max_norm / np.maximum(lengths, 1e-300))
        return factors

    @property
    def feature_factors(self) -> Array:
        """The vectors of the features, shape (d, rank)."""
        return self.all_feature_factors[:, :-1]

    @property
    def label_factors(self) -> Array:
        """The vectors of the labels, shape (L, rank)."""
        return self.all_label_factors[:, :-1]

    def run_epoch(self) -> tuple[float, float]:
        """Visit every positive entry once, in random order.

        loss: the mean over visits of the loss that was met, an estimate.
        share: the share of visits that found a negative too close.
        Raises ValueError if the numbers overflow.
        """
        order, losses, steps = self.random.permutation(self.pairs), 0.0, 0
        for part in panels(len(order), _VISITS_AT_ONCE):
            more_losses, more_steps = self._visit(order[part])
            losses, steps = losses + more_losses, steps + more_steps
        self.require_finite()
        return losses / len(order), steps / len(order)

    def _visit(self, pairs: Array) -> tuple[float, int]:
        """Visit some entries; give the sum of the losses met and the number of steps."""
        settings = self.settings
        losses, steps = rank_pairs(
            pairs, self.rows, self.labels, self.positive_indptr,
            self.negative_indptr, self.negatives, self.all_observed, *self.rows_of_features, self.weights,
            self.all_feature_factors, self.all_label_factors, self.harmonic, settings.rate, settings.adapts,
            settings.margin, settings.max_norm, settings.max_trials, np.empty((2, settings.rank)), self.state,
        )  # fmt: skip
        self.visits += len(pairs)
        return losses, steps

    def require_finite(self) -> None:
        """Refuse vectors that overflowed.

        Raises ValueError if any did.
        """
        if not (np.isfinite(self.all_feature_factors).all() and np.isfinite(self.all_label_factors).all()):
            raise ValueError(
                "The steps of WSABIE overflowed; scale the features to about unit length, or lower "
                "learning_rate."
            )
