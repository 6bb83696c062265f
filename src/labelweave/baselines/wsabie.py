"""Web scale annotation by image embedding (WSABIE).

Weston, Bengio and Usunier, "Large scale image annotation: learning to rank with joint word-image embeddings",
Machine Learning 81 (2010); "WSABIE: scaling up to large vocabulary image annotation", IJCAI 2011.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from labelweave.array_types import Array, PerRow
from labelweave.arrays import panels
from labelweave.baselines.baseline_classifier import FactorClassifier, TrainingData
from labelweave.estimators.class_weights import SignFactors
from labelweave.estimators.low_rank.fit import columns_for_rank
from labelweave.estimators.parameters import (
    COUNT,
    POSITIVE,
    SHARED,
    ClassWeight,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.progress import FitProgress
from labelweave.estimators.scorers import FactorScorer
from labelweave.inference import choose_thresholds
from labelweave.interrupts import note_interrupt
from labelweave.labels import LabelMatrix
from labelweave.model_files import storable
from labelweave.sklearn_compat import StrOptions
from labelweave.solvers import TraceRecord

_NO_LIMIT = 2**62
_SCORES_FOR_THRESHOLD = 5_000_000
_VISITS_AT_ONCE = 20_000  # between them an interrupt is served


@storable("WSABIE")
class WSABIE(FactorClassifier):
    """Embed rows and labels in one space so that positive labels rank above negative ones.

    The score of label l is ``h_l . W^T x``.  Stochastic steps lower the weighted approximate-rank
    pairwise loss (Weston et al. 2010, Algorithm 1): a positive label is compared with negative
    labels of its row, drawn at random, until one scores above it less the margin, and the step is
    weighted by ``1 + 1/2 + ... + 1/r`` with r the rank of the positive that the number of draws
    suggests.  Positives and negatives are drawn from observed entries only.

    Scores rank; a label is predicted where its score is above ``threshold_``, the one of the best
    micro-averaged F1 on the training rows, whatever their weights (on a random part of them if they
    have more than 5e6 scores together).  With one class a row the class of the highest score is
    predicted, and the threshold is 0.

    Parameters
    ----------
    rank : int or float, default=100
        The dimension of the embedding, or a share of the number of labels (0 < rank <= 1.0).  It may be
        above the number of labels.
    learning_rate : float, default=0.05
        Length of the steps, see ``schedule``.
    schedule : {"adagrad", "constant"}, default="adagrad"
        "adagrad" divides the rate of every vector by the root of the sum of its mean squared gradients so
        far, so that features of any scale and rare ones learn; "constant" is the paper's.
    margin : float, default=1.0
        By how much a positive label is to score above a negative one.
    max_norm : float, default=3.0
        The largest length of a feature's vector and of a label's vector, the paper's C.  The default is
        for rows of about unit length.
    max_trials : int or None, default=None
        The largest number of negative labels drawn in a visit; None is the paper's, as many as there are.
        With thousands of labels a limit such as 100 saves most of the time of positives that already rank
        first.
    n_epochs : int, default=10
        How often every observed positive entry is visited.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1, with a vector like any feature's.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, by which those of rows are multiplied: a dict, or "balanced" for rows /
        (classes x rows of the class), with rows counted by their weights.  With many labels a pair of a
        positive and a negative label has the product of the weights of its two entries: by "balanced" from
        the positives and negatives observed of each label, by a dict such as ``{0: 1, 1: 5}`` for all
        labels, or by a list of one a label.
    random_state : int, RandomState instance or None, default=0
        Fixes the start, the order of visits and the negatives drawn.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is: a line every two seconds, later more rarely, and one at
        the end; 2 for a line at every step.

    Attributes
    ----------
    feature_factors_, label_factors_ : ndarray of shape (d, k), ndarray of shape (L, k)
        W, a row a feature, and H, a row a label; for two classes one row, the second's less the first's.
    coef_, intercept_ : ndarray of shape (L, d), ndarray of shape (L,)
        H W^T, made anew at every look, and the scores of the constant feature.
    threshold_ : float
        Where a label is predicted; ``decision_function`` gives scores less this.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Features seen in fit, and their names, when X was a frame.
    status_ : {"complete", "interrupted"}
        Whether all epochs were done.
    trace_ : list of TraceRecord
        A record an epoch: ``primal`` is the mean loss that its visits met, ``active_share`` the share
        of visits that found a negative too close.  There is no bound, so ``dual`` and ``gap`` are NaN.

    Notes
    -----
    Steps follow one another on one thread, so the same seed gives the same model.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.baselines import WSABIE
    >>> X = np.array([[0.0, 1.0], [0.2, 0.9], [1.0, 0.1], [0.9, 0.0]])
    >>> Y = np.array([[0, 1, 0], [0, 1, np.nan], [1, 0, 0], [1, 0, 0]])
    >>> WSABIE(rank=2, n_epochs=50).fit(X, Y).predict_top([[0.0, 0.8], [0.8, 0.0]], k=1)[0]
    array([[1],
           [0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "learning_rate": [POSITIVE],
        "schedule": [StrOptions({"adagrad", "constant"})],
        "margin": [POSITIVE],
        "max_norm": [POSITIVE],
        "max_trials": [COUNT, None],
        "n_epochs": [COUNT],
    }

    def __init__(
        self, rank: float = 100, *, learning_rate: float = 0.05,
        schedule: Literal["adagrad", "constant"] = "adagrad", margin: float = 1.0,
        max_norm: float = 3.0, max_trials: int | None = None, n_epochs: int = 10,
        fit_intercept: bool = True, class_weight: ClassWeight = None, random_state: RandomState = 0,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    @property
    def _n_subtasks(self) -> int:
        return int(self.n_epochs)

    def _learn(self, data: TrainingData, progress: FitProgress) -> tuple[str, str]:
        if self._form.kind == "binary":
            data = data._replace(labels=_both_classes(data.labels))
        factors = None
        if self._form.kind == "labels":
            _, factors = self._weighted_by_class(data.labels, data.weights)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        features = data.features.with_constant(1.0) if self.fit_intercept else data.features
        fit = RankingFit(self, data._replace(features=features), seed, factors)
        progress.keep = lambda model, fit: model._keep(fit, data, seed)
        status = self._run(fit, progress)
        self._keep(fit, data, seed)
        return status, (
            f"The fit was interrupted after {len(self.trace_)} of {self.n_epochs} epochs; the model is what "
            "they made."
        )

    def _class_weighted(self, labels: LabelMatrix, weights: PerRow) -> PerRow:
        return weights if self._form.kind == "labels" else self._rows_by_class(labels, weights)

    def _run(self, fit: RankingFit, progress: FitProgress) -> str:
        """Go through the epochs, or so far as an interrupt lets it."""
        start = time.perf_counter()
        try:
            for epoch in range(1, self.n_epochs + 1):
                loss, share = fit.run_epoch()
                seconds = time.perf_counter() - start
                self.trace_.append(TraceRecord(epoch, seconds, loss, active_share=share))
                if progress.subtask("epoch", self.trace_[-1], lambda: fit):
                    return "interrupted"
        except KeyboardInterrupt as interrupt:
            note_interrupt(interrupt)
            if not fit.visits:
                raise
            fit.require_finite()
            return "interrupted"
        return "complete"

    def _keep(self, fit: RankingFit, data: TrainingData, seed: int) -> None:
        d = self.n_features_in_
        factors = fit.label_factors.copy()
        factors = factors[1:] - factors[:1] if self._form.kind == "binary" else factors
        constant = fit.feature_factors[d:].sum(axis=0)  # 0 where there is none
        self.scorer_ = FactorScorer(factors @ constant, fit.feature_factors[:d].copy(), factors)
        self.threshold_ = 0.0
        if self._form.kind == "labels":
            self.threshold_ = self._best_threshold(data, seed)

    def _best_threshold(self, data: TrainingData, seed: int) -> float:
        n, n_labels = data.labels.shape
        features, labels = data.features, data.labels
        most = max(1, _SCORES_FOR_THRESHOLD // n_labels)
        if n > most:
            rows = np.sort(np.random.default_rng(seed).permutation(n)[:most])
            features, labels = features.rows(rows), labels[rows]
        if not labels.positives.nnz:
            return 0.0
        return float(choose_thresholds(labels, self._wide_scores(features), scope="global").thresholds[0])


def _both_classes(labels: LabelMatrix) -> LabelMatrix:
    """Make two labels of one that says which of two classes a row has."""
    signs = labels.to_signs()
    both = np.hstack([-signs, signs])
    return LabelMatrix(sp.csr_array(both > 0), sp.csr_array(both != 0) if labels.has_missing else None)


class RankingFit:
    """Factors that learn to rank the observed positives of a row above its observed negatives."""

    def __init__(
        self, model: WSABIE, data: TrainingData, seed: int, factors: SignFactors | None = None
    ) -> None:
        n_labels, trials = data.labels.n_labels, model.max_trials
        self.rank, self.max_norm = columns_for_rank(model.rank, n_labels), float(model.max_norm)
        self.rate, self.adapts = float(model.learning_rate), model.schedule == "adagrad"
        self.margin, self.max_trials = float(model.margin), _NO_LIMIT if trials is None else int(trials)
        self.weights, self.visits = data.weights, 0
        self.rows_of_features = data.features.sparse_rows(np.float64)
        self.random = np.random.default_rng(seed)
        self.state = self.random.integers(2**63, size=1, dtype=np.uint64)
        self.harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, n_labels + 1)))
        self.factors = (np.ones(n_labels), np.ones(n_labels)) if factors is None else factors
        self._read_labels(data.labels)
        self.all_feature_factors = self._start(data.features.shape[1])
        self.all_label_factors = self._start(n_labels)

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
        self.pairs = np.flatnonzero((n_negatives[self.rows] > 0) & (self.factors[0][self.labels] > 0))
        if len(self.pairs) == 0 or not self.factors[1].any():
            raise ValueError(
                "No row of Y has both an observed positive and an observed negative label, so there is "
                "nothing to rank; give at least one such row (of positive class_weight)."
            )

    def _start(self, n_vectors: int) -> Array:
        """Draw vectors of about unit length, with a last column for AdaGrad's sums of squares."""
        factors = np.zeros((n_vectors, self.rank + 1))
        factors[:, :-1] = self.random.normal(scale=1.0 / np.sqrt(self.rank), size=(n_vectors, self.rank))
        lengths = np.linalg.norm(factors, axis=1, keepdims=True)
        factors *= np.minimum(1.0, self.max_norm / np.maximum(lengths, 1e-300))
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
        """Visit every positive entry once, in random order; give the mean loss met and the share of steps."""
        from labelweave._loops.ranking_steps import rank_pairs

        order, losses, steps = self.random.permutation(self.pairs), 0.0, 0
        for part in panels(len(order), _VISITS_AT_ONCE):
            more_losses, more_steps = rank_pairs(
                order[part], self.rows, self.labels, self.positive_indptr,
                self.negative_indptr, self.negatives, self.all_observed, *self.rows_of_features, self.weights,
                *self.factors, self.all_feature_factors, self.all_label_factors, self.harmonic, self.rate,
                self.adapts, self.margin, self.max_norm, self.max_trials, np.empty((2, self.rank)),
                self.state,
            )  # fmt: skip
            self.visits += len(order[part])
            losses, steps = losses + more_losses, steps + more_steps
        self.require_finite()
        return losses / len(order), steps / len(order)

    def require_finite(self) -> None:
        """Refuse vectors that overflowed."""
        if not (np.isfinite(self.all_feature_factors).all() and np.isfinite(self.all_label_factors).all()):
            raise ValueError(
                "The steps of WSABIE overflowed; scale the features to about unit length, or lower "
                "learning_rate."
            )
