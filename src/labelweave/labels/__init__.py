"""The label side: targets with missing entries, covariances, taxonomies."""

from labelweave.labels.covariance import LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.taxonomy import Taxonomy

__all__ = ["LabelCovariance", "LabelMatrix", "Taxonomy"]
