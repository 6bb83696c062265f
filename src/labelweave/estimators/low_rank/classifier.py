"""Low-rank multi-label classification with missing labels (LEML).

Yu, Jain, Kar and Dhillon, "Large-scale multi-label learning with missing labels", ICML 2014.
The optimization problem is stated in :mod:`labelweave.problems.low_rank_factors`.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from labelweave.estimators.added_labels import add_labels, widened_covariance
from labelweave.estimators.entry_weights import SignFactors
from labelweave.estimators.journal import FitArguments, FitProgress, Journal, warn_of_end
from labelweave.estimators.kernel_classifier import SEARCHED, HyperparameterSearch, KernelClassifier
from labelweave.estimators.low_rank.fit import (
    End,
    FittedFactors,
    LowRankData,
    LowRankSettings,
    ReadyRows,
    columns_for_rank,
    fit_factors,
    largest_rank,
)
from labelweave.estimators.low_rank.rank_choice import RankChoice, RankSearch
from labelweave.estimators.low_rank.ridge_learning import RidgeSearch
from labelweave.estimators.low_rank.starts import Start
from labelweave.estimators.parameters import (
    COVARIANCE,
    NON_NEGATIVE,
    SHARED,
    SIZE_OF_INTERCEPT,
    ClassWeight,
    CovarianceLike,
    FlipRatesLike,
    KernelLike,
    MeanLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.scorers import FactorScorer
from labelweave.estimators.seen_rows import SeenRows, fit_from, partial_fit
from labelweave.features import FeatureMatrix
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.foundation.sklearn_compat import StrOptions
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.covariance import DenseCovariance
from labelweave.labels.covariance.base import read_covariance
from labelweave.model_files import storable
from labelweave.model_files.schema import MEASURED, TEXT, Field, Maybe, Named, Numbers, Optional, count
from labelweave.problems.label_entries import EntryWeights
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES, EntryLoss
from labelweave.problems.low_rank_factors import make_entry_loss
from labelweave.solvers import Status
from labelweave.solvers.frame import relative_gap

_ROUNDING = 1e-9
_OF_A_SEARCH: dict[str, Field] = {
    "n_splits_": Optional(count()),
    "best_rank_": Optional(count()),
    "best_alpha_": Optional(MEASURED),
    "best_score_": Optional(MEASURED),
    "cv_results_": Optional(Named(Numbers("v", "iuf", infinite=True, may_be_nan=True))),
    "search_status_": Optional(TEXT),
}
_ENDINGS = {
    Status.ITERATION_LIMIT: (
        "The iteration limit was reached before the objective converged within `tol`; raise `max_iter` or "
        "`tol`."
    ),
    Status.INTERRUPTED: "The fit was interrupted; the model is the best one so far.",
}


@storable("LowRankClassifier")
class LowRankClassifier(KernelClassifier):
    """Multi-label classifier of low rank, linear or with a kernel, that learns from observed entries only.

    It minimizes (LEML, Yu et al. 2014, equation 4)

    ``sum_ij w_ij loss(y_ij, phi(x_i) W h_j) + lambda / 2 (||W||^2 + ||H||^2)``

    over the observed entries (i, j), alternating between W (features x rank) and H (labels x rank).  The
    penalty is lambda times the trace norm of Z = W H^T, whose rank is bounded by ``rank``;
    ``penalty="ridge"`` uses ``lambda / 2 ||Z||^2`` instead, and "trace_bound" bounds the trace norm.

    Parameters
    ----------
    rank : int, float or RankSearch, default=100
        The rank k, a share of the number of labels (0 < rank <= 1.0), or a search, which chooses rank and
        lambda by cross-validation.  Ranks larger than the factors' product can have are reduced to the
        largest possible one, which changes no model; ``rank_`` has it.
    loss : {"squared_error", "log_loss", "squared_hinge"} or EntryLoss, default="squared_error"
        The loss of an entry: half the squared distance to 1 or 0, logistic, half the squared hinge, or a
        custom one, convex or not (:mod:`labelweave.testing`).  Only the squared loss of fully observed labels
        takes time in proportion to positive entries rather than all.
    alpha : float, default=1.0
        lambda, the weight of the penalty.  With 0 the result is a least-norm one where features do not
        determine it; where they separate the labels a logistic loss has no minimum, and ``tol`` or
        ``max_iter`` ends the fit.  With "trace_bound" it is the upper bound of the trace norm of Z.
    penalty : {"trace_norm", "ridge", "trace_bound"}, default="trace_norm"
        What is penalized; for a kernel model, functions in the kernel's space.  "trace_bound" is the form of
        section 4 of the paper: the least loss where the trace norm is at most ``alpha``.
    kernel : {"linear", "rbf", "poly", "laplacian", "cosine", "precomputed"}, Kernel or \
            callable, default="linear"
        The kernel between rows, as in :class:`MaxMarginClassifier`.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF, polynomial and Laplacian kernels, as in scikit-learn.
    scaling : {"none", "auto", "standard", "quantile", "unit"}, default="none"
        How features are scaled inside the model, as in :class:`MaxMarginClassifier`.
    fit_intercept : bool or float, default=True
        Whether to add a constant feature (to a kernel, a constant), which is penalized like any other; True
        is for 1, a number for a feature of that size.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L) or None, default=None
        A prior covariance R between labels: H is penalized by ``tr(H^T R^-1 H)``, and Z likewise.  One made
        of features of the labels (``LabelCovariance.low_rank``) yields inductive matrix completion; a column
        of ones among them carries the intercepts.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        Prior weights of features, as the model scales them; the scores of these weights, on the
        scale of the loss, are added to those of low rank, which alone are penalized.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, with many labels of their losses, as in :class:`MaxMarginClassifier`.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly, as in :class:`MaxMarginClassifier`.
    hyperparameters : {"fixed", "learn"} or HyperparameterSearch, default="fixed"
        "learn" takes the kernel's parameters and lambda of the least cross-validated loss of kernel ridge
        regression, by its gradient, for any rank.  Needs ``loss="squared_error"`` and ``penalty="ridge"``, or
        a :class:`RankSearch`, which tries its lambdas at the learned kernel, and with this loss and
        penalty also the learned lambda, where others are found from the data.
    init : {"svd", "random"}, default="svd"
        The initial label factor: leading singular vectors of the label matrix (unobserved entries as
        0), or normal random numbers.  A problem that is solved exactly needs none.
    threshold : "auto" or float, default="auto"
        Labels with a higher score are predicted: 1/2 for the squared loss and 0 for others ("auto"), or a
        given one; :class:`TunedThresholdClassifier` optimizes thresholds for a metric.  Only "auto" is valid
        with one of three or more classes per row.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the factors of the last one, as far as they match its data.
    checkpoint : path-like or None, default=None
        A file, written at most every 30 s and removed at the end.  If the process is killed, rerun the same
        call to resume with the same bits; other data or parameters raise an error.
    tol : float, default=1e-4
        The fit ends after a round that decreases the objective by less than this share.
    max_iter : int, default=100
        Maximum number of rounds.
    dtype : {"float64", "float32"}, default="float64"
        Floating-point type of the factors.  Sums over rows and features are in double precision in both.
    kernel_rank : int or None, default=None
        Columns of an incomplete Cholesky factor that approximates the kernel matrix; None for the exact one.
    n_jobs : int or None, default=None
        Threads; the result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Seed of random starts, held-out rows and pivots.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    feature_factors_ : ndarray of shape (d, k), or (m, k) with a kernel
        W: weights of features, or coefficients of support rows.
    label_factors_ : ndarray of shape (L, k)
        H.
    coef_ : ndarray of shape (L, d)
        H W^T, of explicit features, ``label_mean`` not included.  It is dense, labels times features, and
        computed at every access.
    label_covariance_ : LabelCovariance or None
        The covariance of the label factor; None for independent labels.
    label_mean_ : LabelMean or None
        The prior weights.
    scaling_ : FeatureScaling or None
        How features are scaled.
    intercept_, thresholds_ : ndarray of shape (L,)
        The constants that are added to scores, and the scores above which labels are positive;
        ``decision_function`` returns scores minus the lowest threshold.
    rank_ : int
        The number of columns of the factors.
    alpha_ : float
        lambda, learned if requested; with "trace_bound" the multiplier of the bound.
    hyperparameters_ : dict of str to float
        lambda ("alpha") and the kernel's continuous parameters by name.
    cross_validation_loss_ : float
        The mean held-out loss per row that learning reached; NaN where nothing was learned.
    learning_status_ : {"converged", "iteration_limit", "stalled", "interrupted", "fixed"}
        Why the search for hyperparameters ended.
    learning_trace_ : list of SearchRecord
        Every evaluation of the cross-validated loss; only values of one ``stage`` are comparable.
    support_ : ndarray of shape (m,)
        The support rows, with a kernel.
    support_vectors_ : ndarray or csr_array of shape (m, d)
        Their features, with a kernel that is not precomputed.
    kernel_ : Kernel
        The kernel with numbers as parameters; not with a precomputed one.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.  Two classes have one column of scores, so L is 1 in
        the other shapes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit; names only for a DataFrame.
    converged_ : bool
        Whether the objective is certified: ``duality_gap_`` is at most ``tol``.
    status_ : {"converged", "settled", "iteration_limit", "interrupted"}
        Why the fit ended, after ``n_iter_`` rounds.  "settled" is a stationary point of the problem with this
        rank: the last round decreased the objective by ``tol`` or less, but nothing certifies it.
    objective_ : float
        The objective.
    duality_gap_ : float
        With the trace norm: an upper bound on the share of the objective by which factors of any rank could
        lower it; 0 proves a global optimum.  A rank that binds keeps it above 0: a higher one would reach a
        lower objective.  With "ridge", where the solution is exact (squared loss, fully observed, at a size
        where this pays): the share by which others of this rank could, only rounding.  Otherwise NaN, also
        with a loss that is not convex, or where the objective is at the level of rounding.
    best_rank_, best_alpha_, best_score_ : int, float, float
        With a :class:`RankSearch` the chosen rank and lambda, and their mean score over folds.
    cv_results_ : dict of str to ndarray of shape (pairs,)
        Columns: "rank", "alpha", "mean_test_score", "std_test_score", "split0_test_score" and so on,
        "seconds" and "rounds" of all folds together.  Scores are NaN where an interrupt came first, and the
        mean is NaN where fewer folds were scored than for other pairs.
    n_splits_ : int
        Number of folds.
    search_status_ : {"complete", "interrupted"}
        Whether all fits to folds were completed.
    trace_ : list of TraceRecord
        Time, objective and iterations of every round.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import LowRankClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.4]])
    >>> Y = np.array([[0, 1], [1, 0], [1, np.nan]])
    >>> model = LowRankClassifier(rank=2, alpha=0.01).fit(X, Y)
    >>> model.predict(X)
    array([[0, 1],
           [1, 0],
           [1, 0]])
    """

    label_covariance_: LabelCovariance | None

    _stored: ClassVar[dict[str, Field]] = {"label_covariance_": Optional(Maybe(COVARIANCE)), **_OF_A_SEARCH}
    _usual_budget = 8000.0
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "rank": [*SHARED["rank"], RankSearch],
        "hyperparameters": SEARCHED,
        "fit_intercept": SIZE_OF_INTERCEPT,
        "loss": [StrOptions(set(ENTRY_LOSSES)), EntryLoss],
        "alpha": [NON_NEGATIVE],
        "penalty": [StrOptions({"trace_norm", "ridge", "trace_bound"})],
        "init": [StrOptions({"svd", "random"})],
        "tol": [NON_NEGATIVE],
        "dtype": [StrOptions({"float32", "float64"})],
    }

    def __init__(
        self, rank: float | RankSearch = 100, loss: str | EntryLoss = "squared_error",
        alpha: float = 1.0, *,
        penalty: Literal["trace_norm", "ridge", "trace_bound"] = "trace_norm",
        kernel: KernelLike = "linear", gamma: str | float = "scale", scaling: str = "none",
        fit_intercept: bool | float = True, label_covariance: CovarianceLike = None,
        label_mean: MeanLike = None, class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None,
        hyperparameters: Literal["fixed", "learn"] | HyperparameterSearch = "fixed",
        init: Literal["svd", "random"] = "svd", threshold: str | float = "auto", warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-4, max_iter: int = 100,
        dtype: str = "float64", kernel_rank: int | None = None, n_jobs: int | None = None,
        random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    partial_fit = partial_fit
    add_labels = add_labels
    _fit_from = fit_from
    _couples_intercepts = True

    def _fit(self, rows: SeenRows, before: Any, arguments: FitArguments) -> None:
        labels, features = self._begin(rows), rows.features
        self._forget_expansion(*_OF_A_SEARCH)
        self.label_covariance_ = self._covariance(labels.n_labels)
        mean = self._mean(features, labels.n_labels)
        weights, by_sign = self._weighted_by_class(labels, rows.weights)
        factors = self._factors(labels, rows.entries, by_sign)
        journal = self._open_journal(
            X=features.marks,
            y=labels.parts(),
            weights=[weights, None if factors is None else factors.entries],
            start=None if before is None else [before.start.labels, before.start.features],
        )
        seed = journal.recall("seed", self._seed)
        source, explicit = self._read_kernel(features, seed)
        known = None if mean is None else mean.factors(features.data)
        data = LowRankData(labels, weights, explicit, source, factors, self.label_covariance_, known)
        workers = Workers(effective_n_jobs(self.n_jobs))
        with workers.running(), journal.going_on():
            fits = None if self.penalty == "trace_bound" else self._most_fits()
            most = None if fits is None else fits + self.max_iter + self._most_learned
            progress = FitProgress(self, arguments, most)
            # weights of entries include those of their signs
            negative = 1.0 if factors is not None or by_sign is None else float(by_sign[1][0])
            settings = self._settings(data, negative, workers, seed, progress, journal)
            y = arguments.y if self._seen is None or before is None else self._seen.labels
            data, settings, start = self._choose(features, data, y, settings)
            if start is None and before is not None:
                start = before.carried(data, self._form, settings)
            self.rank_, self.alpha_ = settings.rank, settings.alpha
            progress.keep = lambda model, fitted: model._keep_factors(fitted, features)
            fitted = self._fitted(ReadyRows(data, settings, is_kept=False), settings, start)
            self._keep(fitted, features)
        self._end = End(fitted.end, self._form, len(features) if data.has_row_coefficients else None)
        journal.close(is_done=settings.journal is journal and fitted.status is not Status.INTERRUPTED)
        progress.close()

    def _fitted(self, ready: ReadyRows, settings: LowRankSettings, start: Start | None) -> FittedFactors:
        if self.penalty != "trace_bound":
            return fit_factors(ready, settings, start)
        from labelweave.estimators.low_rank.bound import fit_within_bound

        bounded = replace(settings, most=settings.alpha)
        fitted, self.alpha_ = fit_within_bound(ready, bounded, start)
        self.hyperparameters_["alpha"] = self.alpha_
        return fitted

    @property
    def _ranks(self) -> RankSearch | None:
        """The search for rank and lambda; None if they are given."""
        return self.rank if isinstance(self.rank, RankSearch) else None

    def _most_fits(self) -> int | None:
        return 0 if self._ranks is None else RankChoice(self, self._ranks).most_fits()

    def _first_choice(self, data: LowRankData) -> tuple[int, float]:
        if self._ranks is not None:
            return max(self._columns(rank, data) for rank in self._ranks._read_ranks()), 1.0
        return self._columns(self.rank, data), float(self.alpha)

    def _choose(
        self, features: FeatureMatrix, data: LowRankData, y: Any, settings: LowRankSettings
    ) -> tuple[LowRankData, LowRankSettings, Start | None]:
        data, learned = self._learn(features, data, settings)
        if self._ranks is None:
            return data, learned, None
        found = RankChoice(self, self._ranks).chosen(features, data, y, settings, learned.alpha)
        return data, *found

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if not self.warm_start and self._seen is None:
            state.pop("_end", None)
        return state

    def _columns(self, wanted: Any, data: LowRankData) -> int:
        """Convert a rank or a share of the labels to a number of columns that a product can have."""
        n_rows, n_labels = data.labels.shape
        n_labels = n_labels if data.root is None else min(n_labels, data.root.shape[1])
        width = None if data.explicit is None else data.explicit.shape[1]
        if width is None and self.kernel_rank is not None:
            width = min(self.kernel_rank, n_rows)
        most = largest_rank(n_rows, width, n_labels, bool(self.fit_intercept))
        return min(columns_for_rank(wanted, data.labels.n_labels), most)

    def _covariance(self, n_labels: int) -> LabelCovariance | None:
        if self.label_covariance is None:
            return None
        names = [str(name) for name in self.classes_]
        covariance = read_covariance(self.label_covariance, n_labels, names)
        covariance.check_variances(names)
        if isinstance(covariance, DenseCovariance):
            return None if np.array_equal(covariance.matrix, np.eye(n_labels)) else covariance
        return covariance if covariance.ties_labels or (covariance.diagonal() != 1).any() else None

    def _keep_wider(self, n_new: int, covariance: LabelCovariance | None) -> None:
        before = self.label_covariance_
        if covariance is None and before is not None:
            covariance = widened_covariance(before, n_new)
        self.label_covariance_ = covariance

    def _factors(self, labels: LabelMatrix, entries: Any, by_sign: SignFactors | None) -> EntryWeights | None:
        """Combine weights of classes and entries; None where at most the negatives have a constant weight."""
        missed, false = (factors[None, :] for factors in by_sign or (np.ones(labels.n_labels),) * 2)
        is_one = (missed == 1).all() and (false == false[0, 0]).all()
        if entries is None and is_one and (false[0, 0] == 1 or labels.flip_probabilities is None):
            return None
        if sp.issparse(entries):
            entries = sp.csr_array(entries)
            entries.data = entries.data - 1
        return EntryWeights(missed, false, entries)

    def _settings(
        self,
        data: LowRankData,
        negative: float,
        workers: Workers,
        seed: int,
        progress: FitProgress,
        journal: Journal,
    ) -> LowRankSettings:
        rank, alpha = self._first_choice(data)
        constant = float(self.fit_intercept)
        return LowRankSettings(
            rank=rank, loss=self.loss, penalty="ridge" if self.penalty == "ridge" else "trace_norm",
            alpha=alpha, constant=constant, negative_weight=negative, init=self.init,
            tol=self.tol, max_iter=self.max_iter, dtype=np.dtype(self.dtype),
            kernel_rank=self.kernel_rank, memory_budget=self._budget, workers=workers, seed=seed,
            on_round=progress, journal=journal,
        )  # fmt: skip

    @property
    def _level(self) -> float:
        is_given = not isinstance(self.threshold, str)
        return super()._level if is_given else make_entry_loss(self.loss).threshold

    def _keep(self, fitted: FittedFactors, features: FeatureMatrix) -> None:
        self._keep_factors(fitted, features)
        self.n_iter_ = len(fitted.trace)
        self.trace_ = fitted.trace
        self.objective_ = fitted.objective
        gap = relative_gap(fitted.objective, fitted.lower_bound)
        is_known = np.isfinite(gap) and gap >= -_ROUNDING  # a bound above the objective is due to rounding
        self.duality_gap_ = float(gap) if is_known else float("nan")
        self.converged_ = self.duality_gap_ <= self.tol
        is_certified = self.converged_ and fitted.status is not Status.INTERRUPTED
        self.status_ = "converged" if is_certified else fitted.status.name.lower()
        if self.status_ not in ("converged", "settled"):
            where = f"after {self.n_iter_} rounds at an objective of {self.objective_:.6g}"
            warn_of_end(f"{_ENDINGS[fitted.status]} It ended {where}.")

    def _keep_factors(self, fitted: FittedFactors, features: FeatureMatrix) -> None:
        kernel, support = None if self._is_precomputed else self.kernel_, fitted.support
        vectors = None if support is None or kernel is None else features.to_local(support).data
        factors = fitted.feature_factor, fitted.label_factor
        self.scorer_ = FactorScorer(fitted.intercepts, *factors, kernel, support, vectors)

    def _learn(
        self, features: FeatureMatrix, data: LowRankData, settings: LowRankSettings
    ) -> tuple[LowRankData, LowRankSettings]:
        kernel = None if self._is_precomputed else self.kernel_
        learned = None
        if (search := self._search) is not None:
            progress: Any = settings.on_round
            learning = RidgeSearch(search, settings, progress.on_search)
            kernel, alpha, learned = learning.run(features, data, kernel, self._form)
            settings = replace(settings, alpha=alpha)
        if learned is not None and kernel is not None:
            self.kernel_ = kernel
            source, explicit = KernelSource(kernel, features), kernel.explicit_features(features)
            data = replace(data, explicit=explicit, source=source)
        self.hyperparameters_ = {"alpha": settings.alpha}
        if kernel is not None:
            shape = np.exp(kernel.log_parameters()).tolist()
            self.hyperparameters_ |= zip(kernel.parameter_names(), shape, strict=True)
        self._keep_learned(learned)
        if self.learning_status_ == "interrupted":
            settings = replace(settings, journal=Journal())  # later stages are not resumed
        return data, settings
