"""Max-margin classification with a prior on label correlations."""

from labelweave.estimators.max_margin.classifier import MaxMarginClassifier

__all__ = ["MaxMarginClassifier"]
