"""Losses of scores: their values, gradients and curvatures, a few rows at a time."""

from labelweave.problems.losses.entry_losses import ENTRY_LOSSES, EntryLoss, EntrywiseLoss
from labelweave.problems.losses.score_loss import Evaluation, Root, ScoreLoss, ShiftedLoss
from labelweave.problems.losses.softmax import SoftmaxLoss

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
