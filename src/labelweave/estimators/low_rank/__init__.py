"""Low-rank learning, and the choice of its rank and penalty."""

from labelweave.estimators.low_rank.classifier import LowRankClassifier
from labelweave.estimators.low_rank.classifier_cv import LowRankClassifierCV

__all__ = ["LowRankClassifier", "LowRankClassifierCV"]
