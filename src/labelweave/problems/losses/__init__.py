"""Losses of scores: their values, gradients and curvatures, a few rows at a time."""

from labelweave.problems.losses.entry_losses import ENTRY_LOSSES, AsymmetricLoss, EntryLoss, EntrywiseLoss
from labelweave.problems.losses.score_loss import Root, ScoreEvaluation, ScoreLoss, ShiftedLoss, SoftmaxLoss

__all__ = [
    "ENTRY_LOSSES",
    "AsymmetricLoss",
    "EntryLoss",
    "EntrywiseLoss",
    "Root",
    "ScoreEvaluation",
    "ScoreLoss",
    "ShiftedLoss",
    "SoftmaxLoss",
]
