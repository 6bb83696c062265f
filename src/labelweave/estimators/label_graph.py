"""Multi-label classification with a graph of labels, given or learned (the clique generating machine).

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015.  The optimisation problem is stated in :mod:`labelweave.problems.structured_margin`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from labelweave.arrays import Workers
from labelweave.estimators.base import CALLER, Array, GapProgress, LabelClassifier
from labelweave.estimators.label_graph_choice import choose_graph, error_costs, graph_with_strengths
from labelweave.estimators.label_graph_fit import (
    FittedGraph,
    GraphData,
    GraphSettings,
    fit_graph,
    learn_graph,
)
from labelweave.estimators.round_progress import RoundProgress
from labelweave.estimators.targets import read_targets
from labelweave.features import FeatureMatrix
from labelweave.inference.map import MapInference, MapResult
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.model_files import storable
from labelweave.problems.structured_margin import StructuredMargin
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import PassRecord
from labelweave.solvers.clique_generation import GraphRecord
from labelweave.splits import IterativeStratifiedShuffleSplit

__all__ = ["LabelGraphClassifier"]

_COUNT = Interval(Integral, 1, None, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")
_NON_NEGATIVE = Interval(Real, 0, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="neither")
_CAPACITY = 16
_ENDINGS = {
    Status.ITERATION_LIMIT: (
        "The limit of passes was reached before the relative duality gap met the tolerance; raise max_iter or "
        "tol, scale the features, or regularise more."
    ),
    Status.INTERRUPTED: "The fit was interrupted; the model is the best one so far.",
}


@storable("LabelGraphClassifier")
class LabelGraphClassifier(LabelClassifier):
    """Structured support vector machine whose labels are scored together in cliques of a graph.

    A labeling scores ``sum_k h_k^T x y_k + sum_c v_c(state of clique c)^T x``; fitting minimises

    ``lambda / 2 ||w||^2 + mean_i max_y [cost(y, y_i) + score(y) - score(y_i)]``

    (Tan et al. 2015, equation 3), and the prediction is the labeling of highest score.  With
    ``graph="learn"`` cliques are activated round by round, those that violate the dual of the convex
    relaxation the most (Algorithm 1), and their part of the penalty is
    ``lambda / 2 (sum of the rounds' norms)^2`` (equation 10).

    Parameters
    ----------
    graph : {"learn", "chow-liu", "full", "none"}, CliqueGraph, networkx.Graph or list of tuple, default="learn"
        The cliques.  "chow-liu" is the tree of largest mutual information of the labels, "full" has
        all pairs, "none" no cliques, which makes labels independent.  Tuples hold two or more label names or
        numbers.
    regularization : float, default=1e-3
        lambda.
    cliques_per_round : int, default=1
        Cliques that a round of "learn" activates, r in the paper.
    max_rounds : int, default=50
        The largest number of rounds.
    graph_tol : float, default=0.01
        The graph is done when two rounds change the objective by less than this share (supplement, A.3, with
        0.05), or when no candidate violates the dual; 0 leaves the second reason alone.
    clique_size : int, default=2
        The most labels in a clique.  Above 2, pairs may be followed by larger cliques grown from chosen ones.
    validation_fraction : float or None, default=None
        Share of the rows, stratified by labels, on which the Hamming loss after every round is measured; the
        model is fitted again to all rows.
    early_stopping : bool, default=False
        Whether to keep the number of rounds of least held-out loss; without ``validation_fraction`` a tenth of the
        rows is held out.
    false_positive_cost, false_negative_cost : float or array-like of shape (L,), default=1.0
        The costs of errors in the loss, for all labels or each; ones make the Hamming loss.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which is penalised like any other.
    intercept_scaling : float, default=1.0
        The constant feature.
    inference : {"auto", "exact", "message_passing"}, default="auto"
        How the best labeling is found.  "auto" eliminates labels where the graph is narrow, and searches with
        bounds elsewhere; "exact" refuses graphs that elimination cannot solve within ``exact_width``;
        "message_passing" searches everywhere.
    exact_width : int or None, default=None
        The largest width of a component that is solved by elimination; None for what is fastest.
    max_nodes : int or None, default=None
        Nodes of branch and bound that one example may take; None for the default of inference.
    tol : float, default=1e-3
        The relative duality gap to reach.
    max_iter : int, default=1000
        The largest number of passes over the rows in one solve.
    n_jobs : int or None, default=None
        Threads of inference; the result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Fixes the order of rows and the held-out rows.

    Attributes
    ----------
    label_graph_ : CliqueGraph
        The graph with names, weights (the norm of a clique's weight vectors) and signs (whether its two labels
        attract, 1, or exclude each other, -1, on average over the training rows).
    graph_trace_ : list of GraphRecord
        Cliques in the order chosen, with the objective and the held-out loss after each round; empty for a
        given graph.
    graph_reason_ : str
        Why no more cliques were activated.
    coef_ : ndarray of shape (L, d)
        The weights of labels, for 1 against 0.
    intercept_ : ndarray of shape (L,)
        Their intercepts.
    clique_coef_ : ndarray of shape (states, d)
        The weights of the states of all cliques, one after another; bit b of a state is the value of the b-th label.
    clique_intercept_ : ndarray of shape (states,)
        Their intercepts.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_ : int
        Features seen in fit.
    feature_names_in_ : ndarray of shape (d,)
        Their names, when X was a frame.
    converged_ : bool
        Whether the duality gap met ``tol``.
    status_ : {"converged", "iteration_limit", "interrupted"}
        Why the fit ended.
    n_iter_ : int
        Passes over the rows, all rounds together.
    objective_ : float
        The objective.
    duality_gap_ : float
        (primal - dual) / max(1, abs(primal)), at the learned graph; inference that is not exact enters it with
        its bound.
    trace_ : list of PassRecord
        Every check of the duality gap.

    Notes
    -----
    Unobserved labels (NaN) have no cost and are maximised over, in the search for the worst labeling and in the
    score of the target: the latent structural SVM of Yu and Joachims (ICML 2009).  The target's part is solved by
    completing labels and solving again, which never raises the objective; it is not convex.

    Examples
    --------
    >>> from labelweave import LabelGraphClassifier
    >>> from labelweave.datasets import make_clique_toy
    >>> data, edges = make_clique_toy(500)
    >>> model = LabelGraphClassifier(regularization=1e-3, max_rounds=4).fit(data.X, data.Y)
    >>> sorted(model.label_graph_.edges) == sorted(edges)
    True
    """

    _record_type = PassRecord
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "graph": [StrOptions({"learn", "chow-liu", "full", "none"}), "array-like", CliqueGraph, object],
        "regularization": [_POSITIVE],
        "cliques_per_round": [_COUNT],
        "max_rounds": [_COUNT],
        "graph_tol": [_NON_NEGATIVE],
        "clique_size": [Interval(Integral, 2, 8, closed="both")],
        "validation_fraction": [_SHARE, None],
        "early_stopping": ["boolean"],
        "false_positive_cost": [_NON_NEGATIVE, "array-like"],
        "false_negative_cost": [_NON_NEGATIVE, "array-like"],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [_POSITIVE],
        "inference": [StrOptions({"auto", "exact", "message_passing"})],
        "exact_width": [_COUNT, None],
        "max_nodes": [_COUNT, None],
        "tol": [_POSITIVE],
        "max_iter": [_COUNT],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        graph="learn",
        regularization=1e-3,
        *,
        cliques_per_round=1,
        max_rounds=50,
        graph_tol=0.01,
        clique_size=2,
        validation_fraction=None,
        early_stopping=False,
        false_positive_cost=1.0,
        false_negative_cost=1.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        inference="auto",
        exact_width=None,
        max_nodes=None,
        tol=1e-3,
        max_iter=1000,
        n_jobs=None,
        random_state=0,
    ):
        self.graph = graph
        self.regularization = regularization
        self.cliques_per_round = cliques_per_round
        self.max_rounds = max_rounds
        self.graph_tol = graph_tol
        self.clique_size = clique_size
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.false_positive_cost = false_positive_cost
        self.false_negative_cost = false_negative_cost
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.inference = inference
        self.exact_width = exact_width
        self.max_nodes = max_nodes
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LabelGraphClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            Labels 0/1 or -1/1 with NaN where unobserved, or one class a row.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows' losses.

        Returns
        -------
        LabelGraphClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If the data, the graph, or their combination with the parameters, make no sense.
        """
        features = self._read_features(X, reset=True)
        labels, self._form = read_targets(y)
        self._check_lengths(features, labels)
        self.classes_ = self._form.classes
        weights = _check_sample_weight(
            sample_weight, features.data, dtype=np.float64, ensure_non_negative=True
        )
        if not weights.any():
            raise ValueError("All sample weights are 0; at least one row needs a positive weight.")
        data = GraphData(self._with_constant(features), labels, weights)
        workers = Workers(effective_n_jobs(self.n_jobs))
        with workers.running():
            self._keep(self._fit(data, self._settings(labels, workers)), features)
        return self

    def _with_constant(self, features: FeatureMatrix) -> FeatureMatrix:
        wide = features.astype(np.float64)
        return wide.with_constant(self.intercept_scaling) if self.fit_intercept else wide

    def _settings(self, labels: LabelMatrix, workers: Workers) -> GraphSettings:
        return GraphSettings(
            regularization=float(self.regularization),
            costs=error_costs(self.false_positive_cost, self.false_negative_cost, labels),
            inference=self._inference_options(),
            capacity=_CAPACITY,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            workers=workers,
        )

    def _inference_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"method": self.inference}
        if self.exact_width is not None:
            options["exact_width"] = self.exact_width
        if self.max_nodes is not None:
            options["max_nodes"] = self.max_nodes
        return options

    def _fit(self, data: GraphData, settings: GraphSettings) -> FittedGraph:
        if isinstance(self.graph, str) and self.graph == "learn":
            return self._learn(data, settings)
        progress = GapProgress(self, self.tol)
        fitted = fit_graph(data, choose_graph(self.graph, data.labels), settings, progress)
        progress.close()
        return fitted

    def _learn(self, data: GraphData, settings: GraphSettings) -> FittedGraph:
        share = self.validation_fraction or (0.1 if self.early_stopping else None)
        progress = RoundProgress(self, (self.max_rounds + 1) * (1 if share is None else 2))
        try:
            if share is None:
                return self._grow(data, settings, progress, self.max_rounds, self.graph_tol)
            return self._grow_measured(data, settings, progress, share)
        finally:
            progress.close()

    def _grow_measured(
        self, data: GraphData, settings: GraphSettings, progress: RoundProgress, share: float
    ) -> FittedGraph:
        """Measure rounds on held-out rows, then fit all rows; an interrupt leaves what there is."""
        splitter = IterativeStratifiedShuffleSplit(1, test_size=share, random_state=settings.seed)
        train, held_out = next(splitter.split(np.zeros((len(data.labels), 1)), data.labels))
        measure = _HeldOutLoss(data.rows(held_out))
        part = self._grow(data.rows(train), settings, progress, self.max_rounds, self.graph_tol, measure)
        if part.status is Status.INTERRUPTED:
            return part
        losses = [record.held_out_loss for record in part.rounds]
        best = int(np.argmin(losses)) if self.early_stopping else len(losses) - 1
        fitted = self._grow(data, settings, progress, best, 0.0)
        reason = "held-out rows chose the number of rounds" if self.early_stopping else part.reason
        return FittedGraph(fitted.problem, fitted.status, fitted.trace, part.rounds, reason)

    def _grow(
        self,
        data: GraphData,
        settings: GraphSettings,
        progress: RoundProgress,
        max_rounds: int,
        graph_tol: float,
        measure: Callable[[StructuredMargin], float] = lambda problem: float("nan"),
    ) -> FittedGraph:
        search = {
            "cliques_per_round": self.cliques_per_round,
            "clique_size": self.clique_size,
            "max_rounds": max_rounds,
            "graph_tol": graph_tol,
        }
        return learn_graph(data, settings, search, measure, lambda record: progress.subtask("round"))

    def _keep(self, fitted: FittedGraph, features: FeatureMatrix) -> None:
        problem = fitted.problem
        weights, n_labels = problem.weights().T, problem.data.n_labels
        constant = weights[:, -1] * self.intercept_scaling if self.fit_intercept else np.zeros(len(weights))
        linear = weights[:, : features.shape[1]]
        self.coef_, self.intercept_ = linear[:n_labels].copy(), constant[:n_labels].copy()
        self.clique_coef_, self.clique_intercept_ = linear[n_labels:].copy(), constant[n_labels:].copy()
        names = None if self._form.classes.dtype.kind in "iu" else self.label_names_
        self.label_graph_ = graph_with_strengths(problem, weights, names)
        self.graph_trace_, self.graph_reason_ = fitted.rounds, fitted.reason
        self._keep_ending(fitted)

    def _keep_ending(self, fitted: FittedGraph) -> None:
        end = fitted.trace[-1]
        self.converged_ = fitted.status is Status.CONVERGED
        self.status_ = fitted.status.name.lower()
        self.n_iter_, self.objective_, self.duality_gap_ = end.iteration, end.primal, end.gap
        self.trace_ = fitted.trace
        if not self.converged_:
            message = f"{_ENDINGS[fitted.status]} It is {end.gap:.2e} after {end.iteration} passes."
            warnings.warn(message, ConvergenceWarning, stacklevel=CALLER)

    def _map(self) -> MapInference:
        return MapInference(self.label_graph_, **self._inference_options())

    def _potentials(self, features: FeatureMatrix) -> tuple[Array, Array]:
        unary = features.matmul(self.coef_.T) + self.intercept_
        return unary, features.matmul(self.clique_coef_.T) + self.clique_intercept_

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        """Score every label by how much the best labeling with it beats the best without."""
        workers = Workers(effective_n_jobs(self.n_jobs))
        with workers.running():
            return self._map().max_marginals(*self._potentials(features), workers=workers)

    def _best_labels(self, features: FeatureMatrix) -> Array:
        return 2.0 * self._solve(features, None).labels - 1.0

    def _solve(self, features: FeatureMatrix, clamp: Array | None) -> MapResult:
        workers = Workers(effective_n_jobs(self.n_jobs))
        with workers.running():
            return self._map().solve(*self._potentials(features), clamp=clamp, workers=workers)

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
            Labels that are known, NaN where they are not; the others are the best given these.

        Returns
        -------
        MapResult
            Labels 0/1 of shape (n, L), their scores, upper bounds of any labeling's score, and which are proven
            optimal.

        Raises
        ------
        ValueError
            If ``known`` has another shape than rows and labels.
        """
        check_is_fitted(self)
        features = self._read_features(X, reset=False)
        clamp = None
        if known is not None:
            signs = LabelMatrix.from_any(known).to_signs()
            if signs.shape != (len(features), len(self.intercept_)):
                raise ValueError(
                    f"known has shape {signs.shape}; it needs a row for each of the {len(features)} rows of X and a "
                    f"column for each of the {len(self.intercept_)} labels, NaN where nothing is known."
                )
            clamp = np.where(signs == 0, -1, signs > 0).astype(np.int8)
        return self._solve(features, clamp)

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
    def from_state(cls, state: dict[str, Any]) -> LabelGraphClassifier:
        """Make the fitted model again; see :meth:`labelweave.estimators.base.LabelClassifier.from_state`."""
        model: Any = super().from_state(state)
        model.graph_trace_ = [
            GraphRecord(number, tuple(tuple(clique) for clique in cliques), *others)
            for number, cliques, *others in model.graph_trace_
        ]
        return model


class _HeldOutLoss:
    """The Hamming loss of a problem's weights on other rows."""

    def __init__(self, data: GraphData) -> None:
        self.data = data

    def __call__(self, problem: StructuredMargin) -> float:
        """Measure."""
        n_labels = problem.data.n_labels
        scores = self.data.features.matmul(problem.weights())
        unary, tables = np.ascontiguousarray(scores[:, :n_labels]), np.ascontiguousarray(scores[:, n_labels:])
        labels = problem.map.solve(unary, tables, workers=problem.workers).labels
        signs = self.data.labels.to_signs()
        seen = (signs != 0) * self.data.weights[:, None]
        return float((seen * (labels != (signs > 0))).sum() / seen.sum())
