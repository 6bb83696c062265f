"""Web scale annotation by image embedding (WSABIE).

Weston, Bengio and Usunier, "Large scale image annotation: learning to rank with joint word-image embeddings",
Machine Learning 81 (2010); "WSABIE: scaling up to large vocabulary image annotation", IJCAI 2011.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from benchmarks.opponents.label_space import FactorOpponent
from benchmarks.opponents.ranking_steps import rank_pairs
from labelweave.estimators.low_rank.fit import columns_for_rank
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.postprocessing import choose_thresholds

_MARGIN = 1.0  # the margin of a positive label above a negative one
_MAX_NORM = 3.0  # of a feature's and of a label's vector, the paper's C; for rows of about unit length
_SCORES_FOR_THRESHOLD = 5_000_000


class WSABIE(FactorOpponent):
    """Embed rows and labels in one space so that positive labels rank above negative ones.

    The score of label l is ``h_l . W^T x``.  Stochastic steps lower the weighted approximate-rank pairwise
    loss (Weston et al.  2010, Algorithm 1), with AdaGrad's rates instead of the paper's constant one.
    Positives and negatives are drawn only from observed entries.  A label is predicted if its score is above
    the threshold with the best micro-averaged F1 on the training rows, or on a random part of them.

    rank: the dimension of the embedding, or a share of the number of labels.
    n_epochs: the number of visits of every observed positive entry.
    """

    def __init__(
        self, rank: float = 100, *, learning_rate: float = 0.05, n_epochs: int = 10, random_state: int = 0
    ) -> None:
        self.rank = rank
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        labels, seed = LabelMatrix.from_any(Y), int(check_random_state(self.random_state).randint(2**31 - 1))
        rank = columns_for_rank(self.rank, labels.n_labels)
        fit = RankingFit(FeatureMatrix(X).with_constant(1.0), labels, rank, self.learning_rate, seed)
        self.epoch_losses = [fit.run_epoch() for _ in range(self.n_epochs)]
        self.feature_factors_, constant = fit.feature_factors[:-1, :-1], fit.feature_factors[-1, :-1]
        self.label_factors_ = fit.label_factors[:, :-1]
        self.intercept_, self.threshold_ = self.label_factors_ @ constant, 0.0
        most, rows = max(1, _SCORES_FOR_THRESHOLD // labels.n_labels), np.arange(len(labels))
        if len(labels) > most:
            rows = np.sort(np.random.default_rng(seed).permutation(rows)[:most])
        found = choose_thresholds(labels[rows], self.decision_function(X[rows]), scope="global")
        self.threshold_ = float(found.thresholds[0])
        return self


class RankingFit:
    """Factors that learn to rank the observed positives of a row above its observed negatives.

    The last column of both factors is AdaGrad's sum of squares of each vector.
    """

    def __init__(
        self, features: FeatureMatrix, labels: LabelMatrix, rank: int, rate: float, seed: int
    ) -> None:
        self.rank, self.rate = rank, float(rate)
        self.rows_of_features = features.sparse_rows(np.float64)
        self.random = np.random.default_rng(seed)
        self.state = self.random.integers(2**63, size=1, dtype=np.uint64)
        self.harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, labels.n_labels + 1)))
        self._read_labels(labels)
        self.feature_factors = self._start(features.shape[1])
        self.label_factors = self._start(labels.n_labels)

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
            raise ValueError("No row of Y has both an observed positive and an observed negative label.")

    def _start(self, n_vectors: int) -> Array:
        factors = np.zeros((n_vectors, self.rank + 1))
        factors[:, :-1] = self.random.normal(scale=1.0 / np.sqrt(self.rank), size=(n_vectors, self.rank))
        lengths = np.linalg.norm(factors, axis=1, keepdims=True)
        factors *= np.minimum(1.0, _MAX_NORM / np.maximum(lengths, 1e-300))
        return factors

    def run_epoch(self) -> float:
        """Visit every positive entry once, in random order; return the mean loss met."""
        losses = rank_pairs(
            self.random.permutation(self.pairs), self.rows, self.labels, self.positive_indptr,
            self.negative_indptr, self.negatives, self.all_observed, *self.rows_of_features,
            self.feature_factors, self.label_factors, self.harmonic, self.rate, _MARGIN, _MAX_NORM,
            np.empty((2, self.rank)), self.state,
        )  # fmt: skip
        return float(losses / len(self.pairs))
