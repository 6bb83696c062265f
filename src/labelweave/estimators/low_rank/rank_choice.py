"""The choice of rank and penalty of the low-rank classifier by cross-validation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from labelweave.estimators.held_out import held_out_rows, reusable_splits
from labelweave.estimators.journal import Journal, warn_of_end
from labelweave.estimators.kernel_classifier import ParameterGroup
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
from labelweave.estimators.parameters import COUNT, NON_NEGATIVE, keep_parameters
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import numbers_of, panels
from labelweave.foundation.sklearn_compat import StrOptions
from labelweave.model_files import storable
from labelweave.solvers import Status
from labelweave.splits.splitters import take_rows

RULES = ("best", "one_standard_error")
_FOLDS = 5
_MOST_LAMBDAS = 1000
_BLOCK_ENTRIES = 8_000_000  # kernel values in memory where a block does not fit


@storable("RankSearch")
class RankSearch(ParameterGroup):
    """Settings for choosing the rank and the penalty of a low-rank model by cross-validation.

    Pass it as ``rank`` of :class:`LowRankClassifier`.  In every fold the fits go from the strongest
    penalty and the largest rank on, each warm-started from a neighbor; then all rows are fitted with the best
    pair.

    Parameters
    ----------
    ranks : array-like of int or float, default=(100,)
        The ranks to try, as numbers of columns (int) or shares of the number of labels (float, at most 1).
        Ranks larger than the factors' product can have are reduced to the largest possible one.
    alphas : int or array-like of float, default=(10.0, 1.0)
        The values of lambda to try; or how many of them, to be chosen from the data over four decades.  The
        default has a strong one and that of :class:`LowRankClassifier`, since weaker ones are slow.  The
        largest chosen one forces all scores to 0 (trace norm), or is a hundred times the mean squared length
        of a row (ridge).
    cv : int, splitter, iterable or None, default=2
        The folds: a number of random ones (None for 5), or splits.
    scoring : {"loss", "precision_at_1", "precision_at_3", "precision_at_5", "average_auc", "micro_f1"} or \
            callable, default="micro_f1"
        The metric on the observed entries of held-out rows: the least mean loss ("loss", with its sign
        reversed) or the greatest metric; "micro_f1" at ``threshold``.  A callable gets a fitted model, X of
        these rows as an array or CSR, scaled by ``scaling``, and their y, a LabelMatrix for labels of
        several calls of ``partial_fit``, and returns a number; higher is better.
    rule : {"best", "one_standard_error"}, default="best"
        Which pair is chosen: the best mean score, or the smallest rank, and the strongest penalty with it,
        whose mean is at most one standard error below it.
    path_tol : float, default=1e-2
        The tolerance of the fits to folds, instead of ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import LowRankClassifier, RankSearch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> Y = (X @ rng.normal(size=(5, 2)) @ rng.normal(size=(2, 6)) > 0).astype(int)
    >>> model = LowRankClassifier(RankSearch([1, 2, 4], cv=3)).fit(X, Y)
    >>> model.best_rank_, round(model.best_alpha_, 1)
    (4, 1.0)
    >>> list(model.cv_results_)[:3]
    ['rank', 'alpha', 'mean_test_score']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ranks": ["array-like"],
        "alphas": [COUNT, "array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(SCORINGS)), callable],
        "rule": [StrOptions(set(RULES))],
        "path_tol": [NON_NEGATIVE],
    }

    def __init__(
        self, ranks: ArrayLike = (100,), alphas: ArrayLike = (10.0, 1.0), *, cv: Any = 2,
        scoring: str | Callable[..., float] = "micro_f1", rule: str = "best", path_tol: float = 1e-2,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _refuse_together(self) -> None:
        self._read_ranks()
        self._read_alphas()

    def _read_ranks(self) -> list[Any]:
        """Check the ranks: whole numbers from 1, or shares of the labels."""
        if not isinstance(self.ranks, Iterable) or getattr(self.ranks, "ndim", 1) != 1:
            raise ParameterError("`ranks` is not a list; pass one or more ranks, such as [10, 0.5].")
        ranks = [rank.item() if isinstance(rank, np.generic) else rank for rank in self.ranks]
        for rank in ranks:
            is_count = isinstance(rank, int) and rank >= 1
            if isinstance(rank, bool) or not (is_count or (isinstance(rank, float) and 0 < rank <= 1)):
                raise ParameterError(
                    f"`ranks` has {rank!r}; a rank must be an integer >= 1, or a share of the labels in (0, "
                    "1]."
                )
        if not ranks:
            raise ParameterError("`ranks` is empty; pass at least one rank.")
        return ranks

    def _read_alphas(self) -> list[float] | int:
        """Check lambdas: how many, or numbers from 0 on; return them in descending order."""
        if isinstance(self.alphas, Integral):
            count = int(self.alphas)
            if count > _MOST_LAMBDAS:
                raise ParameterError(f"`alphas` is {count}; it must be at most {_MOST_LAMBDAS}.")
            return count
        values = numbers_of(self.alphas, "`alphas`").astype(np.float64).ravel()
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if len(bad) or not len(values):
            what = f"has {bad[0]}" if len(bad) else "is empty"
            raise ParameterError(f"`alphas` {what}; pass numbers >= 0, or how many to derive from the data.")
        return sorted(set(values.tolist()), reverse=True)

    def to_state(self) -> dict[str, Any]:
        """Return the state that a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        state = super().to_state()
        state["ranks"], state["alphas"] = self._read_ranks(), self._read_alphas()
        state["cv"] = self.cv if isinstance(self.cv, Integral) else None
        return state | ({"scoring": "loss"} if callable(self.scoring) else {})


@dataclass(frozen=True)
class RankChoice:
    """The choice of rank and lambda for one fit of a classifier, which stores the result."""

    model: Any
    search: RankSearch

    def most_fits(self) -> int | None:
        """Return the maximum number of fits to folds; None where a splitter defines the folds."""
        cv = self.search.cv
        if not (cv is None or isinstance(cv, Integral)):
            return None
        found = self.search._read_alphas()
        penalties = found + 1 if isinstance(found, int) else len(found)
        folds = _FOLDS if cv is None else int(cv)
        return folds * penalties * len(self.search._read_ranks())

    def chosen(
        self, features: FeatureMatrix, data: LowRankData, y: Any, settings: LowRankSettings, learned: float
    ) -> tuple[LowRankSettings, Start | None]:
        """Choose rank and lambda on folds; return them and a start of the fit to all rows, if there is one.

        learned: the lambda that was learned with the kernel.
        """
        model, search = self.model, self.search
        penalties, cv = search._read_alphas(), reusable_splits(search.cv)
        is_apt = learned != settings.alpha and (model.loss, model.penalty) == ("squared_error", "ridge")
        fits = PathFits(
            data,
            replace(settings, tol=search.path_tol),
            ranks=sorted({model._columns(rank, data) for rank in search._read_ranks()}, reverse=True),
            penalties=penalties,
            extra=learned if is_apt else None,
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
        if is_interrupted:  # later results differ from those of a resumed path
            settings = replace(settings, journal=Journal())
        start = None  # of the fit to all rows; an exact one needs none
        if path.best_factor is not None and (model.loss, model.penalty) != ("squared_error", "ridge"):
            first = data.first_factor(model.best_rank_, settings.init, settings.seed)
            start = Start(continued(path.best_factor, first, model.best_rank_))
        settings = replace(settings, rank=model.best_rank_, alpha=model.best_alpha_)
        model.hyperparameters_["alpha"] = model.best_alpha_
        return settings, start

    def _folds(self, data: LowRankData, cv: Any, seed: int) -> Array:
        n_rows = len(data.labels)
        if n_rows < 2:
            raise ValueError(f"Cross-validation needs at least 2 rows, but X has {n_rows}.")
        targets = labels_to_split(data.labels, self.model._form, cv)
        return held_out_rows(cv, np.arange(n_rows), targets, seed)

    def _make_score(
        self, features: FeatureMatrix, data: LowRankData, y: Any, settings: LowRankSettings
    ) -> Any:
        scoring = self.search.scoring
        if callable(scoring):
            return partial(self._called, scoring, features, y)
        blocks = _KernelBlocks(data, settings)
        what = ScoreSettings(self.model.loss, settings.negative_weight, self.model._level, settings.workers)

        def score(fitted: FittedFactors, held: Array, kept: Array) -> float:
            latent = blocks.latent(fitted, held, kept)
            image = np.hstack([latent, np.ones((len(held), 1))])
            factor = np.hstack([fitted.label_factor, fitted.intercepts[:, None]]).astype(np.float64)
            if data.known is not None:
                image, factor = np.hstack([image, data.known[0][held]]), np.hstack([factor, data.known[1]])
            part = None if data.factors is None else data.factors.rows(held)
            rows = HeldOutRows(data.labels[held], data.weights[held], image, factor, part)
            return held_out_score(scoring, rows, what)

        return score

    def _called(
        self,
        scoring: Callable[..., float],
        features: FeatureMatrix,
        y: Any,
        fitted: FittedFactors,
        held: Array,
        kept: Array,
    ) -> float:
        """Score with the user's function, which gets a model of its own."""
        model = copy.copy(self.model)
        model._keep_factors(fitted.spread(kept, len(features)), features)
        model.scaling_ = None  # rows are passed scaled, without names
        model.__dict__.pop("feature_names_in_", None)
        model.thresholds_ = np.full(len(fitted.intercepts), model._level)
        model.rank_ = fitted.label_factor.shape[1]
        truth = take_rows(y, held)
        found = scoring(model, features.rows(held).data, truth)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise ValueError(
                f"scoring returned {found!r}; it must return one number, greater is better."
            ) from None

    def _keep_path(self, path: PathState, tried: list[int], *, is_interrupted: bool) -> None:
        done = np.isfinite(path.scores).sum(axis=0)
        if not done.any():
            raise ValueError(
                "No fold has a score: held-out rows have no observed entry with positive weight, or scoring "
                "returned NaN; use other folds, or another scoring."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # means of empty slices
            mean, spread = np.nanmean(path.scores, axis=0), np.nanstd(path.scores, axis=0, ddof=0)
        mean = np.where(done == done.max(), mean, np.nan)
        penalties, ranks = np.meshgrid(path.penalties, tried, indexing="ij")
        best = np.unravel_index(np.nanargmax(mean), mean.shape)
        allowed = mean >= mean[best]
        if self.search.rule == "one_standard_error" and done.max() > 1:
            allowed = mean >= mean[best] - spread[best] / np.sqrt(done.max() - 1)
        order = np.lexsort((-penalties[allowed], ranks[allowed]))
        i, j = np.argwhere(allowed)[order[0]]
        self.model.n_splits_ = path.scores.shape[0]
        self.model.best_rank_, self.model.best_alpha_ = int(ranks[i, j]), float(penalties[i, j])
        self.model.best_score_ = float(mean[i, j])
        self.model.cv_results_ = {
            "rank": ranks.ravel(),
            "alpha": penalties.ravel(),
            "mean_test_score": mean.ravel(),
            "std_test_score": spread.ravel(),
            **{f"split{fold}_test_score": scores.ravel() for fold, scores in enumerate(path.scores)},
            "seconds": np.nansum(path.seconds, axis=0).ravel(),
            "rounds": np.nansum(path.steps, axis=0).ravel(),
        }
        self.model.search_status_ = "interrupted" if is_interrupted else "complete"
        if is_interrupted:
            message = (
                f"The cross-validation was interrupted after {np.isfinite(path.scores).sum()} of "
                f"{path.scores.size} fits to folds; the model has the best rank and penalty of these."
            )
            warn_of_end(message)


class _KernelBlocks:
    """Maps held-out rows to the space of factors; keeps the last block of the kernel if it fits."""

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
