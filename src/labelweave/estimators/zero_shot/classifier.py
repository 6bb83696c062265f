"""Zero-shot classification: predict the attributes of rows, then the class.

Training rows have attributes (labels) and belong to some classes; other classes are described by
one signature ``y_c`` in -1/1 each, and by their frequency ``p(c)``.  Direct attribute prediction
(Lampert, Nickisch and Harmeling 2009) has ``p(c | x) ~ p(c) prod_l p(y_cl | x) / p(y_cl)``, which divides
by the frequencies of attributes in the *training* rows.  Let the log-odds of attribute l, minus its training
log-odds, be ``2 t (s_l(x) - m_l)``: a score, minus its mean over the training rows, times one slope t for all
attributes.  Then, up to a constant that all classes share,

``p(c | x) = softmax_c(log p(c) + t sum_l y_cl (s_l(x) - m_l))``.

The temperature t corrects for dependent attributes within a class, and for weaker scores on unseen
classes: it maximizes the likelihood of training rows whose whole class was held out.  The decision on
attributes with the least expected Hamming loss is the sign of the posterior mean ``sum_c p(c | x) y_c``.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from labelweave.estimators.base import CheckedParameters
from labelweave.estimators.journal import FitArguments, FitProgress, meta_fit_method, where_rows_are
from labelweave.estimators.low_rank.classifier import LowRankClassifier
from labelweave.estimators.max_margin.classifier import MaxMarginClassifier
from labelweave.estimators.parameters import Parameters, keep_parameters, refuse_together
from labelweave.estimators.scorers import attribute_of_scorer
from labelweave.estimators.stored_form import FORM
from labelweave.estimators.zero_shot.signatures import (
    ClassVectors,
    SignatureScorer,
    StoredNames,
    VectorMap,
    attributes_of_classes,
    best_shrinkage,
    class_names,
    names_again,
    read_class_prior,
    read_signatures,
    read_vectors,
    storable_names,
)
from labelweave.estimators.zero_shot.training_rows import (
    ClassFold,
    TrainingRows,
    attribute_scores,
    best_penalty,
    best_temperature,
    class_folds,
    covariance_parameter,
    majority_signs,
    prior_levels,
    read_groups,
    row_classes,
    row_folds,
    weighted_rows,
)
from labelweave.foundation.array_types import Array, PerLabel
from labelweave.foundation.arrays import Workers, check_sparse
from labelweave.foundation.sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    _num_samples,
)
from labelweave.labels import LabelCovariance
from labelweave.labels.label_names import as_text
from labelweave.labels.targets import TargetForm, has_many_labels, read_targets
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import MEASURED, Field, Made, Number, Numbers, Optional, Record, Sizes
from labelweave.splits.splitters import take_rows


@storable("ZeroShotClassifier")
class ZeroShotClassifier(CallbackSupportMixin, ClassifierMixin, MetaEstimatorMixin, CheckedParameters):
    """Classify rows into classes that only their attributes describe (direct attribute prediction).

    Parameters
    ----------
    estimator : estimator or None, default=None
        Scores attributes with ``decision_function``, or ``predict`` of a regressor; None is
        :class:`MaxMarginClassifier`.  Vectors are predicted by a regressor, or by a classifier of the
        training classes, whose scores weight their vectors; None is then a :class:`LowRankClassifier` of full
        rank with the squared loss and the ridge penalty.
    signatures : array-like, DataFrame, sparse matrix or LabelMatrix of shape (classes, L), default=None
        The attributes of every possible class, seen in training or not, 0/1 or -1/1, NaN where unknown;
        or for y of classes other real numbers: vectors of the classes, such as embeddings of their names.
        A frame's index names the classes; its columns are matched to the attributes by name.  None, for y of
        classes only: every class is an attribute of its own, and none is unseen.
    class_prior : array-like of shape (classes,), Series by class or None, default=None
        Non-negative weights p(c) of the classes, scaled to sum to 1; None for equal ones.
    temperature : "held_out" or float, default="held_out"
        The slope t; "held_out" chooses it on held-out training classes.
    couple_attributes : bool, default=False
        Whether the estimator's ``label_covariance`` is set to that of the signatures,
        ``sum_c p(c) y_c y_c^T`` (Hariharan et al. 2012, section 7.2.1), unknown ones as -1.  For vectors
        ``s_c^T s_d`` of the training classes, centered, of mean variance 1: scores are linear in vectors.
    seen_penalty : "held_out" or float, default="held_out"
        The constant subtracted from the log posterior of classes with training rows, which a model prefers to
        unseen ones (Chao, Changpinyo, Gong and Sha 2016).  "held_out" chooses that of the greatest harmonic
        mean of the accuracies on seen and unseen classes, on held-out rows, whatever share of
        the prior the seen classes have; 0 where all possible classes are seen, or none is.
    cv : int, default=4
        Number of parts of the training classes that are held out in turn.
    random_state : int, default=0
        Seed of the split of the classes.
    verbose : bool or int, default=0
        Whether to write progress to stderr: one line every two seconds, later less often, and one at
        the end; 2 for one line per fit of the estimator.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The names of the classes, or their numbers.
    estimator_ : estimator
        Fitted to all training rows.
    temperature_ : float
        The slope t.
    held_out_log_loss_ : float
        Mean negative log posterior of the class of training rows whose class was held out, NaN
        if the temperature was given.  Use it to choose estimators and their parameters.
    mean_scores_ : ndarray of shape (L,)
        The mean scores m of the training rows.
    seen_ : ndarray of bool, shape (classes,)
        Which of the classes are known to have training rows, by name.
    seen_penalty_ : float
        The constant subtracted from their log posterior.
    shrinkage_ : float
        For vectors, the share of a held-out class's distance from the mean that predictions keep,
        which multiplies the effect of vector lengths; 0 for attributes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit, if the estimator has them.

    See Also
    --------
    labelweave.metrics.harmonic_mean_accuracy : The metric of seen and unseen classes together.

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
    _vectors: ClassVectors | None
    _lengths: PerLabel | float
    shrinkage_: float
    scorer_: SignatureScorer

    __getattr__ = attribute_of_scorer

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"]), None],
        "signatures": "no_validation",  # type: ignore[dict-item]
        "class_prior": ["array-like", None],
        "temperature": [StrOptions({"held_out"}), Interval(Real, 0, None, closed="left")],
        "couple_attributes": ["boolean"],
        "seen_penalty": [StrOptions({"held_out"}), Interval(Real, None, None, closed="neither")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self, estimator: Any = None, signatures: Any = None, *, class_prior: Any = None,
        temperature: Literal["held_out"] | float = "held_out", couple_attributes: bool = False,
        seen_penalty: Literal["held_out"] | float = "held_out", cv: int = 4, random_state: int = 0,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator or MaxMarginClassifier()).input_tags.sparse
        return tags

    @property
    def n_features_in_(self) -> int:
        """The number of features seen in fit."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """The names of the features seen in fit."""
        return np.asarray(self.estimator_.feature_names_in_)

    @meta_fit_method
    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> ZeroShotClassifier:
        """Fit the estimator of attributes; choose the temperature, and the penalty of seen classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            Their attributes, 0/1 or -1/1, NaN where unobserved; or their classes, whose attributes are looked
            up in the signatures.
        groups : array-like of shape (n,) or None, default=None
            The class of every row, for y of attributes, named as in the index of a frame of signatures; by
            default rows with the same attributes are one class.
        sample_weight : array-like of shape (n,) or None, default=None
            Non-negative weights of the rows, for the estimator and for what is chosen on held-out rows; rows
            of weight 0 are dropped.

        Returns
        -------
        ZeroShotClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If signatures, attributes and classes do not match, or there are weights that the
            estimator does not accept.
        """
        check_sparse(X, "X")
        arguments = FitArguments(X, y, sample_weight)
        (X,) = indexable(X)
        estimator = self.estimator or MaxMarginClassifier()
        X, y, groups, weights = weighted_rows(estimator, X, y, groups, sample_weight)
        signatures, names, vectors = self.signatures, None, read_vectors(self.signatures)
        if not has_many_labels(y):
            y, signatures, names, groups = attributes_of_classes(signatures, y)
        elif vectors is not None:
            raise ValueError(
                f"signatures are vectors, but y has shape {np.shape(y)}; pass y of shape (n,), the class of "
                "each row."
            )
        y = y if vectors is None else groups
        labels, self._form = read_targets(y, is_related=True)  # the estimator warns where it is not
        refuse_together(self, self._form.facts)
        if _num_samples(X) != len(labels):
            raise ValueError(f"X has {_num_samples(X)} rows but y has {len(labels)}; they must agree.")
        groups = read_groups(groups, len(labels))
        signs = read_signatures(signatures, labels) if vectors is None else vectors
        self.classes_ = class_names(signatures) if names is None else names
        prior = read_class_prior(self.class_prior, self.classes_)
        self._vectors = None if vectors is None else ClassVectors(vectors, self.classes_)
        is_named = groups is not None and (names is not None or hasattr(signatures, "columns"))
        seen = set(map(as_text, groups.tolist())) if is_named else set()
        self.seen_ = np.array([as_text(name) in seen for name in self.classes_.tolist()], bool)
        if self._form.container == "tags":
            y = labels  # whose parts keep all tags as columns
        given = TrainingRows(X, y if hasattr(y, "shape") else np.asarray(y), weights, groups)
        progress = FitProgress(self, arguments, 1 + (int(self.cv) if self._chooses else 0))
        with Workers().running():  # the same bits for any number of BLAS threads
            temperature = self._choose_on_held_out(given, labels, groups, prior, progress)
        estimator, mean, found = self._fit_scorer(given, signs, prior)
        progress.subtask("fit to all rows")
        self._lengths = temperature * self.shrinkage_ / 2 * found.squares(signs)
        with np.errstate(divide="ignore"):
            offsets = np.log(prior) - self.seen_penalty_ * self.seen_ - self._lengths
        self.scorer_ = SignatureScorer(offsets, estimator, mean, found.directions(signs), temperature)
        progress.close()
        return self

    @property
    def _with_seen(self) -> bool:
        return bool(self.seen_.any() and not self.seen_.all()) and self.seen_penalty == "held_out"

    @property
    def _chooses(self) -> bool:
        return self.temperature == "held_out" or self._with_seen or self._vectors is not None

    def _choose_on_held_out(
        self, given: TrainingRows, labels: Any, groups: Any, prior: Array, progress: FitProgress
    ) -> float:
        """Choose temperature and penalty, where "held_out" is requested; return the temperature."""
        with_seen = self._with_seen
        self.seen_penalty_ = 0.0 if self.seen_penalty == "held_out" else float(self.seen_penalty)
        self.held_out_log_loss_, self.shrinkage_ = np.nan, 0.0
        if not self._chooses:
            return float(self.temperature)
        weights = np.ones(len(labels)) if given.weights is None else given.weights
        folds, evidence, of_every = self._folds(labels, groups, weights), [], []
        for fold in folds:
            estimator, mean, found = self._fit_scorer(given.part(fold.training), fold.signs, fold.prior)
            rows = fold.held_out if fold.every is None else fold.every.rows
            scores = attribute_scores(estimator, take_rows(given.X, rows)) - mean
            progress.subtask("fit to a part")
            evidence.append(found.evidence(scores[np.isin(rows, fold.held_out)], fold.signs))
            if fold.every is not None:
                of_every.append(found.evidence(scores, fold.every.signs))
        if self._vectors is not None:
            self.shrinkage_ = best_shrinkage(evidence, folds)
        temperature = self.temperature
        if temperature == "held_out":
            likeness = [table.at(self.shrinkage_) for table in evidence]
            temperature, self.held_out_log_loss_ = best_temperature(likeness, folds)
        if with_seen:
            levels, lead = prior_levels(prior, self.classes_, self.seen_, groups)
            tables = [temperature * table.at(self.shrinkage_) + levels for table in of_every]
            self.seen_penalty_ = lead + best_penalty(tables, [fold.every for fold in folds if fold.every])
        return float(temperature)

    def _folds(self, labels: Any, groups: Any, weights: Array) -> list[ClassFold]:
        """Hold classes out in turn; rows, where every class is an attribute of its own."""
        if self.signatures is None:
            codes, signs = np.unique(groups, return_inverse=True)[1], 2 * np.eye(labels.n_labels) - 1
            return list(row_folds(signs, codes, weights, self.cv, self.random_state))
        codes, seed = row_classes(labels, groups), self.random_state
        if self._vectors is None:
            table = majority_signs(labels, codes, weights)
        else:
            table = self._vectors.of(np.unique(groups))
        return list(class_folds(table, codes, weights, self.cv, seed, with_seen=self._with_seen))

    def _fit_scorer(self, rows: TrainingRows, signs: Array, prior: Array) -> tuple[Any, Array, VectorMap]:
        """Fit a copy of the estimator; return it, its mean scores on the same rows and their map."""
        estimator: Any
        if self._vectors is not None:
            own = LowRankClassifier(1.0, penalty="ridge") if self.estimator is None else self.estimator
            estimator = clone(own)
            found = self._vectors.fit(estimator, rows, self.couple_attributes)
            return estimator, np.average(attribute_scores(estimator, rows.X), 0, rows.weights), found
        estimator = clone(self.estimator or MaxMarginClassifier())
        if self.couple_attributes:
            covariance = LabelCovariance.from_signatures(np.where(signs > 0, 1, -1), prior)
            estimator.set_params(**{covariance_parameter(estimator): covariance})
        extra = {} if rows.weights is None else {"sample_weight": rows.weights}
        estimator.fit(rows.X, rows.y, **extra)
        scores = attribute_scores(estimator, rows.X)
        if scores.shape[1] != signs.shape[1]:
            raise ValueError(
                f"The estimator returned {scores.shape[1]} scores per row for {signs.shape[1]} attributes; "
                "they must agree."
            )
        return estimator, np.average(scores, axis=0, weights=rows.weights), VectorMap(np.zeros(1), None)

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the log posterior of each class.

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

    @where_rows_are
    def predict_proba(self, X: Any) -> Array:
        """Compute the posterior of each class; see :meth:`ZeroShotClassifier.predict_log_proba`."""
        return np.exp(self.predict_log_proba(X))

    @where_rows_are
    def predict(self, X: Any) -> Array:
        """Predict the most probable class of every row; for X see :meth:`predict_log_proba`.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def expected_attributes(self, X: Any) -> Array:
        """Compute the mean of the signatures under the posterior of every row.

        For X see :meth:`predict_log_proba`.

        Returns
        -------
        ndarray of float64, shape (n, L)
            Between -1 and 1; unknown entries of a signature count as 0.  For vectors, their mean.
        """
        posterior = self.predict_proba(X)
        table = self.scorer_.signs if self._vectors is None else self._vectors.table
        with Workers().running():
            return posterior @ table

    def predict_attributes(self, X: Any) -> Any:
        """Predict the attributes of every row with the least expected Hamming loss.

        For X see :meth:`predict_log_proba`.

        Returns
        -------
        ndarray, csr_array or DataFrame of shape (n, L)
            The attributes, as the type of the training attributes; for vectors, their mean.
        """
        check_is_fitted(self)
        if self._vectors is not None:
            return self.expected_attributes(X)
        return self._form.join([self._form.decide(self.expected_attributes(X))], X)

    def to_state(self) -> dict[str, Any]:
        """Return the stored state; see :meth:`labelweave.estimators.base.LabelClassifier.to_state`."""
        form, attributes = self._form.to_state(), self._form.classes
        settings = ("temperature", "couple_attributes", "seen_penalty", "cv", "random_state", "verbose")
        fitted = ("held_out_log_loss_", "scorer_", "seen_", "seen_penalty_")
        vectors = {"shrinkage": self.shrinkage_, "lengths": self._lengths}
        of_vectors = {} if self._vectors is None else {"vectors": vectors | {"table": self._vectors.table}}
        return of_vectors | {
            "settings": {name: getattr(self, name) for name in settings},
            "fitted": {name: getattr(self, name) for name in fitted},
            "form": form,
            "names": {"classes": storable_names(self.classes_), "attributes": storable_names(attributes)},
        }

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        sizes: Sizes = {}
        fields: dict[str, Field] = {
            "settings": Parameters(cls),
            "fitted": Record(
                {
                    "held_out_log_loss_": MEASURED,
                    "scorer_": Made(SignatureScorer),
                    "seen_": Numbers("c", "b"),
                    "seen_penalty_": Number(),
                }
            ),
            "vectors": Optional(
                Record({"shrinkage": Number(0), "lengths": Numbers("c"), "table": Numbers("c v")})
            ),
            "form": FORM["form"],
            "names": Record({"classes": StoredNames("c"), "attributes": StoredNames("a")}),
        }
        Record(fields).check(state, cls.__name__, sizes)
        scorer = state["fitted"]["scorer_"]
        if scorer.signs.shape != (sizes["c"], sizes["a"]) or not scorer.takes(
            scorer.estimator_.n_features_in_
        ):
            raise ModelFileError("its ZeroShotClassifier has signatures of other classes or attributes.")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ZeroShotClassifier:
        """Restore the fitted model; see :meth:`labelweave.estimators.base.LabelClassifier.from_state`."""
        fitted = state["fitted"]
        cls._check_state(state)
        scorer, seen, penalty = fitted["scorer_"], fitted["seen_"], fitted["seen_penalty_"]
        vectors = state.get("vectors", {"shrinkage": 0.0, "lengths": 0.0, "table": None})
        table, lengths = vectors["table"], vectors["lengths"]
        prior = np.exp(scorer.intercept_ + penalty * seen + lengths)
        signatures = scorer.signs if table is None else table
        model = cls(clone(scorer.estimator_), signatures, class_prior=prior, **state["settings"])
        model.scorer_, model.held_out_log_loss_ = scorer, fitted["held_out_log_loss_"]
        model.seen_, model.seen_penalty_ = seen, penalty
        model.shrinkage_, model._lengths = vectors["shrinkage"], lengths
        model.classes_ = names_again(state["names"]["classes"])
        model._vectors = None if table is None else ClassVectors(table, model.classes_)
        model._form = TargetForm.from_state(state["form"], names_again(state["names"]["attributes"]))
        return model
