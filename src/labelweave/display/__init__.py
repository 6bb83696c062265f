"""Pictures of data and fitted models, in the form of scikit-learn's displays."""

from labelweave.display.calibration_curve_display import CalibrationCurveDisplay
from labelweave.display.combination_display import CombinationDisplay
from labelweave.display.dual_progress_display import DualProgressDisplay
from labelweave.display.error_reject_display import ErrorRejectDisplay
from labelweave.display.label_covariance_display import LabelCovarianceDisplay
from labelweave.display.label_graph_display import LabelGraphDisplay
from labelweave.display.label_graph_path_display import LabelGraphPathDisplay
from labelweave.display.label_quality_display import LabelQualityDisplay
from labelweave.display.prediction_path_display import PredictionPathDisplay
from labelweave.display.taxonomy_display import TaxonomyDisplay
from labelweave.display.threshold_curve_display import ThresholdCurveDisplay

__all__ = [
    "CalibrationCurveDisplay",
    "CombinationDisplay",
    "DualProgressDisplay",
    "ErrorRejectDisplay",
    "LabelCovarianceDisplay",
    "LabelGraphDisplay",
    "LabelGraphPathDisplay",
    "LabelQualityDisplay",
    "PredictionPathDisplay",
    "TaxonomyDisplay",
    "ThresholdCurveDisplay",
]
