"""Rank and regularisation of the low-rank classifier by cross-validation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from labelweave.estimators.held_out import held_out_rows, reusable_splits
from labelweave.estimators.journal import Journal
from labelweave.estimators.low_rank.classifier import LowRankClassifier
from labelweave.estimators.low_rank.fit import FittedFactors, LowRankData, LowRankSettings
from labelweave.estimators.low_rank.path import (
    SCORINGS,
    HeldOutRows,
    LowRankPath,
    PathFits,
    PathState,
    ScoreSettings,
    held_out_score,
)
from labelweave.estimators.low_rank.ridge_learning import labels_to_split
from labelweave.estimators.low_rank.starts import Start, continued
from labelweave.estimators.parameters import (
    COUNT,
    NON_NEGATIVE,
    ClassWeight,
    Costs,
    CovarianceLike,
    FlipRatesLike,
    KernelLike,
    MeanLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.progress import warn_of_end
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import numbers_of, panels
from labelweave.foundation.sklearn_compat import StrOptions, _safe_indexing
from labelweave.labels import LabelMatrix
from labelweave.model_files import storable
from labelweave.model_files.schema import MEASURED, TEXT, Field, Named, Numbers, count
from labelweave.problems.losses.entry_losses import EntryLoss
from labelweave.solvers import Status

_FOLDS = 5
_MOST_LAMBDAS = 1000
_BLOCK_ENTRIES = 8_000_000  # kernel values at a time where a block does not fit


@storable("LowRankClassifierCV")
class LowRankClassifierCV(LowRankClassifier):
    """Low-rank classifier whose rank and regularisation are chosen by cross-validation.

    In every fold the fits go from the strongest penalty and the largest rank on, each from where a neighbour
    ended; then all rows are fitted with the best pair.  It is a :class:`LowRankClassifier`
    with the rank and regularisation so found, and shares its other parameters and attributes.

    Parameters
    ----------
    ranks : array-like of int or float, default=(100,)
        The ranks to try, as numbers of columns (int) or shares of the number of labels (float, at most 1).
        Ranks that no product can have are lowered to the largest possible one.
    regularizations : int or array-like of float, default=(10.0, 1.0)
        The values of lambda to try, a strong one and that of :class:`LowRankClassifier`, weaker ones being
        slow; or how many of them: they are then found from the data, over four decades. The largest one
        leaves nothing but scores of 0 (trace norm), or is a hundred times the mean squared length of a row
        (ridge).
    loss : {"squared", "logistic", "squared_hinge"} or EntryLoss, default="squared"
        The loss of an entry, by its name or one of your own (:mod:`labelweave.extending`).
    penalty : {"trace_norm", "ridge"}, default="trace_norm"
        What is penalised.
    kernel : {"linear", "rbf", "polynomial", "laplacian", "cosine", "precomputed"}, Kernel or \
            callable, default="linear"
        The kernel between rows; with "precomputed" X is the kernel between all training rows.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF, polynomial and Laplacian kernels.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    scaling : {"none", "auto", "standard", "quantile", "unit"}, default="none"
        How features are scaled inside the model, as in :class:`MaxMarginClassifier`.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    intercept_scaling : float, default=1.0
        The constant feature.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L) or None, default=None
        A prior covariance between labels.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        Weights that are known before the fit, of features as the model scales them: their scores, on the
        scale of the loss, are added to those of low rank, which alone are penalised.
    false_positive_cost : float, array-like of shape (L,) or Series by label, default=1.0
        What the losses of negative entries are multiplied with; below 1 where an absent label may be unknown.
    false_negative_cost : float, array-like of shape (L,) or Series by label, default=1.0
        What the losses of positive entries are multiplied with.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, by which those of rows are multiplied: a dict, or "balanced" for rows /
        (classes x rows of the class), with rows counted by their weights.  With many labels the losses of
        entries are multiplied: by "balanced" from the positives and negatives observed of each label, by a
        dict such as ``{0: 1, 1: 5}`` for all labels, or by a list of one a label.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly: the shares of present labels recorded as absent, and of absent
        ones recorded as present, one number, an array or a Series by label.  "propensity" is for labels only
        forgotten, as often as the formula of Jain et al. (2016) says, see
        :func:`labelweave.metrics.propensities`.  Losses and thresholds are then those of the true labels, on
        average (:mod:`labelweave.labels.flip_rates`).  For many labels a row only.
    hyperparameters : {"fixed", "learn"}, default="fixed"
        "learn" first takes the kernel's parameters of the least cross-validated loss of kernel ridge
        regression, whatever the loss and the penalty.  The lambda learned with them is tried too, where
        others are found from the data and it is of the same problem: the squared loss with the ridge penalty.
    cv : int, splitter, iterable or None, default=2
        The folds, as in :class:`LowRankClassifier`.
    learning_rows : int or None, default=None
        Learn the kernel on so many rows, drawn at random; None for all.
    max_learning_iter : int, default=100
        The largest number of evaluations in learning the kernel.
    scoring : {"loss", "precision_at_1", "precision_at_3", "precision_at_5", "average_auc", "micro_f1"} or \
            callable, default="micro_f1"
        What is best on the observed entries of held-out rows: the least mean loss ("loss", with its sign
        turned) or the greatest metric; "micro_f1" at ``threshold``.  A callable gets a fitted model, X of
        these rows as an array or CSR, scaled as ``scaling`` says, and their y, a LabelMatrix for labels of
        several calls of ``partial_fit``, and gives a number, greater is better.
    rule : {"best", "one_standard_error"}, default="best"
        Which pair is taken: the best mean score, or the smallest rank, and the strongest penalty with it,
        whose mean is at most one standard error below it.
    path_tol : float, default=1e-2
        The tolerance of the fits to folds, in the place of ``tol``.
    start : {"svd", "random"}, default="svd"
        The labels' factor to start the path from.
    threshold : "auto" or float, default="auto"
        Scores above it are predicted, as in :class:`LowRankClassifier`.
    warm_start : bool, default=False
        Taken by ``fit`` of :class:`LowRankClassifier`; the path starts afresh, and the last fit from it.
    checkpoint : path-like or None, default=None
        A file from which a fit that was killed goes on; fits to folds that were done are not made again.
    tol : float, default=1e-4
        Of the fit to all rows: it ends after a round that lowers the objective by less than this share.
    max_iter : int, default=100
        The largest number of rounds of any fit.
    precision : {"float64", "float32"}, default="float64"
        Arithmetic of the factors.
    kernel_rank : int or None, default=None
        Number of columns of an incomplete Cholesky factor that stands for the kernel matrix.
    memory_budget : float, default=8000.0
        Megabytes for the kernel matrix of a fold, and for that of its held-out rows.
    n_jobs : int or None, default=None
        Threads; the result is the same to the last bit for any number.
    random_state : int, RandomState instance or None, default=0
        Fixes folds, random starts, held-out rows and pivots.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is: a line every two seconds, later more rarely, and one at
        the end; 2 for a line at every step.

    Attributes
    ----------
    best_rank_, best_regularization_, best_score_ : int, float, float
        The rank and the lambda taken, and their mean score over folds.
    cv_results_ : dict of str to ndarray of shape (pairs,)
        Columns: "rank", "regularization", "mean_test_score", "std_test_score", "split0_test_score" and so on,
        "seconds" and "rounds" of all folds together.  Scores are NaN where an interrupt came first, and the
        mean where fewer folds were scored than of other pairs.
    n_splits_ : int
        Folds.
    search_status_ : {"complete", "interrupted"}
        Whether all fits to folds were made.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import LowRankClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> Y = (X @ rng.normal(size=(5, 2)) @ rng.normal(size=(2, 6)) > 0).astype(int)
    >>> model = LowRankClassifierCV(ranks=[1, 2, 4], cv=3).fit(X, Y)
    >>> model.best_rank_, round(model.best_regularization_, 1)
    (4, 1.0)
    >>> list(model.cv_results_)[:3]
    ['rank', 'regularization', 'mean_test_score']
    """

    _stored: ClassVar[dict[str, Field]] = {
        "n_splits_": count(),
        "best_rank_": count(),
        "best_regularization_": MEASURED,
        "best_score_": MEASURED,
        "cv_results_": Named(Numbers("v", "iuf", infinite=True, may_be_nan=True)),
        "search_status_": TEXT,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LowRankClassifier._parameter_constraints,
        "ranks": ["array-like"],
        "regularizations": [COUNT, "array-like"],
        "scoring": [StrOptions(set(SCORINGS)), callable],
        "rule": [StrOptions({"best", "one_standard_error"})],
        "path_tol": [NON_NEGATIVE],
    }

    def __init__(
        self, ranks: ArrayLike = (100,), regularizations: ArrayLike = (10.0, 1.0), *,
        loss: str | EntryLoss = "squared", penalty: Literal["trace_norm", "ridge"] = "trace_norm",
        kernel: KernelLike = "linear", gamma: str | float = "scale", degree: int = 3, coef0: float = 1.0,
        scaling: str = "none", fit_intercept: bool = True, intercept_scaling: float = 1.0,
        label_covariance: CovarianceLike = None, label_mean: MeanLike = None,
        false_positive_cost: Costs = 1.0, false_negative_cost: Costs = 1.0, class_weight: ClassWeight = None,
        flip_rates: FlipRatesLike = None,
        hyperparameters: Literal["fixed", "learn"] = "fixed", cv: Any = 2, learning_rows: int | None = None,
        max_learning_iter: int = 100, scoring: str | Callable[..., float] = "micro_f1", rule: str = "best",
        path_tol: float = 1e-2, start: Literal["svd", "random"] = "svd", threshold: str | float = "auto",
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-4, max_iter: int = 100,
        precision: str = "float64", kernel_rank: int | None = None, memory_budget: float = 8000.0,
        n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _first_choice(self, data: LowRankData) -> tuple[int, float]:
        return max(self._columns(rank, data) for rank in self._read_ranks()), 1.0

    def _refuse_together(self) -> None:
        self._read_ranks()
        self._read_regularizations()

    def _read_ranks(self) -> list[Any]:
        """Check the ranks: whole numbers from 1, or shares of the labels."""
        if not isinstance(self.ranks, Iterable) or getattr(self.ranks, "ndim", 1) != 1:
            raise ParameterError("`ranks` is no list; give one rank or several, such as [10, 0.5].")
        ranks = [rank.item() if isinstance(rank, np.generic) else rank for rank in self.ranks]
        for rank in ranks:
            is_count = isinstance(rank, int) and rank >= 1
            if isinstance(rank, bool) or not (is_count or (isinstance(rank, float) and 0 < rank <= 1)):
                raise ParameterError(
                    f"`ranks` has {rank!r}; a rank is a whole number from 1 on, or a share of the labels "
                    "above 0 and up to 1.0."
                )
        if not ranks:
            raise ParameterError("`ranks` is empty; give at least one rank.")
        return ranks

    def _read_regularizations(self) -> list[float] | int:
        """Check lambdas: how many, or numbers from 0 on; give them in descending order."""
        if isinstance(self.regularizations, Integral):
            count = int(self.regularizations)
            if count > _MOST_LAMBDAS:
                raise ParameterError(f"`regularizations` is {count}; at most {_MOST_LAMBDAS} are tried.")
            return count
        values = numbers_of(self.regularizations, "`regularizations`").astype(np.float64).ravel()
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if len(bad) or not len(values):
            what = f"has {bad[0]}" if len(bad) else "is empty"
            raise ParameterError(
                f"`regularizations` {what}; give numbers from 0 on, or how many to find from the data."
            )
        return sorted(set(values.tolist()), reverse=True)

    def _most_subtasks(self) -> int | None:
        fits = self._most_fits()
        return None if fits is None else fits + (super()._most_subtasks() or 0)

    def _most_fits(self) -> int | None:
        """Say how many fits to folds there are at most; None where a splitter makes the folds."""
        if not (self.cv is None or isinstance(self.cv, Integral)):
            return None
        found = self._read_regularizations()
        penalties = found + 1 if isinstance(found, int) else len(found)
        folds = _FOLDS if self.cv is None else int(self.cv)
        return folds * penalties * len(self._read_ranks())

    def _choose(
        self, features: FeatureMatrix, data: LowRankData, y: Any, settings: LowRankSettings
    ) -> tuple[LowRankData, LowRankSettings, Start | None]:
        """Choose rank and lambda on folds, after the kernel if that is learned."""
        penalties, cv = self._read_regularizations(), reusable_splits(self.cv)
        data, learned = self._learn(features, data, settings, cv)
        is_chosen = learned.regularization != settings.regularization
        is_apt = is_chosen and (self.loss, self.penalty) == ("squared", "ridge")
        fits = PathFits(
            data,
            replace(settings, tol=self.path_tol),
            ranks=sorted({self._columns(rank, data) for rank in self._read_ranks()}, reverse=True),
            penalties=penalties,
            extra=learned.regularization if is_apt else None,
            held_out=self._folds(data, cv, settings.seed),
            score=self._make_score(features, data, y, settings),
        )
        progress: Any = settings.on_round
        result, path = settings.journal.run(
            "path", LowRankPath(), fits, None, lambda record, _: progress.subtask("fit to a fold", record)
        )
        is_interrupted = result.status is Status.INTERRUPTED
        if is_interrupted and np.isnan(path.scores).all():
            raise KeyboardInterrupt
        self._keep_path(path, fits.ranks, is_interrupted=is_interrupted)
        if is_interrupted:  # what follows is not what follows when the path goes on
            settings = replace(settings, journal=Journal())
        start = None  # of the fit of all rows; an exact one needs none
        if path.best_factor is not None and (self.loss, self.penalty) != ("squared", "ridge"):
            first = data.first_factor(self.best_rank_, settings.start, settings.seed)
            start = Start(continued(path.best_factor, first, self.best_rank_))
        settings = replace(settings, rank=self.best_rank_, regularization=self.best_regularization_)
        self.hyperparameters_["regularization"] = self.best_regularization_
        return data, settings, start

    def _folds(self, data: LowRankData, cv: Any, seed: int) -> Array:
        n_rows = len(data.labels)
        if n_rows < 2:
            raise ValueError(f"Cross-validation needs at least 2 rows, but there is {n_rows} row only.")
        targets = labels_to_split(data.labels, self._form.kind, cv)
        return held_out_rows(cv, np.arange(n_rows), targets, seed)

    def _make_score(
        self, features: FeatureMatrix, data: LowRankData, y: Any, settings: LowRankSettings
    ) -> Any:
        if callable(self.scoring):
            return partial(self._called, features, y)
        blocks = _KernelBlocks(data, settings)
        what = ScoreSettings(self.loss, settings.negative_weight, self._level, settings.workers)

        def score(fitted: FittedFactors, held: Array, kept: Array) -> float:
            latent = blocks.latent(fitted, held, kept)
            image = np.hstack([latent, np.ones((len(held), 1))])
            factor = np.hstack([fitted.label_factor, fitted.intercepts[:, None]]).astype(np.float64)
            if data.known is not None:
                image, factor = np.hstack([image, data.known[0][held]]), np.hstack([factor, data.known[1]])
            part = None if data.factors is None else data.factors.rows(held)
            rows = HeldOutRows(data.labels[held], data.weights[held], image, factor, part)
            return held_out_score(self.scoring, rows, what)

        return score

    def _called(
        self, features: FeatureMatrix, y: Any, fitted: FittedFactors, held: Array, kept: Array
    ) -> float:
        """Score by the user's function, which gets a model of its own."""
        model = copy.copy(self)
        model._keep_factors(fitted.spread(kept, len(features)), features)
        model.scaling_ = None  # rows are given as they are scaled, without names
        model.__dict__.pop("feature_names_in_", None)
        model.thresholds_ = np.full(len(fitted.intercepts), self._level)
        model.rank_ = fitted.label_factor.shape[1]
        truth = y[held] if isinstance(y, LabelMatrix) else _safe_indexing(y, held)
        found = self.scoring(model, features.rows(held).data, truth)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise ValueError(
                f"scoring gave {found!r}; a scoring function must give one number, greater is better."
            ) from None

    def _keep_path(self, path: PathState, tried: list[int], *, is_interrupted: bool) -> None:
        """Keep the table of scores, and choose."""
        done = np.isfinite(path.scores).sum(axis=0)
        if not done.any():
            raise ValueError(
                "No held-out row can be scored: in every fold they have no observed entry with a positive "
                "weight, or the scoring gave NaN; give other folds, or another scoring."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of means of nothing
            mean, spread = np.nanmean(path.scores, axis=0), np.nanstd(path.scores, axis=0, ddof=0)
        mean = np.where(done == done.max(), mean, np.nan)
        penalties, ranks = np.meshgrid(path.penalties, tried, indexing="ij")
        best = np.unravel_index(np.nanargmax(mean), mean.shape)
        allowed = mean >= mean[best]
        if self.rule == "one_standard_error" and done.max() > 1:
            allowed = mean >= mean[best] - spread[best] / np.sqrt(done.max() - 1)
        order = np.lexsort((-penalties[allowed], ranks[allowed]))
        i, j = np.argwhere(allowed)[order[0]]
        self.n_splits_ = path.scores.shape[0]
        self.best_rank_, self.best_regularization_ = int(ranks[i, j]), float(penalties[i, j])
        self.best_score_ = float(mean[i, j])
        self.cv_results_ = {
            "rank": ranks.ravel(),
            "regularization": penalties.ravel(),
            "mean_test_score": mean.ravel(),
            "std_test_score": spread.ravel(),
            **{f"split{fold}_test_score": scores.ravel() for fold, scores in enumerate(path.scores)},
            "seconds": np.nansum(path.seconds, axis=0).ravel(),
            "rounds": np.nansum(path.steps, axis=0).ravel(),
        }
        self.search_status_ = "interrupted" if is_interrupted else "complete"
        if is_interrupted:
            message = (
                f"The cross-validation was interrupted after {np.isfinite(path.scores).sum()} of "
                f"{path.scores.size} fits to folds; the model has the best rank and regularisation of these."
            )
            warn_of_end(message)

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = super()._storable_parameters()
        for name in ("ranks", "regularizations"):
            if not isinstance(parameters[name], Integral):
                parameters[name] = [getattr(value, "item", lambda v=value: v)() for value in parameters[name]]
        if callable(self.scoring):
            parameters["scoring"] = "loss"  # a function has no use after the fit
        return parameters


class _KernelBlocks:
    """Maps held-out rows into the space of factors; of a kernel's blocks the last one is kept if it fits."""

    def __init__(self, data: LowRankData, settings: LowRankSettings) -> None:
        self.data, self.settings = data, settings
        self.held: Array | None = None
        self.support: Array = np.empty(0, np.intp)
        self.block: Any = None

    def latent(self, fitted: FittedFactors, held: Array, kept: Array) -> Array:
        """Map the held-out rows: shape (held, k)."""
        if self.data.explicit is not None:
            return self.data.explicit.rows(held).matmul(fitted.feature_factor).astype(np.float64)
        assert self.data.source is not None, "there are features or a kernel"
        assert fitted.support is not None, "a kernel has support rows"
        support = kept[fitted.support]
        factor, multiply = fitted.feature_factor.astype(np.float64), self.settings.workers.matmul
        if 8e-6 * len(held) * len(support) > self.settings.memory_budget:
            source, parts = self.data.source, panels(len(held), 1 + _BLOCK_ENTRIES // max(1, len(support)))
            blocks = (source.block(held[part], support, np.float64) for part in parts)
            return np.concatenate([multiply(block, factor) for block in blocks])
        if self.held is not held or not np.array_equal(self.support, support):
            self.held, self.support = held, support
            self.block = self.data.source.block(held, support, np.float64)
        return multiply(self.block, factor)
