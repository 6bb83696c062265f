"""Max-margin classification with a prior on how labels go together."""

from labelweave.estimators.max_margin.classifier import MaxMarginClassifier

__all__ = ["MaxMarginClassifier"]
