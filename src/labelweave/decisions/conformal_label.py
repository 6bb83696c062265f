"""Label sets with a bound on their mistakes, around any multi-label classifier."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np

from labelweave.array_types import Array
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import fit_on, one_split, score_held_out
from labelweave.estimators.parameters import RandomState
from labelweave.inference import control_mistakes
from labelweave.model_files import storable
from labelweave.model_files.schema import Field, Number, count
from labelweave.sklearn_compat import Interval, StrOptions, _fit_context


@storable("ConformalLabelClassifier")
class ConformalLabelClassifier(DecisionClassifier):
    """Any multi-label classifier with label sets that miss few labels, or have few wrong ones.

    A clone is fitted to a part of the rows.  On the others, the calibration rows, one threshold for all
    labels is chosen (:func:`labelweave.inference.control_mistakes`).  The guarantee needs calibration rows
    that the model did not see, so that no model is fitted to all rows; and it is for rows to come that are
    exchangeable with the calibration rows, whatever the model.  For ``response_method``, ``random_state`` and
    further attributes see :class:`TunedThresholdClassifier`.

    Parameters
    ----------
    estimator : classifier
        Any with ``decision_function`` or ``predict_proba`` for many labels a row.  Scores that are comparable
        between labels, as of :class:`CalibratedLabelClassifier`, give better sets.
    control : {"false_negatives", "false_discoveries"}, default="false_negatives"
        What is bounded: the share of a row's true labels that are not predicted, or the share of its
        predicted labels that are wrong; a share of nothing is 0.
    level : float, default=0.1
        The bound.
    guarantee : {"probability", "expectation"}, default="probability"
        "probability": with at least the probability ``confidence``, over draws of the calibration rows, the
        expected share of a row to come is at most the level.  "expectation": the expected share of the next
        row is at most the level, on average over draws of the calibration rows, so that it may be more for
        about half of them; for false negatives only.
    confidence : float, default=0.95
        For "probability".
    cv : "prefit" or None, default=None
        None holds one part of the rows out for calibration.  "prefit" takes the estimator as it is, and all
        rows for calibration.
    validation_fraction : float, default=0.25
        The share of calibration rows, drawn evenly, for ``cv=None``.

    Attributes
    ----------
    estimator_ : classifier
        The one that was fitted to the other rows.
    threshold_ : float
        Labels with scores above are predicted.
    calibration_risk_ : float
        The mean share of mistakes of the calibration rows.
    n_calibration_rows_ : int
        Calibration rows with an observed label.

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
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DecisionClassifier._shared_constraints,
        "control": [StrOptions({"false_negatives", "false_discoveries"})],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "guarantee": [StrOptions({"probability", "expectation"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "cv": [StrOptions({"prefit"}), None],
    }

    def __init__(
        self, estimator: Any, control: Literal["false_negatives", "false_discoveries"] = "false_negatives", *,
        level: float = 0.1, guarantee: Literal["probability", "expectation"] = "probability",
        confidence: float = 0.95, response_method: str = "auto", cv: Literal["prefit"] | None = None,
        validation_fraction: float = 0.25, random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        super().__init__(estimator, response_method, cv, validation_fraction, random_state)
        self.control = control
        self.level = level
        self.guarantee = guarantee
        self.confidence = confidence

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Fit to a part of the rows and calibrate on the others; see :meth:`DecisionClassifier.fit`.

        Raises
        ------
        ValueError
            If there are too few calibration rows for the level, naming how many are needed.
        """
        data = self._read(X, y)
        if self.cv == "prefit":
            held = self._score_all(data)
        else:
            split = one_split(len(data.labels), self.validation_fraction, self._seed())
            fit = partial(fit_on, self.estimator, data)
            held, part = score_held_out(data, [split], self._response, fit)
            self._keep_estimator(part.model)
        limits: dict[str, Any] = {
            "level": self.level,
            "guarantee": self.guarantee,
            "confidence": self.confidence,
        }
        found = control_mistakes(held.labels, held.scores, self.control, **limits)
        self.threshold_, self.calibration_risk_, self.n_calibration_rows_ = found
        return self

    def _words(self, is_inside: bool) -> str:
        return (
            f"threshold {self.threshold_:.4g} on {self.n_calibration_rows_} calibration rows, "
            f"{self.control.replace('_', ' ')} {self.calibration_risk_:.4g} there"
        )

    def _decisions(self, scores: Array) -> Array:
        # in double precision, in which the threshold may lie next to a score
        return scores.astype(np.float64) - self.threshold_

    def _ranked(self, scores: Array) -> Array:
        return self._decisions(scores)
