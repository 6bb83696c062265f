"""Conformal sets of labels or classes with a bound on their errors, for any classifier."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np

from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import TrainingRows, one_split, score_held_out
from labelweave.estimators.journal import where_rows_are
from labelweave.estimators.parameters import RandomState, keep_parameters
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import LabelSets, TargetForm, check_lengths
from labelweave.metrics._classes import UNOBSERVED, class_codes, observed_rows, one_column, read_values
from labelweave.metrics._inputs import read_weights
from labelweave.metrics.known_labels import Unknown, known_targets
from labelweave.model_files import storable
from labelweave.model_files.schema import Field, Number, Optional, count
from labelweave.postprocessing import adaptive_scores, control_mistakes
from labelweave.postprocessing.conformal import check_control


@storable("ConformalLabelClassifier")
class ConformalLabelClassifier(DecisionClassifier):
    """Conformal prediction sets of labels or classes, around any classifier.

    A clone is fitted to a part of the rows.  The others, the calibration rows, choose one threshold for all
    labels (:func:`~labelweave.postprocessing.control_mistakes`).  The guarantee needs rows held out of
    the fit, so no model is fitted to all rows; it holds for future rows that are exchangeable with the
    calibration rows, whatever the model.

    With ``sample_weight`` it holds for future rows drawn with densities proportional to the weights, where
    none has a greater weight than the maximum given: calibration rows are then kept with probabilities
    proportional to their weights (Park, Dobriban, Lee and Bastani, "PAC prediction sets under covariate
    shift", ICLR 2022).  A weighted quantile (Tibshirani, Barber, Candes and Ramdas 2019) would need the
    weight of every future row, and one threshold per row.

    With one of three or more classes per row, ``predict`` returns sets of classes, as 0 and 1 in one column
    per class in the order of ``classes_``, which miss the class with a probability of at most ``level``.
    They are adaptive (APS, :func:`~labelweave.postprocessing.adaptive_scores`): large where the model is
    uncertain, and never empty.  For ``response_method`` and ``random_state`` see
    :class:`TunedThresholdClassifier`.

    Parameters
    ----------
    estimator : classifier
        Any with ``decision_function`` or ``predict_proba``.  Scores that are comparable between labels, such
        as those of :class:`CalibratedLabelClassifier`, lead to smaller sets.  Classes use probabilities, or
        the softmax of scores where there are none.
    control : {"false_negatives", "false_discoveries"}, default="false_negatives"
        The error rate to bound: the share of a row's true labels that are not predicted, or the share of its
        predicted labels that are wrong; a share of no labels is 0.  Classes allow only the first.
    level : float, default=0.1
        The bound, between 0 and 1.
    guarantee : {"probability", "expectation"}, default="probability"
        "probability": with probability at least ``confidence``, over draws of the calibration rows, the
        expected share of a future row is at most the level.  "expectation": the expected share of the next
        row is at most the level, on average over draws of the calibration rows, so it may be higher for
        about half of them; only for false negatives.
    confidence : float, default=0.95
        The probability of the "probability" guarantee, between 0 and 1.
    cv : int, "prefit" or None, default=None
        None holds out one part of the rows for calibration.  "prefit" uses the estimator as it is, and all
        rows for calibration.  A number of folds calibrates on out-of-fold scores of all rows, and fits the
        model to all rows: smaller sets with few rows, but without a proven guarantee.
    validation_fraction : float, default=0.25
        The share of calibration rows, drawn at random, for ``cv=None``; between 0 and 1.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator: on the other rows, with folds on all rows, or the prefit one.
    classes_ : ndarray of shape (L,)
        The labels or classes.
    threshold_ : float
        Labels with higher scores are predicted.
    seed_ : int
        Seed of the random shares in scores of classes; only for classes.
    calibration_risk_ : float
        The mean error share of the calibration rows.
    n_calibration_rows_ : int
        Number of calibration rows with an observed label.

    Examples
    --------
    >>> from labelweave import ConformalLabelClassifier, MaxMarginClassifier, datasets
    >>> data = datasets.make_text_like(1000, 500, 10)
    >>> model = ConformalLabelClassifier(MaxMarginClassifier(), level=0.2).fit(data.X, data.Y)
    >>> model.calibration_risk_ <= 0.2
    True
    """

    _stored: ClassVar[dict[str, Field]] = {
        "threshold_": Number(),
        "calibration_risk_": Number(),
        "n_calibration_rows_": count(),
        "seed_": Optional(count()),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DecisionClassifier._shared_constraints,
        "control": [StrOptions({"false_negatives", "false_discoveries"})],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "guarantee": [StrOptions({"probability", "expectation"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "cv": [StrOptions({"prefit"}), Interval(Integral, 2, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self, estimator: Any, control: Literal["false_negatives", "false_discoveries"] = "false_negatives", *,
        level: float = 0.1, guarantee: Literal["probability", "expectation"] = "probability",
        confidence: float = 0.95, response_method: str = "auto", cv: Literal["prefit"] | int | None = None,
        validation_fraction: float = 0.25, random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    @where_rows_are
    @checked
    def score(self, X: Any, y: Any, sample_weight: Any = None, unknown_labels: Unknown = "missed") -> float:
        """Return the share of rows whose labels are all right, or whose set of classes has the true one.

        For the parameters see :meth:`MaxMarginClassifier.score`.

        Returns
        -------
        float
            Subset accuracy, or with one of three or more classes per row the coverage of their sets.
        """
        if self._one_of is None:
            return super().score(X, y, sample_weight, unknown_labels)
        values = read_values(one_column(known_targets(y, self._one_of, unknown_labels)), "y")
        codes, weights = class_codes(values, self._one_of), read_weights(sample_weight, values)
        rows, sets = np.flatnonzero(observed_rows(codes != UNOBSERVED, weights)), self.predict(X)
        check_lengths(len(sets), len(values))
        has_class = sets[rows, codes[rows]] > 0  # sets never contain classes that the model lacks
        return float(np.average(has_class & (codes[rows] >= 0), weights=weights[rows]))

    def _fit_rows(self, data: TrainingRows) -> Self:
        if self.cv is None:
            split = one_split(len(data.labels), float(self.validation_fraction), self._seed())
            data = self._announced(data, 1)
            fit = partial(data.fit, self, is_kept=True)
            held, part = score_held_out(data, [split], self._response, fit)
            self._keep_estimator(part.model)
        else:
            held = self._cross_fit(data)
        limits: dict[str, Any] = {
            "level": self.level,
            "guarantee": self.guarantee,
            "confidence": self.confidence,
        }
        labels, scores = held.labels, self._adaptive(held.scores)
        if held.weights is not None:
            rows = self._accepted(held.weights, data.weights)
            labels, scores = labels[rows], scores[rows]
        if self._one_of is not None:  # unobserved or partially observed rows cannot calibrate
            rows = np.flatnonzero(np.diff(labels.expected_positives.indptr))
            labels, scores = labels[rows], scores[rows]
        found = control_mistakes(labels, scores, self.control, **limits)
        self._guaranteed = {**limits, "control": self.control, "cv": self.cv}
        self.threshold_, self.calibration_risk_, self.n_calibration_rows_ = found
        self._close(data)
        return self

    def _refuse_together(self) -> None:
        check_control(self.control, self.level, self.guarantee, self.confidence)

    def _accepted(self, weights: Array, all_weights: Array | None) -> Array:
        """Sample calibration rows with the density of future rows (rejection sampling)."""
        assert all_weights is not None, "some rows have weights"
        rows = np.flatnonzero(
            np.random.default_rng(self._seed()).random(len(weights)) * all_weights.max() < weights
        )
        if not len(rows):
            raise ValueError(
                f"sample_weight keeps none of {len(weights)} calibration rows, which are sampled in "
                "proportion to it; pass more rows, or weights that differ less."
            )
        return rows

    def _keep_targets(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, Array | None]:
        self.__dict__.pop("seed_", None)
        return super()._keep_targets(labels, form)

    def _read_classes(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, TargetForm]:
        if self.control != "false_negatives":
            raise ValueError(
                f"control={self.control!r} is for many labels per row, but y has one of {len(form.classes)} "
                "classes per row; use control='false_negatives'."
            )
        self.seed_ = self._seed()
        return labels, LabelSets(**vars(form))

    @property
    def _one_of(self) -> Array | None:
        return self.classes_ if hasattr(self, "seed_") else None

    @classmethod
    def _gives_sets_of_classes(cls, state: dict[str, Any]) -> bool:
        return "seed_" in state["fitted"]

    def _adaptive(self, scores: Array) -> Array:
        return scores if self._one_of is None else adaptive_scores(scores, self.seed_)

    def _words(self, is_inside: bool) -> str:
        sets = "adaptive sets of classes, " if self._one_of is not None else ""
        return (
            f"{sets}threshold {self.threshold_:.4g} on {self.n_calibration_rows_} calibration rows, "
            f"{self.control.replace('_', ' ')} {self.calibration_risk_:.4g} there"
        )

    def _decisions(self, scores: Array) -> Array:
        # in double precision, since the threshold may be close to a score
        return self._adaptive(scores).astype(np.float64) - self.threshold_

    def _ranked(self, scores: Array) -> Array:
        return self._decisions(scores)
