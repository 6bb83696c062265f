"""Pictures of data and fitted models, in the form of scikit-learn's displays."""

from labelweave.display.error_reject_display import ErrorRejectDisplay
from labelweave.display.label_covariance_display import LabelCovarianceDisplay

__all__ = ["ErrorRejectDisplay", "LabelCovarianceDisplay"]
