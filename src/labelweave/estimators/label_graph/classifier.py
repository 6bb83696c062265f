"""Multi-label classification with a graph of labels, given or learned (the clique generating machine).

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015.  The optimization problem is stated in :mod:`labelweave.problems.structured_margin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from labelweave.estimators.entry_weights import entries_by_sign, sure_weights
from labelweave.estimators.journal import FitArguments, FitProgress, Journal
from labelweave.estimators.label_graph.choice import (
    choose_candidates,
    choose_graph,
    graph_with_strengths,
    usual_alpha,
    warn_of_wide_graph,
)
from labelweave.estimators.label_graph.fit import (
    SOLVERS,
    USUAL_GROWTH,
    FittedGraph,
    GraphData,
    GraphFit,
    GraphGrowth,
    every_candidate,
)
from labelweave.estimators.label_graph.inputs import KernelInputs
from labelweave.estimators.label_graph.model import CliqueScorer, LabelGraphModel
from labelweave.estimators.parameters import (
    COUNT,
    POSITIVE,
    SHARED,
    SIZE_OF_INTERCEPT,
    ClassWeight,
    Costs,
    FlipRatesLike,
    KernelLike,
    RandomState,
    keep_parameters,
    refuse_together,
)
from labelweave.estimators.seen_rows import SeenRows
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import costs_by_label, weights_of_entries
from labelweave.model_files import storable
from labelweave.problems import structured_margin
from labelweave.problems.structured_margin import CliqueFeatures
from labelweave.solvers import Status
from labelweave.solvers.clique_generation import Cliques

_LIMIT = (
    "The limit of passes was reached before the relative duality gap met the tolerance; raise `max_iter` "
    "or `tol`, scale the features, or regularize more."
)
_MEASURED_SHARE = 0.1  # of the rows, by default
_ENDINGS = {
    Status.INTERRUPTED: "The fit was interrupted; the model is the last one.",
    Status.STALLED: (
        "The objective is at rounding level, so its distance to the minimum is unknown; raise `tol` or "
        "`alpha`, or scale the features down."
    ),
}


@storable("LabelGraphClassifier")
class LabelGraphClassifier(LabelGraphModel):
    """Structured support vector machine whose labels are scored jointly in the cliques of a graph.

    A labeling scores ``sum_k h_k^T x y_k + sum_c v_c(state of clique c)^T x``; fitting minimizes

    ``lambda (1/4 sum_k ||h_k||^2 + 1/2 sum_c ||v_c||^2) + mean_i max_y [cost_i(y) + score(y) - score(y_i)]``

    (Tan et al. 2015, equation 3), and the prediction is the labeling of highest score.  With
    ``graph="learn"`` cliques are activated round by round, those that violate the dual of the convex
    relaxation the most (Algorithm 1), and their part of the penalty is
    ``lambda / 2 (sum of the rounds' norms)^2`` (equation 10).

    Parameters
    ----------
    graph : {"learn", "chow-liu", "full", "none"}, GraphGrowth, CliqueGraph, networkx.Graph or list of \
            tuple, default="learn"
        The cliques.  "learn" activates them round by round, with the settings of a :class:`GraphGrowth`;
        "chow-liu" is the tree of largest mutual information of the labels, "full" has all pairs, "none" no
        cliques, which makes labels independent.  Tuples hold two or more label names or numbers.  A
        CliqueGraph with label names is matched to named labels by name.
    alpha : float or "auto", default="auto"
        lambda, the weight of the penalty; "auto" is a thousandth of the mean squared norm of rows with an
        observed label, including the constant feature.
    kernel : str, Kernel or callable, default="linear"
        A Mercer kernel by name ("rbf", "poly", "laplacian", "cosine", "precomputed"), as an object or a
        function.  The inputs are then the rows of a pivoted Cholesky factor of its matrix (Nyström).
    gamma : {"scale", "auto", "learn"} or float, default="scale"
        Width of "rbf", "poly" and "laplacian".  "learn" takes the multiple of "scale" whose kernel
        ridge regression has the least out-of-fold squared error, a surrogate of the hinge.
    scaling : {"none", "auto", "standard", "quantile", "unit"}, default="none"
        How features are scaled inside the model, as in :class:`MaxMarginClassifier`.
    kernel_rank : int or None, default=None
        The number of pivots; None for as many as the kernel matrix has rank, at most 4,000.
    inputs : {"features", "scores"} or CliqueFeatures, default="features"
        What the weights multiply: features, or out-of-fold scores of kernel ridge regressions of all labels,
        so that the graph learns how labels' scores inform each other.  :class:`CliqueFeatures` are your own
        for the states of each clique, with features for labels; rows are then visited one at a time, which is
        slower.
    loss : {"hamming", "subset", "f1"}, default="hamming"
        The loss of a labeling: the number of wrong labels, weighted by costs (below); 1 for any wrong label;
        or 1 minus the F1 score of the row's label set.  The worst labeling is found exactly; for the last two
        in graphs of up to 14 labels, or of more where they are sparse.
    false_positive_cost, false_negative_cost : float, array-like of shape (L,) or Series by label, default=1.0
        The costs of errors in the loss, for all labels or per label; costs of 1 give the Hamming loss.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, with many labels of their losses, as in :class:`MaxMarginClassifier`.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly, as in :class:`MaxMarginClassifier`.
    threshold : "auto" or float, default="auto"
        "auto" predicts the labeling of highest score.  With a number, labels are predicted whose scores
        (:meth:`decision_function` before thresholds: max-marginal differences) are above it: such a set need
        not be a best labeling.
    fit_intercept : bool or float, default=True
        Whether to add a constant feature, which is penalized like any other; True is for 1, a number for a
        feature of that size.
    inference : {"auto", "exact", "message_passing"} or int, default="auto"
        How the best labeling is found.  "auto" eliminates labels in components of width up to
        ``exact_width``, and elsewhere searches with bounds, by at most 1,000 branch-and-bound nodes per part
        of an example, or the given number; "exact" rejects wider components; "message_passing" is
        max-product linear programming alone.
    exact_width : int, default=12
        The largest width of a component that is always solved by elimination, up to 20.
    solver : {"frank_wolfe", "proximal"}, default="frank_wolfe"
        Block-coordinate Frank-Wolfe (Lacoste-Julien et al., ICML 2013), or the paper's proximal dual ascent
        (Algorithms 2 and 3) with dual variables kept in their simplex, which the paper omits: one
        labeling per row and pass, a smoothed penalty of learned graphs, and slower.  Both certify how
        near the optimum is.
    warm_start : bool, default=False
        Whether the next fit starts from the end of this one, where shapes match: from the same distributions
        of a graph, and a learned graph grows further.
    checkpoint : path-like or None, default=None
        A file, written at most every 30 s and removed at the end.  If the process is killed, rerun the same
        call to resume with the same bits; other data or parameters raise an error.
    tol : float, default=1e-3
        The relative duality gap to reach.
    max_iter : int, default=1000
        Maximum number of passes over the rows in one solve.
    n_jobs : int or None, default=None
        Threads of inference; the result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of rows and the held-out rows.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    label_graph_ : CliqueGraph
        The graph with names, weights (norms of cliques' weight vectors) and signs: 1 where equal values of a
        pair score higher in two thirds or more of the training rows that have one of its labels or both, -1
        where different values do, else 0.
    graph_trace_ : list of GraphRecord
        Cliques in the order chosen, with the objective and the held-out loss after each round; empty for a
        given graph.  With held-out rows these are the rounds on the other rows.
    graph_reason_ : str
        Why no more cliques were activated; empty for a given graph.
    alpha_ : float
        lambda, chosen or given.
    scorer_ : CliqueScorer
        The scoring part of the model; it has the next five attributes.
    coef_, intercept_ : ndarray of shape (L, d) and (L,)
        The weights of labels, for 1 against 0; of the inputs, if these are not the features.
    clique_coef_, clique_intercept_ : ndarray of shape (states, d) and (states,)
        The weights of the states of all cliques, of their own features where given; bit b of a state is the
        value of the b-th label.
    kernel_ : Kernel
        The kernel with numbers as parameters, where there is one.
    inputs_ : KernelInputs or None
        The map from new rows to the inputs, if these are not the features.
    ridge_ : float
        The penalty of the regressions whose scores are inputs; NaN without.
    thresholds_ : ndarray of shape (L,)
        Scores above are positive; ``decision_function`` returns scores minus the lowest of them.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.  Two classes have one column of scores, so L is 1 in
        the other shapes.
    scaling_ : FeatureScaling or None
        How features are scaled.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit; names only for a DataFrame.
    converged_ : bool
        Whether the objective at the graph is certified: the gap is at most ``tol``, and no label of a clique
        is unobserved in a row.
    status_ : {"converged", "settled", "stalled", "iteration_limit", "interrupted"}
        Why the fit ended; "settled" with unobserved labels, "stalled" at the level of rounding.
    n_iter_ : int
        Number of passes over the rows, over all rounds.
    objective_ : float
        The objective.
    duality_gap_ : float
        (primal - dual) / abs(primal), for the learned graph; inexact inference enters with its bound.
    relaxation_gap_ : float
        With ``graph="learn"`` an upper bound on the share of the objective by which other cliques could lower
        it, in the convex relaxation over all candidates (pairs, or those of :class:`GraphGrowth`).  NaN where
        some candidates were not scored: ``clique_size`` above 2 with too many labels to score all.  With
        ``refit`` it is that of the fit that found the graph: the penalty of refitted weights has no such
        relaxation.  NaN for a given graph.
    trace_ : list of TraceRecord
        Every check of the duality gap.

    Notes
    -----
    Unobserved labels (NaN) have no cost and are maximized over, in the search for the worst labeling and in
    the score of the target: the latent structural SVM of Yu and Joachims (ICML 2009).  The target's part is
    solved by completing labels and solving again, which never raises the objective; it is not convex.
    Rows without observed labels add nothing: the loss is the mean over the others.

    The first fit after an installation compiles its loops, for about eight seconds, and the first one with a
    graph that is not narrow for about twenty more.
    For out-of-fold scores an unobserved label counts as the mean of those observed.  Memory grows with rows
    times pivots, time also with the cube of the pivots.
    Y is stored dense, at about 48 bytes per entry.  Every round of "learn" scores all pairs of
    labels; with 50 features per row and 1,000 labels this took 19 s for 2,000 rows and 66 s for 8,000 on one
    core, and it grows with the square of L.  For more labels pass a graph.

    Examples
    --------
    >>> from labelweave import GraphGrowth, LabelGraphClassifier
    >>> from labelweave.datasets import make_clique_toy
    >>> data, edges = make_clique_toy(500)
    >>> model = LabelGraphClassifier(GraphGrowth(max_rounds=4), alpha=1e-3).fit(data.X, data.Y)
    >>> sorted(model.label_graph_.edges) == sorted(edges)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED,
        "graph": "no_validation",
        "fit_intercept": SIZE_OF_INTERCEPT,
        "alpha": [StrOptions({"auto"}), POSITIVE],
        "gamma": [StrOptions({"scale", "auto", "learn"}), POSITIVE],
        "kernel_rank": [COUNT, None],
        "inputs": [StrOptions({"features", "scores"}), CliqueFeatures],
        "loss": [StrOptions(set(structured_margin.SET_LOSSES))],
        "inference": [StrOptions({"auto", "exact", "message_passing"}), COUNT],
        "exact_width": [Interval(Integral, 0, 20, closed="both")],
        "solver": [StrOptions(set(SOLVERS))],
    }

    def __init__(
        self, graph: Any = "learn", alpha: Literal["auto"] | float = "auto", *,
        kernel: KernelLike = "linear", gamma: str | float = "scale",
        scaling: str = "none", kernel_rank: int | None = None, inputs: str | CliqueFeatures = "features",
        loss: str = "hamming",
        false_positive_cost: Costs = 1.0, false_negative_cost: Costs = 1.0, class_weight: ClassWeight = None,
        flip_rates: FlipRatesLike = None,
        threshold: str | float = "auto", fit_intercept: bool | float = True,
        inference: str | int = "auto", exact_width: int = 12, solver: str = "frank_wolfe",
        warm_start: bool = False, checkpoint: str | PathLike[str] | None = None, tol: float = 1e-3,
        max_iter: int = 1000, n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _fit(
        self, rows: SeenRows, before: Any, arguments: FitArguments, kind: type[GraphData] = GraphData
    ) -> None:
        features, labels, weights, entries = rows.features, self._begin(rows), rows.weights, rows.entries
        weights, by_sign = self._weighted_by_class(labels, weights)
        if by_sign is not None and self._form.is_pair:
            weights = weights * entries_by_sign(labels, by_sign, None)[:, 0]
        elif by_sign is not None:
            entries = entries_by_sign(labels, by_sign, entries)
        labels, costs = self._read_costs(labels, entries)
        if self.loss != "hamming" and (costs[labels.to_signs() != 0] != 1.0).any():
            refuse_together(self, {"costs of entries": ""})
        if labels.observed is not None and (is_seen := np.diff(labels.observed.indptr) > 0) @ weights:
            weights = weights * is_seen  # the loss is a mean over rows with an observed label
        data, kept = kind(features, labels, weights, costs, self.loss), np.arange(len(features))
        if not weights.all():  # such rows add nothing, also not to a part of the rows
            kept = np.flatnonzero(weights)
            data = data.rows(kept)
        is_plain = entries is None and labels.flip_probabilities is None
        marked = data.weights if is_plain else [data.weights, data.costs]
        marks = {"y": data.labels.parts(), "sample_weight": marked}
        growth = self._growth
        rounds, tol = (None, self.tol) if growth is None else (growth.max_rounds + 1, None)
        progress = FitProgress(self, arguments, rounds, tol=tol)
        with Workers(effective_n_jobs(self.n_jobs)).running() as workers:
            self._fit_graph(features, data, kept, marks, workers, progress)
        progress.close()

    def _read_costs(self, labels: LabelMatrix, entries: Any) -> tuple[LabelMatrix, RowsByLabels]:
        """Return the labels that have a weight, and the costs of errors (n, L) at all entries."""
        costs = [
            costs_by_label(name, getattr(self, name), self._form.scored)
            for name in ("false_negative_cost", "false_positive_cost")
        ]
        table = np.where(labels.to_signs() > 0, *costs)
        if entries is None and labels.flip_probabilities is None:
            return labels, table
        entries = sure_weights(labels, entries)
        weights = weights_of_entries(np.ones(len(labels)), entries)
        return labels if (weights > 0).all() else labels.masked(sp.csr_array(weights > 0)), table * weights

    @property
    def _clique_features(self) -> CliqueFeatures | None:
        return self.inputs if isinstance(self.inputs, CliqueFeatures) else None

    def _fit_graph(
        self, features: FeatureMatrix, data: GraphData, kept: Array, marks: Mapping[str, Any],
        workers: Workers, progress: FitProgress,
    ) -> None:  # fmt: skip
        n_labels, graph, candidates = data.labels.n_labels, None, None
        if self._growth is None:
            self.label_graph_ = graph = choose_graph(self.graph, data, self._graph_names(n_labels))
        else:
            candidates = choose_candidates(self._growth.candidates, n_labels, self._graph_names(n_labels))
        own, made = list[FeatureMatrix](), self._clique_features
        if made is not None:
            if graph is None and candidates is None:
                candidates = every_candidate(self._growth or USUAL_GROWTH, n_labels)
            cliques = candidates if graph is None else graph.cliques
            own = structured_margin.features_of_cliques(made, features.rows(kept), cliques or ())
            marks = {**marks, "clique_features": [part.data for part in own]}
        seed = self._seed()
        journal = self._open_journal(X=features.marks, **marks)
        seed = journal.recall("seed", lambda: seed)
        values, inputs = self._make_inputs(features, (data.labels, data.weights), kept, seed, workers)
        rows = data._replace(features=self._with_constant(values))
        how = self._how(rows, seed, workers, journal, candidates)
        if graph is not None:
            warn_of_wide_graph(
                graph, data._replace(features=values), self._inference_options(), workers.n_threads
            )
        if made is not None:
            joined, blocks = structured_margin.joined_features(rows.features, own, cliques or ())
            rows = rows._replace(features=joined, blocks=blocks)
        progress.keep = lambda model, fitted: model._keep_weights(fitted, rows, inputs)
        with journal.going_on():
            fitted = how.learned(rows, progress) if graph is None else how.given(rows, graph, progress)
        self._keep_weights(fitted, rows, inputs)
        self.graph_trace_, self.graph_reason_ = list(fitted.rounds), fitted.reason
        self.relaxation_gap_, result = fitted.relaxation_gap, fitted.result
        self._close_journal(journal, is_done=result.status is not Status.INTERRUPTED)
        last = result.trace[-1]
        self.objective_ = last.primal
        advice = _ENDINGS.get(result.status, _LIMIT)
        message = f"{advice} The gap is {last.gap:.2e} after {last.iteration} passes."
        is_convex = not (data.labels.has_missing and self.label_graph_.cliques)
        self._keep_result(replace(result, n_iter=last.iteration), message, is_convex=is_convex)

    def _with_constant(self, features: FeatureMatrix) -> FeatureMatrix:
        wide = features.astype(np.float64)
        return wide.with_constant(float(self.fit_intercept)) if self.fit_intercept else wide

    def _how(
        self, data: GraphData, seed: int, workers: Workers, journal: Journal, candidates: Cliques | None
    ) -> GraphFit:
        self.alpha_ = usual_alpha(data) if self.alpha == "auto" else float(self.alpha)
        earlier = self._states if self.warm_start else {}
        inference, growth, share = self._inference_options(), self._growth or USUAL_GROWTH, None
        if self._growth is not None:
            share = growth.validation_fraction or (_MEASURED_SHARE if growth.early_stopping else None)
        return GraphFit(
            self, growth, self.alpha_, inference, share, seed, workers, candidates, journal, earlier
        )

    @property
    def _growth(self) -> GraphGrowth | None:
        if isinstance(self.graph, GraphGrowth):
            return self.graph
        return USUAL_GROWTH if isinstance(self.graph, str) and self.graph == "learn" else None

    def _keep_weights(self, fitted: FittedGraph, data: GraphData, inputs: KernelInputs | None = None) -> None:
        n_labels, blocks, graph = data.labels.n_labels, data.blocks, fitted.graph
        weights = fitted.weights.T if blocks is None else fitted.weights[blocks[()]].T
        constant = (
            weights[:, -1] * float(self.fit_intercept) if self.fit_intercept else np.zeros(len(weights))
        )
        linear = weights[:, :-1] if self.fit_intercept else weights
        of_cliques = linear[n_labels:]
        if blocks is not None and graph.n_cliques:
            starts = n_labels + graph.table_starts
            parts = zip(graph.cliques, map(slice, starts[:-1], starts[1:]), strict=True)
            of_cliques = np.hstack([fitted.weights[blocks[clique], states] for clique, states in parts]).T
        names = self._graph_names(n_labels)
        self.label_graph_ = graph_with_strengths(fitted.graph, fitted.weights[:, n_labels:], data, names)
        self.scorer_ = CliqueScorer(
            intercept_=constant[:n_labels].copy(),
            coef_=linear[:n_labels].copy(order="F"),
            clique_coef_=of_cliques.copy(order="F"),
            clique_intercept_=constant[n_labels:].copy(),
            label_graph=self.label_graph_,
            inputs_=inputs,
            clique_features=self._clique_features,
        )
