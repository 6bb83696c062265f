"""Classification with related labels."""

from labelweave.labels import LabelMatrix

__version__ = "0.1.0"

__all__ = ["LabelMatrix"]
