"""A classifier that fits several models and stacks them on out-of-fold predictions."""

from labelweave.decisions.automatic.classifier import LARGEST_TABLE, AutoLabelClassifier

__all__ = ["LARGEST_TABLE", "AutoLabelClassifier"]
