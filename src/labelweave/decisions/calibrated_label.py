"""Calibrated probabilities of labels, for any multi-label classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import get_tags

from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import decision_level
from labelweave.estimators.held_out import HeldOutScores, Share
from labelweave.estimators.journal import where_rows_are
from labelweave.estimators.parameters import RandomState, keep_parameters
from labelweave.foundation.array_types import Array, PerLabel
from labelweave.foundation.sklearn_compat import Interval, Options, StrOptions
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import TargetForm
from labelweave.model_files import storable
from labelweave.model_files.schema import Field, Made
from labelweave.postprocessing import (
    IsotonicCalibration,
    LabelCalibration,
    SigmoidCalibration,
    SoftmaxCalibration,
    calibrate_classes,
    calibrate_labels,
    class_probabilities,
    expected_f1_sizes,
    scores_above_top_k,
)

_LEAST_PROBABILITY = 1e-3  # a forest, for example, returns 0 where no tree votes for a label
_LEAST_OF_CLASSES = 1e-2  # of all other classes together, where one is certain
_KINDS: dict[type, str] = {
    SigmoidCalibration: "sigmoid",
    SoftmaxCalibration: "softmax",
    IsotonicCalibration: "isotonic",
}


@storable("CalibratedLabelClassifier")
class CalibratedLabelClassifier(DecisionClassifier):
    """Calibrate the probabilities of any classifier of labels or classes, and predict with them.

    Calibration maps are fitted to out-of-fold scores, as thresholds are in
    :class:`TunedThresholdClassifier`, and another clone is fitted to all rows.  For ``response_method``
    (probabilities are calibrated as log-odds), ``cv``, ``validation_fraction`` and ``random_state`` see
    :class:`TunedThresholdClassifier`.

    Parameters
    ----------
    estimator : classifier
        Any with ``decision_function`` or ``predict_proba`` for many labels per row, or for classes.
    method : {"auto", "sigmoid", "isotonic"}, default="auto"
        Logistic curves (Platt 1999), or isotonic maps that are linear between knots.  With one of three or
        more classes per row: a softmax of scaled log-probabilities with one intercept per class (temperature
        scaling, Guo et al. 2017), or one isotonic map per class, normalized to the sum 1.  "auto" chooses the
        method of lower log loss in a cross-validation on the held-out rows.
    shrinkage : {"auto", 0}, default="auto"
        How far maps of rare labels shrink to that of all labels: "auto" learns a prior of the curves'
        parameters from all labels, and labels with fewer than ``min_positives`` positive rows share an
        isotonic map.  With 0 every label has its own map.
    min_positives : int, default=500
        Labels with fewer positive held-out rows share one isotonic map; only with ``shrinkage="auto"``.
    decision : {"half", "expected_f1"}, default="half"
        The label set of a row: labels more probable than 1/2, which is optimal for the Hamming loss, or the
        set of greatest expected F1 score for independent labels, which is never empty.  Of classes the most
        probable one is predicted, with "half" only.

    Attributes
    ----------
    estimator_ : classifier
        The estimator fitted to all rows.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    calibration_ : SigmoidCalibration, SoftmaxCalibration or IsotonicCalibration
        The calibration maps.
    thresholds_ : ndarray of float64, shape (L,)
        1/2; only for labels or two classes with ``decision="half"``, where ``predict`` is
        ``predict_proba(X) > thresholds_``.

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
        "shrinkage": [StrOptions({"auto"}), Options(Real, {0})],
        "min_positives": [Interval(Integral, 1, None, closed="left")],
        "decision": [StrOptions({"half", "expected_f1"})],
    }

    def __init__(
        self, estimator: Any, method: Literal["auto", "sigmoid", "isotonic"] = "auto", *,
        shrinkage: Literal["auto"] | float = "auto", min_positives: int = 500,
        decision: Literal["half", "expected_f1"] = "half",
        response_method: str = "auto", cv: Any = None, validation_fraction: Share = "auto",
        random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _choose(self, held: HeldOutScores) -> None:
        scores = self._calibrated_from(held.scores)
        options: dict[str, Any] = {"shrinkage": self.shrinkage, "min_positives": self.min_positives}
        options["sample_weight"] = held.weights
        calibrate = calibrate_labels if self._one_of is None else calibrate_classes
        self.calibration_ = calibrate(held.labels, scores, self.method, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).classifier_tags
        tags.classifier_tags.multi_class = inner is None or inner.multi_class
        return tags

    def _read_classes(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, TargetForm]:
        return labels, form

    @property
    def _for_sets(self) -> str:
        return "" if self.decision == "half" else f"decision={self.decision!r}"

    def _calibrated_from(self, scores: Array) -> Array:
        if self._one_of is not None:
            return np.log(scores + _LEAST_OF_CLASSES / scores.shape[1])
        if decision_level(self.estimator_, self._response) == 0:
            return scores
        return np.log(scores + _LEAST_PROBABILITY) - np.log1p(_LEAST_PROBABILITY - scores)

    def _probabilities(self, scores: Array) -> Array:
        scores = self._calibrated_from(scores)
        if self._one_of is not None:
            return class_probabilities(self.calibration_, scores)
        return self._obeying(self.calibration_.probabilities(scores))

    def _words(self, is_inside: bool) -> str:
        pooled = ", shared by rare labels" if self.shrinkage == "auto" else ""
        kind = _KINDS[type(self.calibration_)]
        chosen = ", the better ones on held-out rows" if self.method == "auto" else ""
        maps = f"probabilities by {kind} maps{chosen}{pooled}"
        if is_inside or self._one_of is not None:
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
        """1/2 for every label; not defined for label sets of the greatest expected F1 score."""
        if self.decision != "half" or not hasattr(self, "calibration_") or self._one_of is not None:
            raise AttributeError("Label sets do not use thresholds, or the model is not fitted.")
        return np.full(self._n_columns, 0.5)

    @where_rows_are
    def predict_proba(self, X: Any) -> Array:
        """Return calibrated probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        table = np.concatenate([self._probabilities(block) for block in self._inner_blocks(X)])
        return np.asarray(self._form.probabilities(table))
