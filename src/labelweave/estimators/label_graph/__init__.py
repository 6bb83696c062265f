"""Structured margins over a graph of labels."""

from labelweave.estimators.label_graph.classifier import LabelGraphClassifier

__all__ = ["LabelGraphClassifier"]
