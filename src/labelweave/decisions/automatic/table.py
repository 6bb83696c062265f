"""The rows that members are fitted to and compared on, and the type of a member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.decisions.automatic.plan import MOST_FOLDS, RARE, Shape
from labelweave.estimators.held_out import fold_numbers
from labelweave.estimators.scorers import Scorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError, ParameterMessage
from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.foundation.costs import warn_caller
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import unknown_entries
from labelweave.postprocessing import SigmoidCalibration, calibrate_labels
from labelweave.splits.splitters import folds_of, splits_by

_LOOKED_AT, _COMPARED = 200, 1000  # rows to find duplicates of, and rows to compare values with
_NEAR, _SAME = 0.98, 1.0 - 1e-9  # cosines
_BITS, _MANY = 64, 0.05
_PRODUCTS_AT_ONCE = 10_000_000


@dataclass(frozen=True)
class TrainingTable:
    """The rows of positive weight.

    targets (n, L): 0 and 1, or uncertain targets, NaN where unobserved.
    folds (n,): the fold of each row.
    leaves_folds_out: whether rows of a fold are alike, so that a row is only held out with its whole fold.
    groups (n,): numbers from 0 on, of rows that were sampled together; None for independent rows.
    pivots: columns of a low-rank factor that approximates the kernel matrix of more rows.
    """

    features: FeatureMatrix
    targets: RowsByLabels
    weights: PerRow
    folds: PerRow
    n_trees: int
    pivots: int
    seed: int
    n_jobs: int | None = None
    leaves_folds_out: bool = False
    groups: PerRow | None = None

    def rows(self, which: Array) -> TrainingTable:
        by_row = ("targets", "weights", "folds", *(() if self.groups is None else ("groups",)))
        changed = {name: getattr(self, name)[which] for name in by_row}
        return TrainingTable(**vars(self) | changed | {"features": self.features.rows(which)})

    def splits(self) -> Iterator[tuple[Array, Array]]:
        yield from map(self.split, np.unique(self.folds))

    def split(self, fold: int) -> tuple[Array, Array]:
        return np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)

    def with_few_folds(self) -> TrainingTable:
        """Join folds, in which each row keeps its scores, as what combines them is fitted for every pair."""
        return replace(self, folds=np.unique(self.folds, return_inverse=True)[1] % MOST_FOLDS)

    def without_features(self) -> TrainingTable:
        return replace(self, features=FeatureMatrix(np.empty((len(self.targets), 0))))

    @property
    def labels(self) -> LabelMatrix:
        seen = ~np.isnan(self.targets)
        shares = sp.csr_array(np.where(seen, self.targets, 0.0))
        return LabelMatrix._of_targets(shares, None if seen.all() else sp.csr_array(seen), None)

    @property
    def observed(self) -> tuple[RowsByLabels, RowsByLabels]:
        """The targets and the weights of entries (n, L), both 0 where unobserved."""
        known = ~np.isnan(self.targets)
        return np.where(known, self.targets, 0.0), np.where(known, self.weights[:, None], 0.0)

    def loss(self, scores: RowsByLabels) -> float:
        """Compute the squared error of scores on observed labels, relative to that of each label's mean."""
        filled, seen = self.observed
        means = (seen * filled).sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-300)
        variance = float((seen * np.square(filled - means)).sum())
        return self.squared_error(scores) / variance if variance > 0 else 1.0

    def squared_error(self, scores: RowsByLabels) -> float:
        filled, seen = self.observed
        return float((seen * np.square(filled - scores)).sum())

    def log_loss(self, odds: RowsByLabels) -> float:
        """Compute the mean log loss of log-odds on observed labels."""
        filled, seen = self.observed
        losses = np.logaddexp(0.0, odds) - filled * odds
        return float((seen * losses).sum() / max(float(seen.sum()), 1e-300))

    def curves(self, scores: RowsByLabels) -> SigmoidCalibration:
        """Fit one logistic curve per label from scores to probabilities.

        The log loss of targets outside 0 and 1 may have no minimum.  Where it is below 0, the least value
        with true labels, the label's curve is that of targets clipped to 0 and 1.
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

    def rare_labels(self) -> Array:
        """Return whether each label is positive in few rows, but in some: shape (L,)."""
        counts = self.weights @ (self.targets > 0.5)
        return (counts > 0) & (counts < RARE * self.weights.sum())

    @property
    def is_bounded(self) -> bool:
        """Whether all targets lie between 0 and 1, as without a correction for flips."""
        return not (np.abs(self.targets - 0.5) > 0.5).any()

    def bounded(self) -> TrainingTable:
        return replace(self, targets=np.clip(self.targets, 0.0, 1.0))


class Member(NamedTuple):
    """A fitted member.

    scores (n, L): out-of-fold scores of every row, on any scale.
    scorer: of the fit to all rows.
    words: what was chosen.
    """

    name: str
    scores: RowsByLabels
    scorer: Scorer
    words: str


class ReadRows(NamedTuple):
    """The rows of positive weight; folds and groups (n,) as in :class:`TrainingTable`."""

    features: FeatureMatrix
    labels: LabelMatrix
    weights: PerRow
    folds: PerRow
    leaves_folds_out: bool
    groups: PerRow | None

    @property
    def shape(self) -> Shape:
        return Shape.of_data(self.features, self.labels, len(np.unique(self.folds)))


def group_numbers(groups: Any, n_rows: int) -> PerRow:
    """Number groups from 0 on, (n,); raise if they are not one name per row."""
    names = np.asarray(groups)
    if names.shape != (n_rows,):
        raise ValueError(f"groups has shape {names.shape}, but X has {n_rows} rows; pass one group per row.")
    if (unknown := unknown_entries(names)).any():
        raise ValueError(f"groups has no value at row {unknown.argmax()}; every row needs a group.")
    return np.unique(names.astype(str) if names.dtype.kind == "O" else names, return_inverse=True)[1]


def folds_and_groups(
    cv: Any, given: tuple[Any, Any, Any], kept: Array, labels: LabelMatrix, seed: int
) -> tuple[PerRow, PerRow | None]:
    """Number the folds and groups of the kept rows, by X, y and groups of all rows."""
    X, y, names = given
    groups = None if names is None else group_numbers(names, len(labels))
    own = None if groups is None else groups[kept]
    if isinstance(cv, Integral):
        return drawn_folds(labels[kept], int(cv), seed, own), own
    folds = given_folds(splits_by(cv, X, y, names), len(labels), groups)[kept]
    if len(np.unique(folds)) < 2:
        raise ValueError("cv has all rows of positive weight in one fold; use at least two folds.")
    return folds, own


def drawn_folds(labels: LabelMatrix, parts: int, seed: int, groups: PerRow | None) -> PerRow:
    """Draw the given number of folds of rows or groups, or as many as there are."""
    if groups is None:
        return folds_of(labels, min(parts, len(labels)), seed)
    groups = np.unique(groups, return_inverse=True)[1]
    n_groups = int(groups.max()) + 1
    if n_groups < 2:
        raise ParameterError("`groups` has one group, but out-of-fold scores need rows of at least two.")
    if n_groups < parts:
        said = f"`groups` has {n_groups} groups, so that there are {n_groups} folds, not {parts}."
        warn_caller(ParameterMessage(said))
    return folds_of(labels, min(parts, n_groups), seed, groups)


def given_folds(splits: Sequence[Any], n_rows: int, groups: PerRow | None) -> PerRow:
    """Number the folds of splits; raise if they do not partition the rows, or split a group."""
    folds = fold_numbers(list(splits), n_rows)
    if groups is not None:
        first = np.unique(groups, return_index=True)[1]
        apart = np.flatnonzero(folds != folds[first][groups])
        if len(apart):
            raise ValueError(
                f"cv puts rows {first[groups[apart[0]]]} and {apart[0]} of one group into two folds; pass "
                "folds that keep groups together, such as GroupKFold(5), or a number."
            )
    return folds


def warn_of_repeats(table: TrainingTable) -> None:
    """Warn where many rows have a near-duplicate in another fold: same labels, similar features.

    Up to 200 rows are checked.  Few features, or few values, repeat by chance, as they will in new rows: only
    rows rarer than one in 2^64, if features were independent, count.  Dense rows are naturally close to each
    other, and count only where they are equal.
    """
    if table.leaves_folds_out:
        return
    data, n = table.features.data, len(table.targets)
    rows = np.sort(np.random.default_rng(table.seed).permutation(n)[:_LOOKED_AT])
    lengths = np.sqrt(table.features.squared_norms()) + 1e-300
    least, found = (_NEAR if table.features.is_sparse else _SAME), 0
    others = data[:: 1 + n // _COMPARED]
    counts = np.bincount(others.indices, minlength=data.shape[1]) if table.features.is_sparse else None
    for part in panels(len(rows), max(1, _PRODUCTS_AT_ONCE // n)):
        some = rows[part]
        products = data[some] @ data.T
        cosines = (products.toarray() if sp.issparse(products) else products) / lengths / lengths[some, None]
        cosines[table.folds[some, None] == table.folds] = 0.0
        twins = cosines.argmax(axis=1)
        is_near = cosines[np.arange(len(some)), twins] >= least
        pairs = zip(some[is_near], twins[is_near], strict=True)
        targets = table.targets
        alike = [row for row, twin in pairs if np.array_equal(targets[row], targets[twin], equal_nan=True)]
        found += sum(_bits(data[[row]], others, counts) >= _BITS for row in alike)
    if found >= _MANY * len(rows):
        said = (
            f"About {found / len(rows):.0%} of the rows have a near-duplicate with the same labels in "
            "another fold, so out-of-fold scores are optimistic; pass `groups` of related rows."
        )
        warn_caller(ParameterMessage(said))


def _bits(row: Any, others: Any, counts: Array | None) -> float:
    """Compute the rarity of a row in bits, from the shares of others with its values, or with its counts."""
    alike = (others == row).sum(axis=0) if counts is None else counts[row.indices]
    return float(-np.log2((1.0 + alike) / (1.0 + others.shape[0])).sum())
