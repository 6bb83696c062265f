"""Classification with ten thousand labels and more, with a tree over the labels.

Prabhu, Kag, Harsola, Agrawal and Varma, "Parabel: partitioned label trees for extreme classification with
application to dynamic search advertising", WWW 2018; Khandagale, Xiao and Babbar, "Bonsai", Machine Learning
2020; Yu, Zhong, Zhang, Chang and Dhillon, "PECOS", JMLR 2022.  The problem is stated in
:mod:`labelweave.problems.tree_blocks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Literal, NamedTuple, overload

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.entry_weights import sure_weights
from labelweave.estimators.journal import FitArguments, FitProgress, Journal
from labelweave.estimators.label_tree.fit import LabelVectors, RowsOfTrees, TreeFit, TreeRows, TreeSettings
from labelweave.estimators.label_tree.scorer import LabelTreeScorer
from labelweave.estimators.label_tree.weighted_tree import FoundLabels
from labelweave.estimators.parameters import (
    COUNT,
    POSITIVE,
    SHARED,
    ClassWeight,
    FlipRatesLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.seen_rows import SeenRows
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.labels import Taxonomy
from labelweave.labels.label_names import as_text
from labelweave.labels.targets import check_lengths
from labelweave.metrics.known_labels import known_labels, tags_of_model
from labelweave.model_files import storable
from labelweave.model_files.schema import MEASURED, Field, Made, Named
from labelweave.solvers import Status

_TREES, _BEAM = 3, 10
_MANY_LABELS = 200_000  # from here on one tree by default
_NO_BUDGET = int(np.iinfo(np.int64).max)
_ROWS_AT_ONCE = 2**14  # whose visited nodes are kept in memory


class ShortlistRecall(NamedTuple):
    """Recall of a beam search in a label tree.

    reached : float
        The share of the rows' labels whose leaf the beam visits in some tree; NaN without labels.
    kept : float
        The share of the k best of all labels that the beam finds, in rows where these are proven.
    proven : float
        The share of rows whose k best labels are proven.
    opened : float
        The mean number of nodes per row that the proof visited.
    """

    reached: float
    kept: float
    proven: float
    opened: float


@storable("LabelTreeClassifier")
class LabelTreeClassifier(LabelClassifier):
    """Max-margin classifier for very many labels, with a tree over the labels.

    Labels with similar rows are near each other in a balanced tree.  Linear support vector machines at each
    node choose the branches, and at the leaves the labels, of a row; they learn from the rows that have a
    label below the node.  The work per row grows with the logarithm of the number of labels.  With
    ``leaf_size`` labels or fewer the tree is a single node, and the model is that of independent labels.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses; larger values fit the training data more closely.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss of a row with sign y and margin s: ``C max(0, 1 - y s)**2``, or that of
        :class:`MaxMarginClassifier`, ``2 C max(0, 1 - y s)``.
    tree : Taxonomy, {array-like, sparse matrix, DataFrame by label} of shape (L, k) or None, default=None
        What to build the tree from.  None: each label is the sum of the features of its positive rows.  An
        array has one vector per label, of which only the direction counts.  A taxonomy, a tree with one node
        per label, is used as it is.
    branching : int, default=128
        Maximum number of branches of a node, rounded down to a power of two.  Larger values make a
        shallow tree, which is more accurate and slower to fit (Bonsai).
    leaf_size : int, default=100
        Maximum number of labels of a leaf node.
    n_trees : int or None, default=None
        Number of trees from different starts, whose probabilities are averaged; one where a tree is a
        single node.  None: 3, and 1 for a taxonomy, with ``negatives="all"``, or with more than 200,000
        labels, where each tree takes gigabytes.
    beam : int or None, default=None
        How many nodes per level ``predict_top`` visits.  None: as many as it takes until no other label can
        score higher, and 10 with several trees.  It may be changed after a fit.
    negatives : {"reached", "all"}, default="reached"
        The rows that labels learn from: those that reach their node, or all.  With "all" labels are
        one-vs-rest classifiers with scores of their own, as slow to fit as
        ``MaxMarginClassifier(prune=...)``, and the tree is their index.
    prune : {"off", "certified", "small"} or float, default="small"
        Which weights to remove; "certified" and "small" are those of :class:`MaxMarginClassifier`.
        "certified" with ``tol=0.01`` has the smallest model of a proven gap, in two to three times the time.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1, whose weight is penalized like others.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of classes, which multiply the row weights, where each row has one class.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly, as in :class:`MaxMarginClassifier`.
    checkpoint : path-like or None, default=None
        A file, written at most every 30 s and removed at the end.  If the process is killed, rerun the same
        call to resume with the same bits; other data or parameters raise an error.
    tol : float, default=0.1
        The relative duality gap, (primal - dual) / abs(primal), of each block of 16 columns of a node, before
        weights are removed except with ``prune="certified"``.
    max_iter : int, default=1000
        Maximum number of rounds per block.
    n_jobs : int or None, default=None
        Threads; the result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Seed of the clustering of labels and of the order in which rows are visited.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    label_trees_ : tuple of LabelTree
        The trees: ``ends`` and ``targets`` store which columns nodes have, and to what these lead.
    coef_ : csr_array of shape (L, d)
        The weights of labels, where scores are linear in the features: one tree with a single node, or
        ``negatives="all"``.
    intercept_ : ndarray of shape (L,)
        The intercepts of the labels' own classifiers, in the first tree.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.  Two classes have one column of scores, so L is 1 in
        the other shapes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit; names only for a DataFrame.
    converged_ : bool
        Whether the objective is certified: the gap is at most ``tol``.
    status_ : {"converged", "settled", "iteration_limit", "interrupted"}
        Why the fit ended; "settled" where removed small weights cost more than ``tol``.
    n_iter_ : int
        Number of finished groups of blocks.
    duality_gap_ : float
        The relative duality gap of all nodes together, at the weights that are kept.
    pruning_ : dict
        The cost of pruning, as in :class:`MaxMarginClassifier`.
    trace_ : list of TraceRecord
        Time, primal, dual and gap after every group of blocks.

    Notes
    -----
    A margin s of a column is the probability p(s) = 1 / (1 + exp(-3 s)).  The score of a label is the s
    whose p(s) is the product of the probabilities on its path, so it is below every margin on the path, and
    positive where the product is above a half; ``predict`` returns exactly the labels of positive score,
    whatever ``beam`` is.  With several trees p(s) is the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import LabelTreeClassifier
    >>> X, Y = np.eye(6), np.eye(6, dtype=int)
    >>> model = LabelTreeClassifier(C=10.0, leaf_size=2, branching=4).fit(X, Y)
    >>> model.label_trees_[0].n_nodes
    5
    >>> labels, scores = model.predict_top(X, 1)
    >>> labels.ravel()
    array([0, 1, 2, 3, 4, 5])
    >>> found = model.predict_top(X, 1, exact=True)
    >>> bool(found.proven.all())
    True
    """

    scorer_: LabelTreeScorer
    _lowest_threshold: ClassVar[float] = 0.0  # labels of positive score are predicted

    _stored: ClassVar[dict[str, Field]] = {
        "scorer_": Made(LabelTreeScorer, {"L": "n_labels"}),
        "pruning_": Named(MEASURED),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "C": [POSITIVE],
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "tree": [Taxonomy, "array-like", "sparse matrix", None],
        "branching": [Interval(Integral, 2, None, closed="left")],
        "leaf_size": [COUNT],
        "n_trees": [COUNT, None],
        "beam": [COUNT, None],
        "negatives": [StrOptions({"reached", "all"})],
        "prune": [StrOptions({"off", "certified", "small"}), POSITIVE],
    }

    def __init__(
        self, C: float = 1.0, *, loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        tree: Taxonomy | LabelVectors | None = None, branching: int = 128,
        leaf_size: int = 100, n_trees: int | None = None, beam: int | None = None,
        negatives: Literal["reached", "all"] = "reached",
        prune: Literal["off", "certified", "small"] | float = "small", fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        flip_rates: FlipRatesLike = None, checkpoint: str | PathLike[str] | None = None, tol: float = 0.1,
        max_iter: int = 1000, n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _fit(self, rows: SeenRows, before: Any, arguments: FitArguments) -> None:
        self._learn(self._rows(rows), arguments)

    def _rows(self, rows: SeenRows) -> TreeRows:
        """Correct labels, and drop rows of weight 0."""
        features, labels = rows.features, self._begin(rows)
        entries = sure_weights(labels, rows.entries)
        entries = sp.csr_array(entries) if sp.issparse(entries) else entries
        weights = self._rows_by_class(labels, rows.weights)
        if not weights.all():
            kept = np.flatnonzero(weights)
            features, labels, weights = features.rows(kept), labels[kept], weights[kept]
            entries = None if entries is None else entries[kept]
        return TreeRows(features, labels, weights, entries)

    def _learn(self, rows: RowsOfTrees, arguments: FitArguments) -> None:
        vectors = None if self.tree is None or isinstance(self.tree, Taxonomy) else self.tree
        journal = self._open_journal(**rows.marks, tree=vectors)
        seed = journal.recall("seed", self._seed)
        self.__dict__.pop("scorer_", None)
        progress = FitProgress(self, arguments, tol=self.tol)
        with Workers(effective_n_jobs(self.n_jobs)).running() as workers, journal.going_on():
            settings = self._settings(rows.n_labels, seed, workers, journal, progress)
            names = [str(name) for name in self.classes_] if rows.n_labels > 1 else ["the label"]
            problem = rows.problem(self.tree, names, settings)
            progress.keep = lambda model, fitted: model._keep(fitted)
            fitted = settings.solve(problem)
        self._keep(fitted)
        self._keep_result(fitted.result)
        self._close_journal(journal, is_done=fitted.result.status is not Status.INTERRUPTED)
        progress.close()

    def _settings(
        self, n_labels: int, seed: int, workers: Workers, journal: Journal, progress: FitProgress
    ) -> TreeSettings:
        is_single = self.negatives == "all" or isinstance(self.tree, Taxonomy) or n_labels > _MANY_LABELS
        return TreeSettings(
            branching=int(self.branching),
            leaf_size=int(self.leaf_size),
            n_trees=(1 if is_single else _TREES) if self.n_trees is None else int(self.n_trees),
            upper=(1.0 if self.loss == "squared_hinge" else 2.0) * self.C,
            sees_all=self.negatives == "all",
            squared=self.loss == "squared_hinge",
            intercept=self.fit_intercept,
            prune=self.prune if isinstance(self.prune, str) else float(self.prune),
            tol=self.tol,
            max_iter=self.max_iter,
            seed=seed,
            workers=workers,
            journal=journal,
            on_check=progress,
        )

    def _keep(self, fitted: TreeFit) -> None:
        self.scorer_ = LabelTreeScorer.of(
            fitted.trees, self.n_features_in_, by_margin=self.negatives == "all"
        )
        self.pruning_ = fitted.pruning

    def _deciding_blocks(self, X: Any) -> Iterator[Any]:
        """Score every column for ``predict``; for many labels return only the predicted ones, as CSR."""
        is_one_node = all(tree.n_nodes == 1 for tree in self.label_trees_)
        if self._form.has_one_class or is_one_node:
            yield from self._score_blocks(X)
            return
        features = self._read_features(X, reset=False)
        rows, labels = self.scorer_.positive(features)
        shape = len(features), len(self.classes_)
        yield sp.csr_array((np.ones(len(rows), np.int64), (rows, labels)), shape=shape)

    def _decide(self, scores: Any) -> Any:
        if not sp.issparse(scores):
            return super()._decide(scores)
        if self._form.container in ("sparse", "tags"):
            return scores
        return super()._decide(scores.toarray())

    @overload
    def predict_top(
        self, X: Any, k: int = ..., *, exact: Literal[False] = ..., budget: int | None = ...
    ) -> tuple[Array, Array]: ...
    @overload
    def predict_top(
        self, X: Any, k: int = ..., *, exact: Literal[True], budget: int | None = ...
    ) -> FoundLabels: ...
    def predict_top(
        self, X: Any, k: int = 5, *, exact: bool = False, budget: int | None = None
    ) -> tuple[Array, Array] | FoundLabels:
        """Return the k labels with the highest scores, of all labels or below the nodes of a beam.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.
        k : int, default=5
            Number of labels, at most the number of labels of the model.
        exact : bool, default=False
            Whether to search until no other label can score higher, whatever ``beam`` is, and to return which
            rows are proven.  Nodes are visited in the order of bounds on their labels' scores.
        budget : int or None, default=None
            With ``exact=True``, the maximum number of nodes per row, over all trees; None for no limit.

        Returns
        -------
        labels : ndarray of int, shape (n, k)
            Label numbers, best first; ties are broken by the lower number.
        scores : ndarray of shape (n, k)
            Their scores, as ``decision_function`` returns them.
        proven : ndarray of bool, shape (n,)
            With ``exact=True``: whether these are the k best of all labels, with scores equal to those of
            ``decision_function`` bit for bit.
        opened : ndarray of int, shape (n,)
            With ``exact=True``: how many nodes were visited.

        Raises
        ------
        ValueError
            If k is not between 1 and the number of labels, or ``budget`` is set without ``exact=True``.
        """
        if not exact:
            if budget is not None:
                raise ValueError(f"budget={budget!r} needs exact=True; set exact=True or leave budget out.")
            return super().predict_top(X, k)
        check_is_fitted(self)
        self._check_k(k)
        most = _NO_BUDGET if budget is None else _count_of_nodes("budget", budget)
        features = self._read_features(X, reset=False)
        return self.scorer_.proven_top(features, k, most)

    def _best_blocks(self, X: Any, k: int) -> Iterator[tuple[Array, Array]]:
        features = self._read_features(X, reset=False)
        if self.beam is None and len(self.scorer_.trees) == 1:
            yield self.scorer_.proven_top(features, k, _NO_BUDGET)[:2]
        else:
            yield self.scorer_.top(features, k, int(self.beam or _BEAM))

    def _searches(self, k: int) -> bool:
        return True

    def shortlist_recall(
        self, X: Any, y: Any = None, k: int = 5, *, beam: int = _BEAM, budget: int | None = None
    ) -> ShortlistRecall:
        """Measure what a beam misses, on held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.
        y : array-like or None, default=None
            Their labels, for the share of them that the beam reaches.
        k : int, default=5
            Number of best labels to compare.
        beam : int, default=10
            Number of nodes per level to visit.
        budget : int or None, default=None
            Limit of the proofs, as in :meth:`predict_top`.

        Returns
        -------
        ShortlistRecall
            The shares of labels reached and best labels kept, and of rows where these are proven.

        Raises
        ------
        ValueError
            If the data are invalid.
        """
        exact = self.predict_top(X, k, exact=True, budget=budget)
        features, beam = self._read_features(X, reset=False), _count_of_nodes("beam", beam)
        found, _ = self.scorer_.top(features, k, beam)
        pairs = (exact.labels[:, :, None] == found[:, None, :]).any(axis=2)
        return ShortlistRecall(
            reached=np.nan if y is None else self._reached(features, y, beam),
            kept=float(pairs[exact.proven].mean()) if exact.proven.any() else np.nan,
            proven=float(exact.proven.mean()),
            opened=float(exact.opened.mean()),
        )

    def _reached(self, features: FeatureMatrix, y: Any, beam: int) -> float:
        truth = self._positives(y)
        check_lengths(len(features), truth.shape[0])
        is_reached = np.zeros(truth.nnz, bool)
        for number, tree in enumerate(self.label_trees_):
            most = int(np.minimum(np.bincount(tree.depths), beam).sum())
            homes = tree.owners[tree.columns_of_labels][truth.indices]
            for start in range(0, len(features), _ROWS_AT_ONCE):
                ends = truth.indptr[start : start + _ROWS_AT_ONCE + 1]
                opened = self.scorer_.opened(
                    number, features.rows(slice(start, start + _ROWS_AT_ONCE)), beam, most
                )
                places, own = np.repeat(np.arange(len(opened)), np.diff(ends)), slice(ends[0], ends[-1])
                is_reached[own] |= (opened[places] == homes[own][:, None]).any(axis=1)
        return float(is_reached.mean()) if truth.nnz else np.nan

    def _positives(self, y: Any) -> sp.csr_array:
        if not self._form.has_one_class:
            names = [str(name) for name in self.classes_]
            known, columns = known_labels(tags_of_model(y, self), names, "ignore")
            parts = known.positives.data, columns[known.positives.indices], known.positives.indptr
            return sp.csr_array(parts, shape=(len(known), len(names)))
        place = {as_text(name): column for column, name in enumerate(self._form.scored)}
        columns = np.array([place.get(as_text(one), -1) for one in np.asarray(y)], np.int64)
        rows = np.flatnonzero(columns >= 0)
        entries = np.ones(len(rows), np.int8), (rows, columns[rows])
        return sp.csr_array(entries, shape=(len(columns), len(self._form.scored)))

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = super()._storable_parameters()
        if not isinstance(self.tree, Taxonomy):
            parameters["tree"] = None  # vectors of labels are not needed after the fit
        return parameters


def _count_of_nodes(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or given < 1:
        raise ValueError(f"{name} is {given!r}; it must be a number of nodes, 1 or more.")
    return min(int(given), _NO_BUDGET)
