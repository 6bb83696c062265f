"""Structured max-margin classification over a graph of labels."""

from labelweave.estimators.label_graph.classifier import LabelGraphClassifier
from labelweave.estimators.label_graph.fit import GraphGrowth

__all__ = ["GraphGrowth", "LabelGraphClassifier"]
