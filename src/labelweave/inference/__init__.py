"""From scores and probabilities to decisions: classes, label sets, and rows where the model abstains."""

from labelweave.inference.calibration.calibrate import (
    SoftmaxCalibration,
    calibrate_classes,
    calibrate_labels,
    class_probabilities,
)
from labelweave.inference.calibration.maps import IsotonicCalibration, LabelCalibration, SigmoidCalibration
from labelweave.inference.conformal import ConformalThreshold, adaptive_scores, control_mistakes
from labelweave.inference.decisions import best_parent, least_expected_loss, most_probable, rejected
from labelweave.inference.hierarchy import enforce_hierarchy, h_loss_sets, term_lists
from labelweave.inference.map import MapInference, MapResult
from labelweave.inference.thresholds.choice import (
    ThresholdChoice,
    TopKChoice,
    choose_thresholds,
    choose_top_k,
)
from labelweave.inference.thresholds.top_k import (
    ExpectedF1Sizes,
    expected_f1_sizes,
    favour_rare_labels,
    scores_above_top_k,
)

__all__ = [
    "ConformalThreshold",
    "ExpectedF1Sizes",
    "IsotonicCalibration",
    "LabelCalibration",
    "MapInference",
    "MapResult",
    "SigmoidCalibration",
    "SoftmaxCalibration",
    "ThresholdChoice",
    "TopKChoice",
    "adaptive_scores",
    "best_parent",
    "calibrate_classes",
    "calibrate_labels",
    "choose_thresholds",
    "choose_top_k",
    "class_probabilities",
    "control_mistakes",
    "enforce_hierarchy",
    "expected_f1_sizes",
    "favour_rare_labels",
    "h_loss_sets",
    "least_expected_loss",
    "most_probable",
    "rejected",
    "scores_above_top_k",
    "term_lists",
]
