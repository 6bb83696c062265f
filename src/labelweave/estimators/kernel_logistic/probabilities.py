"""Predictions of classifiers whose scores are sums of kernels and give probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax, logit, softmax
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Array
from labelweave.arrays import panels
from labelweave.estimators.class_targets import node_name
from labelweave.estimators.kernel_expansion import KernelExpansion
from labelweave.estimators.thresholded_classifier import ThresholdedClassifier
from labelweave.features import FeatureMatrix
from labelweave.inference import best_parent, least_expected_loss, rejected
from labelweave.labels import Taxonomy

__all__ = ["KernelProbabilities"]

_KERNEL_VALUES_AT_ONCE = 8_000_000


class KernelProbabilities(ThresholdedClassifier):
    """Base of such classifiers; a fit sets ``expansion_``, ``intercept_``, ``support_`` and ``taxonomy_``."""

    decision: str
    expansion_: list[KernelExpansion]
    taxonomy_: Taxonomy | None

    @property
    def _level(self) -> float:
        return 0.0 if isinstance(self.threshold, str) else float(logit(self.threshold))

    def _raw_scores(self, features: FeatureMatrix) -> Array:
        scores = np.tile(self.intercept_, (len(features), 1))
        for term in self.expansion_:
            rows_at_once = max(1, _KERNEL_VALUES_AT_ONCE // max(1, len(term.rows)))
            for rows in panels(len(features), rows_at_once):
                term.add_to(scores[rows], self._term_block(term, features.rows(rows)))
        is_pair = self._form.kind == "binary" and scores.shape[1] == 2
        return scores[:, 1:] - scores[:, :1] if is_pair else scores

    def _term_block(self, term: KernelExpansion, features: FeatureMatrix) -> Array:
        if term.kernel is None:
            given: Array = features.data.toarray() if features.is_sparse else features.data
            return given[:, self.support_[term.rows]]
        return term.kernel.block(features, FeatureMatrix(self.support_vectors_[term.rows]))

    def _decide(self, scores: Array) -> Any:
        # of two classes the most probable one is also the best by the other rules
        if self._form.kind != "multiclass" or self.decision == "most_probable":
            return super()._decide(scores)
        assert self.taxonomy_ is not None, "checked in fit"
        probabilities, names = softmax(scores, axis=1), [node_name(name) for name in self.classes_]
        if self.decision == "best_parent":
            return self.classes_[best_parent(probabilities, self.taxonomy_.parents_of(names))]
        return self.classes_[least_expected_loss(probabilities, self.taxonomy_.distances(names))]

    def predict_proba(self, X: Any) -> Array:
        """Compute the probabilities of classes or labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of shape (n, C) or (n, L)
            One distribution over the classes a row, or the probability of each label; they do not depend on
            thresholds.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the logarithms of the probabilities of classes or labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of shape (n, C) or (n, L)
            The logarithms, exact where probabilities are too small for floating point.
        """
        check_is_fitted(self)
        scores = np.concatenate(list(self._score_blocks(X, self._raw_scores)))
        if self._form.kind == "labels":
            return np.asarray(log_expit(scores))
        if self._form.kind == "binary":
            return np.hstack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def predict_or_reject(
        self, X: Any, *, confidence: float | None = None, fraction: float | None = None
    ) -> Array:
        """Predict one class a row, or None where the model is not certain enough.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.
        confidence : float or None, default=None
            Reject rows whose most probable class is less probable.
        fraction : float or None, default=None
            Reject this share of the rows, the least certain ones.

        Returns
        -------
        ndarray of object, shape (n,)
            Classes, and None for rejected rows.

        Raises
        ------
        ValueError
            If the model predicts many labels a row, or not exactly one of the limits is given.
        """
        check_is_fitted(self)
        if self._form.kind == "labels":
            raise ValueError(
                "predict_or_reject is for one class a row, but this model predicts many labels a row."
            )
        predicted = np.asarray(self.predict(X)).astype(object)
        predicted[rejected(self.predict_proba(X), confidence=confidence, fraction=fraction)] = None
        return predicted
