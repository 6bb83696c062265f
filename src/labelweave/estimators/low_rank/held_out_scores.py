"""How good a low-rank model is on rows that it did not see; only observed entries count.

Scores are ``image @ factor^T``, the intercepts in a last column of the two, and are made some rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, panels
from labelweave.labels import LabelMatrix
from labelweave.metrics import average_auc, f1_score, precision_at_k
from labelweave.problems.label_entries import EntryWeights
from labelweave.problems.losses.entry_losses import EntryLoss
from labelweave.problems.low_rank_factors import RowsLoss

_SCORES_AT_ONCE = 16_000_000


@dataclass(frozen=True)
class ScoreSettings:
    """What the scores depend on beside the model.

    negative_weight: weight of entries that are not positive, in the loss.
    threshold: labels of a higher score are predicted.
    """

    loss: str | EntryLoss
    negative_weight: float
    threshold: float
    workers: Workers


@dataclass(frozen=True)
class HeldOutRows:
    """Rows, and what a model makes of them.

    image (n, k + 1): the rows in the space of the factors, and a column of ones; then what known scores have.
    factor (L, k + 1): the labels' factor, and the intercepts; likewise.
    """

    labels: LabelMatrix
    weights: PerRow
    image: Array
    factor: Array
    entry_factors: EntryWeights | None = None

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Score some rows at a time."""
        for rows in panels(len(self.labels), max(1, _SCORES_AT_ONCE // max(1, len(self.factor)))):
            yield rows, self.image[rows] @ self.factor.T

    def observed_counts(self) -> PerRow:
        """Count the observed entries of every row."""
        if self.labels.observed is None:
            return np.full(len(self.labels), self.labels.n_labels)
        return np.diff(self.labels.observed.indptr)


def held_out_score(scoring: str, rows: HeldOutRows, settings: ScoreSettings) -> float:
    """Score a model, greater is better; NaN if no observed entry has a weight."""
    if not (rows.weights * rows.observed_counts()).any():
        return float("nan")
    return SCORINGS[scoring](rows, settings)


def _minus_loss(rows: HeldOutRows, settings: ScoreSettings) -> float:
    weights = np.asarray(rows.weights, np.float64)
    loss = RowsLoss(rows.labels, weights, settings.loss, settings.negative_weight, factors=rows.entry_factors)
    entries = loss.entries(settings.workers)
    total = float(entries.values(rows.image, rows.factor).sum())
    return -total / float((weights * rows.observed_counts()).sum())


def _precision(k: int, rows: HeldOutRows, _: ScoreSettings) -> float:
    mass = rows.weights * (rows.observed_counts() > 0)
    k, total = min(k, rows.labels.n_labels), 0.0
    for part, scores in rows.blocks():
        if mass[part].any():
            share = precision_at_k(rows.labels[part], scores, k, sample_weight=rows.weights[part])
            total += share * float(mass[part].sum())
    return total / float(mass.sum())


def _average_auc(rows: HeldOutRows, _: ScoreSettings) -> float:
    weighted = np.flatnonzero(rows.weights)
    return float(average_auc(rows.labels[weighted], rows.image[weighted] @ rows.factor.T))


def _micro_f1(rows: HeldOutRows, settings: ScoreSettings) -> float:
    predicted = [sp.csr_array((scores > settings.threshold).astype(np.int8)) for _, scores in rows.blocks()]
    return float(f1_score(rows.labels, sp.vstack(predicted, format="csr"), sample_weight=rows.weights))


SCORINGS: dict[str, Callable[[HeldOutRows, ScoreSettings], float]] = {
    "loss": _minus_loss,
    "precision_at_1": partial(_precision, 1),
    "precision_at_3": partial(_precision, 3),
    "precision_at_5": partial(_precision, 5),
    "average_auc": _average_auc,
    "micro_f1": _micro_f1,
}
