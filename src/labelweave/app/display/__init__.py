"""Plots of data and fitted models, as scikit-learn displays."""

from labelweave.app.display.calibration_curve_display import CalibrationCurveDisplay
from labelweave.app.display.combination_display import CombinationDisplay
from labelweave.app.display.dual_progress_display import DualProgressDisplay
from labelweave.app.display.error_reject_display import ErrorRejectDisplay
from labelweave.app.display.label_covariance_display import LabelCovarianceDisplay
from labelweave.app.display.label_graph_display import LabelGraphDisplay, LabelGraphPathDisplay
from labelweave.app.display.label_quality_display import LabelQualityDisplay
from labelweave.app.display.prediction_path_display import PredictionPathDisplay
from labelweave.app.display.taxonomy_display import TaxonomyDisplay
from labelweave.app.display.threshold_curve_display import ThresholdCurveDisplay

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
