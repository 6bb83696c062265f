"""The base of models with a graph of labels: scores of labelings, best ones, model files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from labelweave.estimators.kernel_classifier import KernelClassifier
from labelweave.estimators.label_graph.fit import GraphGrowth
from labelweave.estimators.label_graph.inputs import KernelInputs, kernel_inputs, learned_width
from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix, Kernel, make_kernel
from labelweave.features.gram.sources import GramSource, KernelSource, RowsOfSource
from labelweave.features.kernels.distances import GammaKernel
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.label_names import labels_of_columns
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import MEASURED, TEXT, Field, Items, Made, Maybe, Numbers, Optional, count
from labelweave.postprocessing.map import MapInference, MapResult
from labelweave.problems.structured_margin import CliqueFeatures, features_of_cliques
from labelweave.solvers.clique_generation import GraphRecord

_NUMBERS_AT_ONCE = 16_000_000  # scores of labels and states in memory at a time, 128 MB
_NODES = 1000  # of branch and bound per part of a row, by default
_LEAST = np.finfo(np.float64).tiny  # the score of a label that is predicted in a tie


def _fits_inputs(state: dict[str, Any]) -> bool:
    widths = (state[name].shape[1] for name in ("coef_", "clique_coef_"))
    return "clique_features" in state or len(set(widths)) == 1


def _has_all_states(state: dict[str, Any]) -> bool:
    return sum(2 ** len(clique) for clique in state["label_graph"].cliques) == len(state["clique_coef_"])


@storable(
    "CliqueScorer",
    {
        "intercept_": Numbers("L"),
        "coef_": Numbers("L d"),
        "clique_coef_": Numbers("s p"),
        "clique_intercept_": Numbers("s"),
        "label_graph": Made(CliqueGraph, {"L": "n_labels"}),
        "inputs_": Maybe(Made(KernelInputs)),
        "clique_features": Optional(Made(CliqueFeatures)),
    },
    {
        "there is a weight for every state of every clique": _has_all_states,
        "cliques have weights of their features": _fits_inputs,
    },
)
@dataclass(frozen=True)
class CliqueScorer(Scorer):
    """Weights of labels and of the states of cliques.

    coef_ (L, d), clique_coef_ (states, d): weights of the inputs.
    clique_intercept_ (states,)
    inputs_: computes the inputs, where they are not the features.
    clique_features: user-defined features, which the weights of states multiply instead of the inputs.
    """

    coef_: Floats
    clique_coef_: Floats
    clique_intercept_: Floats
    label_graph: CliqueGraph
    inputs_: KernelInputs | None = None
    clique_features: CliqueFeatures | None = None

    def __post_init__(self) -> None:
        for name in ("coef_", "clique_coef_"):  # in the order that products read: contiguous per input
            object.__setattr__(self, name, np.asfortranarray(getattr(self, name)))

    def to_state(self) -> dict[str, Any]:
        """Return the stored state, without the features of cliques where these have none of their own."""
        state = super().to_state()
        return (
            state
            if self.clique_features is not None
            else {n: state[n] for n in state if n != "clique_features"}
        )

    def takes(self, n_features: int) -> bool:
        width = self.coef_.shape[1]
        if self.inputs_ is None:
            return n_features == width
        return len(self.inputs_.constant) == width and self.inputs_.takes(n_features)

    def potentials(self, features: FeatureMatrix) -> tuple[Floats, Floats]:
        """Score the labels on their own (n, L), and the states of all cliques (n, states)."""
        inputs = features if self.inputs_ is None else self.inputs_.of(features)
        unary = inputs.matmul(self.coef_.T) + self.intercept_
        if self.clique_features is None:
            return unary, inputs.matmul(self.clique_coef_.T) + self.clique_intercept_
        weights, graph = self.clique_coef_, self.label_graph
        tables, starts = np.empty((len(features), len(weights))), graph.table_starts
        own = features_of_cliques(self.clique_features, features, graph.cliques, weights.shape[1])
        for part, states in zip(own, map(slice, starts[:-1], starts[1:]), strict=True):
            tables[:, states] = part.matmul(weights[states].T)
        return unary, tables

    def parts(self, n_rows: int) -> list[slice]:
        at_once = max(1, _NUMBERS_AT_ONCE // (len(self.intercept_) + len(self.clique_intercept_)))
        return list(panels(n_rows, at_once))

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        """Score each label by how much the best labeling with it beats the best without."""
        with Workers(1).running() as workers:
            return self.margins(features, MapInference(self.label_graph), workers)

    def margins(self, features: FeatureMatrix, inference: MapInference, workers: Workers) -> RowsByLabels:
        """Score each label; ties, and exhausted budgets, are resolved as in the predicted labeling."""
        scores = np.empty((len(features), len(self.intercept_)))
        for rows in self.parts(len(features)):
            unary, tables = self.potentials(features.rows(rows))
            margins = inference.max_marginals(unary, tables, workers=workers)
            is_on = inference.solve(unary, tables, workers=workers).labels == 1
            scores[rows] = np.where(is_on, np.maximum(margins, _LEAST), np.minimum(margins, 0.0))
        return scores


_ROUND = Maybe(MEASURED, Items(Items(count())), none=False)  # a part of the record of a round


class LabelGraphModel(KernelClassifier):
    """Base of models whose labelings score ``sum_k h_k^T x y_k + sum_c v_c(state of clique c)^T x``.

    A fit sets ``label_graph_``, ``graph_trace_`` and ``scorer_``, a ``CliqueScorer``.
    """

    scorer_: CliqueScorer
    label_graph_: CliqueGraph
    graph_trace_: list[GraphRecord]

    _stored: ClassVar[dict[str, Field]] = {
        "scorer_": Made(CliqueScorer, {"L": "n_labels"}),
        "label_graph_": Made(CliqueGraph, {"L": "n_labels"}),
        "graph_trace_": Items(Items(_ROUND)),
        "graph_reason_": TEXT,
        "relaxation_gap_": MEASURED,
        "ridge_": Optional(MEASURED),
    }

    def _inference_options(self) -> dict[str, Any]:
        method, nodes = (
            (self.inference, _NODES) if isinstance(self.inference, str) else ("auto", self.inference)
        )
        return {"method": method, "exact_width": self.exact_width, "max_nodes": nodes}

    def _graph_names(self, n_labels: int) -> Array | None:
        """Return the label names of the graph; one label for two classes has the second one's name."""
        if not self._form.has_one_class and np.array_equal(self._form.classes, np.arange(n_labels)):
            return None
        return np.asarray([str(name) for name in self._form.scored])

    def _make_inputs(
        self,
        features: FeatureMatrix,
        targets: tuple[LabelMatrix, PerRow],
        kept: Array,
        seed: int,
        workers: Workers,
    ) -> tuple[FeatureMatrix, KernelInputs | None]:
        """Return the inputs of the kept rows, by their targets, and the map for other rows."""
        self.ridge_ = float("nan")
        self.__dict__.pop("kernel_", None)
        used = features if len(kept) == len(features) else features.rows(kept)
        if self.kernel == "linear" and self.inputs != "scores":
            return used, None
        if self.gamma == "learn":
            self.kernel_ = self._learned_kernel(used, targets, seed, workers)
            source: GramSource = KernelSource(self.kernel_, used)
        elif self._is_precomputed:
            source = RowsOfSource(self._read_kernel(features, seed)[0], kept)
        else:
            source, _ = self._read_kernel(used, seed)
        of_scores = targets if self.inputs == "scores" else None
        values, places, table, constant, self.ridge_ = kernel_inputs(
            source, self.kernel_rank, of_scores, seed, workers
        )
        kernel = getattr(self, "kernel_", None)
        rows = None if kernel is None else features.rows(kept[places]).data
        return FeatureMatrix(values), KernelInputs(kernel, kept[places], rows, table, constant)

    def _learned_kernel(
        self, features: FeatureMatrix, targets: tuple[LabelMatrix, PerRow], seed: int, workers: Workers
    ) -> Kernel:
        """Choose the width of the kernel on the kept rows."""
        is_named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        usual = make_kernel(self.kernel) if is_named else None
        if not isinstance(usual, GammaKernel):
            raise ParameterError(
                "`gamma='learn'` is for the kernels 'rbf', 'poly' and 'laplacian', but kernel is "
                f"{self.kernel!r}; leave `gamma` out."
            )
        return learned_width(usual.resolved(features), features, targets, seed, workers)

    def _raw_scores(self, features: FeatureMatrix) -> RowsByLabels:
        inference = MapInference(self.label_graph_, **self._inference_options())
        with Workers(effective_n_jobs(self.n_jobs)).running() as workers:
            scores = self.scorer_.margins(features, inference, workers)
        scores[:, self._form.unobserved] = 0.0  # completed freely in training: no row says what they mean
        return scores

    def _best_labels(self, features: FeatureMatrix) -> Array:
        signs = 2.0 * self._solve(features, None).labels - 1.0
        signs[:, self._form.unobserved] = -1.0
        return signs

    def _solve(self, features: FeatureMatrix, clamp: Array | None) -> MapResult:
        inference = MapInference(self.label_graph_, **self._inference_options())
        shape = len(features), len(self.intercept_)
        found = MapResult(np.zeros(shape, np.int8), np.zeros(shape[0]), np.zeros(shape[0]))
        with Workers(effective_n_jobs(self.n_jobs)).running() as workers:
            for rows in self.scorer_.parts(shape[0]):
                held = None if clamp is None else clamp[rows]
                potentials = self.scorer_.potentials(features.rows(rows))
                part = inference.solve(*potentials, clamp=held, workers=workers)
                found.labels[rows], found.values[rows], found.bounds[rows] = part
        return found

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        """Return the signs of the best labelings; with thresholds, or one class per row, label scores."""
        if self._form.one_of is not None or self.threshold != "auto":
            return super()._deciding_blocks(X)
        return self._score_blocks(X, self._best_labels)

    def predict_map(self, X: Any, known: Any = None) -> MapResult:
        """Find the best labelings with a certificate for every row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The rows.
        known : array-like of shape (n, L), DataFrame or LabelMatrix, default=None
            Labels that are observed, NaN where they are not; the others are the best given these.  Columns
            with names are matched by name, and may be fewer; labels without names have their numbers.  A
            probability fixes the more likely value, and 0.5 fixes nothing.

        Returns
        -------
        MapResult
            Labels 0/1 of shape (n, L), their scores, upper bounds of any labeling's score, and which are
            proven optimal.

        Raises
        ------
        ValueError
            If ``known`` does not match the rows and labels.
        """
        check_is_fitted(self)
        features = self._read_features(X, reset=False)
        return self._solve(features, None if known is None else self._held(known, len(features)))

    def _held(self, known: Any, n_rows: int) -> Array:
        """Encode known labels as 0 and 1, with -1 for the others."""
        try:
            labels, n_labels = LabelMatrix.from_any(known).most_likely(), len(self.intercept_)
        except ValueError as error:
            raise ValueError(f"known does not hold labels: {error}") from None
        columns = labels_of_columns(labels.names, self.label_graph_.label_names, n_labels, "known")
        if labels.shape != (n_rows, len(columns)):
            raise ValueError(
                f"known has shape {labels.shape}; it must be ({n_rows}, {n_labels}), rows of X by labels, "
                "NaN where unknown."
            )
        held = np.full((n_rows, n_labels), -1, np.int8)
        signs = labels.to_signs()
        held[:, columns] = np.where(signs == 0, -1, signs > 0)
        return held

    def to_state(self) -> dict[str, Any]:
        """Return the stored state; see :meth:`labelweave.estimators.base.LabelClassifier.to_state`."""
        state = super().to_state()
        state["fitted"]["graph_trace_"] = [
            [*record[:1], [list(clique) for clique in record.cliques], *record[2:]]
            for record in self.graph_trace_
        ]
        return state

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = super()._storable_parameters()
        if not isinstance(self.graph, str | GraphGrowth):
            graph = self.label_graph_
            parameters["graph"] = CliqueGraph(graph.n_labels, graph.cliques, graph.label_names)
        for name in ("false_positive_cost", "false_negative_cost"):
            if not isinstance(parameters[name], Real):
                parameters[name] = np.asarray(parameters[name], np.float64)
        return parameters

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        if state["fitted"]["scorer_"].label_graph.cliques != state["fitted"]["label_graph_"].cliques:
            raise ModelFileError("its label_graph_ has other cliques than the graph of its scorer_.")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LabelGraphModel:
        """Restore the fitted model; see :meth:`labelweave.estimators.base.LabelClassifier.from_state`."""
        model: Any = super().from_state(state)
        model.graph_trace_ = [
            GraphRecord(number, tuple(tuple(clique) for clique in cliques), *others)
            for number, cliques, *others in model.graph_trace_
        ]
        return model
