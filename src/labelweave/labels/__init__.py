"""Labels: targets with missing entries, covariances, taxonomies, graphs."""

from labelweave.labels.class_columns import read_class_columns
from labelweave.labels.class_probabilities import ClassProbabilities
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.covariance import LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_mean import LabelMean
from labelweave.labels.taxonomy import Taxonomy
from labelweave.labels.text import LabelText

__all__ = [
    "ClassProbabilities",
    "CliqueGraph",
    "LabelCovariance",
    "LabelMatrix",
    "LabelMean",
    "LabelText",
    "Taxonomy",
    "read_class_columns",
]
