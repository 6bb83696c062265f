"""Losses of scores: their values, gradients and curvatures, a few rows at a time."""

from labelweave.problems.losses.entry_losses import ENTRY_LOSSES as ENTRY_LOSSES
from labelweave.problems.losses.entry_losses import EntryLoss as EntryLoss
from labelweave.problems.losses.entry_losses import EntrywiseLoss as EntrywiseLoss
from labelweave.problems.losses.score_loss import ScoreLoss as ScoreLoss
from labelweave.problems.losses.score_loss import ShiftedLoss as ShiftedLoss
from labelweave.problems.losses.score_loss import SoftmaxLoss as SoftmaxLoss
