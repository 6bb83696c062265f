"""Classes that no training row has: predict their attributes, then the class itself.

Training rows have attributes (labels) and belong to some classes; the classes to be met later are known by
one signature ``y_c`` in -1/1 each, and by how often they come, ``p(c)``.  Direct attribute prediction
(Lampert, Nickisch and Harmeling 2009) has ``p(c | x) ~ p(c) prod_l p(y_cl | x) / p(y_cl)``, which takes out
how often attributes are among the *training* rows.  Let the log-odds of attribute l, less its training
log-odds, be ``2 t (s_l(x) - m_l)``: a score, less its mean over the training rows, times one slope t for all
attributes.  Then, up to what all classes share,

``p(c | x) = softmax_c(log p(c) + t sum_l y_cl (s_l(x) - m_l))``.

The temperature t corrects that attributes of a class are not independent, and scores of unseen classes
weaker: it maximises the likelihood of training rows whose whole class was left out.  The decision on
attributes with the least expected Hamming loss is the sign of the posterior mean ``sum_c p(c | x) y_c``.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Array
from labelweave.arrays import check_sparse
from labelweave.estimators.max_margin.classifier import MaxMarginClassifier
from labelweave.estimators.parameters import keep_parameters
from labelweave.estimators.scorers import HasScorer, Scorer
from labelweave.estimators.targets import TargetForm, read_targets
from labelweave.estimators.zero_shot.held_out_classes import best_temperature, class_folds, row_classes
from labelweave.estimators.zero_shot.signature_table import read_class_prior, read_signatures
from labelweave.labels import LabelCovariance
from labelweave.model_files import storable
from labelweave.sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _num_samples,
    _safe_indexing,
)


@storable("SignatureScorer")
@dataclass(frozen=True)
class SignatureScorer(Scorer):
    """Scores of classes, up to what all of them share: log prior plus evidence of attributes.

    estimator_: scores attributes.
    mean_scores_ (L,): m.
    signs (classes, L): the signatures, 0 where unknown.
    temperature_: t.
    """

    estimator_: Any
    mean_scores_: Array
    signs: Array
    temperature_: float

    def scores(self, features: Any) -> Array:
        """Score every class of every row.

        features (n, d): the rows, as the estimator takes them.
        """
        evidence = (_scores(self.estimator_, features) - self.mean_scores_) @ self.signs.T
        return np.asarray(self.intercept_ + self.temperature_ * evidence)


@storable("ZeroShotClassifier")
class ZeroShotClassifier(HasScorer, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classify rows into classes known by their attributes only (direct attribute prediction).

    Parameters
    ----------
    estimator : estimator or None, default=None
        Scores attributes with ``decision_function``, or ``predict`` of a regressor; None is
        :class:`MaxMarginClassifier`.
    signatures : array-like, DataFrame, sparse matrix or LabelMatrix of shape (classes, L)
        The attributes of every class to tell apart, 0/1 or -1/1, NaN where unknown.  A
        frame's index names the classes; its columns are put in the order of the attributes.
    class_prior : array-like of shape (classes,) or None, default=None
        Non-negative weights p(c) of the classes, scaled to sum to 1; None for equal ones.
    temperature : "held_out" or float, default="held_out"
        The slope t; "held_out" chooses it on training classes left out of the fit.
    couple_attributes : bool, default=False
        Whether the estimator's ``label_covariance`` is set to that of the signatures,
        ``sum_c p(c) y_c y_c^T`` (Hariharan et al. 2012, section 7.2.1).
    cv : int, default=4
        Parts into which the training classes are split to be left out in turn.
    random_state : int, default=0
        Fixes which classes are left out together.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The names of the classes, or their numbers.
    estimator_ : estimator
        Fitted to all training rows.
    temperature_ : float
        The slope t.
    held_out_log_loss_ : float
        Mean negative log posterior of the class of training rows whose class was left out, NaN
        if the temperature was given.  Choose estimators and their parameters by it.
    mean_scores_ : ndarray of shape (L,)
        The mean scores m of the training rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelweave import MaxMarginClassifier, ZeroShotClassifier
    >>> X = [[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]]
    >>> attributes = pd.DataFrame({"striped": [1, 0, 1, 0], "big": [0, 0, 1, 1]})
    >>> unseen = pd.DataFrame({"striped": [1, 0], "big": [1, 0]}, index=["tiger", "mouse"])
    >>> model = ZeroShotClassifier(MaxMarginClassifier(C=10), unseen, temperature=1.0)
    >>> model.fit(X, attributes).predict([[1, 0, 1], [0, 1, 0]])
    array(['tiger', 'mouse'], dtype=object)
    """

    _form: TargetForm
    scorer_: SignatureScorer

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"]), None],
        "signatures": "no_validation",  # type: ignore[dict-item]
        "class_prior": ["array-like", None],
        "temperature": [StrOptions({"held_out"}), Interval(Real, 0, None, closed="left")],
        "couple_attributes": ["boolean"],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self, estimator=None, signatures=None, *, class_prior=None, temperature="held_out",
        couple_attributes=False, cv=4, random_state=0,
    ):  # fmt: skip
        keep_parameters(self, locals())

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, groups: Any = None) -> ZeroShotClassifier:
        """Fit the estimator of attributes and choose the temperature.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows.
        y : array-like of shape (n, L), sparse matrix, DataFrame or LabelMatrix
            Their attributes, 0/1 or -1/1, NaN where unobserved.
        groups : array-like of shape (n,) or None, default=None
            The class of every row; by default rows with the same attributes are one class.

        Returns
        -------
        ZeroShotClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If signatures, attributes and classes do not fit together.
        """
        check_sparse(X, "X")
        labels, self._form = read_targets(y)
        if self._form.kind != "labels":
            raise ValueError("y has one class a row; give a table of attributes, and the classes as groups.")
        signs, self.classes_ = read_signatures(self.signatures, labels)
        prior = read_class_prior(self.class_prior, self.classes_)
        y = y if hasattr(y, "shape") else np.asarray(y)
        if self.temperature == "held_out":
            temperature, self.held_out_log_loss_ = self._choose_temperature(X, y, labels, groups)
        else:
            temperature, self.held_out_log_loss_ = float(self.temperature), np.nan
        estimator, mean = self._fit_scorer(X, y, signs, prior)
        with np.errstate(divide="ignore"):
            self.scorer_ = SignatureScorer(np.log(prior), estimator, mean, signs, temperature)
        return self

    def _choose_temperature(self, X: Any, y: Any, labels: Any, groups: Any) -> tuple[float, float]:
        """Leave classes out in turn and score their rows against their own signatures."""
        codes = row_classes(labels, groups)
        if _num_samples(X) != len(codes):
            raise ValueError(f"X has {_num_samples(X)} rows but y has {len(codes)}; they must agree.")
        evidence, folds = [], list(class_folds(labels, codes, self.cv, self.random_state))
        for fold in folds:
            parts = (
                _safe_indexing(X, fold.training),
                y.iloc[fold.training] if hasattr(y, "iloc") else y[fold.training],
            )
            estimator, mean = self._fit_scorer(*parts, fold.signs, fold.prior)
            scores = _scores(estimator, _safe_indexing(X, fold.held_out))
            evidence.append((scores - mean) @ fold.signs.T)
        return best_temperature(evidence, folds)

    def _fit_scorer(self, X: Any, y: Any, signs: Array, prior: Array) -> tuple[Any, Array]:
        """Fit a copy of the estimator; give it with its mean scores on the same rows."""
        estimator: Any = clone(self.estimator or MaxMarginClassifier())  # type: ignore[no-untyped-call]
        if self.couple_attributes:
            covariance = LabelCovariance.from_signatures(np.where(signs > 0, 1, -1), prior)
            estimator.set_params(**{_covariance_parameter(estimator): covariance})
        estimator.fit(X, y)
        scores = _scores(estimator, X)
        if scores.shape[1] != signs.shape[1]:
            raise ValueError(
                f"The estimator gives {scores.shape[1]} scores a row for {signs.shape[1]} attributes; "
                "it must give one for each."
            )
        return estimator, scores.mean(axis=0)

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the log posterior of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of float64, shape (n, classes)
            Natural logarithms of probabilities.
        """
        check_is_fitted(self)
        check_sparse(X, "X")
        return np.asarray(log_softmax(self.scorer_.scores(X), axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Compute the posterior of every class; see :meth:`ZeroShotClassifier.predict_log_proba`."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Predict the most probable class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        return self.classes_[self.predict_log_proba(X).argmax(axis=1)]

    def expected_attributes(self, X: Any) -> Array:
        """Average the signatures over the posterior of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of float64, shape (n, L)
            Between -1 and 1; unknown entries of a signature count as 0.
        """
        return self.predict_proba(X) @ self.scorer_.signs

    def predict_attributes(self, X: Any) -> Any:
        """Predict the attributes of every row with the least expected Hamming loss.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray, csr_array or DataFrame of shape (n, L)
            The attributes, in the form that the training attributes had.
        """
        decided = self._form.decide(self.expected_attributes(X))
        return self._form.join([decided], getattr(X, "index", None))

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.estimators.base.LabelClassifier.to_state`."""
        form, attributes = self._form.to_state(), self._form.classes
        settings = ("temperature", "couple_attributes", "cv", "random_state")
        return {
            "settings": {name: getattr(self, name) for name in settings},
            "fitted": {"held_out_log_loss_": self.held_out_log_loss_, "scorer_": self.scorer_},
            "form": form,
            "names": {"classes": _storable_names(self.classes_), "attributes": _storable_names(attributes)},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ZeroShotClassifier:
        """Make the fitted model again; see :meth:`labelweave.estimators.base.LabelClassifier.from_state`."""
        fitted = state["fitted"]
        parts = ("_log_prior", "estimator_", "mean_scores_", "_signs", "temperature_")  # of earlier files
        scorer = fitted["scorer_"] if "scorer_" in fitted else SignatureScorer(*(fitted[n] for n in parts))
        prior = np.exp(scorer.intercept_)
        model = cls(clone(scorer.estimator_), scorer.signs, class_prior=prior, **state["settings"])
        model.scorer_, model.held_out_log_loss_ = scorer, fitted["held_out_log_loss_"]
        model.classes_ = _names_again(state["names"]["classes"])
        model._form = TargetForm.from_state(state["form"], _names_again(state["names"]["attributes"]))
        return model


def _scores(estimator: Any, X: Any) -> Array:
    score = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    return np.asarray(score(X), dtype=np.float64).reshape(_num_samples(X), -1)


def _covariance_parameter(estimator: Any) -> str:
    """Name the parameter ``label_covariance`` of an estimator, or of a step of a pipeline."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "label_covariance"]
    if len(names) != 1:
        raise ValueError(
            f"couple_attributes is True but {type(estimator).__name__} has {len(names)} parameters named "
            "label_covariance; one is needed."
        )
    return names[0]


def _storable_names(names: Array) -> tuple[Array, bool]:
    is_object = names.dtype == object
    return (names.astype(np.str_) if is_object else names), is_object


def _names_again(stored: tuple[Array, bool]) -> Array:
    names, is_object = stored
    return names.astype(object) if is_object else names
