"""Max-margin multi-label classification with a prior on label correlations (M3L).

Hariharan, Vishwanathan and Varma, "Efficient max-margin multi-label
classification with applications to zero-shot learning", Machine Learning 88
(2012).  The optimization problem is stated in
:mod:`labelweave.problems.margin_dual`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from labelweave.estimators.added_labels import add_labels, widened_covariance
from labelweave.estimators.entry_weights import entries_by_sign, sure_weights
from labelweave.estimators.journal import FitArguments, FitProgress, Journal
from labelweave.estimators.kernel_classifier import SEARCHED, HyperparameterSearch, KernelClassifier
from labelweave.estimators.max_margin.fit import (
    FACTORIZATIONS,
    SOLVERS,
    DualVariables,
    MarginFit,
    MarginSettings,
    MarginTask,
)
from labelweave.estimators.max_margin.kernel_factor import KernelFactor, kernel_factor
from labelweave.estimators.parameters import (
    COVARIANCE,
    LEARNED_COVARIANCE,
    POSITIVE,
    SHARED,
    ClassWeight,
    Costs,
    FlipRatesLike,
    KernelLike,
    LearnableCovariance,
    MeanLike,
    RandomState,
    keep_parameters,
    refuse_together,
)
from labelweave.estimators.seen_rows import SeenRows, fit_from, partial_fit
from labelweave.estimators.sparse_scorer import SparseScorer
from labelweave.features import FeatureMatrix, make_kernel
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.array_types import Array
from labelweave.foundation.config import was_interrupted
from labelweave.foundation.costs import warn_of_hard_margins
from labelweave.foundation.sklearn_compat import StrOptions
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean
from labelweave.labels.covariance import WeightedCovariance
from labelweave.labels.covariance.base import read_covariances
from labelweave.labels.label_names import costs_by_label, read_entry_weights, weights_of_entries
from labelweave.model_files import storable
from labelweave.model_files.schema import MEASURED, Field, Items, Maybe, Named, Optional
from labelweave.problems import MarginData
from labelweave.solvers import Solver, SolverResult, Status

_LEAST_TOL = 1e-10  # a smaller one requires all digits of float64, whatever C is


@storable("MaxMarginClassifier")
class MaxMarginClassifier(KernelClassifier):
    """Max-margin classifier for many related labels, linear or with a kernel, with a certificate.

    It minimizes (M3L, Hariharan et al. 2012, equations 11 to 14)

    ``1/2 tr(Z^T Z R^-1) + 2 C sum_il w_i max(0, c_il - y_il z_l . phi(x_i))``

    over the weights Z, one column per label, in the space of the kernel phi(x) . phi(x').
    R is the label covariance, w the sample weights and c the cost of a wrong label l in row i;
    unobserved labels add nothing.  With R the identity and unit costs each label is a binary
    support vector machine of penalty 2 C.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, the paper's C; larger values fit the training data more closely.
    kernel : {"linear", "rbf", "poly", "laplacian", "cosine", "precomputed"}, Kernel, callable or \
            list of them, default="linear"
        The kernel between rows.  A :class:`~labelweave.features.Kernel` such as
        ``RBFKernel(0.5) + LinearKernel()`` has its own parameters; a callable gets two arrays of rows
        and returns the kernel between them.  A list of kernels is a sum, each with a label covariance of its
        own.  With "precomputed" X is the kernel: between all training rows in fit, of shape (n, n), and from
        new to training rows elsewhere.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF, polynomial and Laplacian kernels, as in scikit-learn: "scale" is
        1 / (d var(X)), "auto" 1 / d.
    scaling : {"none", "auto", "standard", "quantile", "unit"}, default="none"
        How features are scaled inside the model: columns to mean 0 and deviation 1, columns to normal
        quantiles, rows to length 1, or as they are.  "auto" chooses between "standard" and "quantile", for
        sparse rows between "unit" and "none", by the least out-of-fold squared error of kernel ridge
        regression.  See :class:`~labelweave.features.FeatureScaling`; weights are those of scaled features.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L), list of them, "learn", int or \
            None, default=None
        The prior covariance R between labels; None is the identity.  "learn" learns one, a number
        learns one of that many columns, ``B B^T``; both need ``hyperparameters="learn"``.  A taxonomy
        stands for :meth:`LabelCovariance.from_taxonomy`; its nodes are matched by label name.  The weights of
        :meth:`LabelCovariance.weighted`, which sum to 1, minimize the objective too.  With a list of
        kernels, a list of the same length: scores covary by the sum of K_g R_g.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        Prior weights of features, as the model scales them: Z is penalized by its distance from them.  With
        a kernel that has no weights, the scores of these weights are added to its own.
    hyperparameters : {"fixed", "learn"} or HyperparameterSearch, default="fixed"
        "learn" takes the parameters of one kernel, C and a learned covariance from
        :class:`KernelLogisticClassifier`, which learns them by the gradient of its cross-validated loss: a
        surrogate for the hinge, with C half the scale of the scores.  On rows that separate the labels this
        scale has no finite optimum and stops at the search's bound.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1.  The intercept is then regularized and coupled
        by R like any weight (section 3 of the paper).
    false_negative_cost : float, array-like of shape (L,) or (n, L), Series or DataFrame by label, default=1.0
        Cost of a false negative, half of the paper's loss (equation 5): the margin that a positive label's
        score should have.  Of shape (n, L) it is that of each entry of y, in the rows of ``fit``.
    false_positive_cost : float, array-like of shape (L,) or (n, L), Series or DataFrame by label, default=1.0
        Cost of a false positive.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, which multiply the row weights: a dict, or "balanced" for rows /
        (classes x rows of the class), with rows counted by their weights.  With many labels they multiply the
        losses of entries: "balanced" by the observed positives and negatives of each label, a dict such as
        ``{0: 1, 1: 5}`` for all labels, or a list of one dict per label.  ``{0: 0.2}`` gives absent
        labels less weight, where some are only not recorded.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly: the shares of present labels recorded as absent, and of absent
        ones recorded as present, one number, an array or a Series by label.  "propensity" is for labels that
        are only missed, with rates by the formula of Jain et al. (2016), see
        :func:`labelweave.metrics.propensities`.  Losses and thresholds are then those of the true labels, on
        average (:mod:`labelweave.labels.flip_rates`).  For multi-label data only.
    threshold : "auto" or float, default="auto"
        Labels with a higher score are predicted: 0 ("auto"), or a given one;
        :class:`TunedThresholdClassifier` optimizes thresholds for a metric.  Only "auto" is valid with one of
        three or more classes per row.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the dual variables of the last one, if the numbers of rows and
        labels are equal.
    checkpoint : path-like or None, default=None
        A file, written at most every 30 s and removed at the end.  If the process is killed, rerun the same
        call to resume with the same bits; other data or parameters raise an error.
    tol : float, default=1e-3
        The relative duality gap, (primal - dual) / abs(primal), to reach.
    max_iter : int, default=1000
        Maximum number of rounds: sweeps over all rows and a few over those that still improve,
        or steps of all variables together.
    solver : {"auto", "coordinate_ascent", "alternating_directions", "block_ascent", "working_set", \
            "cholesky", "eigenvalues", "incomplete_cholesky"} or Solver, default="auto"
        "coordinate_ascent" iterates over sparse rows of explicit features; "alternating_directions" (ADMM)
        takes global steps with one factorization for all labels; "cholesky", "eigenvalues" (both need the
        kernel matrix in memory) and "incomplete_cholesky" (corrected in rounds) select the factorization;
        "block_ascent" iterates over blocks of kernel rows; "working_set" is the paper's Algorithm 1.  All
        reach the same optimum.  "auto" is the first for sparse rows, ADMM for dense ones, and blocks, then
        ADMM if that is faster, for kernels.  A custom solver (:mod:`labelweave.solvers`) gets ``tol`` and
        ``max_iter`` from here, and its result is measured.
    kernel_rank : int or None, default=None
        Rank of an incomplete Cholesky factor G that approximates the kernel matrix, with pivots among all
        rows: the model is linear in the rows of G and keeps this many training rows.  The gap is that of this
        problem, and does not cover ``K - G G^T``.  None for the matrix itself.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Floating-point type of the solver.  "auto" is float32 where rounding does no harm: in coordinate
        ascent for ``tol >= 1e-5`` and ``2 C max(w) <= 1e5 tol``; in ADMM and block ascent for more than 1,000
        rows and ``tol >= 5e-5 max(1, C max(w))``, and they switch to float64 where that fails.  Working sets
        use float64.  The gap reported at the end is always computed in float64.
    prune : {"off", "certified", "small"} or float, default="off"
        Which feature weights to remove, with independent labels and a linear kernel.  "certified" removes the
        smallest of each label, while the others compensate for it and the relative gap of each block of 16
        labels, computed for the remaining weights, stays within ``tol``; a number removes those below it in
        size (DiSMEC, Babbar and Schölkopf 2017), and "small" those below a fiftieth of the largest of their
        label, whatever the gap is then.  Labels are fitted block by block, and the weights are stored sparse:
        memory holds the data, one block per thread and the remaining weights.  "off" does this too where
        dense weights would exceed the ``memory_budget`` of :func:`labelweave.set_config`, and above 500 MB it
        is recommended.  Such fits start from scratch also with ``warm_start`` and ``partial_fit``.
    n_jobs : int or None, default=None
        Threads; labels (when R is the identity) or panels of the kernel matrix are spread over
        them.  The result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Seed of the order in which rows are visited and of the pivots of an incomplete factor.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    coef_ : ndarray or csr_array of shape (L, d)
        The weights, one row per label, sparse where labels were fitted block by block; with kernels that
        have explicit features only: those of "cosine" are the rows scaled to length 1.
    dual_coef_ : ndarray of shape (m, L)
        The coefficients of the support rows, with other kernels; not with a list of kernels.
    support_ : ndarray of shape (m,)
        The numbers of the support rows in the training data.
    support_vectors_ : ndarray or csr_array of shape (m, d)
        Their features; not with a precomputed kernel.
    kernel_ : Kernel
        The kernel with numbers as parameters, or a list; not with a precomputed one.
    label_covariance_ : LabelCovariance or list of LabelCovariance
        R, or one per kernel of a list.
    label_mean_ : LabelMean or None
        The prior weights.
    C_ : float
        C, given or learned.
    intercept_ : ndarray of shape (L,)
        The intercepts.
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
        Whether the objective is certified: the gap is at most ``tol``.
    status_ : {"converged", "settled", "iteration_limit", "stalled", "interrupted"}
        Why the fit ended; "settled" where weights removed by their size cost more than ``tol``.
    n_iter_ : int
        Number of finished rounds; of fits, where weights of a covariance are learned.
    duality_gap_ : float
        The relative duality gap of the result: the minimum is at most this share of the objective below it.
    pruning_ : dict
        The cost of pruning, where labels were fitted block by block: "gap_before" and "gap", the relative
        gaps before and after weights were removed, "largest_gap" of a block, "weights_before" and "weights",
        their numbers.
    trace_ : list of TraceRecord
        Time, primal, dual, gap and active share at every check of the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import MaxMarginClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.4]])
    >>> Y = np.array([[0, 1], [1, 0], [1, np.nan]])
    >>> model = MaxMarginClassifier(C=10.0, tol=1e-6).fit(X, Y)
    >>> model.predict(X)
    array([[0, 1],
           [1, 0],
           [1, 0]])
    """

    _end: DualVariables | None = None
    _is_part = False
    _most_learned = 0  # another model's fit learns, and reports no steps

    _stored: ClassVar[dict[str, Field]] = {
        "label_covariance_": Maybe(COVARIANCE, Items(COVARIANCE), none=False),
        "C_": Optional(MEASURED),
        "pruning_": Optional(Named(MEASURED)),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "C": [POSITIVE],
        "hyperparameters": SEARCHED,
        "kernel": [*SHARED["kernel"], list, tuple],
        "label_covariance": [*SHARED["label_covariance"], *LEARNED_COVARIANCE, list, tuple],
        "solver": [StrOptions(set(SOLVERS)), Solver],
        "dtype": [StrOptions({"auto", "float32", "float64"})],
        "prune": [StrOptions({"off", "certified", "small"}), POSITIVE],
    }

    def __init__(
        self, C: float = 1.0, *, kernel: KernelLike | Sequence[Any] = "linear", gamma: str | float = "scale",
        scaling: str = "none", label_covariance: LearnableCovariance = None, label_mean: MeanLike = None,
        hyperparameters: Literal["fixed", "learn"] | HyperparameterSearch = "fixed",
        fit_intercept: bool = True, false_negative_cost: Costs = 1.0, false_positive_cost: Costs = 1.0,
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None, threshold: str | float = "auto",
        warm_start: bool = False, checkpoint: str | PathLike[str] | None = None, tol: float = 1e-3,
        max_iter: int = 1000, solver: str | Solver[Any, Any] = "auto", kernel_rank: int | None = None,
        dtype: str = "auto", prune: Literal["off", "certified", "small"] | float = "off",
        n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    partial_fit = partial_fit
    add_labels = add_labels
    _fit_from = fit_from
    _couples_intercepts = True
    _weight_type = None

    def _for_a_part(self) -> MaxMarginClassifier:
        """Create a classifier to fit to a part of the rows, from which :meth:`_fit_from` can continue."""
        part: MaxMarginClassifier = clone(self).set_params(warm_start=True)
        part._is_part = True
        return part

    def _begin_at(self, part: MaxMarginClassifier, kept: Array, rows: Array) -> None:
        """Start the fit of some rows from the dual variables of other ones, as far as they overlap."""
        if part._end is not None:
            self._end = part._end.spread(kept, 1 + max(kept[-1], rows[-1])).rows(rows)

    def _last_end(self, n_rows: int) -> Any:
        end = super()._last_end(n_rows)
        return None if end is None or len(end.variables) != n_rows else end

    def _fit(self, rows: SeenRows, before: DualVariables | None, arguments: FitArguments) -> None:
        labels = self._begin(rows)
        mean = self._mean(rows.features, labels.n_labels)
        row_weights, factors = self._weighted_by_class(labels, rows.weights)
        entries = rows.entries if labels.flip_probabilities is None else sure_weights(labels, rows.entries)
        if factors is not None:
            entries = entries_by_sign(labels, factors, entries)
        weights = weights_of_entries(row_weights, entries)
        start = before and [before.variables, before.C, *before.weights]
        y = [labels.positives, labels.observed]
        journal = self._open_journal(X=rows.features.data, y=y, weights=weights, start=start)
        learned = None
        if (search := self._search) is not None:
            from labelweave.estimators.max_margin.part_weights import learn_margins

            learned = learn_margins(self, search, rows.features, labels, (row_weights, entries), journal)
        covariances = self._covariances(labels) if learned is None else [learned.covariance]
        self.C_ = C = float(self.C) if learned is None else learned.C
        # beyond, rounding of all margins alone moves an objective of 1 by more than the tolerance
        hardest = max(self.tol, _LEAST_TOL) / (2.0 * len(labels) * np.finfo(float).eps)
        if hardest < C < np.inf:
            warn_of_hard_margins(C, hardest, len(labels), self.tol)
        self.label_covariance_ = covariances if self._is_sum else covariances[0]
        data = MarginData(
            features=rows.features,
            labels=labels,
            covariance=covariances[0],
            upper=weights_of_entries(2.0 * C * row_weights, entries),
            margins=self._margins(labels.n_labels, mean, labels),
            intercept=self.fit_intercept,
            mean=mean,
        )
        self._forget_expansion()
        if learned is not None and learned.kernel is not None:
            self.kernel_ = learned.kernel
        dual = None if before is None else before.carried(labels.shape, self._form, C)
        progress = FitProgress(self, arguments, tol=self.tol)
        # a resumed search finds other hyperparameters, and needs no such fit
        ended = learned is not None and was_interrupted()
        with journal.going_on():
            result = self._solve(data, progress, Journal() if ended else journal, dual)
        self._keep_result(result)
        self._close_journal(journal, is_done=not ended and result.status is not Status.INTERRUPTED)
        progress.close()

    def _solve(
        self, data: MarginData, progress: FitProgress, journal: Journal, dual: Array | None
    ) -> SolverResult:
        features, settings = data.features, self._settings(progress, journal)
        source, explicit, *others = self._read_kernels(features, settings.seed)
        factor = kernel_factor(self, source, explicit, features, settings) if self.kernel_rank else None
        if factor is not None:
            size = 9e-6 * factor.features.shape[1] * data.labels.n_labels  # of the model's own array
            settings = replace(settings, memory_budget=max(settings.memory_budget, size))
            data = replace(data, features=factor.features)
            source, explicit = KernelSource(make_kernel("linear"), factor.features), factor.features
        covariances: Any = self.label_covariance_ if self._is_sum else [self.label_covariance_]
        further = tuple(zip(others, covariances[1:], strict=True))
        task = MarginTask(data, source, explicit, settings, journal, further)
        rows = np.arange(len(features))
        progress.keep = lambda model, fitted: model._keep_scores(fitted, features, rows, factor)
        if any(isinstance(covariance, WeightedCovariance) for covariance in covariances):
            from labelweave.estimators.max_margin.part_weights import fit_with_weights

            known = self._end.weights if self._end else ()
            fitted = fit_with_weights(task, covariances, dual, known)
        else:
            fitted = task.solve(dual)
        self._keep_scores(fitted, features, rows, factor)
        dual = fitted.dual() if self.warm_start or self._seen is not None else None
        weights = tuple(one.weights for one in fitted.covariances)
        self._end = None if dual is None else DualVariables(dual, self.C_, self._form, weights)
        return fitted.result

    def _settings(self, progress: FitProgress, journal: Journal) -> MarginSettings:
        is_named = isinstance(self.solver, str) and self.solver in FACTORIZATIONS
        return MarginSettings(
            solver="alternating_directions" if is_named else self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=self.dtype,
            factorization=str(self.solver) if is_named else "auto",
            memory_budget=self._budget,
            n_threads=effective_n_jobs(self.n_jobs),
            seed=journal.recall("seed", self._seed),
            on_check=progress,
            is_part=self._is_part,
            prune=self.prune if isinstance(self.prune, str) else float(self.prune),
        )

    def _keep_scores(
        self, fitted: MarginFit, features: FeatureMatrix, rows: Array, factor: KernelFactor | None
    ) -> None:
        kernels = [None] if self._is_precomputed else np.atleast_1d(self.kernel_).tolist()
        if factor is None:
            self.scorer_ = fitted.scorer(features, rows, kernels)
        else:
            assert fitted.weights is not None, "columns of a factor have weights"
            self.scorer_ = factor.scorer(kernels[0], fitted.intercepts, fitted.weights)
        self.__dict__.pop("pruning_", None)
        if fitted.covariances:
            self.label_covariance_ = list(fitted.covariances) if self._is_sum else fitted.covariances[0]
        if fitted.kept is not None:
            self.pruning_ = fitted.kept[1]

    def _best_blocks(self, X: Any, k: int) -> Iterator[tuple[Array, Array]]:
        scorer = self.scorer_
        if not (isinstance(scorer, SparseScorer) and scorer.finds(k)):
            yield from super()._best_blocks(X, k)
            return
        labels, scores = scorer.top(self._read_features(X, reset=False), k)
        yield labels, scores - self._lowest_threshold

    def _searches(self, k: int) -> bool:
        return isinstance(self.scorer_, SparseScorer) and self.scorer_.finds(k)

    @property
    def _is_sum(self) -> bool:
        return isinstance(self.kernel, list | tuple)

    def _read_kernels(self, features: FeatureMatrix, seed: int) -> list[Any]:
        if self._search is not None and self.kernel != "precomputed":
            return [KernelSource(self.kernel_, features), self.kernel_.explicit_features(features)]
        if not self._is_sum:
            return [*self._read_kernel(features, seed)]
        kernels = [make_kernel(one, self.gamma).resolved(features) for one in self.kernel]
        for one in kernels:
            self._check_kernel(one, features, seed)
        self.kernel_: Any = kernels
        first, *others = (KernelSource(one, features) for one in kernels)
        return [first, None, *others]

    def _covariances(self, labels: LabelMatrix) -> list[LabelCovariance]:
        if self._is_sum and not self.kernel:
            raise ValueError("kernel is an empty list; pass one kernel or several.")
        count = len(self.kernel) if self._is_sum else None
        return read_covariances(self.label_covariance, count, labels.n_labels, self.classes_)

    def _keep_wider(self, n_new: int, covariance: LabelCovariance | None) -> None:
        kept: Any = self.label_covariance_
        before = kept[0] if self._is_sum else kept
        wide = widened_covariance(before, n_new) if covariance is None else covariance
        self.label_covariance_ = [wide] if self._is_sum else wide

    def _refuse_together(self) -> None:
        super()._refuse_together()
        has_matrix = isinstance(self.kernel, str) and self.kernel not in ("linear", "cosine")
        if has_matrix and self.kernel_rank is None:
            refuse_together(self, {"no explicit features": ""})

    def _margins(self, n_labels: int, mean: LabelMean | None, labels: LabelMatrix | None = None) -> Array:
        """Read the costs of labels, (2, L), or of the entries of the ``labels``, (2, n, L)."""
        names, kinds = self._form.scored, ("false_negative_cost", "false_positive_cost")
        costs: list[Array] = []
        for kind in kinds:
            cost = getattr(self, kind)
            if labels is None or not _is_table(cost):
                costs.append(costs_by_label(kind, cost, names))
            else:
                table = read_entry_weights(cost, labels, names, kind)
                costs.append(weights_of_entries(np.ones(len(labels)), table))
        margins = np.stack(np.broadcast_arrays(*costs))
        if mean is None:
            return margins
        known = np.stack([-mean.intercepts, mean.intercepts])
        return margins + (known if margins.ndim == 2 else known[:, None])


def _is_table(cost: Any) -> bool:
    shape = getattr(cost, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(cost, list | tuple) and any(isinstance(row, list | tuple | np.ndarray) for row in cost)
