"""Losses of scores: their values, gradients and curvatures, a few rows at a time."""

from labelweave.losses.entry_losses import ENTRY_LOSSES, EntryLoss, EntrywiseLoss
from labelweave.losses.score_loss import Evaluation, Root, ScoreLoss, ShiftedLoss
from labelweave.losses.softmax import SoftmaxLoss

__all__ = [
    "ENTRY_LOSSES",
    "EntryLoss",
    "EntrywiseLoss",
    "Evaluation",
    "Root",
    "ScoreLoss",
    "ShiftedLoss",
    "SoftmaxLoss",
]
