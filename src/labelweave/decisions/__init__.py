"""Decisions from scores, for any scikit-learn multi-label classifier."""

from labelweave.decisions.calibrated_label import CalibratedLabelClassifier
from labelweave.decisions.conformal_label import ConformalLabelClassifier
from labelweave.decisions.hierarchical import HierarchicalClassifier
from labelweave.decisions.label_text import LabelTextClassifier
from labelweave.decisions.tuned_threshold import TunedThresholdClassifier

__all__ = [
    "CalibratedLabelClassifier",
    "ConformalLabelClassifier",
    "HierarchicalClassifier",
    "LabelTextClassifier",
    "TunedThresholdClassifier",
]
