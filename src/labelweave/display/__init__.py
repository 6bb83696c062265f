"""Pictures of data and fitted models, in the form of scikit-learn's displays."""

from labelweave.display.label_covariance_display import LabelCovarianceDisplay

__all__ = ["LabelCovarianceDisplay"]
