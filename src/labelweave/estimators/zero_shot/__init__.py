"""Classification into unseen classes, by signatures of their attributes."""

from labelweave.estimators.zero_shot.classifier import ZeroShotClassifier

__all__ = ["ZeroShotClassifier"]
