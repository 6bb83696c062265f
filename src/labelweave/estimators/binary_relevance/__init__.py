"""A linear model a label, each from the rows where its label was observed."""

from labelweave.estimators.binary_relevance.classifier import BinaryRelevance

__all__ = ["BinaryRelevance"]
