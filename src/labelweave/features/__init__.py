"""The input side: one face for dense and sparse features."""

from labelweave.features.feature_matrix import FeatureMatrix

__all__ = ["FeatureMatrix"]
