"""Trees over labels by which a row finds the few that may be its own."""

from labelweave.labels.label_tree.clusters import cluster_labels, single_rows
from labelweave.labels.label_tree.from_taxonomy import tree_of_taxonomy
from labelweave.labels.label_tree.tree import LabelTree

__all__ = ["LabelTree", "cluster_labels", "single_rows", "tree_of_taxonomy"]
