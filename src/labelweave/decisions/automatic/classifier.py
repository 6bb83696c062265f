"""AutoLabelClassifier: several models stacked on out-of-fold predictions."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.utils.validation import check_is_fitted

from labelweave.decisions.automatic.combination import (
    Combination,
    OutOfFold,
    cross_fitted,
    distributions,
    weighted_sum,
)
from labelweave.decisions.automatic.given import named_members, names_of_members
from labelweave.decisions.automatic.label_sets import KnownSets, most_probable, value_of_sets
from labelweave.decisions.automatic.members import maker_of, max_margin_pays
from labelweave.decisions.automatic.plan import ROWS_TO_CROSS_FIT, Plan, make_plan
from labelweave.decisions.automatic.scorers import CombinedScorer
from labelweave.decisions.automatic.table import (
    Member,
    ReadRows,
    TrainingTable,
    folds_and_groups,
    warn_of_repeats,
)
from labelweave.estimators import journal
from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.held_out import HeldOutScores
from labelweave.estimators.kernel_classifier import choose_scaling
from labelweave.estimators.parameters import (
    POSITIVE,
    SHARED,
    ClassWeight,
    FlipRatesLike,
    RandomState,
    keep_parameters,
)
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.feature_matrix import column_means, filled
from labelweave.foundation.array_types import Array, Floats, PerLabel
from labelweave.foundation.costs import warn_of_memory
from labelweave.foundation.sklearn_compat import StrOptions
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import check_lengths, read_targets
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import MEASURED, TEXT, Field, Items, Made, Numbers, Optional, Record, count
from labelweave.postprocessing import SigmoidCalibration

_METRICS = {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard", "subset_accuracy"}
Metric = Literal["micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard", "subset_accuracy"]
LARGEST_TABLE = 100_000_000  # rows times labels of a dense table, 800 MB each
# per row and label: a fit holds about twenty tables, most of them scores by penalty, and forests hold more
_BYTES = 160.0
_BELOW_ONE = np.nextafter(1.0, 0.0)
_MEMBER = Record({"name": TEXT, "weight": MEASURED, "oof_loss": MEASURED, "seconds": MEASURED, "words": TEXT})
_PLAN = Record(
    {"members": Items(TEXT), "trees": count(), "pivots": count(), "folds": count(), "seconds": MEASURED}
)


@storable("AutoLabelClassifier")
class AutoLabelClassifier(LabelClassifier):
    """Fit several models and stack them on out-of-fold predictions.

    1.  Features are scaled.  Dense features are standardized or mapped to quantiles, and rows of sparse ones,
        or of 32 dense ones or more such as embeddings, are scaled to length 1; the scaling with the lowest
        out-of-fold error in a ridge regression with an RBF kernel is used.
    2.  Rows are split into five folds, stratified by labels, or of whole groups where there are some; each
        member scores every fold with a fit to the other four, and is then fitted to all rows.
    3.  "rbf": ridge regression of 0 and 1 with an RBF kernel, its width chosen by out-of-fold error.
    4.  "forest": trees grown on all labels together, a fifth of them without the rows of each fold; the
        label shares in the leaves are averaged.
    5.  "rbf+forest": ridge regression with the mean of the RBF kernel and the share of trees in which two
        rows end in the same leaf, where there are at most 2,000 rows.
    6.  "max-margin": :class:`MaxMarginClassifier`, linear, with the best of four C, or of two with balanced
        classes where a label is positive in fewer than one row in a hundred; "linear", a ridge regression,
        for dense data that are too large for it.  A max-margin model of dense rows that would take more than
        20 seconds is omitted unless it lowers the error on a sample of 2,000 rows by a thousandth per second.
    7.  Penalties minimize the out-of-fold squared error.
    8.  A member's out-of-fold scores become log-odds by one logistic curve per label; curves of rare labels
        are shrunk toward the others.  The model's score is a weighted sum of log-odds.  The weights are
        non-negative and minimize the out-of-fold log loss; labels positive in fewer than one row in a hundred
        have weights of their own where that lowers their log loss by a tenth.
    9.  The probabilities of other labels may add to the log-odds of a label, by a logistic ridge regression
        on out-of-fold scores, where this lowers the cross-validated loss.  Curves are then fitted again.
    10. Thresholds maximize ``metric`` on the out-of-fold probabilities.

    Every choice uses out-of-fold scores.  An unobserved label adds no error anywhere; a missing feature is
    imputed by the mean of the training rows, also in predictions.
    Where y has one class per row or column, the most probable is predicted, whatever ``metric`` is.

    Parameters
    ----------
    metric : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard", "subset_accuracy"}, \
            default="micro_f1"
        The metric that predicted label sets optimize; scores and probabilities do not depend on it.  For
        subset accuracy the model predicts the most probable label set seen in training, or the labels of
        probability above 1/2; for the Jaccard index of rows either these or the sets that are best for their
        F1, whichever is better out-of-fold.
    time_budget : float or None, default=None
        Seconds that a fit may take, estimated from the shape of the data; None for 300.  If the complete plan
        would take longer, a smaller one is made.  The clock is not read, so the same data always produce the
        same model; a slower machine takes longer.
    time_limit : float or None, default=None
        Seconds by the clock after which nothing more is started; None for no limit.  The plan fits this limit
        too; the cheapest member comes first and is always fitted, and a member that would not be complete in
        time is omitted, with a warning, since another fit may then have other members.
    members : "auto" or list of {"linear", "max-margin", "rbf", "forest", "rbf+forest"} or estimators, \
            default="auto"
        The models to combine; "auto" chooses by the size of the data.  The list may also have multi-label
        estimators of scikit-learn or labelweave with ``predict_proba`` or ``decision_function``.  Clones are
        fitted to the scaled features, for each fold and for all rows; the time budget does not count them.
        Those of scikit-learn accept no missing labels and cannot be saved in a model file.
    cv : int, splitter or iterable of (train, test), default=5
        The folds that members are scored on: their number, stratified by labels or, where ``fit`` gets
        groups, of whole groups; or splits that hold every row out once, as ``KFold`` does.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of classes, which multiply the row weights, where each row has one class: a dict, or
        "balanced" for rows / (classes x rows of the class), with rows counted by their weights.  Not allowed
        for multi-label data, where all labels of a row share a factorization and thresholds for ``metric``
        account for rare labels.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly, as in :class:`MaxMarginClassifier`.
    n_jobs : int or None, default=None
        Threads that grow trees; the result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds and trees.
    verbose : bool or int, default=0
        Whether to write progress to stderr, one line every two seconds; 2 for one line per step.

    Attributes
    ----------
    members_ : list of dict
        The fitted members: ``name``, ``weight`` in the combination (mean over labels), ``oof_loss`` (the
        out-of-fold squared error, relative to predicting each label's mean), ``seconds``, and ``words``, a
        text on the choices made.
    plan_ : dict
        The plan made from the time budget: members, trees, columns of a kernel matrix (``pivots``), folds
        and the predicted seconds.
    oof_loss_ : float
        The combination's out-of-fold squared error, relative to predicting each label's mean (1.0).
    uncoupled_loss_ : float
        The same without the terms of other labels; equal where these did not lower the out-of-fold loss.
    oof_score_, oof_standard_error_ : float
        The out-of-fold metric with thresholds from the other folds, and its standard error over rows, or over
        groups where there are some; where y has one class per row, the accuracy, with rows weighted as in
        the fit, and expected where classes are probabilities.  A score on new rows has its own standard
        error: compare the difference with the root of the sum of both squares.
    thresholds_ : ndarray of float64, shape (L,)
        Labels with a probability above are predicted; unused where ``known_sets_`` decide.
    known_sets_ : KnownSets
        The label sets that may be predicted, where thresholds do not decide.
    calibration_ : SigmoidCalibration
        The curves from scores to probabilities.
    scaling_ : FeatureScaling or None
        How features are scaled.
    scorer_ : CombinedScorer
        The members with weights above 0.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    feature_means_ : ndarray of shape (d,) or None
        Imputed values of missing features; None where X was sparse and had none.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit; names only for a DataFrame.
    status_ : {"complete", "interrupted", "time_limit"}
        Whether all members were fitted; after Ctrl-C, or at the limit, the model has those that are complete.

    Examples
    --------
    >>> from labelweave import AutoLabelClassifier, datasets
    >>> data = datasets.make_text_like(300, 200, 8)
    >>> model = AutoLabelClassifier(time_budget=5).fit(data.X, data.Y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 8)
    """

    calibration_: SigmoidCalibration
    thresholds_: PerLabel
    known_sets_: KnownSets
    members_: list[dict[str, Any]]
    _out_of_fold: OutOfFold | None = None
    plan_: dict[str, Any]

    _stored: ClassVar[dict[str, Field]] = {
        "scorer_": Made(CombinedScorer, {"L": "n_labels"}),
        "thresholds_": Optional(Numbers("K", least=0, most=1)),
        "known_sets_": Optional(Made(KnownSets, {"L": "n_labels"})),
        "calibration_": Made(SigmoidCalibration, {"L": "n_labels"}),
        "members_": Items(_MEMBER),
        "plan_": _PLAN,
        **dict.fromkeys(("oof_loss_", "uncoupled_loss_", "oof_score_", "oof_standard_error_"), MEASURED),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions(_METRICS)],
        "time_budget": [POSITIVE, None],
        "time_limit": [POSITIVE, None],
        "members": [StrOptions({"auto"}), list, tuple],
        "cv": ["cv_object"],
        "class_weight": SHARED["class_weight"],
        "flip_rates": SHARED["flip_rates"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self, metric: Metric = "micro_f1", *,
        time_budget: float | None = None, time_limit: float | None = None,
        members: Literal["auto"] | Sequence[Any] = "auto", cv: Any = 5,
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None, n_jobs: int | None = None,
        random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    @journal.fit_method
    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Fit the members and combine them.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows; NaN where a feature is missing.
        y : array-like (n, L) or (n,), sparse matrix, frame, LabelMatrix, lists of tags or ClassProbabilities
            Labels 0/1 or -1/1 with NaN where unobserved, or one class per row, or per row and column.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows' errors, on any scale; rows of weight 0 are dropped.
        groups : array-like of shape (n,), default=None
            The source of each row, such as its patient, document or site: rows of one group stay in one
            fold, as new rows come from other groups.  ``oof_standard_error_`` then counts groups.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If the data are invalid, or too few to be split; the message names the row, column or label.
        KeyboardInterrupt
            After Ctrl-C, with the complete members combined; see :func:`labelweave.set_config`.
        """
        given, begin, seed = named_members(self.members), time.perf_counter(), self._seed()
        rows = self._read(X, y, sample_weight, groups, seed)
        labels, plan = rows.labels, self._plan(rows, tuple(given))
        progress = journal.FitProgress(self, journal.FitArguments(X, y, sample_weight), plan.steps() + 2)
        table, plan = self._table(rows, plan, seed)
        del rows  # whose unscaled features are as large as those in the table
        warn_of_repeats(table)
        progress.subtask("scaling")
        maker = maker_of(table, given, begin, self.time_limit)
        members, seconds, self.status_ = maker.make_some(plan.members, progress)
        with journal.interrupts_later():
            self._combine(members, seconds, labels, table, plan)
        progress.subtask("combination")
        progress.close()
        if self.status_ != "complete":
            how = "The fit was interrupted"
            if self.status_ == "time_limit":
                how = f"The fit reached `time_limit={self.time_limit}`, which is not reproducible,"
            journal.warn_of_end(
                f"{how} after {len(members)} of {len(plan.members)} members; the model combines these."
            )
        return self

    def _refuse_together(self) -> None:
        named_members(self.members)

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any = None, seed: int = 0) -> ReadRows:
        features, weights = self._read_weighted(X, sample_weight)
        labels, self._form = read_targets(y)
        check_lengths(len(features), len(labels))
        self.classes_, labels = self._form.classes, self._corrected(labels)
        weights = self._rows_by_class(labels, weights)
        kept = np.flatnonzero(weights)
        if len(kept) < 2:
            raise ValueError(
                f"X has {len(kept)} row(s) of positive weight (n_samples={len(kept)}); at least 2 are needed "
                "for out-of-fold scores."
            )
        entries = len(kept) * labels.n_labels
        if entries > LARGEST_TABLE:
            raise ValueError(
                f"{len(kept)} rows of {labels.n_labels} labels exceed the limit of {LARGEST_TABLE:.0e} "
                "entries; use LowRankClassifier."
            )
        what = f"A fit to {len(kept)} rows of {labels.n_labels} labels"
        warn_of_memory(what, _BYTES * entries, "use LowRankClassifier, which needs no such table.")
        cv = 5 if self.cv is None else self.cv
        folds, groups = folds_and_groups(cv, (X, y, groups), kept, labels, seed)
        features, weights = features.rows(kept).astype(np.float64), weights[kept]
        has_own = groups is not None or not self._draws_folds
        return ReadRows(features, labels[kept], weights / weights.mean(), folds, has_own, groups)

    @property
    def _draws_folds(self) -> bool:
        return self.cv is None or isinstance(self.cv, Integral)

    def _plan(self, rows: ReadRows, members: tuple[str, ...], *, has_max_margin: bool = True) -> Plan:
        limits = self.time_budget, self.time_limit
        return make_plan(rows.shape, members or None, *limits, has_max_margin=has_max_margin)

    def _table(self, rows: ReadRows, plan: Plan, seed: int) -> tuple[TrainingTable, Plan]:
        """Scale features; drop members from the plan that do not pay on a sample."""
        features, labels, weights, folds, leaves_folds_out, groups = rows
        targets, out_of_fold = labels.to_dense(), folds if leaves_folds_out else None
        self.scaling_ = choose_scaling(features, targets, RBFKernel("scale").resolved, out_of_fold)
        sizes = plan.trees, plan.pivots, seed, self.n_jobs
        table = TrainingTable(
            self._scaled(features), targets, weights, folds, *sizes, leaves_folds_out, groups
        )
        is_tried = isinstance(self.members, str) and "max-margin" in plan.members
        if is_tried and not max_margin_pays(table, rows.shape):
            plan = self._plan(rows, (), has_max_margin=False)
        return replace(table, n_trees=plan.trees, pivots=plan.pivots), plan

    def _read_weighted(self, X: Any, sample_weight: Any) -> tuple[FeatureMatrix, Array]:
        """Read features and row weights; impute missing features by the mean over rows of positive weight."""
        numbers = self._read_numbers(X, reset=True)
        weights = self._row_weights(sample_weight, FeatureMatrix._unchecked(numbers))
        if not sp.issparse(numbers) or np.isnan(numbers.data).any():
            with np.errstate(invalid="ignore", over="ignore"):  # infinite features are rejected below
                means = column_means(numbers[weights > 0])
            self.feature_means_ = np.where(np.isfinite(means), means, 0.0)
            numbers = filled(numbers, self.feature_means_)
        return self._checked_features(numbers), weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _combine(
        self, members: list[Member], seconds: list[float], labels: LabelMatrix, table: TrainingTable,
        plan: Plan,
    ) -> None:  # fmt: skip
        self.plan_, self.trace_ = asdict(plan) | {"members": list(plan.members)}, []
        table = table.with_few_folds()
        scores = [member.scores for member in members]
        is_small = len(table.targets) <= ROWS_TO_CROSS_FIT and len(np.unique(table.folds)) > 2
        honest = cross_fitted(table, scores) if is_small else None
        found, odds = Combination.learned(table, scores)  # scores are log-odds from here on
        weights, coupling = found.weights, found.coupling
        self.members_ = [
            {"name": member.name, "weight": float(w.mean()), "seconds": spent, "words": member.words,
             "oof_loss": table.loss(expit(member.scores))}
            for member, w, spent in zip(members, weights, seconds, strict=True)
        ]  # fmt: skip
        self.uncoupled_loss_ = table.loss(found.uncoupled.probabilities(weighted_sum(weights, scores)))
        used = np.flatnonzero(weights.any(axis=1))
        self.scorer_ = CombinedScorer(
            sum((weights[k] * found.curves[k].intercepts for k in used), np.zeros(labels.n_labels)),
            tuple(members[k].scorer for k in used),
            np.stack([weights[k] * found.curves[k].slopes for k in used]),
        )
        if coupling is not None:
            self.scorer_ = replace(self.scorer_, coupling=coupling.matrix, shift=coupling.shift)
        self.calibration_ = found.calibration
        held = HeldOutScores(labels, found.calibration.probabilities(odds), table.weights)
        self.oof_loss_ = table.loss(held.scores)
        self._out_of_fold = OutOfFold(
            held, held if honest is None else replace(held, scores=honest), table.folds, table.groups
        )
        self._choose_thresholds()

    def optimize_for(self, metric: str) -> Self:
        """Return the same model with label sets that are best for another metric, without a fit.

        Parameters
        ----------
        metric : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard", "subset_accuracy"}
            The metric that predicted label sets optimize.

        Returns
        -------
        Self
            Another model with the same scores.

        Raises
        ------
        ValueError
            If the metric is unknown, or the model was loaded from a file, which has no out-of-fold scores.
        """
        check_is_fitted(self)
        if not isinstance(metric, str) or metric not in _METRICS:
            raise ValueError(f"metric is {metric!r}; it must be one of {sorted(_METRICS)}.")
        if self._out_of_fold is None:
            raise ValueError(
                "A loaded model has no out-of-fold scores to choose thresholds on; set metric before saving, "
                "or use TunedThresholdClassifier(model, cv='prefit')."
            )
        other = copy.copy(self)
        other.metric = metric
        other._choose_thresholds()
        return other

    def _out_of_fold_probabilities(self) -> Array:
        """Compute probabilities of training rows with curves and weights of the other folds: shape (n, L)."""
        assert self._out_of_fold is not None, "there are after a fit"
        return self._out_of_fold.honest.scores

    def _choose_thresholds(self) -> None:
        out_of_fold = self._out_of_fold
        assert out_of_fold is not None, "there are after a fit"
        for name in ("thresholds_", "known_sets_"):
            self.__dict__.pop(name, None)
        decision: KnownSets | Floats
        columns, metric = self._form.columns, str(self.metric)
        if not self._form.has_one_class and columns is None:
            rows = out_of_fold.held
            decision, sets = out_of_fold.decide(metric)
        else:
            rows, metric = out_of_fold.honest, "accuracy" if columns is None else metric
            choose = most_probable if columns is None else columns.sets
            decision, sets = np.full(rows.labels.n_labels, 0.5), choose(rows.scores)
        setattr(self, "known_sets_" if isinstance(decision, KnownSets) else "thresholds_", decision)
        self.oof_score_, self.oof_standard_error_ = value_of_sets(
            rows.labels, sets, metric, rows.weights, out_of_fold.groups
        )

    @property
    def _lowest_threshold(self) -> float:
        if not hasattr(self, "thresholds_"):
            return 0.0
        return float(logit(min(np.min(self.thresholds_), _BELOW_ONE)))

    def _raw_scores(self, features: FeatureMatrix) -> Array:
        """Compute log-odds: shape (n, columns)."""
        maps = self.calibration_
        return np.asarray(maps.slopes * self.scorer_.scores(features) + maps.intercepts)

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        if self._form.is_ranked:
            return self._form.deciding(self._score_blocks(X))
        blocks = self._score_blocks(X, self._raw_scores)
        if hasattr(self, "known_sets_"):
            return (self.known_sets_.choose(scores) - 0.5 for scores in blocks)
        return (expit(scores) - self.thresholds_ for scores in blocks)

    @journal.where_rows_are
    def predict_proba(self, X: Any) -> Any:
        """Return probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        check_is_fitted(self)
        scores = np.concatenate(list(self._score_blocks(X, self._raw_scores)))
        table = expit(scores)
        if self._form.is_ranked:
            return self._form.distributions(lambda part: distributions(table[:, part], scores[:, part]))
        return self._form.probabilities(table)

    def _storable_parameters(self) -> dict[str, Any]:
        return super()._storable_parameters() | {
            "members": names_of_members(self.members),
            "cv": self.cv if self._draws_folds else None,
        }

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        is_by_sets = "known_sets_" in state["fitted"]
        if is_by_sets == ("thresholds_" in state["fitted"]) or (
            is_by_sets and state["form"]["kind"] != "labels"
        ):
            raise ModelFileError("it has neither thresholds_ nor known_sets_, or both.")
        if not is_by_sets and not state["fitted"]["thresholds_"].min() > 0:
            raise ModelFileError("its thresholds are no probabilities above 0.")
