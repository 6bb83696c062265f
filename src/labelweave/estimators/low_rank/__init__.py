"""Low-rank multi-label classification, and the choice of its rank and penalty."""

from labelweave.estimators.low_rank.classifier import LowRankClassifier
from labelweave.estimators.low_rank.rank_choice import RankSearch

__all__ = ["LowRankClassifier", "RankSearch"]
