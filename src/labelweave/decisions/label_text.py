"""Labels known by names and descriptions: a classifier around which their texts are the prior."""

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

from labelweave.decisions.base import DecisionClassifier, decision_fit
from labelweave.decisions.label_scores import decision_level, row_blocks, score_blocks
from labelweave.decisions.text_prior import PriorTask, TextPrior, seen_labels
from labelweave.estimators import KernelLogisticClassifier
from labelweave.estimators.added_labels import with_more_labels
from labelweave.estimators.progress import where_rows_are
from labelweave.estimators.targets import TargetForm, node_name, read_targets
from labelweave.features import FeatureMatrix
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import check_sparse, checked_csr
from labelweave.foundation.frames import column_labels, with_vectors_as_rows
from labelweave.foundation.sklearn_compat import HasMethods, Interval, StrOptions
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean, LabelText, Taxonomy
from labelweave.labels.text.label_text import TextScores, described
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import Field, Made, Maybe

_INTERCEPT_VARIANCE = 10.0
_LEAST_LOG = -300.0  # of the likeliest class of a row, before its probabilities are divided by their sum
_PARTS = ("label_covariance", "label_mean")  # of a prior, as estimators call them


@storable("LabelTextClassifier")
class LabelTextClassifier(DecisionClassifier):
    """Multi-label or multi-class classifier that knows what labels mean by their names and descriptions.

    The texts of labels act in two ways.  How near the words of a row are to a label's text is the *mean* of
    its score, known before the fit (:meth:`LabelText.mean`); and labels of near texts *covary*
    (:meth:`LabelText.covariance`).  How strong both are is learned: by the squared error of left-out
    training rows, in closed form.  Labels that no row tells of are predicted as well, and more can be added
    to the fitted model.

    Parameters
    ----------
    estimator : classifier or None, default=None
        One with ``label_mean`` or ``label_covariance``: a :class:`KernelLogisticClassifier`, a
        :class:`MaxMarginClassifier`, or a :class:`LowRankClassifier`, of which the covariance makes label
        features.  None is a linear logistic one, whose scale is chosen too.
    descriptions : dict of str to str, DataFrame, Series, sequence of str, LabelText or None, default=None
        The description of each label by its name, or names alone; None for the names in y.  Labels that y
        does not have are unobserved, and predicted by their texts.
    embedding : callable or None, default=None
        What gives a list of texts as an array, one row a text; None is the model that the package wordllama
        carries (``labelweave[text]``).
    feature_names : sequence of str, array-like of shape (d, k) or None, default=None
        The words that features count, such as ``vectorizer.get_feature_names_out()``, or their embeddings;
        None takes the columns of a frame.  Without any there is no mean.
    taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads, or None, default=None
        A hierarchy over the labels, whose covariance is tried beside that of the texts and added to it.
    mean : "learn" or float, default="learn"
        How strong the mean is: the standard deviation of known scores over training rows, in log-odds.
    covariance : "learn" or "none", default="learn"
        Whether labels may covary.
    learning_rows : int, default=1000
        On how many rows, drawn at random, the prior is chosen.
    random_state : int, RandomState instance or None, default=0
        Fixes which these are.

    Attributes
    ----------
    estimator_ : classifier
        The one that was fitted.
    text_ : LabelText
        The texts of all labels, those that y has first.
    prior_ : TextPrior
        What was chosen: ``mean``, the strength of known scores; ``share`` and ``width`` of the covariance of
        texts, with a share of 0 for independent labels; ``tree_share``, what part of it the taxonomy has;
        ``scale``, the prior variance of scores; ``level``, the log-odds of labels that fit as usual;
        ``unseen``, what those of labels that no row tells of are raised by, as labels that were held out say.
    classes_ : ndarray of shape (L,)
        The labels or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Features seen in fit and their names, if the estimator tells.

    Notes
    -----
    With one class a row every class is a label of a one-against-all model, as classes that no row has cannot
    have probabilities that all add up to one in the fit; ``predict`` takes the class of the highest score,
    and probabilities are divided by their sum.

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
        self.estimator = estimator
        self.descriptions = descriptions
        self.embedding = embedding
        self.feature_names = feature_names
        self.taxonomy = taxonomy
        self.mean = mean
        self.covariance = covariance
        self.learning_rows = learning_rows
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        shown = self
        if self.estimator is None:
            shown = type(self)(KernelLogisticClassifier("linear"))
        tags = super(LabelTextClassifier, shown).__sklearn_tags__()
        tags.input_tags.pairwise = False
        tags.classifier_tags.multi_class = True
        return tags

    @decision_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the prior on left-out rows, and fit the estimator with it.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows: counts or weights of words, such as tf-idf, and other features.
        y : DataFrame, LabelMatrix, array-like of shape (n, L), n lists of tags, or classes of shape (n,)
            Labels with names, or as many as there are descriptions; or one class a row.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, for the estimator; rows of weight 0 are not learned from.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If labels have no names, or parts do not fit together.
        ImportError
            If no embedding is given and the package wordllama is not there.
        """
        estimator = self._asked()
        taxonomy = None if self.taxonomy is None else Taxonomy.from_any(self.taxonomy)
        data = self._read(X, y, sample_weight)
        self.taxonomy_ = taxonomy
        unseen = np.setdiff1d(np.arange(data.labels.n_labels), seen_labels(data))
        self._form = replace(self._form, unobserved=tuple(unseen.tolist()))
        data = self._announced(replace(data, y=data.labels if self._form.kind != "binary" else y), 1)
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
            if self._form.kind != "binary":
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
                f"{type(estimator).__name__} takes neither label_mean nor label_covariance; give "
                "KernelLogisticClassifier, MaxMarginClassifier or LowRankClassifier."
            )
        for name in taken:
            if parameters[name] is not None:
                raise ValueError(f"The estimator has a {name}, which texts are to make; leave it None.")
        if parameters.get("scaling", "none") not in ("none", "unit"):
            raise ParameterError(
                f"`scaling={parameters['scaling']!r}` makes other numbers of counts of words, which texts "
                "say nothing of; use 'none' or 'unit'."
            )
        if parameters.get("kernel") == "precomputed":
            raise ValueError("kernel='precomputed' has no features that words are found in; give features.")

    def _read_targets(self, y: Any) -> tuple[LabelMatrix, TargetForm]:
        """Read y, and put labels behind it that are only described."""
        labels, form = read_targets(y, is_related=True)
        names = self._names_of_labels(labels, form)
        given = self.descriptions
        if isinstance(given, LabelText):
            known = given.names.tolist()
            missing = [name for name in names if name not in known]
            if missing:
                raise ValueError(
                    f"descriptions has no label {missing[0]!r}, which y has; describe all labels."
                )
            more = [name for name in known if name not in names]
            self.text_ = given.columns(np.array([known.index(name) for name in [*names, *more]]))
        else:
            texts = {} if given is None else described(given)
            more = [name for name in texts if name not in names]
            every = {name: texts.get(name, "") for name in [*names, *more]}
            self.text_ = LabelText(every, self.embedding)
        if form.kind == "labels" and labels.names is None:
            form = replace(form, classes=np.array(names, object))
        if not more:
            if form.kind != "binary":
                labels = LabelMatrix.from_any(labels, self.text_.names)
            return labels, form
        if form.kind == "binary":
            second = labels.to_dense()
            labels = LabelMatrix.from_probabilities(np.hstack([1.0 - second, second]))
        kind: Literal["labels", "multiclass"] = "labels" if form.kind == "labels" else "multiclass"
        return with_unobserved(labels, self.text_.names), replace(with_more_labels(form, more), kind=kind)

    def _names_of_labels(self, labels: LabelMatrix, form: TargetForm) -> list[str]:
        if form.kind != "labels" or labels.names is not None:
            return [node_name(name) for name in form.classes]
        given = self.descriptions
        names = given.names.tolist() if isinstance(given, LabelText) else list(described(given or [" "]))
        if given is None or len(names) != labels.n_labels:
            raise ValueError(
                f"y has {labels.n_labels} labels without names; give a DataFrame, lists of tags, or a "
                "description for each in the order of the columns."
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
                "X has entries that are no numbers; make features of texts first, by TableModel around this "
                "classifier, or TfidfVectorizer and feature_names=."
            ) from None
        return FeatureMatrix(numbers, None, LARGEST_FEATURE)

    def _names_of_features(self, X: Any) -> Any:
        if self.feature_names is not None:
            return self.feature_names
        columns = column_labels(X)
        return columns if columns and all(isinstance(name, str) for name in columns) else None

    @property
    def _column_text(self) -> LabelText:
        """The texts of the columns that are scored: of two classes how the second differs from the first."""
        if self._form.kind != "binary":
            return self.text_
        return self.text_.columns(np.array([1]))

    def _may_covary(self, estimator: Any) -> bool:
        takes = "label_covariance" in estimator.get_params(deep=False)
        return takes and self.covariance == "learn" and self._form.kind != "binary"

    def _prior_of(self, text: LabelText, estimator: Any) -> tuple[LabelCovariance | None, LabelMean | None]:
        """Make the covariance and the mean of labels, None where they say nothing."""
        covariance = self.prior_.covariance(text, self.taxonomy_) if self.prior_.share > 0 else None
        mean = None
        if self.text_scores_ is not None and (self.prior_.mean > 0 or self._form.unobserved):
            mean = self.prior_.known_scores(self.text_scores_, text, estimator)
        return covariance, mean

    def _raise_unseen(self, labels: Array) -> None:
        """Raise the intercepts of labels that no row tells of by what labels that were held out asked for."""
        if self.prior_.unseen and len(labels):
            scorer = self.estimator_.scorer_
            intercepts = np.array(scorer.intercept_)
            intercepts[labels] += self.prior_.unseen
            self.estimator_.scorer_ = replace(scorer, intercept_=intercepts)

    def add_labels(self, descriptions: Any) -> Self:
        """Add labels by their texts alone; nothing is fitted again.

        Parameters
        ----------
        descriptions : dict of str to str, DataFrame, Series, or sequence of str
            The new labels.

        Returns
        -------
        Self
            The model itself; other labels have the scores that they had.

        Raises
        ------
        ValueError
            If a label is there already, or the texts were found to tell nothing.
        """
        check_is_fitted(self)
        if self._form.kind == "binary":
            raise ValueError(
                "The model has one score for two classes, with no place for another; describe "
                "it in descriptions= before the fit."
            )
        text = self.text_.with_labels(descriptions, self.embedding)
        names = text.names[len(self.text_) :].tolist()
        covariance, mean = self._prior_of(text, self.estimator_)
        if self.estimator_.label_mean_ is None:
            mean = None
        if covariance is None and mean is None:
            raise ValueError(
                "Left-out rows were predicted best without the texts, which therefore tell nothing of new "
                "labels; give mean= a strength before the fit."
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
        known = f"known scores of deviation {prior.mean:.2g}" if prior.mean else "no known scores"
        shared = f"a share of {prior.share:g} in common" if prior.share else "labels independent"
        tree = f", {prior.tree_share:g} of it by the taxonomy" if prior.tree_share else ""
        return f"texts of {len(self.text_)} labels: {known}, {shared}{tree}"

    def _ranked(self, scores: Array) -> Array:
        return scores - decision_level(self.estimator_)

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self)
        if self._form.kind == "multiclass":
            yield from self._score_blocks(X)
            return
        for part in row_blocks(self.estimator_, X, self._n_columns):
            yield from self.estimator_._deciding_blocks(part)

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self._asked()), "predict_proba"))
    @where_rows_are
    def predict_proba(self, X: Any) -> Array:
        """Compute probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        check_is_fitted(self)
        if self._form.kind == "binary":
            return np.asarray(self.estimator_.predict_proba(X))
        if self._form.kind == "labels":
            return np.concatenate(list(score_blocks(self.estimator_, X, self._n_columns, "predict_proba")))
        check_sparse(X, "X")
        parts = row_blocks(self.estimator_, X, self._n_columns)
        logs = np.concatenate([self.estimator_.predict_log_proba(part) for part in parts])
        # where all are near 0 they are raised alike
        shares = np.exp(logs - np.minimum(logs.max(axis=1, keepdims=True) - _LEAST_LOG, 0.0))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @classmethod
    def _kind_inside(cls, kind: str) -> str:
        return "labels" if kind == "multiclass" else kind

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`DecisionClassifier.to_state`."""
        state = super().to_state()
        for name in ("descriptions", "embedding", "feature_names", "taxonomy"):  # the fitted ones are there
            state["parameters"][name] = None
        return state

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        fitted = state["fitted"]
        scores = fitted["text_scores_"]
        if fitted["text_"].names.tolist() != [node_name(name) for name in state["classes"]]:
            raise ModelFileError(f"its {cls.__name__} has texts of other labels.")
        width = fitted["text_"].embeddings.shape[1]
        if scores is not None and scores.factors.shape != (fitted["n_features_in_"], width):
            raise ModelFileError(f"its {cls.__name__} has words of other features.")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LabelTextClassifier:
        """Make the object again; see :meth:`DecisionClassifier.from_state`."""
        model: Any = super().from_state(state)
        model.descriptions, model.taxonomy = model.text_, model.taxonomy_
        return model


def with_unobserved(labels: LabelMatrix, names: Array) -> LabelMatrix:
    """Put labels behind others that were observed in no row; names are those of all."""
    n_rows, n_labels = labels.shape
    rest = sp.csr_array((n_rows, len(names) - n_labels), dtype=np.int8)
    observed: Any = labels.observed
    if observed is None:
        observed = sp.csr_array(np.ones((n_rows, n_labels), np.int8))
    positives, known = (sp.hstack([table, rest], format="csr") for table in (labels.positives, abs(observed)))
    doubts = None if labels.doubts is None else sp.hstack([labels.doubts, rest], format="csr")
    return LabelMatrix(positives, known, names, doubts)
