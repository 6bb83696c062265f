"""One linear model per label, fitted to the rows where its label is observed."""

from labelweave.estimators.binary_relevance.classifier import BinaryRelevance

__all__ = ["BinaryRelevance"]
