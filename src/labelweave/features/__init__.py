"""Model inputs: one interface for dense and sparse features, and kernels between rows."""

from labelweave.features import kernels
from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels import *  # noqa: F403
from labelweave.features.scaling import FeatureScaling

__all__ = ["FeatureMatrix", "FeatureScaling"]
__all__ += kernels.__all__
