"""From scores to probabilities: logistic curves and isotonic maps, with pooling for rare labels."""

from labelweave.inference.calibration.calibrate import LabelCalibration, calibrate_labels
from labelweave.inference.calibration.isotonic import IsotonicCalibration
from labelweave.inference.calibration.sigmoid import SigmoidCalibration

__all__ = ["IsotonicCalibration", "LabelCalibration", "SigmoidCalibration", "calibrate_labels"]
