"""The label side: targets with missing entries, covariances, taxonomies."""

from labelweave.labels.label_matrix import LabelMatrix

__all__ = ["LabelMatrix"]
