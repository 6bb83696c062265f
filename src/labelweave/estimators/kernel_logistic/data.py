"""Rows and what is known of their labels, as the kernel logistic model takes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from labelweave.array_types import Array, PerRow
from labelweave.estimators.class_targets import read_classes
from labelweave.estimators.targets import TargetForm, check_lengths, has_many_labels, read_targets
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram.sources import GramSource, KernelSource, PrecomputedSource
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.losses import EntrywiseLoss, ScoreLoss, SoftmaxLoss

__all__ = ["LikelihoodData", "read_likelihood_data"]


@dataclass(frozen=True)
class LikelihoodData:
    """Rows and what is known of their labels.

    features: the rows; the kernel matrix itself where it was given.
    weights: the weights of the rows; 0 where nothing was observed.
    partial (k,): rows whose class is known in part.
    allowed (k, n_labels): the classes these may have.
    is_precomputed: whether the kernel matrix was given.
    Shapes: signs (n, L), codes (n,).
    """

    features: FeatureMatrix
    weights: PerRow
    signs: Array | None
    codes: Array | None
    n_labels: int
    partial: Array = field(default_factory=lambda: np.empty(0, np.intp))
    allowed: Array = field(default_factory=lambda: np.empty((0, 0), bool))
    is_precomputed: bool = False

    @property
    def targets(self) -> Array:
        """What a splitter of rows may stratify by, shape (n,) or (n, L); NaN where nothing was observed."""
        if self.codes is not None:
            return self.codes
        assert self.signs is not None, "rows have classes or labels"
        if self.n_labels == 1:
            return self.signs[:, 0]
        return self.signs if self.signs.all() else np.where(self.signs == 0, np.nan, self.signs)

    def loss(self, weights: Array, *, ties_labels: bool) -> ScoreLoss:
        """Make the loss of several fits to the rows.

        weights (n, fits): the weight of each row in each fit.
        ties_labels: whether the labels of a fit are solved for together.
        """
        if self.codes is not None:
            return SoftmaxLoss(self.codes, self.n_labels, weights, self.partial, self.allowed)
        assert self.signs is not None, "rows have classes or labels"
        return EntrywiseLoss("logistic", self.signs, weights, is_separate=not ties_labels)

    def source(self, kernel: Kernel | None) -> GramSource:
        """Give the entries of the rows' kernel matrix.

        kernel: the kernel, None if the matrix was given.
        """
        if kernel is None:
            return PrecomputedSource(np.asarray(self.features.data))
        return KernelSource(kernel, self.features)

    def label_matrix(self) -> LabelMatrix:
        """Give the labels, or the second of two classes.

        Returns (n, L): the labels; entries of rows that are not certain mean nothing.
        """
        if self.signs is None:
            return LabelMatrix.from_any(self.targets[:, None])
        return LabelMatrix.from_any(np.where(self.signs == 0, np.nan, self.signs))

    def certain_weights(self) -> PerRow:
        """Give the weights of the rows whose labels are known in whole, as far as they are observed.

        Returns the weights; 0 for other rows.
        """
        weights = np.zeros(len(self.weights))
        weights[self.certain()] = self.weights[self.certain()]
        return weights

    def certain(self) -> Array:
        """List the rows whose labels are known in whole, as far as they are observed."""
        whole = self.weights > 0
        whole[self.partial] = False
        return np.flatnonzero(whole)

    def rows(self, which: Array) -> LikelihoodData:
        """Keep some rows, none of them known in part."""
        features = self.features.rows(which)
        if self.is_precomputed:
            features = FeatureMatrix(np.ascontiguousarray(np.asarray(features.data)[:, which]))
        return replace(
            self,
            features=features,
            weights=self.weights[which],
            signs=None if self.signs is None else self.signs[which],
            codes=None if self.codes is None else self.codes[which],
            partial=self.partial[:0],
            allowed=self.allowed[:0],
        )


def read_likelihood_data(
    features: FeatureMatrix, y: Any, weights: PerRow, *, taxonomy: Taxonomy | None, is_flat: bool
) -> tuple[LikelihoodData, TargetForm]:
    """Read the labels of rows.

    y (n,): one class a row, or many labels.
    weights: the weights of the rows.
    taxonomy: the tree in which y may name inner nodes.
    is_flat: whether nothing ties labels together: two classes are then one label.
    Raises ValueError if y makes no sense, or has not one row for each row of features.
    """
    if has_many_labels(y):
        labels, form = read_targets(y)
        check_lengths(len(features), len(labels))
        signs = labels.to_signs()
        weights = weights * (signs != 0).any(axis=1)
        return LikelihoodData(features, weights, signs, None, labels.n_labels), form
    return _read_one_class(features, y, weights, taxonomy, is_flat=is_flat)


def _read_one_class(
    features: FeatureMatrix, y: Any, weights: Array, taxonomy: Taxonomy | None, *, is_flat: bool
) -> tuple[LikelihoodData, TargetForm]:
    found = read_classes(y, taxonomy)
    check_lengths(len(features), len(found.codes))
    n_classes = len(found.classes)
    form = TargetForm("binary" if n_classes == 2 else "multiclass", "array", 0, found.classes)
    weights = weights * found.is_observed
    if form.kind == "binary" and is_flat:
        signs = np.where(found.is_observed, 2 * found.codes - 1, 0).astype(np.int8)[:, None]
        return LikelihoodData(features, weights, signs, None, 1), form
    parts = found.partial, found.allowed
    return LikelihoodData(features, weights, None, found.codes, n_classes, *parts), form
