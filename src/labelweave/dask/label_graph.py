"""The label-graph classifier on Dask's collections."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

from distributed import Client

from labelweave.dask.classifier import PartitionedClassifier
from labelweave.dask.data import ReadData, gathered_entries, gathered_labels
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.graph_margin import PartitionedGraphData
from labelweave.estimators import LabelGraphClassifier as LocalLabelGraphClassifier
from labelweave.estimators.parameters import (
    POSITIVE,
    ClassWeight,
    Costs,
    FlipRatesLike,
    KernelLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.progress import FitArguments, fit_method
from labelweave.estimators.seen_rows import SeenRows

_BYTES_AN_ENTRY = 64  # of Y, on the client: costs, distributions, and copies while they are sent


class LabelGraphClassifier(PartitionedClassifier):
    """:class:`labelweave.LabelGraphClassifier` on Dask's collections, with the same certificate.

    Linear.  Rows stay in their partitions, and the weights of labels and cliques visit them one after the
    other, several times a pass, in an order drawn anew for each: block-coordinate Frank-Wolfe in another
    order of the rows.  Scores of cliques that may come next, objectives and bounds are sums over partitions.
    Small partitions are brought together first: where all rows are in one place, the fit is that of the
    ordinary estimator, bit by bit.  One worker at a time is busy with a pass.  The client holds the labels,
    the costs of errors and the dual variables, at some 64 bytes an entry of Y.  The bits depend on the
    partitions and the seed alone, not on the number of workers, nor on which of them died meanwhile.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    graph : {"learn", "chow-liu", "full", "none"}, CliqueGraph, networkx.Graph or list of tuple, \
            default="learn"
        The cliques.
    regularization : float or "auto", default="auto"
        lambda; "auto" is a thousandth of the rows' mean squared norm over all partitions.
    kernel : "linear", default="linear"
        Others are for data in memory, as other values of the parameters without a word here.
    gamma : {"scale"}, default="scale"
        Of other kernels; not read.
    degree : int, default=3
        Of other kernels; not read.
    coef0 : float, default=1.0
        Of other kernels; not read.
    scaling : {"none"}, default="none"
        Features are taken as they are.
    n_components : int or None, default=None
        Of other kernels; not read.
    inputs : {"features"}, default="features"
        What the weights are of.
    cliques_per_round : int, default=1
        Cliques that a round activates.
    max_rounds : int, default=50
        The largest number of rounds.
    graph_tol : float, default=0.01
        The graph is done when two rounds change the objective by less than this share.
    clique_size : int, default=2
        The most labels in a clique.
    validation_fraction : float or None, default=None
        Share of the rows on which rounds are measured, or thresholds chosen: the same rows as on one machine.
    early_stopping : bool, default=False
        Whether to keep the rounds up to the least held-out loss only.
    refit : bool, default=False
        Whether to fit the weights of a learned graph again with the squared penalty.
    false_positive_cost, false_negative_cost : float, array-like of shape (L,) or Series by label, default=1.0
        The costs of errors, for all labels or each.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, counted over all partitions.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly; "propensity" counts over all partitions.
    threshold : {"auto", "f1", "micro_f1", "macro_f1", "example_f1", "hamming_loss"} or float, default="auto"
        "auto" predicts the labeling of highest score; a number, or a rule for the best ones on held-out rows,
        the labels whose scores are above.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    intercept_scaling : float, default=1.0
        The constant feature.
    inference : {"auto", "exact", "message_passing"}, default="auto"
        How the best labeling is found.
    exact_width : int, default=12
        The largest width of a component that is always solved by elimination.
    max_nodes : int, default=1000
        Nodes of branch and bound for one part of an example.
    solver : {"frank_wolfe", "proximal"}, default="frank_wolfe"
        Block-coordinate Frank-Wolfe, or the paper's proximal dual ascent.
    warm_start : False, default=False
        Fits begin anew, or at their checkpoint.
    checkpoint : path-like or None, default=None
        A file on the client, written at most every 30 seconds during a fit, and removed after it.  The same
        call goes on from it with the same bits after its client was killed.
    tol : float, default=1e-3
        The relative duality gap to reach.
    max_iter : int, default=1000
        The largest number of passes over the rows in one solve.
    memory_budget : float, default=2000.0
        Megabytes: of rows that are brought together on a worker, and of tables of rows times labels on the
        client.
    n_jobs : int or None, default=None
        Threads of the client; those of workers are theirs.
    random_state : int, RandomState instance or None, default=0
        Fixes the order of rows and the held-out rows.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is.

    Attributes
    ----------
    label_graph_ : CliqueGraph
        The graph.  This and all other fitted attributes are those of the ordinary estimator.
    graph_trace_ : list of GraphRecord
        Cliques in the order chosen.
    duality_gap_ : float
        The relative duality gap over all partitions.
    n_iter_ : int
        Passes over the rows.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from labelweave.dask import LabelGraphClassifier
    >>> X = da.from_array(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.4], [0.0, 0.9]]), chunks=(2, 2))
    >>> Y = da.from_array(np.array([[0, 1], [1, 0], [1, 0], [0, 1]]), chunks=(2, 2))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = LabelGraphClassifier(client, graph=[(0, 1)]).fit(X, Y)
    ...     predicted = model.predict(X).compute()
    >>> predicted
    array([[0, 1],
           [1, 0],
           [1, 0],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalLabelGraphClassifier._parameter_constraints,
        "client": [Client, None],
        "memory_budget": [POSITIVE],
    }
    _ordinary = LocalLabelGraphClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {
        "kernel": ("linear",),
        "scaling": ("none",),
        "inputs": ("features",),
        "warm_start": (False,),
    }

    def __init__(
        self, client: Client | None = None, graph: Any = "learn", regularization: Any = "auto", *,
        kernel: KernelLike = "linear", gamma: str | float = "scale", degree: int = 3, coef0: float = 1.0,
        scaling: str = "none", n_components: int | None = None, inputs: str = "features",
        cliques_per_round: int = 1, max_rounds: int = 50, graph_tol: float = 0.01, clique_size: int = 2,
        validation_fraction: float | None = None, early_stopping: bool = False, refit: bool = False,
        false_positive_cost: Costs = 1.0, false_negative_cost: Costs = 1.0, class_weight: ClassWeight = None,
        flip_rates: FlipRatesLike = None,
        threshold: str | float = "auto", fit_intercept: bool = True, intercept_scaling: float = 1.0,
        inference: str = "auto", exact_width: int = 12, max_nodes: int = 1000, solver: str = "frank_wolfe",
        warm_start: bool = False, checkpoint: str | PathLike[str] | None = None, tol: float = 1e-3,
        max_iter: int = 1000, memory_budget: float = 2000.0, n_jobs: int | None = None,
        random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _fit_local(
        self, local: LocalLabelGraphClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
    ) -> None:
        n_labels = len(data.counts.positives)
        self._refuse_large_tables(data.n_rows, n_labels, _BYTES_AN_ENTRY, "or give fewer rows or labels")
        labels, weights = gathered_labels(client, data)
        features = PartitionedFeatures(client, data.joined(client, self.memory_budget))
        rows = SeenRows(features, labels, weights, data.form)
        _fit_rows(local, rows, gathered_entries(client, data))


@fit_method
def _fit_rows(local: LocalLabelGraphClassifier, rows: SeenRows, entries: Any) -> LocalLabelGraphClassifier:
    """Fit the ordinary estimator to rows elsewhere."""
    return local._learn(rows, entries, FitArguments(None, None, None), PartitionedGraphData)
