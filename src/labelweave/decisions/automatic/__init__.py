"""One call that tries several models, and combines them on rows that they did not see."""

from labelweave.decisions.automatic.classifier import LARGEST_TABLE, AutoLabelClassifier

__all__ = ["LARGEST_TABLE", "AutoLabelClassifier"]
