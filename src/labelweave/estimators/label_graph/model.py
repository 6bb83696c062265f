"""What stands behind a model with a graph of labels: scores of labelings, best ones, model files."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.estimators.base import LabelClassifier
from labelweave.features import FeatureMatrix
from labelweave.inference.map import MapInference, MapResult
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.solvers.clique_generation import GraphRecord
from labelweave.solvers.passes import PassRecord

__all__ = ["LabelGraphModel"]

_NUMBERS_AT_ONCE = 16_000_000  # scores of labels and states held at a time, 128 MB
_LEAST = np.finfo(np.float64).tiny  # the score of a label that is on by a tie


class LabelGraphModel(LabelClassifier):
    """Base of models whose labelings score ``sum_k h_k^T x y_k + sum_c v_c(state of clique c)^T x``.

    A fit sets ``label_graph_``, ``coef_``, ``intercept_``, ``clique_coef_``, ``clique_intercept_`` and
    ``graph_trace_``.
    """

    _record_type = PassRecord
    graph: Any
    inference: str
    exact_width: int
    max_nodes: int
    n_jobs: int | None
    label_graph_: CliqueGraph
    clique_coef_: Array
    clique_intercept_: Array
    graph_trace_: list[GraphRecord]

    def _inference_options(self) -> dict[str, Any]:
        return {"method": self.inference, "exact_width": self.exact_width, "max_nodes": self.max_nodes}

    def _potentials(self, features: FeatureMatrix) -> tuple[Array, Array]:
        unary = features.matmul(self.coef_.T) + self.intercept_
        return unary, features.matmul(self.clique_coef_.T) + self.clique_intercept_

    def _row_parts(self, n_rows: int) -> list[slice]:
        at_once = max(1, _NUMBERS_AT_ONCE // (len(self.intercept_) + len(self.clique_intercept_)))
        return list(panels(n_rows, at_once))

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        """Score every label by how much the best labeling with it beats the best without.

        Ties, and searches whose budget is spent, go the way of the labeling that is predicted.
        """
        inference = MapInference(self.label_graph_, **self._inference_options())
        scores = np.empty((len(features), len(self.intercept_)))
        with Workers(effective_n_jobs(self.n_jobs)).running() as workers:
            for rows in self._row_parts(len(features)):
                unary, tables = self._potentials(features.rows(rows))
                margins = inference.max_marginals(unary, tables, workers=workers)
                is_on = inference.solve(unary, tables, workers=workers).labels == 1
                scores[rows] = np.where(is_on, np.maximum(margins, _LEAST), np.minimum(margins, 0.0))
        return scores

    def _best_labels(self, features: FeatureMatrix) -> Array:
        return 2.0 * self._solve(features, None).labels - 1.0

    def _solve(self, features: FeatureMatrix, clamp: Array | None) -> MapResult:
        inference = MapInference(self.label_graph_, **self._inference_options())
        shape = len(features), len(self.intercept_)
        found = MapResult(np.zeros(shape, np.int8), np.zeros(shape[0]), np.zeros(shape[0]))
        with Workers(effective_n_jobs(self.n_jobs)).running() as workers:
            for rows in self._row_parts(shape[0]):
                held = None if clamp is None else clamp[rows]
                part = inference.solve(*self._potentials(features.rows(rows)), clamp=held, workers=workers)
                found.labels[rows], found.values[rows], found.bounds[rows] = part
        return found

    def predict(self, X: Any) -> Any:
        """Predict the labeling of highest score.

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
        if self._form.kind == "multiclass":  # one label a class: the class of highest margin
            return super().predict(X)
        parts = [self._decide(signs) for signs in self._score_blocks(X, self._best_labels)]
        return self._form.join(parts, getattr(X, "index", None))

    def predict_map(self, X: Any, known: Any = None) -> MapResult:
        """Find the best labelings with a certificate for every row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.
        known : array-like of shape (n, L), DataFrame or LabelMatrix, default=None
            Labels that are known, NaN where they are not; the others are the best given these.  Columns with
            names are found by name, and may be fewer.

        Returns
        -------
        MapResult
            Labels 0/1 of shape (n, L), their scores, upper bounds of any labeling's score, and which are
            proven optimal.

        Raises
        ------
        ValueError
            If ``known`` does not fit the rows and labels.
        """
        check_is_fitted(self)
        features = self._read_features(X, reset=False)
        return self._solve(features, None if known is None else self._held(known, len(features)))

    def _held(self, known: Any, n_rows: int) -> Array:
        """Write known labels as 0 and 1, with -1 for the others."""
        try:
            labels, n_labels = LabelMatrix.from_any(known), len(self.intercept_)
        except ValueError as error:
            raise ValueError(f"known cannot be read as labels: {error}") from None
        names = self.label_graph_.label_names
        by_name = labels.names is not None and names is not None
        columns = self._columns_of(labels.names, names) if by_name else np.arange(n_labels)
        if labels.shape != (n_rows, len(columns)):
            raise ValueError(
                f"known has shape {labels.shape}; it needs a row for each of the {n_rows} rows of X and a "
                f"column for each of the {n_labels} labels, NaN where nothing is known."
            )
        held = np.full((n_rows, n_labels), -1, np.int8)
        signs = labels.to_signs()
        held[:, columns] = np.where(signs == 0, -1, signs > 0)
        return held

    @staticmethod
    def _columns_of(given: Any, names: Any) -> Array:
        place = {str(name): column for column, name in enumerate(names)}
        unknown = next((name for name in given if str(name) not in place), None)
        if unknown is not None:
            raise ValueError(
                f"known has a column {str(unknown)!r}, which is no label of the model; leave it out, or name "
                "its columns like the training labels."
            )
        return np.array([place[str(name)] for name in given], np.intp)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.estimators.base.LabelClassifier.to_state`."""
        state = super().to_state()
        state["fitted"]["graph_trace_"] = [
            [*record[:1], [list(clique) for clique in record.cliques], *record[2:]]
            for record in self.graph_trace_
        ]
        return state

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = super()._storable_parameters()
        if not isinstance(self.graph, str):
            parameters["graph"] = self.label_graph_
        for name in ("false_positive_cost", "false_negative_cost"):
            if not isinstance(parameters[name], Real):
                parameters[name] = np.asarray(parameters[name], np.float64)
        return parameters

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LabelGraphModel:
        """Make the fitted model again; see :meth:`labelweave.estimators.base.LabelClassifier.from_state`."""
        model: Any = super().from_state(state)
        model.graph_trace_ = [
            GraphRecord(number, tuple(tuple(clique) for clique in cliques), *others)
            for number, cliques, *others in model.graph_trace_
        ]
        return model
