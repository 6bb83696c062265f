"""Turn scores and probabilities into decisions: classes, label sets, and abstention."""

from labelweave.postprocessing.calibration.calibrate import (
    SoftmaxCalibration,
    calibrate_classes,
    calibrate_labels,
    class_probabilities,
)
from labelweave.postprocessing.calibration.maps import (
    IsotonicCalibration,
    LabelCalibration,
    SigmoidCalibration,
)
from labelweave.postprocessing.conformal import ConformalThreshold, adaptive_scores, control_mistakes
from labelweave.postprocessing.decisions import best_parent, least_expected_loss, most_probable, rejected
from labelweave.postprocessing.hierarchy import enforce_hierarchy, h_loss_sets, term_lists
from labelweave.postprocessing.map import MapInference, MapResult
from labelweave.postprocessing.thresholds.choice import (
    ThresholdChoice,
    TopKChoice,
    choose_thresholds,
    choose_top_k,
)
from labelweave.postprocessing.thresholds.top_k import (
    ExpectedF1Sizes,
    expected_f1_sizes,
    favor_rare_labels,
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
    "favor_rare_labels",
    "h_loss_sets",
    "least_expected_loss",
    "most_probable",
    "rejected",
    "scores_above_top_k",
    "term_lists",
]
