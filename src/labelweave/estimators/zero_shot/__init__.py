"""Classes that no training row has, from signatures of their attributes."""

from labelweave.estimators.zero_shot.classifier import ZeroShotClassifier

__all__ = ["ZeroShotClassifier"]
