"""Losses of scores: their values, slopes and curvatures, a few rows at a time."""

from labelweave.losses.logistic import LogisticLoss
from labelweave.losses.score_loss import Evaluation, Root, ScoreLoss
from labelweave.losses.softmax import SoftmaxLoss
from labelweave.losses.squared import SquaredLoss

__all__ = ["Evaluation", "LogisticLoss", "Root", "ScoreLoss", "SoftmaxLoss", "SquaredLoss"]
