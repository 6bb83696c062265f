"""The measure that label sets are chosen by, and its value for given sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import ratios
from labelweave.postprocessing.labeled_scores import LabeledScores

ObjectiveName = Literal["micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"]

_ROUNDING = 1e-12


def f1_of_counts(hits: Array, predicted: Array, positives: Array | float) -> Array:
    return ratios(2.0 * hits, predicted + positives)


@dataclass(frozen=True)
class Objective:
    """A measure of label sets, and the precision or recall to reach."""

    name: ObjectiveName
    target: float

    def of_counts(self, hits: Array, predicted: Array, positives: Array | float) -> Array:
        """Return the value of counts over all entries or per label; -inf where a target is missed."""
        if self.name == "hamming_loss":
            return 2.0 * hits - predicted
        if self.name == "precision":
            return np.where(hits >= self.target * predicted * (1 - _ROUNDING), hits, -np.inf)
        if self.name == "recall":
            return np.where(hits >= self.target * positives * (1 - _ROUNDING), -predicted, -np.inf)
        return f1_of_counts(hits, predicted, positives)

    @property
    def of_nothing(self) -> float:
        return -np.inf if self.name == "recall" else 0.0


def read_objective(name: Any, target: Any) -> Objective:
    if name not in get_args(ObjectiveName):
        known = ", ".join(map(repr, get_args(ObjectiveName)))
        raise ValueError(f"objective is {name!r}; pass one of {known}.")
    if name not in ("precision", "recall"):
        if target is not None:
            raise ValueError(
                f"target={target!r} is for the objectives 'precision' and 'recall', not {name!r}."
            )
        return Objective(name, 0.0)
    if not isinstance(target, (int, float, np.number)) or not 0 < target <= 1:
        given = "no target is given" if target is None else f"target is {target!r}"
        raise ValueError(f"{given}; the objective {name!r} needs a target above 0 and at most 1.")
    return Objective(name, float(target))


@dataclass(frozen=True)
class SetCounts:
    """Counts of predicted label sets over observed entries.

    of_labels (4, L): hits, predicted, positive and observed entries of every label, weighted by rows.
    of_rows (4, n): the same for every row.
    """

    of_labels: Array
    of_rows: Array
    weights: PerRow

    @classmethod
    def together(cls, parts: Sequence[SetCounts]) -> SetCounts:
        return cls(
            np.sum([part.of_labels for part in parts], axis=0),
            np.concatenate([part.of_rows for part in parts], axis=1),
            np.concatenate([part.weights for part in parts]),
        )

    def measure(self, name: ObjectiveName) -> float:
        """Compute a measure, 0 where a ratio is 0 / 0; precision and recall are over all entries."""
        if name == "macro_f1":
            return _mean(f1_of_counts(*self.of_labels[:3]), self.of_labels[3] > 0)
        if name == "example_f1":
            return _mean(f1_of_counts(*self.of_rows[:3]), (self.of_rows[3] > 0) * self.weights)
        hits, predicted, positives, observed = self.of_labels.sum(axis=1).tolist()
        over = {
            "micro_f1": (2 * hits, predicted + positives),
            "hamming_loss": (predicted + positives - 2 * hits, observed),
            "precision": (hits, predicted),
            "recall": (hits, positives),
        }
        return float(ratios(*over[name]))


def _mean(values: Array, weights: Array) -> float:
    return float(ratios(values @ weights, weights.sum()))


def count_sets(table: LabeledScores, is_predicted: Callable[[Array], Array]) -> SetCounts:
    """Count predicted label sets in blocks of rows; entries with probabilities count by their targets."""
    n_rows, n_labels = table.shape
    by_label, by_row = np.zeros((4, n_labels)), np.zeros((4, n_rows))
    for lines in table.row_blocks():
        seen, positive = lines.signs != 0, lines.shares
        predicted = is_predicted(table.scores[lines.which])
        for number, entries in enumerate((predicted * positive, predicted & seen, positive, seen)):
            by_label[number] += table.weights[lines.which] @ entries
            by_row[number, lines.which] = entries.sum(axis=1)
    return SetCounts(by_label, by_row, table.weights)
