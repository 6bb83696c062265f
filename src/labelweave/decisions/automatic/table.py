"""The rows that members are fitted to and compared on, and what a member is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.inference import SigmoidCalibration, calibrate_labels
from labelweave.labels import LabelMatrix
from labelweave.splits import IterativeStratifiedKFold


@dataclass(frozen=True)
class TrainingTable:
    """The rows of positive weight.

    targets (n, L): 0 and 1, or targets that are not certain, NaN where not observed.
    folds (n,): the part of the rows that each is scored with.
    pivots: columns of a factor that stands for a kernel matrix of more rows.
    """

    features: FeatureMatrix
    targets: RowsByLabels
    weights: PerRow
    folds: PerRow
    n_trees: int
    pivots: int
    seed: int
    n_jobs: int | None = None

    def rows(self, which: Array) -> TrainingTable:
        changed = {name: getattr(self, name)[which] for name in ("targets", "weights", "folds")}
        return TrainingTable(**vars(self) | changed | {"features": self.features.rows(which)})

    def splits(self) -> Iterator[tuple[Array, Array]]:
        yield from map(self.split, np.unique(self.folds))

    def split(self, fold: int) -> tuple[Array, Array]:
        return np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)

    def without_features(self) -> TrainingTable:
        return replace(self, features=FeatureMatrix(np.empty((len(self.targets), 0))))

    @property
    def labels(self) -> LabelMatrix:
        seen = ~np.isnan(self.targets)
        shares = sp.csr_array(np.where(seen, self.targets, 0.0))
        return LabelMatrix._of_targets(shares, None if seen.all() else sp.csr_array(seen), None)

    def loss(self, scores: RowsByLabels) -> float:
        """Compute the squared error of scores of observed labels, as a share of their variance."""
        known = ~np.isnan(self.targets)
        seen = np.where(known, self.weights[:, None], 0.0)
        filled = np.where(known, self.targets, 0.0)
        means = (seen * filled).sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-300)
        variance = float((seen * np.square(filled - means)).sum())
        return self.squared_error(scores) / variance if variance > 0 else 1.0

    def squared_error(self, scores: RowsByLabels) -> float:
        known = ~np.isnan(self.targets)
        seen = np.where(known, self.weights[:, None], 0.0)
        return float((seen * np.square(np.where(known, self.targets, 0.0) - scores)).sum())

    def log_loss(self, odds: RowsByLabels) -> float:
        """Compute the mean log loss of log-odds of observed labels."""
        known = ~np.isnan(self.targets)
        seen = np.where(known, self.weights[:, None], 0.0)
        losses = np.logaddexp(0.0, odds) - np.where(known, self.targets, 0.0) * odds
        return float((seen * losses).sum() / max(float(seen.sum()), 1e-300))

    def curves(self, scores: RowsByLabels) -> SigmoidCalibration:
        """Fit a logistic curve a label from scores to probabilities.

        The log loss of targets outside of 0 and 1 may have no minimum.  Below 0, where that of no true label
        is, a label has the curve of targets between.
        """
        found = calibrate_labels(self.labels, scores, "sigmoid", sample_weight=self.weights)
        assert isinstance(found, SigmoidCalibration), "the method says so"
        if self.is_bounded:
            return found
        odds, seen = found.slopes * scores + found.intercepts, ~np.isnan(self.targets)
        losses = np.where(seen, np.logaddexp(0.0, odds) - self.targets * odds, 0.0)
        is_lost, other = self.weights @ losses < 0, self.bounded().curves(scores)
        return SigmoidCalibration(
            np.where(is_lost, other.slopes, found.slopes),
            np.where(is_lost, other.intercepts, found.intercepts),
        )

    @property
    def is_bounded(self) -> bool:
        """Whether all targets lie between 0 and 1, as those do that are not corrected for flips."""
        return not (np.abs(self.targets - 0.5) > 0.5).any()

    def bounded(self) -> TrainingTable:
        return replace(self, targets=np.clip(self.targets, 0.0, 1.0))


class Member(NamedTuple):
    """A model that was tried.

    scores (n, L): of every row by a fit to the rows of other folds, on any scale.
    scorer: of the fit to all rows.
    words: what was chosen.
    """

    name: str
    scores: RowsByLabels
    scorer: Scorer
    words: str


def folds_of(labels: LabelMatrix, parts: int, seed: int) -> PerRow:
    folds = np.empty(len(labels), np.intp)
    splitter = IterativeStratifiedKFold(parts, shuffle=True, random_state=seed)
    for number, (_, held) in enumerate(splitter.split(np.arange(len(labels)), labels)):
        folds[held] = number
    return folds
