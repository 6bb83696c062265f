"""What thresholds of held-out rows are the best for."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from labelweave.array_types import PerLabel, PerRow, RowsByLabels
from labelweave.inference import choose_thresholds
from labelweave.inference.thresholds.objective import ObjectiveName
from labelweave.labels import LabelMatrix

__all__ = ["THRESHOLD_RULES", "held_out_thresholds"]


class _Rule(NamedTuple):
    objective: ObjectiveName
    scope: Literal["label", "global"]


THRESHOLD_RULES = {
    "f1": _Rule("micro_f1", "global"),
    "micro_f1": _Rule("micro_f1", "label"),
    "macro_f1": _Rule("macro_f1", "label"),
    "example_f1": _Rule("example_f1", "label"),
    "hamming_loss": _Rule("hamming_loss", "label"),
}


def held_out_thresholds(
    rule: str, labels: LabelMatrix, scores: RowsByLabels, weights: PerRow, fallback: float
) -> PerLabel:
    """Choose the best thresholds.

    rule: the best threshold of all labels for micro-averaged F1 ("f1"), or a threshold for every label, drawn
        to the best one of all where the label has few positive rows, that are together the best for a
        measure.
    labels: what is true; unobserved entries do not count.
    fallback: the threshold where no row of positive weight has a label.
    """
    if not (labels.positives.T @ weights).any():
        return np.full(labels.n_labels, fallback)
    objective, scope = THRESHOLD_RULES[rule]
    return choose_thresholds(
        labels, scores, objective, scope=scope, pooling="auto", sample_weight=weights
    ).thresholds
