"""Predictions from blocks of scores: decisions, top labels, a score."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from labelweave.estimators.entry_weights import class_weight_state
from labelweave.estimators.journal import where_rows_are
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import largest_columns
from labelweave.foundation.views import html_with_facts
from labelweave.labels.flip_rates import FlipRates
from labelweave.labels.label_names import rows_by_name
from labelweave.labels.targets import TargetForm
from labelweave.metrics import subset_accuracy
from labelweave.metrics._classes import observed_rows, right_rows
from labelweave.metrics.known_labels import Unknown, known_targets, tags_of_model, truth_for, widened

_BY_LABEL = ("false_negative_cost", "false_positive_cost", "flip_rates")


class LabelPredictions(ClassifierMixin, BaseEstimator):
    """Base of the classifiers of labels, and of meta-estimators that decide on their scores."""

    _form: TargetForm
    classes_: Array
    _html_repr = html_with_facts

    def _score_blocks(self, X: Any) -> Iterator[Array]:
        """Score each column of the label matrix, comparable within rows and columns: shape (n, columns)."""
        raise NotImplementedError

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        """Score each column for ``predict``, positive where it is predicted: shape (n, columns)."""
        return self._form.deciding(self._score_blocks(X))

    @property
    def label_names_(self) -> Array:
        """The names of the labels or classes, shape (L,), as text."""
        check_is_fitted(self)
        return np.asarray([str(name) for name in self.classes_])

    @property
    def unobserved_labels_(self) -> Array:
        """The numbers of labels with no observed value in training, shape (k,)."""
        check_is_fitted(self)
        return np.asarray(self._form.unobserved, np.intp)

    def _decide(self, scores: Array) -> Any:
        return self._form.decide(scores)

    @where_rows_are
    def decision_function(self, X: Any) -> Array:
        """Compute the score of each label, higher if more likely, as the model ranks labels and rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.

        Returns
        -------
        ndarray of shape (n, L), or (n,) for two classes
            The scores.  One constant is subtracted from all of them, the lowest threshold: with one threshold
            for all labels, as without tuned thresholds or with two classes, positive scores are predicted.
            Where labels have thresholds of their own, these do not affect rankings, and ``predict`` compares
            with ``thresholds_``.  Where label sets are not made by thresholds, as the best k labels, by
            expected F1 or along a hierarchy, scores only rank.
        """
        check_is_fitted(self)
        return self._form.scores(np.concatenate(list(self._score_blocks(X))))

    @where_rows_are
    def predict(self, X: Any) -> Any:
        """Predict the labels of every row, as the type of the training labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.

        Returns
        -------
        ndarray, csr_array or DataFrame of shape (n, L), or ndarray or Series of shape (n,)
            The labels: a frame for a frame with its columns, sparse for sparse, classes for classes, lists of
            tags for lists of tags; for columns of classes a table with the most probable class of each.
        """
        check_is_fitted(self)
        parts = [self._decide(scores) for scores in self._deciding_blocks(X)]
        return self._form.join(parts, X)

    @where_rows_are
    def predict_top(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """Find the k labels with the highest scores, without holding all scores at once.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.
        k : int, default=5
            How many labels, at most the total number.

        Returns
        -------
        labels : ndarray of int, shape (n, k)
            Label numbers, best first; ties go to the lower number.
        scores : ndarray of shape (n, k)
            Their scores, as in :meth:`decision_function`.

        Raises
        ------
        ValueError
            If k is not between 1 and the number of labels.
        """
        check_is_fitted(self)
        self._check_k(k)
        labels, scores = zip(*self._best_blocks(X, k), strict=True)
        return np.concatenate(labels), np.concatenate(scores)

    def _check_k(self, k: Any) -> None:
        is_whole = isinstance(k, Integral) and k is not True
        if not is_whole or not 1 <= k <= self._n_columns:
            raise ValueError(f"k is {k!r}; it must be between 1 and the number of labels, {self._n_columns}.")

    def _best_blocks(self, X: Any, k: int) -> Iterator[tuple[Array, Array]]:
        """Find the k highest scores of rows, one block of rows at a time: their labels and values."""
        for block in self._score_blocks(X):
            labels = largest_columns(block, k)
            yield labels, np.take_along_axis(block, labels, axis=1)

    def _searches(self, k: int) -> bool:
        """Whether the k best labels of rows are found without computing all scores."""
        return False

    @where_rows_are
    @checked
    def score(self, X: Any, y: Any, sample_weight: Any = None, unknown_labels: Unknown = "missed") -> float:
        """Compute the share of rows whose labels are all correct.

        Unobserved entries, rows of unobserved class, and labels with no observed value in training do not
        count.  Where labels obey a hierarchy, those of y are completed by it first.  With columns of classes
        it is the share of rows with the right class in every column (exact match);
        :func:`labelweave.metrics.column_accuracy_score` has the accuracy of each column.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.
        y : array-like
            The true labels or classes.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.
        unknown_labels : {"missed", "ignore", "raise"}, default="missed"
            What to do with labels or classes that were not in training: count them as missed, with a
            warning that names them; ignore them; or raise an error.

        Returns
        -------
        float
            Subset accuracy.
        """
        if self._form.has_one_class:
            y = known_targets(y, self.classes_, unknown_labels)
            right, weights = right_rows(y, self.predict(X), self.classes_, sample_weight)
            rows = observed_rows(weights > 0, weights)
            return float(np.average(right[rows], weights=weights[rows]))
        truth = truth_for(y, self, unknown_labels)
        predicted = widened(tags_of_model(self.predict(X), self), truth)
        return float(subset_accuracy(truth, predicted, sample_weight=sample_weight))

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        if isinstance(parameters.get("random_state"), np.random.RandomState):
            parameters["random_state"] = None  # a generator's state is not needed after the fit
        if isinstance(parameters.get("class_weight"), dict | list):
            parameters["class_weight"] = class_weight_state(parameters["class_weight"])
        if isinstance(parameters.get("flip_rates"), FlipRates):
            rates = parameters["flip_rates"]
            parameters["flip_rates"] = rates.missed, rates.false
        return parameters | {
            name: self._by_place(name, parameters[name]) for name in _BY_LABEL if name in parameters
        }

    def _by_place(self, name: str, given: Any) -> Any:
        """Reorder a Series, or a pair of them, by label name, and return it as an array."""
        if isinstance(given, tuple | list):
            return type(given)(self._by_place(name, part) for part in given)
        if not hasattr(given, "iloc"):
            return given
        return np.asarray(rows_by_name(given, [str(label) for label in self.classes_], name))

    def _form_state(self) -> dict[str, Any]:
        """Return the form of the targets as a model file stores it; classes that are objects as text."""
        form, classes = self._form.to_state(), self._form.classes
        are_objects = classes.dtype == object
        kept = classes.astype(np.str_) if are_objects else classes
        return {"form": form, "classes": kept, "classes_are_objects": are_objects}

    def _set_form(self, state: dict[str, Any]) -> None:
        classes = state["classes"].astype(object) if state["classes_are_objects"] else state["classes"]
        self._form, self.classes_ = TargetForm.from_state(state["form"], classes), classes
