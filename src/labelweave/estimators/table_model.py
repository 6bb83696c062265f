"""A classifier of data frame rows: features are made from text, categories, numbers and vectors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from labelweave.datasets import TableColumns, TableVectorizer
from labelweave.datasets.table_columns import KINDS, columns_of_frame
from labelweave.datasets.text_encoders import KeepsEncoder, TextParts
from labelweave.estimators.base import CheckedParameters
from labelweave.estimators.journal import where_rows_are
from labelweave.estimators.kernel_classifier import drawn_rows
from labelweave.estimators.parameters import keep_parameters
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, PerRow, RowsByClasses, RowsByLabels, RowsByRows
from labelweave.foundation.arrays import read_row_weights, refuse_lazy
from labelweave.foundation.frames import as_pandas, is_frame
from labelweave.foundation.sklearn_compat import HasMethods, StrOptions, _fit_context
from labelweave.foundation.views import html_with_facts
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import check_lengths, read_targets
from labelweave.metrics.known_labels import Unknown
from labelweave.model_files import storable
from labelweave.model_files.schema import FLAG, TEXT, Items, Made, Maybe, OneOf, Optional, Record
from labelweave.problems.hyperparameters.out_of_fold import oof_loss

_WEIGHTS = (0.0, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
_MOST_ROWS, _MOST_LABELS, _FOLDS = 1000, 256, 5


def with_encoder_weight(
    vectorizer: TableVectorizer, X: sp.csr_array, y: Any, sample_weight: PerRow | None = None,
    groups: Any = None,
) -> sp.csr_array:  # fmt: skip
    """Choose the weight of a fitted vectorizer's encoder by the least out-of-fold squared error.

    The models are ridge regressions with an RBF kernel whose width is the distance between rows.

    X (n, d): the features of the vectorizer; they are returned with the chosen weight, without vectors where
    that is 0.  Rows of one group are held out together.  Rows of weight 0 are ignored; at most 1,000
    others, the same in every call, are used, and the 256 labels that are most frequent among them.
    """
    if vectorizer.encoder_ is None:
        return X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit reads them again
        labels, _ = read_targets(y)
    check_lengths(X.shape[0], len(labels))
    kept = np.flatnonzero(read_row_weights(sample_weight, X.shape[0], may_vanish=True))
    if not len(kept):
        return X  # which the fit rejects
    rows = kept[drawn_rows(len(kept), _MOST_ROWS)]
    some, parts, targets = X[rows], vectorizer.text_parts, _frequent(labels[rows])
    names = None if groups is None else np.asarray(groups).astype(str)
    check_lengths(X.shape[0], X.shape[0] if names is None else len(names))
    folds = None if names is None else np.unique(names[rows], return_inverse=True)[1] % _FOLDS
    losses = [oof_loss(_kernel(parts, some, weight), targets, folds) for weight in _WEIGHTS]
    return vectorizer._weigh(X, _WEIGHTS[int(np.argmin(losses))])


def _frequent(labels: LabelMatrix) -> Array:
    order = np.argsort(-labels.positive_counts(), kind="stable")[:_MOST_LABELS]
    return labels.select_labels(np.sort(order)).to_dense()


def _kernel(parts: TextParts, X: sp.csr_array, weight: float) -> RowsByRows:
    X = parts.weighed(X, weight)
    words, vectors = X[:, : parts.first], X[:, parts.first :].toarray()  # sparse ones are slow
    products = (words @ words.T).toarray() + vectors @ vectors.T
    squares = products.diagonal()
    distances = np.maximum(squares[:, None] + squares - 2.0 * products, 0.0)
    kernel: RowsByRows = np.exp(-distances / max(distances.mean(), 1e-300))
    return kernel


def _classifier_has(name: str) -> Any:
    """Make a method available only if the classifier has it."""
    return lambda self: hasattr(getattr(self, "classifier_", self.classifier), name)


_SETTINGS = ("min_df", "ngram_range", "sublinear_tf", "missing_numeric", "encoder")  # of the vectorizer
_NAMES = Maybe(TEXT, Items(TEXT))
_COLUMNS = Record(
    {
        **dict.fromkeys(("labels", *KINDS, "drop"), _NAMES),
        **dict.fromkeys(("label_separator", "id"), Maybe(TEXT)),
        "empty_labels": Maybe(OneOf(("none", "unknown"))),
        "no_header": FLAG,
        "holds_classes": Optional(FLAG),
    }
)


@storable(
    "TableModel",
    {"vectorizer": Made(TableVectorizer), "classifier": Made(ClassifierMixin), "columns": _COLUMNS},
)
class TableModel(KeepsEncoder, MetaEstimatorMixin, ClassifierMixin, CheckedParameters):
    """Classify data frame rows by text, categories, numbers and vectors, with one model file for all.

    Parameters
    ----------
    classifier : classifier
        A classifier of this library, or a meta-estimator of one; a clone is fitted.
    text : str, sequence of str or None, default=None
        Columns to convert to tf-idf weights of their words.
    categorical : str, sequence of str or None, default=None
        Columns to encode as one 0/1 feature per value.
    numeric : str, sequence of str or None, default=None
        Columns of numbers, standardized to mean 0 and variance 1.
    vectors : str, sequence of str or None, default=None
        Columns of lists or arrays of numbers, such as embeddings, all of one length.  If text, categorical,
        numeric and vectors are all None, the kind of each column is inferred from its cells, as in
        ``labelweave fit``; otherwise the others are ignored.
    drop : str, sequence of str or None, default=None
        Columns to ignore then.
    min_df : int or float, default=1
        As in :class:`labelweave.datasets.TableVectorizer`, like those below.
    ngram_range : (int, int), default=(1, 1)
        The shortest and the longest run of words that makes a feature.
    sublinear_tf : bool, default=False
        Whether to replace counts of words by ``1 + log(count)``.
    missing_numeric : {"error", "mean"}, default="mean"
        What to do with a missing number or vector: raise an error, or impute the training mean, as
        ``labelweave fit`` does.
    encoder : callable, "static" or None, default=None
        Maps a list of texts to an array (n, k), such as ``encode`` of sentence-transformers.  The vectors of
        text columns are added to their words, with the weight, from 0 (words alone) to 4, that predicts
        out-of-fold training rows best.  "static" is the mean of fixed token vectors from the package
        wordllama (``labelweave[text]``).  A model file stores its name and a digest of its output; after
        :func:`labelweave.load` pass a callable again, ``set_params(encoder=...)``.

    Attributes
    ----------
    classifier_ : classifier
        The fitted classifier.
    vectorizer_ : TableVectorizer
        The fitted converter from frames to features.
    columns_ : TableColumns
        The columns of the training frame.
    feature_names_ : ndarray of str
        The names of the features.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number and names of the columns that features are made of.

    See Also
    --------
    labelweave.datasets.TableVectorizer : The features alone, as a step of a pipeline.

    Notes
    -----
    Frames may be of pandas, polars or pyarrow; other columns of a later frame are ignored.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelweave import MaxMarginClassifier, TableModel
    >>> rows = pd.DataFrame({"text": ["a red rose", "a blue sea"], "size": [1.0, 9.0]})
    >>> model = TableModel(MaxMarginClassifier(C=10), text="text", numeric="size")
    >>> model.fit(rows, [["flower"], ["water"]]).predict(rows).tolist()
    [['flower'], ['water']]
    """

    classifier_: Any
    vectorizer_: TableVectorizer
    columns_: TableColumns

    _html_repr = html_with_facts
    _outer_journal: Any = None  # of the fit that contains this one
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict"])],
        "encoder": [callable, StrOptions({"static"}), None],
    }

    def __init__(
        self, classifier: Any, *, text: str | Sequence[str] | None = None,
        categorical: str | Sequence[str] | None = None, numeric: str | Sequence[str] | None = None,
        vectors: str | Sequence[str] | None = None,
        drop: str | Sequence[str] | None = None, min_df: int | float = 1,
        ngram_range: tuple[int, int] = (1, 1), sublinear_tf: bool = False,
        missing_numeric: Literal["error", "mean"] = "mean", encoder: Any = None,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    @classmethod
    @checked
    def of_fitted(
        cls, vectorizer: TableVectorizer, classifier: Any, columns: TableColumns | None = None
    ) -> Self:
        """Combine a fitted vectorizer and a classifier that was fitted to its features.

        Parameters
        ----------
        vectorizer : TableVectorizer
            Fitted.
        classifier : classifier
            Fitted to the output of the vectorizer.
        columns : TableColumns or None, default=None
            The columns of the training table; by default the vectorizer's and no labels.

        Returns
        -------
        TableModel
            The fitted model.

        Raises
        ------
        ValueError
            If the classifier has another number of features than the vectorizer.
        NotFittedError
            If one of them is not fitted.
        """
        for part in (vectorizer, classifier):
            check_is_fitted(part)
        kinds: Any = vectorizer.kinds
        model = cls(classifier, **kinds, **{name: getattr(vectorizer, name) for name in _SETTINGS})
        columns = replace(columns or TableColumns(**kinds), decimal_marks=vectorizer.decimal_marks_ or None)
        return model._keep(vectorizer, classifier, columns)

    def _keep(self, vectorizer: TableVectorizer, classifier: Any, columns: TableColumns) -> Self:
        self.vectorizer_, self.classifier_, self.columns_ = vectorizer, classifier, columns
        self.feature_names_ = vectorizer.get_feature_names_out()
        if classifier.n_features_in_ != len(self.feature_names_):
            raise ValueError(
                f"The classifier has {classifier.n_features_in_} features but the vectorizer makes "
                f"{len(self.feature_names_)}; fit the classifier to the output of the vectorizer."
            )
        self.feature_names_in_ = np.array(vectorizer.column_names, object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also the encoder of a fit; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        super().set_params(**params)
        if "encoder" in params and hasattr(self, "vectorizer_"):
            self.vectorizer_.encoder = self.encoder
        return self

    @where_rows_are
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn features from a frame, and fit the classifier to them.

        Parameters
        ----------
        X : DataFrame of n rows
            The rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame, LabelMatrix or n lists of tags
            Their labels or classes, or a table of classes, one per row and column.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, for the classifier.
        groups : array-like of shape (n,), default=None
            The source of each row, for a classifier that uses groups; see :meth:`AutoLabelClassifier.fit`.

        Returns
        -------
        TableModel
            The fitted model itself.

        Raises
        ------
        TypeError
            If X is no data frame.
        ValueError
            If a column is missing or does not have the stated kind, or the classifier rejects the labels.
        """
        frame, columns = frame_of(X), self._columns()
        if not columns.are_resolved:
            columns = columns_of_frame(frame, columns)
        vectorizer = self._vectorizer(columns)
        given = {"sample_weight": sample_weight, "groups": groups}
        features = with_encoder_weight(vectorizer, vectorizer.fit_transform(frame), y, **given)
        classifier = clone(self.classifier)
        if classifier.get_params(deep=False).get("feature_names", ()) is None:  # it needs the words
            classifier.set_params(feature_names=vectorizer.get_feature_names_out())
        if self._outer_journal is not None:
            classifier._outer_journal = self._outer_journal
        classifier.fit(features, y, **{name: one for name, one in given.items() if one is not None})
        return self._keep(vectorizer, classifier, columns)

    def _columns(self) -> TableColumns:
        return TableColumns(**{role: getattr(self, role) for role in (*KINDS, "drop")})

    def _vectorizer(self, columns: TableColumns) -> TableVectorizer:
        return TableVectorizer(
            **columns.kinds,
            **{name: getattr(self, name) for name in _SETTINGS},
        )

    def _ask(self, method: str, X: Any, *further: Any) -> Any:
        """Call a method of the classifier with the features of a frame."""
        check_is_fitted(self)
        return getattr(self.classifier_, method)(self.vectorizer_.transform(frame_of(X)), *further)

    @property
    def label_names_(self) -> Array:
        """The names of the labels, shape (L,), as text."""
        check_is_fitted(self)
        names: Array = self.classifier_.label_names_
        return names

    @property
    def classes_(self) -> Array:
        """The classes, or the names of the labels."""
        check_is_fitted(self)
        classes: Array = self.classifier_.classes_
        return classes

    @available_if(_classifier_has("decision_function"))
    @where_rows_are
    def decision_function(self, X: Any) -> RowsByLabels:
        """Compute the score of each label; see :meth:`MaxMarginClassifier.decision_function`."""
        scores: RowsByLabels = self._ask("decision_function", X)
        return scores

    @available_if(_classifier_has("predict_proba"))
    @where_rows_are
    def predict_proba(self, X: Any) -> RowsByClasses:
        """Compute probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        probabilities: RowsByClasses = self._ask("predict_proba", X)
        return probabilities

    @where_rows_are
    def predict(self, X: Any) -> Any:
        """Predict the labels of every row, as the type of the training labels.

        They are a frame of pandas with the index of X for labels from a frame; see
        :meth:`MaxMarginClassifier.predict`.
        """
        predicted = self._ask("predict", X)
        index = getattr(X, "index", None)
        has_index = hasattr(predicted, "iloc") and index is not None and not callable(index)
        return predicted.set_axis(index) if has_index else predicted

    @available_if(_classifier_has("predict_top"))
    @where_rows_are
    def predict_top(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """Find the k labels with the highest scores; see :meth:`MaxMarginClassifier.predict_top`."""
        found: tuple[Array, Array] = self._ask("predict_top", X, k)
        return found

    @where_rows_are
    @checked
    def score(self, X: Any, y: Any, sample_weight: Any = None, unknown_labels: Unknown = "missed") -> float:
        """Compute the share of rows whose labels are all correct; see :meth:`MaxMarginClassifier.score`."""
        further = [] if unknown_labels == "missed" else [unknown_labels]  # for classifiers that accept it
        return float(self._ask("score", X, y, sample_weight, *further))

    def to_state(self) -> dict[str, Any]:
        """Return the state that a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        return {
            "vectorizer": self.vectorizer_,
            "classifier": self.classifier_,
            "columns": {name: _plain(getattr(self.columns_, name)) for name in _COLUMNS.fields},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        return cls.of_fitted(state["vectorizer"], state["classifier"], TableColumns(**state["columns"]))


def frame_of(X: Any) -> Any:
    """Return the rows of a frame as a pandas one; raise for other types."""
    refuse_lazy(X, "X")
    if is_frame(X):
        return as_pandas(X)
    raise TypeError(
        f"X is of type {type(X).__name__}; TableModel needs a DataFrame (its classifier_ takes arrays)."
    )


def _plain(value: Any) -> Any:
    """Return names as a list of Python strings."""
    return [str(name) for name in value] if isinstance(value, (tuple, list)) else value
