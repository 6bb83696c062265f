"""Labels known by names and descriptions: a classifier around which their texts are the prior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Array
from labelweave.arrays import checked_csr
from labelweave.decisions.base import DecisionClassifier, decision_fit
from labelweave.decisions.label_scores import (
    TrainingRows,
    decision_level,
    fit_on,
    row_blocks,
    score_blocks,
    take_rows,
)
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.estimators.added_labels import with_more_labels
from labelweave.estimators.targets import TargetForm, read_targets
from labelweave.features import FeatureMatrix
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.frames import column_labels
from labelweave.hyperparameters.label_prior import LabelPrior, base_rates, choose_label_prior
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean, LabelText, Taxonomy
from labelweave.labels.text.label_text import TextScores, described
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import Field, Made, Maybe, Number
from labelweave.sklearn_compat import HasMethods, Interval, StrOptions

_SHARES, _WIDTHS = (0.4, 0.8), (0.5, 0.7)
_TREE_SHARE = 0.5  # of what labels share, by the taxonomy where texts share the rest
_MOST_LABELS = 1000  # on which a prior is chosen
_INTERCEPT_VARIANCE = 10.0
_MARGIN = 0.5  # scores of margins per log-odds
_SCALE_ROWS, _FEWEST_HELD, _SCALE_FACTORS, _SCALE_TOL = 600, 5, (1.0, 3.0, 10.0), 1e-2


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
        One with ``label_mean``, ``label_covariance`` or both: a :class:`KernelLogisticClassifier`, a
        :class:`MaxMarginClassifier`, or a low-rank model, whose label features the covariance makes.  None is
        a linear logistic one, whose scale is chosen too.
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
    mean_ : float
        The strength of the mean, 0 for none.
    share_, width_ : float
        Of the covariance of texts; a share of 0 is independent labels.
    tree_share_ : float
        What part of that the taxonomy has.
    scale_ : float
        The prior variance of scores that was best beside them.
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
    _scores: TextScores | None

    _stored: ClassVar[dict[str, Field]] = {
        "text_": Made(LabelText),
        "text_scores_": Maybe(Made(TextScores)),
        "taxonomy_": Maybe(Made(Taxonomy)),
        **{name: Number(0) for name in ("mean_", "share_", "tree_share_", "scale_")},
        "width_": Number(1e-9),
        "level_": Number(),
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
    _is_prefit = False  # type: ignore[assignment]
    _one_of = None  # type: ignore[assignment]
    _relates_labels = True  # type: ignore[assignment]

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
        self.taxonomy_ = None if self.taxonomy is None else Taxonomy.from_any(self.taxonomy)
        data = self._read(X, y, sample_weight)
        data = self._announced(replace(data, y=data.labels if self._form.kind != "binary" else y), 1)
        features = self._features(X)
        names = self._names_of_features(X)
        text = self._column_text
        self.text_scores_ = None
        if names is not None and "label_mean" in estimator.get_params(deep=False):
            self.text_scores_ = TextScores.of(text, names, features.data, self.embedding)
        self._choose_prior(features, data, estimator)
        if self.estimator is None:
            self._choose_scale(features, data, estimator)
        self._keep_estimator(fit_on(self, data, estimator=estimator.set_params(**self._prior(estimator))))
        self._close(data)
        return self

    def _asked(self) -> Any:
        """Give a clone of the estimator, or the usual one."""
        if self.estimator is None:
            return KernelLogisticClassifier(
                "linear", hyperparameters="fixed", intercept_variance=_INTERCEPT_VARIANCE
            )
        estimator = clone(self.estimator)
        parameters = estimator.get_params(deep=False)
        taken = [name for name in ("label_mean", "label_covariance") if name in parameters]
        if not taken:
            raise ValueError(
                f"{type(estimator).__name__} takes neither label_mean nor label_covariance; give "
                "KernelLogisticClassifier, MaxMarginClassifier or LowRankClassifier."
            )
        for name in taken:
            if parameters[name] is not None:
                raise ValueError(f"The estimator has a {name}, which texts are to make; leave it None.")
        if parameters.get("scaling", "none") not in ("none", "unit"):
            raise ValueError(
                f"scaling={parameters['scaling']!r} turns counts of words into other numbers, which texts say "
                "nothing of; use 'none' or 'unit'."
            )
        if parameters.get("kernel") == "precomputed":
            raise ValueError("kernel='precomputed' has no features that words are found in; give features.")
        return estimator

    def _read_targets(self, y: Any) -> tuple[LabelMatrix, TargetForm]:
        """Read y, and put labels behind it that are only described."""
        labels, form = read_targets(y, is_related=True)
        names = self._names_of_labels(labels, form)
        given = self.descriptions
        if isinstance(given, LabelText):
            known = given.names.tolist()
            missing = [name for name in names if name not in known]
            if missing:
                raise ValueError(f"descriptions has no label {missing[0]!r}, which y has; describe all labels.")
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
                labels = LabelMatrix(labels.positives, labels.observed, self.text_.names)
            return labels, form
        if form.kind == "binary":
            second = labels.to_dense()
            labels = LabelMatrix.from_any(np.hstack([1.0 - second, second]))
        kind = "labels" if form.kind == "labels" else "multiclass"
        return _with_unobserved(labels, self.text_.names), replace(with_more_labels(form, more), kind=kind)

    def _names_of_labels(self, labels: LabelMatrix, form: TargetForm) -> list[str]:
        if form.kind != "labels" or labels.names is not None:
            return [str(name) for name in form.classes]
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

    def _choose_prior(self, features: FeatureMatrix, data: TrainingRows, estimator: Any) -> None:
        """Choose strength, covariance and scale on left-out rows, and keep them."""
        rng = check_random_state(self.random_state)
        rows = np.arange(len(features)) if data.weights is None else np.flatnonzero(data.weights)
        rows = np.sort(rng.permutation(rows)[: self.learning_rows])
        columns = np.flatnonzero(data.labels.observed_counts())
        columns = np.sort(rng.permutation(columns)[:_MOST_LABELS])
        some = features.rows(rows).data
        targets = np.where(np.isnan(table := data.labels[rows].to_dense()[:, columns]), np.nan, table > 0)
        gram = np.asarray((some @ some.T).toarray() if sp.issparse(some) else some @ some.T, np.float64)
        rates = base_rates(targets)
        self.level_ = float(np.log(rates.mean() / (1.0 - rates.mean())))
        candidates = self._candidates(estimator)
        text, learns = self._column_text.columns(columns), self.mean == "learn"
        known = None
        if self.text_scores_ is not None and learns:
            known = self.text_scores_.mean(text, 1.0, 0.0).scores(some)
        covariances = (self._covariance_of(text, *one) for one in candidates)
        best: LabelPrior = choose_label_prior(gram, targets, known, covariances)[0]
        self.share_, self.width_, self.tree_share_ = candidates[best.number]
        self.scale_ = best.scale
        self.mean_ = best.strength if learns else float(self.mean) * (self.text_scores_ is not None)

    def _candidates(self, estimator: Any) -> list[tuple[float, float, float]]:
        """List shares, widths and shares of the taxonomy to choose from, independent labels first."""
        found = [(0.0, _WIDTHS[-1], 0.0)]
        is_fixed = self.covariance == "none" or "label_covariance" not in estimator.get_params(deep=False)
        if is_fixed or self._form.kind == "binary":
            return found
        trees = (0.0,) if self.taxonomy_ is None else (0.0, _TREE_SHARE, 1.0)
        return found + [
            (share, width, tree)
            for share in _SHARES
            for tree in trees
            for width in (_WIDTHS if tree < 1 else _WIDTHS[-1:])
        ]

    def _covariance_of(self, text: LabelText, share: float, width: float, tree: float) -> LabelCovariance:
        if share == 0:
            return LabelCovariance.identity(len(text), text.names)
        found: LabelCovariance = text.covariance(share, width).scaled(1.0 - tree)
        if tree == 0 or self.taxonomy_ is None:
            return found
        above = LabelCovariance.from_taxonomy(self.taxonomy_, text.names, normalized=True)
        own = LabelCovariance.identity(len(text), text.names).scaled(tree * (1.0 - share))
        return found + above.scaled(tree * share) + own

    def _prior(self, estimator: Any) -> dict[str, Any]:
        """Give the parameters of the estimator that the prior is."""
        found: dict[str, Any] = {}
        if self.share_ > 0:
            found["label_covariance"] = self._covariance_of(
                self.text_, self.share_, self.width_, self.tree_share_
            )
        if self.text_scores_ is not None and (self.mean_ > 0 or len(self.text_) > len(self._form.classes)):
            found["label_mean"] = self._mean_of(self._column_text, estimator)
        if self.estimator is None:
            found["scale"] = self.scale_
        return found

    def _choose_scale(self, features: FeatureMatrix, data: TrainingRows, estimator: Any) -> None:
        """Choose the scale of the usual estimator by fits to a part of some rows, from the closed form's on.

        That linearises the logistic loss, and is too careful with large scores.
        """
        rng = check_random_state(self.random_state)
        rows = np.arange(len(features)) if data.weights is None else np.flatnonzero(data.weights)
        rows = rng.permutation(rows)[:_SCALE_ROWS]
        n_held = len(rows) // 4
        if n_held < _FEWEST_HELD:
            return
        held, kept = np.sort(rows[:n_held]), np.sort(rows[n_held:])
        table, y = features.data, data.labels if self._form.kind != "binary" else data.y
        truth = data.labels[held].to_dense()
        losses = {}
        for factor in _SCALE_FACTORS:
            part = clone(estimator).set_params(**self._prior(estimator), tol=_SCALE_TOL)
            part.set_params(scale=factor * self.scale_).fit(table[kept], take_rows(y, kept))
            scores = part.decision_function(table[held]).reshape(truth.shape)
            losses[factor] = np.logaddexp(0.0, np.where(truth > 0, -scores, scores))[~np.isnan(truth)].sum()
        self.scale_ *= min(losses, key=losses.__getitem__)

    def _mean_of(self, text: LabelText, estimator: Any) -> LabelMean:
        """Give the known scores, on the scale of the estimator's: log-odds, or margins from -1 to 1."""
        assert self.text_scores_ is not None, "there are scores where there is a mean"
        if isinstance(estimator, MaxMarginClassifier):
            level = float(np.clip(_MARGIN * self.level_, -1.0, 1.0))
            return self.text_scores_.mean(text, _MARGIN * self.mean_, level)
        return self.text_scores_.mean(text, self.mean_, self.level_)

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
                "The model has one score for two classes, behind which there is no place for another; describe "
                "it in descriptions= before the fit."
            )
        text = self.text_.with_labels(descriptions, self.embedding)
        names = text.names[len(self.text_) :].tolist()
        if self.share_ == 0 and self.mean_ == 0:
            raise ValueError(
                "Left-out rows were predicted best without the texts, which therefore tell nothing of new "
                "labels; give mean= a strength before the fit."
            )
        covariance = mean = None
        if self.share_ > 0:
            covariance = self._covariance_of(text, self.share_, self.width_, self.tree_share_)
        if self.estimator_.label_mean_ is not None:
            mean = self._mean_of(text, self.estimator_)
        self.estimator_.add_labels(names, covariance, mean)
        self.text_, self._form = text, with_more_labels(self._form, names)
        self.classes_ = self._form.classes
        return self

    @property
    def _response(self) -> str:
        return "auto"

    def _words(self, is_inside: bool) -> str:
        known = f"known scores of deviation {self.mean_:.2g}" if self.mean_ else "no known scores"
        shared = f"a share of {self.share_:g} in common" if self.share_ else "labels independent"
        tree = f", {self.tree_share_:g} of it by the taxonomy" if self.tree_share_ else ""
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
    def predict_proba(self, X: Any) -> Array:
        """Compute probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        check_is_fitted(self)
        if self._form.kind == "binary":
            return np.asarray(self.estimator_.predict_proba(X))
        blocks = score_blocks(self.estimator_, X, self._n_columns, "predict_proba")
        found = np.concatenate(list(blocks))
        return found / found.sum(axis=1, keepdims=True) if self._form.kind == "multiclass" else found

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
        scores, names = fitted["text_scores_"], [str(name) for name in state["classes"]]
        if fitted["text_"].names.tolist() != names:
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


def _with_unobserved(labels: LabelMatrix, names: Array) -> LabelMatrix:
    """Put labels behind others that were observed in no row; names are those of all."""
    n_rows, n_labels = labels.shape
    rest = sp.csr_array((n_rows, len(names) - n_labels), dtype=np.int8)
    observed: Any = labels.observed
    if observed is None:
        observed = sp.csr_array(np.ones((n_rows, n_labels), np.int8))
    wide = (sp.hstack([table, rest], format="csr") for table in (labels.positives, abs(observed)))
    return LabelMatrix(*wide, names)
