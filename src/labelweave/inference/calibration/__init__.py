"""From scores to probabilities: logistic curves and isotonic maps, with pooling for rare labels."""

from labelweave.inference.calibration.calibrate import LabelCalibration, calibrate_labels
from labelweave.inference.calibration.curves import SigmoidCalibration
from labelweave.inference.calibration.steps import IsotonicCalibration

__all__ = ["IsotonicCalibration", "LabelCalibration", "SigmoidCalibration", "calibrate_labels"]
