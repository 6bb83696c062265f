"""One call that tries several models, and combines them on rows that they did not see."""

from labelweave.automatic.classifier import AutoLabelClassifier

__all__ = ["AutoLabelClassifier"]
