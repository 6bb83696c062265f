"""From scores to label sets: thresholds per label, one for all, or the k best labels of every row."""

from labelweave.inference.thresholds.choice import (
    ThresholdChoice,
    TopKChoice,
    choose_thresholds,
    choose_top_k,
)
from labelweave.inference.thresholds.top_k import scores_above_top_k

__all__ = ["ThresholdChoice", "TopKChoice", "choose_thresholds", "choose_top_k", "scores_above_top_k"]
