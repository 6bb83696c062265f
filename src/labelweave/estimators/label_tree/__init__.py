"""Classifiers for ten thousand labels and more, with a tree over the labels."""

from labelweave.estimators.label_tree.classifier import LabelTreeClassifier

__all__ = ["LabelTreeClassifier"]
