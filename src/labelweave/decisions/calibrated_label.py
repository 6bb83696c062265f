"""Calibrated probabilities of labels, around any multi-label classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from labelweave.array_types import Array, PerLabel
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import decision_level
from labelweave.estimators.held_out import HeldOutScores
from labelweave.estimators.parameters import RandomState
from labelweave.inference import (
    LabelCalibration,
    SigmoidCalibration,
    calibrate_labels,
    expected_f1_sizes,
    scores_above_top_k,
)
from labelweave.model_files import storable
from labelweave.model_files.schema import Field, Made
from labelweave.sklearn_compat import Interval, StrOptions

_LEAST_PROBABILITY = 1e-3  # of a forest, say, in which no tree votes for a label


@storable("CalibratedLabelClassifier")
class CalibratedLabelClassifier(DecisionClassifier):
    """Any multi-label classifier with calibrated probabilities, and label sets made of them.

    A clone is fitted to a part of the rows, maps from scores to probabilities are found on its scores of the
    others, and another clone is fitted to all rows: together less than two fits.  For ``response_method`` (of
    probabilities the log-odds are calibrated), ``cv``, ``validation_fraction``, ``random_state`` and further
    attributes see :class:`TunedThresholdClassifier`.

    Parameters
    ----------
    estimator : classifier
        Any with ``decision_function`` or ``predict_proba`` for many labels a row.
    method : {"auto", "sigmoid", "isotonic"}, default="auto"
        Logistic curves (Platt 1999), or rising maps that are linear between knots.  "auto" takes those with
        the lower log loss in a cross-validation on the held-out rows.
    pooling : bool, default=True
        Whether rare labels lean on the others: by a prior of the curves' parameters that is learned from all
        labels, or by an isotonic map that labels with fewer than ``min_positives`` positive rows share.
    min_positives : int, default=500
        For isotonic maps with pooling.
    decision : {"half", "expected_f1"}, default="half"
        The label set of a row: labels more probable than 1/2, which is best for the Hamming loss, or the set
        of the greatest expected F1 score, labels taken to be independent, which is never empty.

    Attributes
    ----------
    calibration_ : SigmoidCalibration or IsotonicCalibration
        The maps.
    thresholds_ : ndarray of float64, shape (L,)
        1/2; only with ``decision="half"``, where ``predict`` is ``predict_proba(X) > thresholds_``.

    Examples
    --------
    >>> from labelweave import CalibratedLabelClassifier, MaxMarginClassifier, datasets
    >>> data = datasets.make_text_like(1000, 500, 10)
    >>> model = CalibratedLabelClassifier(MaxMarginClassifier()).fit(data.X, data.Y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 10)
    """

    calibration_: LabelCalibration

    _stored: ClassVar[dict[str, Field]] = {"calibration_": Made(LabelCalibration, {"K": "n_labels"})}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DecisionClassifier._shared_constraints,
        "method": [StrOptions({"auto", "sigmoid", "isotonic"})],
        "pooling": ["boolean"],
        "min_positives": [Interval(Integral, 1, None, closed="left")],
        "decision": [StrOptions({"half", "expected_f1"})],
    }

    def __init__(
        self, estimator: Any, method: Literal["auto", "sigmoid", "isotonic"] = "auto", *,
        pooling: bool = True, min_positives: int = 500, decision: Literal["half", "expected_f1"] = "half",
        response_method: str = "auto", cv: Any = None, validation_fraction: float = 0.2,
        random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        super().__init__(estimator, response_method, cv, validation_fraction, random_state)
        self.method = method
        self.pooling = pooling
        self.min_positives = min_positives
        self.decision = decision

    def _choose(self, held: HeldOutScores) -> None:
        scores = self._calibrated_from(held.scores)
        options: dict[str, Any] = {"pooling": self.pooling, "min_positives": self.min_positives}
        options["sample_weight"] = held.weights
        self.calibration_ = calibrate_labels(held.labels, scores, self.method, **options)

    def _calibrated_from(self, scores: Array) -> Array:
        if decision_level(self.estimator_, self._response) == 0:
            return scores
        return np.log(scores + _LEAST_PROBABILITY) - np.log1p(_LEAST_PROBABILITY - scores)

    def _probabilities(self, scores: Array) -> Array:
        return self.calibration_.probabilities(self._calibrated_from(scores))

    def _words(self, is_inside: bool) -> str:
        pooled = ", rare labels lean on the others" if self.pooling else ""
        kind = "sigmoid" if isinstance(self.calibration_, SigmoidCalibration) else "isotonic"
        chosen = ", the better ones on held-out rows" if self.method == "auto" else ""
        maps = f"probabilities by {kind} maps{chosen}{pooled}"
        if is_inside:
            return maps
        sets = "more probable than 1/2" if self.decision == "half" else "of the greatest expected F1"
        return f"{maps}; label sets {sets}"

    def _decisions(self, scores: Array) -> Array:
        table = self._probabilities(scores)
        if self.decision == "expected_f1":
            return scores_above_top_k(table, expected_f1_sizes(table).sizes)
        return table - 0.5

    def _ranked(self, scores: Array) -> Array:
        return self._probabilities(scores) - 0.5

    @property
    def thresholds_(self) -> PerLabel:
        """1/2 for every label; there are none for label sets of the greatest expected F1 score."""
        if self.decision != "half" or not hasattr(self, "calibration_"):
            raise AttributeError("Label sets are not made by thresholds, or the model is not fitted.")
        return np.full(self._n_columns, 0.5)

    def predict_proba(self, X: Any) -> Array:
        """Compute calibrated probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        table = np.concatenate([self._probabilities(block) for block in self._inner_blocks(X)])
        return np.column_stack([1.0 - table, table]) if self._form.kind == "binary" else table
