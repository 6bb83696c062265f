"""What the library's classifiers share: reading data, predicting in blocks, progress, model files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sized
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from labelweave.array_types import Array
from labelweave.arrays import largest_columns
from labelweave.estimators.journal import Journal, data_fingerprint
from labelweave.estimators.scorers import Scorer
from labelweave.estimators.targets import TargetForm, check_lengths
from labelweave.features import FeatureMatrix
from labelweave.metrics import subset_accuracy
from labelweave.model_files import save_object
from labelweave.sklearn_compat import CallbackSupportMixin
from labelweave.solvers import SolverResult, State, Status, TraceRecord
from labelweave.views import FactsInHTML

__all__ = ["CALLER", "LabelClassifier"]


_SCORES_AT_ONCE = 16_000_000  # scores held in memory at a time, 128 MB
_NOT_THE_FIT = {"n_jobs", "warm_start", "checkpoint", "verbose"}  # parameters that do not change the result
CALLER = 6  # frames from a warning to the line that called fit, two decorators among them


class LabelClassifier(FactsInHTML, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of the classifiers: scores are linear in the fitted weights unless a subclass says else."""

    _form: TargetForm
    _record_type: Any = TraceRecord
    trace_: list[Any]
    scorer_: Scorer
    warm_start: bool
    checkpoint: Any
    _states: Mapping[str, State] = {}

    _frame_constraints: ClassVar[dict[str, list[Any]]] = {
        "warm_start": ["boolean"],
        "checkpoint": [str, PathLike, None],
    }

    def __getattr__(self, name: str) -> Any:
        """Read what the scorer holds as if it were the model's own."""
        scorer = self.__dict__.get("scorer_")
        if scorer is not None and name in scorer.attributes():
            return getattr(scorer, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags

    def _read_features(self, X: Any, *, reset: bool) -> FeatureMatrix:
        """Check X: its names and width by scikit-learn, its entries here, where they can be named."""
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_all_finite=False, accept_large_sparse=True,
        )  # fmt: skip
        return FeatureMatrix(checked, getattr(self, "feature_names_in_", None))

    def _check_lengths(self, features: FeatureMatrix, labels: Sized) -> None:
        check_lengths(len(features), len(labels))

    def _open_journal(self, **data: Any) -> Journal:
        """Begin the record of a fit; ``data`` are nested arrays, by the names that users know them by."""
        if self.checkpoint is None:
            return Journal()
        parameters = {
            name: value for name, value in self._storable_parameters().items() if name not in _NOT_THE_FIT
        }
        marks = {"the parameters": data_fingerprint(type(self).__name__, parameters)}
        return Journal(self.checkpoint, marks | {name: data_fingerprint(part) for name, part in data.items()})

    def _close_journal(self, journal: Journal, *, is_done: bool) -> None:
        journal.close(is_done=is_done)
        self._states = journal.states if self.warm_start else {}

    def _keep_result(self, result: SolverResult) -> None:
        if result.status is Status.INDEFINITE:
            raise ValueError(f"{result.status.value} The relative gap is {result.gap:.2e}.")
        self.converged_ = result.converged
        self.status_ = result.status.name.lower()
        self.n_iter_ = result.n_iter
        self.duality_gap_ = result.gap
        self.trace_ = result.trace
        if not result.converged:
            message = f"{result.status.value} It is {result.gap:.2e} after {result.n_iter} rounds."
            warnings.warn(message, ConvergenceWarning, stacklevel=CALLER)

    @property
    def label_names_(self) -> Array:
        """The names of the labels or classes, shape (L,), as text."""
        check_is_fitted(self)
        return np.asarray([str(name) for name in self.classes_])

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        """Score every column of the label matrix: shape (n, columns)."""
        return self.scorer_.scores(features)

    def _ranking_scores(self, features: FeatureMatrix) -> Array:
        """Score every column for comparison with the other columns: shape (n, columns)."""
        return self._wide_scores(features)

    def _score_blocks(self, X: Any, score: Callable[[FeatureMatrix], Array] | None = None) -> Iterator[Array]:
        features = self._read_features(X, reset=False)
        rows = max(1, _SCORES_AT_ONCE // max(1, len(self.intercept_)))
        for start in range(0, max(1, len(features)), rows):
            yield (score or self._wide_scores)(features.rows(slice(start, start + rows)))

    def _decide(self, scores: Array) -> Any:
        return self._form.decide(scores)

    def decision_function(self, X: Any) -> Array:
        """Score every label; a positive score predicts the label.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray of shape (n, L), or (n,) for two classes
            The scores.
        """
        check_is_fitted(self)
        return self._form.scores(np.concatenate(list(self._score_blocks(X))))

    def predict(self, X: Any) -> Any:
        """Predict the labels of every row, in the form that the training labels had.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.

        Returns
        -------
        ndarray, csr_array or DataFrame of shape (n, L), or ndarray of shape (n,)
            The labels: a frame for a frame, sparse for sparse, classes for classes.
        """
        check_is_fitted(self)
        parts = [self._decide(scores) for scores in self._score_blocks(X)]
        return self._form.join(parts, getattr(X, "index", None))

    def predict_top(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """Find the k labels with the highest scores, without holding all scores at once.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.
        k : int, default=5
            How many labels, at most the number there are.

        Returns
        -------
        labels : ndarray of int, shape (n, k)
            Label numbers, best first; ties go to the lower number.
        scores : ndarray of shape (n, k)
            Their scores.

        Raises
        ------
        ValueError
            If k is not between 1 and the number of labels.
        """
        check_is_fitted(self)
        n_scores = 1 if self._form.kind == "binary" else len(self.intercept_)
        if not 1 <= k <= n_scores:
            raise ValueError(f"k is {k}; it must be between 1 and the number of labels, {n_scores}.")
        labels, scores = [], []
        for block in self._score_blocks(X, self._ranking_scores):
            best = largest_columns(block, k)
            labels.append(best)
            scores.append(np.take_along_axis(block, best, axis=1))
        return np.concatenate(labels), np.concatenate(scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of rows whose labels are all right (unobserved labels do not count).

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.
        y : array-like
            The true labels or classes.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.

        Returns
        -------
        float
            Subset accuracy.
        """
        if self._form.kind != "labels":
            return super().score(X, y, sample_weight)
        return float(subset_accuracy(y, self.predict(X), sample_weight=sample_weight))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file, without pickle; read it with :func:`labelweave.load`.

        Parameters
        ----------
        path : path-like
            The file, replaced only once the new one is complete.
        """
        check_is_fitted(self)
        save_object(path, self)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            Parameters and fitted attributes.
        """
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        names = fitted.pop("feature_names_in_", None)
        fitted["trace_"] = [list(record) for record in self.trace_]
        form = dict(vars(self._form))
        classes = form.pop("classes")
        fitted.pop("classes_")
        return {
            "parameters": self._storable_parameters(),
            "fitted": fitted,
            "feature_names": None if names is None else np.asarray(names, dtype=np.str_),
            "form": form,
            "classes": classes.astype(np.str_) if classes.dtype == object else classes,
            "classes_are_objects": classes.dtype == object,
        }

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        if isinstance(parameters.get("random_state"), np.random.RandomState):
            parameters["random_state"] = None  # a generator's state has no use after the fit
        return parameters

    @classmethod
    def _scorer_of_earlier_file(cls, state: dict[str, Any]) -> Scorer | None:
        """Make the scorer of a model file that had its parts as attributes, and take them out of these."""
        return None

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LabelClassifier:
        """Make the fitted model again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        LabelClassifier
            The model; its arrays are read-only.
        """
        model = cls(**state["parameters"])
        if "scorer_" not in state["fitted"]:
            scorer = cls._scorer_of_earlier_file(state)
            if scorer is not None:
                model.scorer_ = scorer
        for name, value in state["fitted"].items():
            setattr(model, name, value)
        model.trace_ = [cls._record_type(*record) for record in state["fitted"]["trace_"]]
        if state["feature_names"] is not None:
            model.feature_names_in_ = state["feature_names"].astype(object)
        classes = state["classes"].astype(object) if state["classes_are_objects"] else state["classes"]
        model._form = TargetForm(classes=classes, **state["form"])
        model.classes_ = classes
        return model
