"""Thresholds chosen on rows that a first model did not see: which rows those are, and what is best there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from labelweave.array_types import Array, PerRow, RowsByLabels
from labelweave.inference import ThresholdChoice, choose_thresholds
from labelweave.inference.thresholds.objective import ObjectiveName
from labelweave.labels import LabelMatrix
from labelweave.splits import IterativeStratifiedShuffleSplit

_LOOSER, _LOOSEST = 30, 3e-2
_MOST_PREDICTED = 2.0  # times the held-out rows that have a label


class Rule(NamedTuple):
    """What thresholds are to be best for."""

    objective: ObjectiveName
    scope: Literal["label", "global"] = "label"
    pooling: float | Literal["auto"] = "auto"
    target: float | None = None
    most_predicted: float | None = _MOST_PREDICTED


THRESHOLD_RULES = {
    "f1": Rule("micro_f1", "global"),
    "micro_f1": Rule("micro_f1"),
    "macro_f1": Rule("macro_f1"),
    "example_f1": Rule("example_f1"),
    "hamming_loss": Rule("hamming_loss"),
}


@dataclass(frozen=True)
class HeldOutScores:
    """Rows with their scores."""

    labels: LabelMatrix
    scores: RowsByLabels
    weights: PerRow | None


def tolerance_of_part(tol: float) -> float:
    """Give the relative duality gap that a fit of a part of the rows needs, where thresholds are its use.

    Thirty times the one asked for, at most 3e-2, or that itself where it is larger: thresholds of fits to
    1e-3 and to 3e-2 are as good on other rows (``python -m benchmarks.threshold_cost``), at half the cost.
    """
    return max(tol, min(_LOOSER * tol, _LOOSEST))


def hold_out(labels: LabelMatrix, size: float, seed: int) -> tuple[Array, Array]:
    """Split rows, stratified by labels: those to fit, and a number or share of them to hold out."""
    splitter = IterativeStratifiedShuffleSplit(1, test_size=size, random_state=seed)
    kept, held = next(splitter.split(np.arange(len(labels)), labels))
    return np.sort(kept), np.sort(held)


def best_thresholds(held: HeldOutScores, rule: Rule, fallback: float) -> ThresholdChoice:
    """Choose thresholds; the fallback where no row of positive weight has a label.

    A label that is scored alike in all rows, none of them observed, is never predicted.
    """
    choice = choose_thresholds(held.labels, held.scores, **rule._asdict(), sample_weight=held.weights)
    never = np.flatnonzero(held.labels.observed_counts() == 0)
    alike = never[np.ptp(held.scores[:, never], axis=0) == 0]
    choice.thresholds[alike] = np.maximum(choice.thresholds[alike], held.scores[0, alike])
    weights = np.ones(len(held.labels)) if held.weights is None else held.weights
    if (held.labels.positives.T @ weights).any():
        return choice
    return choice._replace(thresholds=np.full(held.labels.n_labels, fallback))
