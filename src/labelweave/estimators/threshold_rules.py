"""What thresholds of held-out rows are the best for."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.inference import choose_thresholds
from labelweave.inference.thresholds.objective import ObjectiveName
from labelweave.labels import LabelMatrix

__all__ = ["THRESHOLD_RULES", "held_out_thresholds"]

Array = npt.NDArray[Any]


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
    rule: str, labels: LabelMatrix, scores: Array, weights: Array, fallback: float
) -> Array:
    """Choose the best thresholds.

    Parameters
    ----------
    rule : {"f1", "micro_f1", "macro_f1", "example_f1", "hamming_loss"}
        The best threshold of all labels for micro-averaged F1 ("f1"), or a threshold for every label, drawn
        to the best one of all where the label has few positive rows, that are together the best for a
        measure.
    labels : LabelMatrix of n rows
        What is true; unobserved entries do not count.
    scores : ndarray of shape (n, L)
        The scores.
    weights : ndarray of shape (n,)
        Weights of the rows.
    fallback : float
        The threshold where no row of positive weight has a label.

    Returns
    -------
    ndarray of float64, shape (L,)
        Scores above are positive.
    """
    if not (labels.positives.T @ weights).any():
        return np.full(labels.n_labels, fallback)
    objective, scope = THRESHOLD_RULES[rule]
    return choose_thresholds(
        labels, scores, objective, scope=scope, pooling="auto", sample_weight=weights
    ).thresholds
