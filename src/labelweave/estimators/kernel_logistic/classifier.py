"""Kernel logistic classification with structured labels and learned hyperparameters.

Seeger, "Cross-validation optimization for large scale structured classification kernel
methods", Journal of Machine Learning Research 9 (2008).  The optimization problem is stated
in :mod:`labelweave.problems.kernel_likelihood`, the learning of hyperparameters in
:mod:`labelweave.problems.hyperparameters.cross_validation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs

from labelweave.estimators import held_out
from labelweave.estimators.held_out import LearningBlock
from labelweave.estimators.journal import FitArguments, FitProgress, Journal
from labelweave.estimators.kernel_classifier import SEARCHED, HyperparameterSearch
from labelweave.estimators.kernel_logistic.fit import (
    FitSettings,
    FittedLikelihood,
    LikelihoodData,
    LikelihoodFit,
    read_likelihood_data,
)
from labelweave.estimators.kernel_logistic.prior_choice import check_priors, prior_family
from labelweave.estimators.kernel_logistic.probabilities import KernelProbabilities
from labelweave.estimators.parameters import (
    ARD,
    LEARNED_COVARIANCE,
    NON_NEGATIVE,
    POSITIVE,
    SHARED,
    ClassWeight,
    FlipRatesLike,
    KernelLike,
    LearnableCovariance,
    MeanLike,
    RandomState,
    is_identity,
    keep_parameters,
    refuse_at_home,
    refuse_together,
)
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.costs import MULTIPLICATIONS, warn_of_time
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.labels import Taxonomy
from labelweave.labels.targets import has_many_labels, read_targets
from labelweave.model_files import storable
from labelweave.problems.hyperparameters.search import LearnedParameters
from labelweave.problems.losses import EntryLoss
from labelweave.solvers import SolverResult, Status

_DECISIONS = {"most_probable", "least_expected_loss", "best_parent"}
_SOLVERS = ("auto", "function_gradients", "symmetrized_gradients", "exact")
# the result of a search, hyperparameters, and dual variables to start from
Found = tuple[LearnedParameters | None, Array, Array | None]
_EXACT_STEPS, _WIDTH_WORK = 10, 3.0  # of a typical fit; products per pair of rows for one feature's gradient
_FAILED = 0.01  # relative duality gap of a fit that is not kept if there is a better one
_NOTHING: tuple[Array | None, Array | None] = (None, None)  # hyperparameters and dual variables


@storable("KernelLogisticClassifier")
class KernelLogisticClassifier(KernelProbabilities):
    """Probabilistic kernel classifier for related classes or labels, with learned kernels.

    It minimizes (Seeger 2008, equation 1)

    ``-sum_i w_i log P(y_i | u(x_i)) + 1/2 |u|^2``

    over score functions u, one per class, in the reproducing kernel space of the prior ``sum_g K_g ⊗ R_g``.
    P is the softmax for one class per row and a product of logistic functions for many labels; unobserved
    labels add nothing.  The hyperparameters of the prior minimize the cross-validated loss (section 4).

    Parameters
    ----------
    kernel : {"rbf", "ard", "linear", "poly", "laplacian", "cosine", "precomputed"}, Kernel, \
            callable or list of them, default="rbf"
        The kernel between rows; its continuous parameters are learned, starting from the given ones.  "ard"
        is the RBF kernel with one width per feature, learned with a log-normal prior around a common width.
        With "precomputed", X is the kernel of all training rows in fit, of new and training rows elsewhere.
        A list of kernels is a sum of priors, each with its own hyperparameters and label covariance, which
        begin with equal parts of the variance ``scale``.
    gamma : None, {"scale", "auto"} or float, default=None
        Initial width of the RBF, polynomial and Laplacian kernels.  None is 1 / (2 sum of the features'
        variances) (section 6.2); "scale" and "auto" are those of scikit-learn.
    scaling : {"none", "auto", "standard", "quantile", "unit"}, default="none"
        How features are scaled inside the model, as in :class:`MaxMarginClassifier`.
    scale : float, default=10.0
        The factor v of the kernel, the prior variance of scores, which acts like C elsewhere.  If it is
        learned, this is the initial value; on rows that separate the labels it grows to the search's
        bound, and where linear scores predict best it grows as the width gamma falls.
    intercept_variance : float or "learn", default=1.0
        The prior variance of the intercepts, which are independent; a number is kept, 0 fits none.
        "learn" starts at 1, and stays there with ``hyperparameters="fixed"``.
    taxonomy : Taxonomy, nested dict, list of pairs or paths, graph or None, default=None
        A tree whose leaves are the classes: every node has a function, and a class sums the functions on its
        path (section 3). y may contain inner nodes, for rows whose leaf is unknown.  With many labels per row
        (several leaves, or whole paths), each label named by any node has a logistic loss and this prior, and
        nodes may have several parents.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L), "learn", int, "identity", \
            list of them or None, default=None
        The prior covariance R between labels.  A given one is scaled, but otherwise kept; if it names the
        same labels as y, they are matched by name.  Of :meth:`LabelCovariance.weighted` each part has a
        learned scale.  "learn" learns one, and a number learns one of that many columns, ``B B^T`` (section
        7.4.1).  With a list of kernels, a list of one for each, or None.  None is that of the taxonomy, or
        the identity; with "identity" every class has its own functions even with a taxonomy, which then
        determines how these are tied, what inner nodes mean and what errors cost.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        Prior weights of features, as the model scales them; the scores of these weights are the prior's mean.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, with many labels of their losses, as in :class:`MaxMarginClassifier`.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly, as in :class:`MaxMarginClassifier`.
    hyperparameters : {"learn", "fixed"} or HyperparameterSearch, default="learn"
        Whether to learn or keep scales and kernel parameters, and how to learn them.
    loss : {"log_loss"} or EntryLoss, default="log_loss"
        The loss of a label, or of two untied classes: logistic, or a custom loss
        (:mod:`labelweave.testing`), such as that of a probit model.  Probabilities are proportional to
        ``exp(-loss)``, and :meth:`decision_function` returns their log-odds.
    decision : {"most_probable", "least_expected_loss", "best_parent"}, default="most_probable"
        How ``predict`` chooses one class per row: the most probable, the one of least expected taxonomic
        loss, or the most probable under the parent of the greatest mass (section 6.1).  The last two need a
        taxonomy.
    threshold : "auto" or float, default="auto"
        Labels with a higher probability are predicted: 1/2 ("auto"), or a given one;
        :class:`TunedThresholdClassifier` optimizes thresholds for a metric.  Only "auto" is valid with one of
        three or more classes per row.
    kernel_rank : int or None, default=None
        Replace kernel matrices by incomplete Cholesky factors of this many columns, with the true diagonal
        (section 7.4.3), also while hyperparameters are learned; the model then keeps this many rows.
    uncertainty : {"laplace"} or None, default=None
        With "laplace", probabilities are averaged over the posterior of the scores by Laplace's
        approximation, so that they are less certain far from the training rows; ``decision_function``
        returns their log-odds or logarithms, and ``latent_mean_and_variance`` the posterior.  A fit takes
        ``n q^2 / 2 + q^3 / 3`` multiplications more and keeps q^2 numbers, q being n or ``kernel_rank``;
        classes, and labels that are tied, have one q for all, times their number, others one each.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the hyperparameters and dual variables of the last one, where
        their shapes are the same; the optimum does not depend on it.
    checkpoint : path-like or None, default=None
        A file, written at most every 30 s and removed at the end.  If the process is killed, rerun the same
        call to resume with the same bits; other data or parameters raise an error.
    tol : float, default=1e-4
        The relative duality gap, (primal - dual) / abs(primal), to reach.
    max_iter : int, default=100
        Maximum number of Newton steps.
    solver : {"auto", "function_gradients", "symmetrized_gradients", "exact"}, default="auto"
        Solver of Newton's systems: conjugate gradients in the kernel's function space ("auto" too), the
        paper's symmetrized ones (equation 5, appendix B), or one Cholesky factor per class (appendix C), for
        a few thousand rows and labels that the prior does not tie.
    n_jobs : int or None, default=None
        Threads.  The result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, the rows to learn on and pivots.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    hyperparameters_ : dict of str to float
        Scales and kernel parameters by name.
    prior_ : ScorePrior
        The prior with these hyperparameters: kernels and label covariances.
    cross_validation_loss_ : float
        The mean cross-validated loss per row, or minus the log marginal likelihood, plus the terms of priors
        over hyperparameters; NaN where nothing was learned.
    log_marginal_likelihood_value_ : float
        Laplace's approximation to the log marginal likelihood; only with ``uncertainty="laplace"``.
    learning_status_ : {"converged", "iteration_limit", "stalled", "interrupted", "fixed"}
        Why the search for hyperparameters ended.
    learning_trace_ : list of SearchRecord
        Every evaluation of the cross-validation loss, by stage: with many rows first on a part of them, and
        with many hyperparameters first with these tied.  Only values of one ``stage`` are comparable.
    dual_coef_ : ndarray of shape (m, L)
        The dual variables of the support rows, ``w (y - P)`` at the optimum.
    expansion_ : list of KernelExpansion
        The scores as sums of kernels to support rows.
    support_ : ndarray of shape (m,)
        Indices of the support rows among the training rows.
    support_vectors_ : ndarray or csr_array of shape (m, d)
        Features of the support rows; not with a precomputed kernel.
    intercept_ : ndarray of shape (L,)
        The intercepts.
    thresholds_ : ndarray of shape (L,)
        Labels with a higher probability are predicted: ``predict_proba(X) > thresholds_``, of two classes the
        second.  Not set with one of three or more classes per row.
    taxonomy_ : Taxonomy or None
        The tree.
    kernel_products_ : float
        Number of products with all kernel matrices in the final fit.
    classes_ : ndarray of shape (L,)
        The classes, label names or label numbers.
    scaling_ : FeatureScaling or None
        The scaling of the features.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit; names only for a DataFrame.
    converged_ : bool
        Whether the objective is certified: each class is either fully observed or unobserved, and the gap is
        at most ``tol``.
    status_ : {"converged", "settled", "iteration_limit", "stalled", "interrupted"}
        Why the fit ended; "settled" with partially observed rows.
    n_iter_ : int
        Number of Newton steps.
    duality_gap_ : float
        The relative duality gap: the minimum is at most this share of the objective below it.  Partially
        observed rows make the problem non-convex; the gap then holds at the current expectations of their
        classes, and other optima may be lower.
    trace_ : list of TraceRecord
        Time, primal, dual, gap and share of active fits at every check of the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import KernelLogisticClassifier
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]])
    >>> y = ["apple", "apple", "pear", "pear", "oak", "oak"]
    >>> tree = {"fruit": ["apple", "pear"], "tree": ["oak"]}
    >>> model = KernelLogisticClassifier(gamma=5.0, taxonomy=tree, hyperparameters="fixed").fit(X, y)
    >>> model.predict([[1.05]])
    array(['pear'], dtype='<U5')
    >>> model.predict_proba([[1.05]]).round(1)
    array([[0.1, 0. , 0.9]])
    """

    _usual_budget = 8000.0
    _has_gap_of_losses = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED,
        "kernel": [*SHARED["kernel"], StrOptions({ARD}), list, tuple],
        "gamma": [*SHARED["gamma"], None],
        "label_covariance": [*SHARED["label_covariance"], *LEARNED_COVARIANCE, StrOptions({"identity"})],
        "scale": [POSITIVE],
        "hyperparameters": SEARCHED,
        "intercept_variance": [StrOptions({"learn"}), NON_NEGATIVE],
        "taxonomy": "no_validation",
        "loss": [StrOptions({"log_loss"}), EntryLoss],
        "decision": [StrOptions(_DECISIONS)],
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "solver": [StrOptions(set(_SOLVERS))],
        "uncertainty": [StrOptions({"laplace"}), None],
    }

    def __init__(
        self, kernel: KernelLike | Sequence[KernelLike] = "rbf", *, gamma: str | float | None = None,
 scaling: str = "none", scale: float = 10.0,
        intercept_variance: float | Literal["learn"] = 1.0, taxonomy: Any = None,
        label_covariance: LearnableCovariance = None, label_mean: MeanLike = None,
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None,
        hyperparameters: Literal["fixed", "learn"] | HyperparameterSearch = "learn",
        loss: str | EntryLoss = "log_loss", decision: str = "most_probable", threshold: str | float = "auto",
        kernel_rank: int | None = None, uncertainty: str | None = None, warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-4, max_iter: int = 100,
        solver: str = "auto", n_jobs: int | None = None,
        random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _read_rows(
        self, features: FeatureMatrix, y: Any, sample_weight: Any, entry_weight: Any
    ) -> LikelihoodData:
        if self._is_precomputed and features.is_sparse:
            features = FeatureMatrix(features.data.toarray())
        self.taxonomy_ = None if self.taxonomy is None else Taxonomy.from_any(self.taxonomy)
        if self.taxonomy_ is not None and not has_many_labels(y):
            self.taxonomy_.require_tree("KernelLogisticClassifier(taxonomy=...) for one class per row")
        data = self._read_data(features, y, sample_weight, entry_weight)
        features = self._scale(features, data.table(), data.certain_weights())
        mean = self._mean(features, data.n_labels)
        return replace(data, features=features, known=None if mean is None else mean.scores(features.data))

    def _fit(self, rows: LikelihoodData, before: Any, arguments: FitArguments) -> None:
        data, features = rows, rows.features
        if len(data.partial) or data.parts is not None:
            refuse_at_home(self, "unsure classes on a device")
        search = self._search
        last, cv = before or _NOTHING, None if search is None else held_out.reusable_splits(search.cv)
        shares = [] if data.shares is None else [data.shares]
        journal = self._open_journal(
            X=features.marks, y=[data.signs, data.codes, data.partial, data.allowed, *shares],
            weights=[data.weights, data.entry_weights], cv=held_out.shown_splits(cv), start=list(last),
        )  # fmt: skip
        seed = journal.recall("seed", self._seed)
        kernels = self._starting_kernels(features, seed)
        family = prior_family(self, features, kernels, data.n_labels, seed, np.flatnonzero(data.weights))
        self._forget_expansion("posterior_", "log_marginal_likelihood_value_")
        if n_partial := len(data.partial):
            refuse_together(self, {"inner nodes": n_partial})
        blocks = [] if search is None else _learning_blocks(search, data, cv, seed)
        searches = 0 if search is None or not blocks else search.max_learning_iter
        progress = FitProgress(self, arguments, tol=self.tol, searches=searches)
        workers = Workers(effective_n_jobs(self.n_jobs))
        self._warn_of_costs(data, searches, sum(len(block.rows) ** 2 for block in blocks), workers.n_threads)
        with workers.running(), journal.going_on():
            task = LikelihoodFit(family, data, self._settings(progress, workers, seed, searches, journal))
            found: Found = task.learn(blocks, last) if blocks else (None, family.start, last[1])
            result, found = self._fit_with(task, features, found, progress)
        self.hyperparameters_ = family.values(found[1])
        self._keep_learned(found[0])
        self._keep_result(result, is_convex=len(data.partial) == 0)
        is_done = "interrupted" not in (self.status_, self.learning_status_)
        self._close_journal(journal, is_done=is_done)
        progress.close()

    def _warn_of_costs(self, data: LikelihoodData, searches: int, n_pairs: int, n_threads: int) -> None:
        """Warn if learning the widths of many features, or exact solves of many rows, take long."""
        speed, (n_rows, n_features) = MULTIPLICATIONS * n_threads, data.features.shape
        if self._has_widths:
            warn_of_time(
                f"Learning widths of {n_features} features in {searches} evaluations or fewer",
                searches * _WIDTH_WORK * n_pairs * n_features / speed,
                "set fewer `learning_rows`, a smaller `max_learning_iter`, or fewer features.",
            )
        if self.solver == "exact":
            warn_of_time(
                f"`solver='exact'` factorizes {data.n_labels} matrices of {n_rows} rows in each of about "
                f"{_EXACT_STEPS} steps, which",
                _EXACT_STEPS * data.n_labels * float(n_rows) ** 3 / 3 / speed,
                "use `solver='auto'`, which needs only products with the kernel matrix.",
            )

    def _read_data(
        self, features: FeatureMatrix, y: Any, sample_weight: Any, entry_weight: Any
    ) -> LikelihoodData:
        weights = self._row_weights(sample_weight, features)
        is_flat = self.taxonomy is None and is_identity(self.label_covariance)
        data, self._form = read_likelihood_data(
            features, y, weights, taxonomy=self.taxonomy_, is_flat=is_flat, is_related=self._relates_labels,
            flip_rates=self.flip_rates,
        )  # fmt: skip
        self.classes_, self._fitted_loss = self._form.classes, deepcopy(self.loss)
        self._check_decision()
        self._set_threshold()
        refuse_together(self, self._form.facts, entry_weight=entry_weight)
        if not data.weights.any():
            raise ValueError(
                "sample_weight leaves nothing to fit; at least one row with an observed label needs a "
                "positive weight."
            )
        data = data.weighted(entry_weight, self._form)
        if self.class_weight is not None:
            labels = data.label_matrix() if data.codes is None else read_targets(y, self.taxonomy_)[0]
            data = data.weighted_by_class(labels, *self._weighted_by_class(labels, weights))
        return replace(data, is_precomputed=self._is_precomputed).with_loss(self.loss)

    def _refuse_together(self) -> None:
        check_priors(self)
        super()._refuse_together()

    def _settings(
        self, progress: FitProgress, workers: Workers, seed: int, iterations: int, journal: Journal
    ) -> FitSettings:
        return FitSettings(
            workers, seed, self.tol, self.max_iter, iterations, self.solver, kernel_rank=self.kernel_rank,
            memory_budget=self._budget, journal=journal, on_check=progress,
            on_search=progress.on_search,
        )  # fmt: skip

    def _fit_with(
        self, task: LikelihoodFit, features: FeatureMatrix, found: Found, progress: FitProgress
    ) -> tuple[SolverResult, Found]:
        """Fit at the learned hyperparameters, or where that fails at the best others that work."""
        learned, theta, start = found
        if learned is not None and learned.status == "interrupted":
            # a resumed search reaches other hyperparameters and has no use for this result
            task = replace(task, settings=replace(task.settings, journal=Journal()))
        rows = np.arange(len(features))
        progress.keep = lambda model, fitted: model._keep_scores(fitted, features, rows)
        fitted = task.fit("all", theta, start)
        others = enumerate(learned.others if learned is not None and _has_failed(fitted) else ())
        for number, (value, other) in others:
            assert learned is not None, "others are of a search"
            again = task.fit(f"all, {number}", other, None)
            if not _has_failed(again):
                fitted, theta, learned = again, other, replace(learned, value=value)
                break
        self._keep_scores(fitted, features, rows)
        if self.uncertainty is not None:
            self._keep_posterior(fitted, features)
        self._end = (theta, fitted.dual[:, None, :]) if self.warm_start else None
        return fitted.result, (learned, theta, start)


def _has_failed(fitted: FittedLikelihood) -> bool:
    """Whether rounding ended a fit far from its optimum, as at extreme hyperparameters."""
    return fitted.result.status is Status.STALLED and not fitted.result.gap <= _FAILED


def _learning_blocks(
    search: HyperparameterSearch, data: LikelihoodData, cv: Any, seed: int
) -> list[LearningBlock]:
    """Return the rows to learn on, and the rows that each fold holds out; no blocks to learn nothing."""
    certain = data.certain()
    if len(certain) < 2 and search.learning_blocks == 1:
        return []
    drawn = held_out.drawn_blocks(certain, search.learning_rows, search.learning_blocks, seed)
    if search.criterion == "marginal_likelihood":
        return [LearningBlock(rows, np.zeros((len(rows), 1), bool)) for rows in drawn]
    return [LearningBlock(rows, held_out.held_out_rows(cv, rows, data.targets, seed)) for rows in drawn]
