"""Turn scores and probabilities into decisions: classes, label sets, and abstention."""

from labelweave.foundation.views import exported
from labelweave.postprocessing.calibration.calibrate import SoftmaxCalibration as SoftmaxCalibration
from labelweave.postprocessing.calibration.calibrate import calibrate_classes as calibrate_classes
from labelweave.postprocessing.calibration.calibrate import calibrate_labels as calibrate_labels
from labelweave.postprocessing.calibration.calibrate import class_probabilities as class_probabilities
from labelweave.postprocessing.calibration.maps import IsotonicCalibration as IsotonicCalibration
from labelweave.postprocessing.calibration.maps import LabelCalibration as LabelCalibration
from labelweave.postprocessing.calibration.maps import SigmoidCalibration as SigmoidCalibration
from labelweave.postprocessing.conformal import ConformalThreshold as ConformalThreshold
from labelweave.postprocessing.conformal import adaptive_scores as adaptive_scores
from labelweave.postprocessing.conformal import control_mistakes as control_mistakes
from labelweave.postprocessing.decisions import best_parent as best_parent
from labelweave.postprocessing.decisions import least_expected_loss as least_expected_loss
from labelweave.postprocessing.decisions import most_probable as most_probable
from labelweave.postprocessing.decisions import rejected as rejected
from labelweave.postprocessing.hierarchy import enforce_hierarchy as enforce_hierarchy
from labelweave.postprocessing.hierarchy import h_loss_sets as h_loss_sets
from labelweave.postprocessing.hierarchy import term_lists as term_lists
from labelweave.postprocessing.map import MapInference as MapInference
from labelweave.postprocessing.map import MapResult as MapResult
from labelweave.postprocessing.thresholds.choice import ThresholdChoice as ThresholdChoice
from labelweave.postprocessing.thresholds.choice import TopKChoice as TopKChoice
from labelweave.postprocessing.thresholds.choice import choose_thresholds as choose_thresholds
from labelweave.postprocessing.thresholds.choice import choose_top_k as choose_top_k
from labelweave.postprocessing.thresholds.top_k import ExpectedF1Sizes as ExpectedF1Sizes
from labelweave.postprocessing.thresholds.top_k import expected_f1_sizes as expected_f1_sizes
from labelweave.postprocessing.thresholds.top_k import favor_rare_labels as favor_rare_labels
from labelweave.postprocessing.thresholds.top_k import scores_above_top_k as scores_above_top_k

__all__ = list(exported(__name__))
