"""Labels: targets with missing entries, covariances, taxonomies, graphs."""

from labelweave.labels.class_columns import read_class_columns as read_class_columns
from labelweave.labels.class_probabilities import ClassProbabilities as ClassProbabilities
from labelweave.labels.clique_graph import CliqueGraph as CliqueGraph
from labelweave.labels.covariance import LabelCovariance as LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix as LabelMatrix
from labelweave.labels.label_mean import LabelMean as LabelMean
from labelweave.labels.taxonomy import Taxonomy as Taxonomy
from labelweave.labels.text import LabelText as LabelText
