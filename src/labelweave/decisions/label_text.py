"""Zero-shot labels by names and descriptions: a meta-classifier with their texts as the prior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import decision_level, row_blocks, score_blocks
from labelweave.decisions.text_prior import PriorTask, TextPrior, seen_labels
from labelweave.estimators import KernelLogisticClassifier
from labelweave.estimators.added_labels import with_more_labels
from labelweave.estimators.journal import meta_fit_method, where_rows_are
from labelweave.estimators.parameters import keep_parameters
from labelweave.features import FeatureMatrix
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import check_sparse, checked_csr
from labelweave.foundation.frames import column_labels, with_vectors_as_rows
from labelweave.foundation.sklearn_compat import HasMethods, Interval, StrOptions
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean, LabelText, Taxonomy
from labelweave.labels.label_names import as_text
from labelweave.labels.targets import OneOfMany, TargetForm, read_targets
from labelweave.labels.text.label_text import TextScores, described
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import Field, Made, Maybe

_INTERCEPT_VARIANCE = 10.0
_LEAST_LOG = -300.0  # of the most likely class of a row, before its probabilities are normalized
_PARTS = ("label_covariance", "label_mean")  # parts of a prior, as parameters of estimators


@storable("LabelTextClassifier")
class LabelTextClassifier(DecisionClassifier):
    """Use the names and descriptions of labels as a prior for a multi-label or multi-class classifier.

    The texts of labels act in two ways.  The similarity of a row's words to a label's text is the prior
    *mean* of its score (:meth:`LabelText.mean`); and labels of similar texts have a prior *covariance*
    (:meth:`LabelText.covariance`).  The strength of both is learned in closed form, by the squared error on
    out-of-fold training rows.  Labels without observed values are predicted as well, and more can be added
    to the fitted model.

    Parameters
    ----------
    estimator : classifier or None, default=None
        One with ``label_mean`` or ``label_covariance``: a :class:`KernelLogisticClassifier`, a
        :class:`MaxMarginClassifier`, or a :class:`LowRankClassifier`, which makes label features from the
        covariance.  None is a linear logistic classifier, whose scale is chosen too.
    descriptions : dict of str to str, DataFrame, Series, sequence of str, LabelText or None, default=None
        The description of each label by name, or only names; None for the names in y.  Labels missing from y
        are unobserved, and predicted from their texts.
    embedding : callable or None, default=None
        A function from a list of texts to an array with one row per text; None is the model of the package
        wordllama (``labelweave[text]``).
    feature_names : sequence of str, array-like of shape (d, k) or None, default=None
        The words that features count, such as ``vectorizer.get_feature_names_out()``, or their embeddings;
        None uses the columns of a DataFrame.  Without feature names there is no mean.
    taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads, or None, default=None
        A hierarchy over the labels; its covariance is compared with that of the texts, and added to it.
    mean : "learn" or float, default="learn"
        The strength of the mean: the standard deviation of prior scores over training rows, in log-odds.
    covariance : "learn" or "none", default="learn"
        Whether to learn a label covariance.
    learning_rows : int, default=1000
        The number of rows, drawn at random, on which the prior is chosen.
    random_state : int, RandomState instance or None, default=0
        Seed of the draw of these rows.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    text_ : LabelText
        The texts of all labels, the labels in y first.
    prior_ : TextPrior
        The chosen prior: ``mean``, the strength of prior scores; ``share`` and ``width`` of the covariance of
        texts, with a share of 0 for independent labels; ``tree_share``, the taxonomy's part of it;
        ``scale``, the prior variance of scores; ``level``, the log-odds at average similarity;
        ``unseen``, the amount added to the log-odds of labels without observed values, estimated on held-out
        labels.
    classes_ : ndarray of shape (L,)
        The labels or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit, if the estimator has them.

    Notes
    -----
    With one class per row every class is a label of a one-vs-rest model, since probabilities in the fit
    cannot sum to one over classes without rows; ``predict`` returns the class of the highest score, and
    probabilities are normalized.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import LabelText, LabelTextClassifier
    >>> words = {"chess": [1, 0], "mail": [0, 1], "board": [0.9, 0.1], "letter": [0.1, 0.9]}
    >>> def embedding(texts):
    ...     return [np.mean([words.get(word, [0, 0]) for word in text.split()], axis=0) for text in texts]
    >>> X = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    >>> model = LabelTextClassifier(
    ...     descriptions={"games": "chess", "post": "mail"}, embedding=embedding, feature_names=list(words)
    ... ).fit(X, [["games"], ["post"], ["games"], ["post"]])
    >>> model.predict(np.array([[0, 0, 1, 0]])).tolist()
    [['games']]
    """

    text_: LabelText
    text_scores_: TextScores | None
    taxonomy_: Taxonomy | None
    prior_: TextPrior

    _stored: ClassVar[dict[str, Field]] = {
        "text_": Made(LabelText),
        "text_scores_": Maybe(Made(TextScores)),
        "taxonomy_": Maybe(Made(Taxonomy)),
        "prior_": Made(TextPrior),
    }
    _kept_as: ClassVar[dict[str, str]] = {
        "descriptions": "text_", "taxonomy": "taxonomy_", "embedding": "", "feature_names": "",
    }  # fmt: skip
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "descriptions": "no_validation",
        "embedding": [callable, None],
        "feature_names": ["array-like", None],
        "taxonomy": "no_validation",
        "mean": [StrOptions({"learn"}), Interval(Real, 0, None, closed="left")],
        "covariance": [StrOptions({"learn", "none"})],
        "learning_rows": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }
    _is_prefit = False
    _one_of = None
    _relates_labels = True

    def __init__(
        self, estimator: Any = None, descriptions: Any = None, *, embedding: Any = None,
        feature_names: Any = None, taxonomy: Any = None, mean: Literal["learn"] | float = "learn",
        covariance: Literal["learn", "none"] = "learn", learning_rows: int = 1000, random_state: Any = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        shown = self
        if self.estimator is None:
            shown = type(self)(KernelLogisticClassifier("linear"))
        tags = super(LabelTextClassifier, shown).__sklearn_tags__()
        tags.input_tags.pairwise = False
        tags.classifier_tags.multi_class = True
        return tags

    @meta_fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the prior on out-of-fold rows, and fit the estimator with it.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows: counts or weights of words, such as tf-idf, and other features.
        y : DataFrame, LabelMatrix, array-like of shape (n, L), n lists of tags, or classes of shape (n,)
            Labels with names, or as many as there are descriptions; or one class per row.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, for the estimator; rows of weight 0 are ignored.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If labels have no names, or parameters do not match.
        ImportError
            If no embedding is given and the package wordllama is not installed.
        """
        estimator = self._asked()
        taxonomy = None if self.taxonomy is None else Taxonomy.from_any(self.taxonomy)
        data = self._read(X, y, sample_weight)
        self.taxonomy_ = taxonomy
        unseen = np.setdiff1d(np.arange(data.labels.n_labels), seen_labels(data))
        self._form = replace(self._form, unobserved=tuple(unseen.tolist()))
        data = self._announced(replace(data, y=y if self._form.is_pair else data.labels), 1)
        X = with_vectors_as_rows(X)
        features = self._features(X)
        names = self._names_of_features(X)
        text = self._column_text
        self.text_scores_ = None
        if names is not None and "label_mean" in estimator.get_params(deep=False):
            some = slice(None) if data.weights is None else np.flatnonzero(data.weights)
            self.text_scores_ = TextScores.of(text, names, features.data[some], self.embedding)
        task = PriorTask(features, data, text, self.text_scores_, self.taxonomy_, self._seed())
        given = None if self.mean == "learn" else float(self.mean)
        self.prior_ = task.choose(self.learning_rows, given, covaries=self._may_covary(estimator))
        for name, part in zip(_PARTS, self._prior_of(text, estimator), strict=True):
            if part is not None:
                estimator.set_params(**{name: part})
        if self.estimator is None:
            self.prior_ = task.with_fitted_scale(self.prior_, estimator)
            estimator.set_params(scale=self.prior_.scale)
            if not self._form.is_pair:
                self.prior_ = replace(self.prior_, unseen=task.unseen_shift(estimator))
        self._keep_estimator(data.fit(self, estimator=estimator))
        self._raise_unseen(np.array(self._form.unobserved, np.intp))
        self._close(data)
        return self

    def _asked(self) -> Any:
        if self.estimator is None:
            return KernelLogisticClassifier(
                "linear", hyperparameters="fixed", intercept_variance=_INTERCEPT_VARIANCE
            )
        return clone(self.estimator)

    def _refuse_together(self) -> None:
        estimator = self._asked()
        parameters = estimator.get_params(deep=False)
        taken = [name for name in _PARTS if name in parameters]
        if not taken:
            raise ValueError(
                f"{type(estimator).__name__} has neither label_mean nor label_covariance; use "
                "KernelLogisticClassifier, MaxMarginClassifier or LowRankClassifier."
            )
        for name in taken:
            if parameters[name] is not None:
                raise ValueError(f"The estimator has a {name}, but the texts define it; set it to None.")
        if parameters.get("scaling", "none") not in ("none", "unit"):
            raise ParameterError(
                f"`scaling={parameters['scaling']!r}` changes word counts in ways that texts do not match; "
                "use 'none' or 'unit'."
            )
        if parameters.get("kernel") == "precomputed":
            raise ValueError("kernel='precomputed' has no features to match with words; pass features.")

    def _read_targets(self, y: Any) -> tuple[LabelMatrix, TargetForm]:
        """Read y, and append labels that have only descriptions."""
        labels, form = read_targets(y, is_related=True)
        names = self._names_of_labels(labels, form)
        given = self.descriptions
        if isinstance(given, LabelText):
            known = given.names.tolist()
            missing = [name for name in names if name not in known]
            if missing:
                raise ValueError(
                    f"descriptions has no label {missing[0]!r}, which is in y; describe all labels."
                )
            more = [name for name in known if name not in names]
            self.text_ = given.columns(np.array([known.index(name) for name in [*names, *more]]))
        else:
            texts = {} if given is None else described(given)
            more = [name for name in texts if name not in names]
            every = {name: texts.get(name, "") for name in [*names, *more]}
            self.text_ = LabelText(every, self.embedding)
        if not form.has_one_class and labels.names is None:
            form = replace(form, classes=np.array(names, object))
        if not more:
            if not form.is_pair:
                labels = LabelMatrix.from_any(labels, self.text_.names)
            return labels, form
        if form.is_pair:
            second = labels.to_dense()
            labels = LabelMatrix.from_probabilities(np.hstack([1.0 - second, second]))
        form = with_more_labels(form, more)
        form = OneOfMany(**vars(form)) if form.is_pair else form
        return with_unobserved(labels, self.text_.names), form

    def _names_of_labels(self, labels: LabelMatrix, form: TargetForm) -> list[str]:
        if form.has_one_class or labels.names is not None:
            return [as_text(name) for name in form.classes]
        given = self.descriptions
        names = given.names.tolist() if isinstance(given, LabelText) else list(described(given or [" "]))
        if given is None or len(names) != labels.n_labels:
            raise ValueError(
                f"y has {labels.n_labels} labels without names; pass a DataFrame, lists of tags, or one "
                "description per column, in the order of the columns."
            )
        return names

    def _read_classes(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, TargetForm]:
        return labels, form

    def _completed(self, labels: LabelMatrix) -> LabelMatrix:
        return labels

    def _features(self, X: Any) -> FeatureMatrix:
        if sp.issparse(X):
            return FeatureMatrix(checked_csr(X, "X"), None, LARGEST_FEATURE)
        try:
            numbers = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "X has entries that are not numbers; convert texts to features first, with TableModel around "
                "this classifier, or TfidfVectorizer and feature_names=."
            ) from None
        return FeatureMatrix(numbers, None, LARGEST_FEATURE)

    def _names_of_features(self, X: Any) -> Any:
        if self.feature_names is not None:
            return self.feature_names
        columns = column_labels(X)
        return columns if columns and all(isinstance(name, str) for name in columns) else None

    @property
    def _column_text(self) -> LabelText:
        """The texts of the scored columns; for two classes, the difference of the second from the first."""
        if not self._form.is_pair:
            return self.text_
        return self.text_.columns(np.array([1]))

    def _may_covary(self, estimator: Any) -> bool:
        takes = "label_covariance" in estimator.get_params(deep=False)
        return takes and self.covariance == "learn" and not self._form.is_pair

    def _prior_of(self, text: LabelText, estimator: Any) -> tuple[LabelCovariance | None, LabelMean | None]:
        """Return the covariance and the mean of labels, None where they have no effect."""
        covariance = self.prior_.covariance(text, self.taxonomy_) if self.prior_.share > 0 else None
        mean = None
        if self.text_scores_ is not None and (self.prior_.mean > 0 or self._form.unobserved):
            mean = self.prior_.known_scores(self.text_scores_, text, estimator)
        return covariance, mean

    def _raise_unseen(self, labels: Array) -> None:
        """Raise the intercepts of labels without observed values by the shift of held-out labels."""
        if self.prior_.unseen and len(labels):
            scorer = self.estimator_.scorer_
            intercepts = np.array(scorer.intercept_)
            intercepts[labels] += self.prior_.unseen
            self.estimator_.scorer_ = replace(scorer, intercept_=intercepts)

    def add_labels(self, descriptions: Any) -> Self:
        """Add labels by their texts alone, without fitting again.

        Parameters
        ----------
        descriptions : dict of str to str, DataFrame, Series, or sequence of str
            The new labels.

        Returns
        -------
        Self
            The model itself; scores of other labels do not change.

        Raises
        ------
        ValueError
            If a label exists already, or the texts have no effect.
        """
        check_is_fitted(self)
        if self._form.is_pair:
            raise ValueError(
                "The model has a single score for its two classes and cannot add another; pass all labels as "
                "descriptions= before the fit."
            )
        text = self.text_.with_labels(descriptions, self.embedding)
        names = text.names[len(self.text_) :].tolist()
        covariance, mean = self._prior_of(text, self.estimator_)
        if self.estimator_.label_mean_ is None:
            mean = None
        if covariance is None and mean is None:
            raise ValueError(
                "The prior of texts was not better on held-out rows, so texts cannot predict new labels; "
                "set mean= to a number before the fit."
            )
        self.estimator_.add_labels(names, covariance, mean)
        self._raise_unseen(np.arange(len(self.text_), len(text)))
        self.text_, self._form = text, with_more_labels(self._form, names)
        self.classes_ = self._form.classes
        return self

    @property
    def _response(self) -> str:
        return "auto"

    def _words(self, is_inside: bool) -> str:
        prior = self.prior_
        known = f"prior scores of deviation {prior.mean:.2g}" if prior.mean else "no prior scores"
        shared = f"a shared part of {prior.share:g}" if prior.share else "labels independent"
        tree = f", {prior.tree_share:g} of it from the taxonomy" if prior.tree_share else ""
        return f"texts of {len(self.text_)} labels: {known}, {shared}{tree}"

    def _ranked(self, scores: Array) -> Array:
        return scores - decision_level(self.estimator_)

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self)
        if self._form.one_of is not None:
            yield from self._score_blocks(X)
            return
        for part in row_blocks(self.estimator_, X, self._n_columns):
            yield from self.estimator_._deciding_blocks(part)

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self._asked()), "predict_proba"))
    @where_rows_are
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        check_is_fitted(self)
        if self._form.is_pair:
            return np.asarray(self.estimator_.predict_proba(X))
        if not self._form.has_one_class:
            return np.concatenate(list(score_blocks(self.estimator_, X, self._n_columns, "predict_proba")))
        check_sparse(X, "X")
        parts = row_blocks(self.estimator_, X, self._n_columns)
        logs = np.concatenate([self.estimator_.predict_log_proba(part) for part in parts])
        # where all are near 0 their logarithms are raised by the same amount
        shares = np.exp(logs - np.minimum(logs.max(axis=1, keepdims=True) - _LEAST_LOG, 0.0))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @classmethod
    def _kind_inside(cls, kind: str) -> str:
        return "labels" if kind == "multiclass" else kind

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        fitted = state["fitted"]
        scores = fitted["text_scores_"]
        if fitted["text_"].names.tolist() != [as_text(name) for name in state["classes"]]:
            raise ModelFileError(f"its {cls.__name__} has texts of other labels.")
        width = fitted["text_"].embeddings.shape[1]
        if scores is not None and scores.factors.shape != (fitted["n_features_in_"], width):
            raise ModelFileError(f"its {cls.__name__} has words of other features.")


def with_unobserved(labels: LabelMatrix, names: Array) -> LabelMatrix:
    """Append labels with no observed value; names are those of all."""
    n_rows, n_labels = labels.shape
    rest = sp.csr_array((n_rows, len(names) - n_labels), dtype=np.int8)
    known, flips = abs(labels.observed_pattern()), labels.flip_probabilities
    tables = [labels.positives, known, *([] if flips is None else [flips])]
    positives, known, *flips = (sp.hstack([table, rest], format="csr") for table in tables)
    return LabelMatrix(positives, known, names, *flips)
