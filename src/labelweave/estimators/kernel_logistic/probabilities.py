"""Predictions of kernel classifiers with probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_expit, log_ndtr, log_softmax, logit, logsumexp, ndtri, softmax
from sklearn.utils.validation import check_is_fitted

from labelweave.estimators import scorers
from labelweave.estimators.added_labels import add_labels, widened_covariance
from labelweave.estimators.journal import where_rows_are
from labelweave.estimators.kernel_classifier import KernelClassifier
from labelweave.estimators.kernel_logistic.fit import FittedLikelihood
from labelweave.estimators.kernel_logistic.prior_choice import paper_gamma
from labelweave.estimators.parameters import refuse_together
from labelweave.estimators.scorers import KernelExpansion, KernelScorer, LinearScorer
from labelweave.features import FeatureMatrix, Kernel, make_kernel
from labelweave.features.gram import FactorGram
from labelweave.foundation.array_types import Array, PerLabel, RowsByClasses, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.labels import LabelCovariance, Taxonomy
from labelweave.labels.label_names import as_text
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import MEASURED, Field, Made, Maybe, Numbers, Optional
from labelweave.postprocessing import best_parent, least_expected_loss, rejected
from labelweave.problems.coupled_gram import CoupledGram, ScorePrior
from labelweave.problems.laplace import LaplaceFactors, Posterior
from labelweave.problems.losses import EntryLoss

_STEP, _NARROW, _WIDE = 0.5, 8.0, 40.0  # of the rule, and its ends over either density
_LOG_POINTS = 9  # base 2
# measured errors of probabilities are below _ERROR v / (v + _HALF) at variances v up to _WIDEST
_ERROR, _HALF, _WIDEST = 0.03, 10.0, 1e3
_VALUES_AT_ONCE = 4_000_000


def mean_log_expit(means: Array, variances: Array) -> Array:
    """Compute ``log E[expit(f)]`` for Gaussian f, accurate to 1e-9 for any variance.

    The trapezoidal rule converges exponentially, over the Gaussian if narrow, else the logistic density.
    """
    deviations, below = np.sqrt(variances), -np.abs(means)
    total = np.full(means.shape, -np.inf)
    wide = deviations > 1.0
    for t in np.arange(-_NARROW, _NARROW + _STEP, _STEP):
        values = log_expit(below[~wide] + t * deviations[~wide]) - t * t / 2
        total[~wide] = np.logaddexp(total[~wide], values)
    total[~wide] -= np.log(2 * np.pi) / 2
    for z in np.arange(-_WIDE, _WIDE + _STEP, _STEP):
        values = log_expit(z) + log_expit(-z) + log_ndtr((below[wide] - z) / deviations[wide])
        total[wide] = np.logaddexp(total[wide], values)
    total += np.log(_STEP)
    return np.where(means > 0, np.log1p(-np.exp(total)), total)


def mean_log_softmax(means: RowsByClasses, covariances: Array) -> RowsByClasses:
    """Compute ``log E[softmax(f)]`` for Gaussian f of covariances (n, C, C), by 512 Sobol points.

    The error is below 0.03 at variances up to 1,000, and at most 0.003 at variances of 1.  Within it, and at
    larger variances, the class of the greatest mean is the most probable one.
    """
    from scipy.stats.qmc import Sobol

    n_classes = means.shape[1]
    points = Sobol(n_classes, scramble=False).random_base2(_LOG_POINTS)
    normal = ndtri(points + 0.5 / len(points))
    found = np.empty(means.shape)
    for rows in panels(len(means), max(1, _VALUES_AT_ONCE // normal.size)):
        values, vectors = np.linalg.eigh(covariances[rows])
        # the first points are the most even: they are for the largest eigenvalues
        roots = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, ::-1]
        scores = means[rows, None, :] + normal @ roots.transpose(0, 2, 1)
        found[rows] = logsumexp(log_softmax(scores, axis=2), axis=1)
    found -= np.log(len(points))
    every, best, top = np.arange(len(means)), means.argmax(axis=1), found.argmax(axis=1)
    variances = np.einsum("ncc->n", covariances) / n_classes
    error = np.where(variances > _WIDEST, 1.0, _ERROR * variances / (variances + _HALF))
    near = np.exp(found[every, top]) - np.exp(found[every, best]) < error
    pair = every[near], np.stack([best[near], top[near]])
    found[pair] = found[pair][::-1]
    return found


_BELOW_ONE = np.nextafter(1.0, 0.0)


@storable("LikelihoodScorer", scorers.SUPPORT | {"dual": Numbers("m _")})
@dataclass(frozen=True)
class LikelihoodScorer(KernelScorer):
    """Sums of kernels over support rows, with the dual variables of these rows, of shape (m, L)."""

    dual: Array

    @property
    def dual_coef_(self) -> Array:
        return self.dual

    @property
    def expansion_(self) -> list[KernelExpansion]:
        return list(self.terms)


@storable("LikelihoodWeights", scorers.OF_FEATURES)
@dataclass(frozen=True)
class LikelihoodWeights(LinearScorer):
    """Weights of explicit features, from fits to partitioned rows, which are not kept."""

    holds_mean = False

    @classmethod
    def of(
        cls, prior: ScorePrior, gram: CoupledGram, dual: RowsByLabels, intercepts: PerLabel
    ) -> LikelihoodWeights:
        """Convert dual variables (n, L) to weights; raise ValueError if kernels differ."""
        first = prior.terms[0].kernel
        assert first is not None, "explicit features are of a kernel"
        if any(term.kernel != first and repr(term.kernel) != repr(first) for term in prior.terms):
            raise ValueError(
                "Classes have explicit features of their own, but partitioned rows share one kernel; use "
                "tie='shared' or tie='scale'."
            )
        total: Any = 0.0
        for term, matrix in zip(prior.terms, gram.terms, strict=True):
            assert isinstance(matrix.gram, FactorGram), "features are explicit"
            total = total + matrix.gram.map.gradient(np.asarray(term.covariance.matmul(dual)))
        return cls.of_labels(intercepts, total.T, first)


def has_weights(gram: CoupledGram) -> bool:
    """Whether the fit has explicit features of partitioned rows, and keeps weights instead of rows."""
    return type(gram.terms[0].gram) is FactorGram


class KernelProbabilities(KernelClassifier):
    """Base class of kernel classifiers with probabilities; a fit sets ``scorer_`` and ``taxonomy_``."""

    loss: str | EntryLoss
    taxonomy_: Taxonomy | None
    prior_: ScorePrior
    posterior_: Posterior
    scorer_: LikelihoodScorer | LikelihoodWeights

    _stored: ClassVar[dict[str, Field]] = {
        "thresholds_": Numbers("K", least=0, most=1),
        "taxonomy_": Maybe(Made(Taxonomy)),
        "prior_": Made(ScorePrior),
        "posterior_": Optional(Made(Posterior, {"L": "n_labels"})),
        "log_marginal_likelihood_value_": Optional(MEASURED),
        "kernel_products_": MEASURED,
    }

    @property
    def _level(self) -> float:
        return 0.5 if isinstance(self.threshold, str) else float(self.threshold)

    def _compared(self, scores: Array) -> Array:
        return np.exp(log_expit(scores))

    @property
    def _lowest_threshold(self) -> float:
        return float(logit(min(np.min(self.thresholds_), _BELOW_ONE)))

    def _raw_scores(self, features: FeatureMatrix) -> Array:
        scores = self._latent_means(features)
        if not self._has_posterior:
            return scores
        if self._form.one_of is not None:
            return mean_log_softmax(scores, self._covariances(features)[:, 0])
        variances = self._variances(features)
        return mean_log_expit(scores, variances) - mean_log_expit(-scores, variances)

    def _latent_means(self, features: FeatureMatrix) -> Array:
        scores = super()._raw_scores(features)
        if self._form.is_pair and scores.shape[1] == 2:
            return scores[:, 1:] - scores[:, :1]
        loss = getattr(self, "_fitted_loss", self.loss)  # a loaded model has only the parameter
        return scores if isinstance(loss, str) else loss.log_odds(scores)

    add_labels = add_labels
    _couples_intercepts = False

    def _keep_wider(self, n_new: int, covariance: LabelCovariance | None) -> None:
        (term,), scorer = self.prior_.terms, self.scorer_
        scale = float(np.mean(term.covariance.diagonal()))
        if covariance is None:
            wide = widened_covariance(term.covariance, n_new)
        else:
            wide = covariance.scaled(
                scale / float(np.mean(covariance.diagonal()[: term.covariance.n_labels]))
            )
        self.prior_ = replace(self.prior_, terms=(replace(term, covariance=wide),))
        if isinstance(scorer, LikelihoodScorer):
            dual = np.hstack([scorer.dual, np.zeros((len(scorer.dual), n_new))])
            self.scorer_ = replace(scorer, dual=dual)

    def _decide(self, scores: Array) -> Any:
        # with two classes all decision rules agree
        if self._form.one_of is None or self.decision == "most_probable":
            return super()._decide(scores)
        self._check_decision()  # the parameter may change after the fit
        assert self.taxonomy_ is not None, "checked"
        probabilities, names = softmax(scores, axis=1), [as_text(name) for name in self.classes_]
        if self.decision == "best_parent":
            return self.classes_[best_parent(probabilities, self.taxonomy_.parents_of(names))]
        return self.classes_[least_expected_loss(probabilities, self.taxonomy_.distances(names))]

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        if not state["fitted"]["thresholds_"].min() > 0:
            raise ModelFileError("its thresholds are not probabilities above 0.")
        posterior, width = state["fitted"].get("posterior_"), state["fitted"]["n_features_in_"]
        pairs = () if posterior is None else zip(posterior.kernels, posterior.vectors, strict=True)
        if not all(
            scorers.takes_support(kernel, np.arange(len(rows)), rows, width) for kernel, rows in pairs
        ):
            raise ModelFileError(f"its posterior is of rows of others than {width} features.")
        decision = state["parameters"].get("decision", "most_probable")
        if state["form"]["kind"] == "multiclass" and decision != "most_probable":
            taxonomy = state["fitted"]["taxonomy_"]
            if taxonomy is None:
                raise ModelFileError(f"its decision {decision!r} needs a taxonomy, but it has none.")
            taxonomy.parents_of([as_text(name) for name in state["classes"]])

    @where_rows_are
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of classes or labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of shape (n, C) or (n, L), or list of ndarray
            One distribution over the classes per row, or the probability of each label; thresholds do not
            matter.  With columns of classes one table (n, C) per column, as in scikit-learn.
        """
        found = self.predict_log_proba(X)
        return [np.exp(table) for table in found] if isinstance(found, list) else np.exp(found)

    @where_rows_are
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of classes or labels; for X see :meth:`predict_proba`.

        Returns
        -------
        ndarray of shape (n, C) or (n, L), or list of ndarray
            The logarithms, exact where probabilities are too small for floating point; with ``uncertainty``
            for those above 1e-15.
        """
        check_is_fitted(self)
        scores = np.concatenate(list(self._score_blocks(X, self._raw_scores)))
        if self._form.is_ranked:
            return self._form.distributions(lambda part: np.asarray(log_softmax(scores[:, part], axis=1)))
        return np.asarray(log_expit(np.hstack([-scores, scores]) if self._form.is_pair else scores))

    @where_rows_are
    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Compute the posterior mean and variance of the scores, as scikit-learn's Gaussian processes.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        means : ndarray of shape (n, L), or (n,) for two classes
            The scores, ``decision_function`` without ``uncertainty`` and thresholds.
        variances : ndarray of the same shape
            Their variances, by Laplace's approximation.

        Raises
        ------
        ValueError
            If the model was fitted without ``uncertainty``.
        """
        check_is_fitted(self)
        if not self._has_posterior:
            raise ValueError("latent_mean_and_variance needs a model fitted with uncertainty='laplace'.")
        means = np.concatenate(list(self._score_blocks(X, self._latent_means)))
        variances = np.concatenate(list(self._score_blocks(X, self._variances)))
        return self._form.scores(means), self._form.scores(variances)

    @property
    def _has_posterior(self) -> bool:
        return "posterior_" in vars(self)

    def _covariances(self, features: FeatureMatrix) -> Array:
        """Compute the covariances of raw scores: shape (n, groups, columns, columns)."""
        found = self.posterior_.covariances(features)
        if self._form.is_pair and found.shape[2] == 2:
            contrast = np.array([-1.0, 1.0])
            return np.asarray(np.einsum("c,ngcd,d->ng", contrast, found, contrast))[:, :, None, None]
        return found

    def _variances(self, features: FeatureMatrix) -> Array:
        found = self._covariances(features)
        return np.maximum(np.einsum("ngcc->ngc", found).reshape(len(found), -1), 0.0)

    def _keep_posterior(self, fitted: FittedLikelihood, features: FeatureMatrix) -> None:
        problem = fitted.problem
        scores = problem.product(fitted.dual.reshape(problem.shape), np.arange(problem.shape[1]))
        factors = LaplaceFactors(problem, fitted.prior, scores, self._budget * 1e6)
        self.posterior_ = factors.posterior(features)
        evidence = fitted.result.trace[-1].primal + factors.log_determinant / 2
        self.log_marginal_likelihood_value_ = -evidence

    @where_rows_are
    def predict_or_reject(
        self, X: Any, *, confidence: float | None = None, fraction: float | None = None
    ) -> Array:
        """Predict one class per row, or None where the model abstains.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.
        confidence : float or None, default=None
            Abstain on rows whose most probable class is less probable.
        fraction : float or None, default=None
            Abstain on this share of the rows, the least certain ones.

        Returns
        -------
        ndarray of object, shape (n,)
            Classes, and None where the model abstains.

        Raises
        ------
        ValueError
            If the model predicts many labels per row, or not exactly one of the limits is set.
        """
        check_is_fitted(self)
        if not self._form.has_one_class:
            raise ValueError(
                "predict_or_reject is for one class per row, but this model predicts many labels per row."
            )
        predicted = np.asarray(self.predict(X)).astype(object)
        predicted[rejected(self.predict_proba(X), confidence=confidence, fraction=fraction)] = None
        return predicted

    def _check_decision(self) -> None:
        holds = {"many labels": not self._form.has_one_class, "no taxonomy": self.taxonomy_ is None}
        refuse_together(self, {fact: "" for fact, is_so in holds.items() if is_so})

    def _starting_kernels(self, features: FeatureMatrix, seed: int) -> list[Kernel | None]:
        if self._is_precomputed:
            self._read_kernel(features, seed)
            return [None]
        gamma = paper_gamma(features) if self.gamma is None else self.gamma
        kernels = [make_kernel(kernel, gamma).resolved(features) for kernel in self._kernels]
        for kernel in kernels:
            self._check_kernel(kernel, features, seed)
        return list(kernels)

    def _keep_scores(self, fitted: FittedLikelihood, features: FeatureMatrix, rows: Array) -> None:
        self.prior_ = fitted.prior
        self.kernel_products_ = fitted.gram.products
        intercepts = fitted.prior.intercept_variance * fitted.dual.sum(axis=0)
        if has_weights(fitted.gram):
            self.scorer_ = LikelihoodWeights.of(fitted.prior, fitted.gram, fitted.dual, intercepts)
            return
        support, terms = scorers.expansion(fitted.prior, fitted.gram, fitted.dual)
        vectors = None if self._is_precomputed else features.to_local(rows[support]).data
        self.scorer_ = LikelihoodScorer(
            intercepts, tuple(terms), rows[support], vectors, fitted.dual[support]
        )
