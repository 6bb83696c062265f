"""The weight of text embeddings relative to words, chosen by cross-validated error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.datasets import TableVectorizer
from labelweave.datasets.text_encoders import TextParts
from labelweave.estimators.scaling import drawn_rows
from labelweave.estimators.targets import check_lengths, read_targets
from labelweave.foundation.array_types import Array, PerRow, RowsByRows
from labelweave.foundation.sklearn_compat import _check_sample_weight
from labelweave.labels import LabelMatrix
from labelweave.problems.hyperparameters.out_of_fold import oof_loss

_WEIGHTS = (0.0, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
_MOST_ROWS, _MOST_LABELS, _FOLDS = 1000, 256, 5


def with_encoder_weight(
    vectorizer: TableVectorizer, X: sp.csr_array, y: Any, sample_weight: PerRow | None = None,
    groups: Any = None,
) -> sp.csr_array:  # fmt: skip
    """Choose the weight of a fitted vectorizer's encoder by the least out-of-fold squared error.

    The models are ridge regressions with an RBF kernel whose width is the distance between rows.

    X (n, d): the features of the vectorizer; they are returned with the chosen weight, without vectors where
    that is 0.  Rows of one group are held out together.  Rows of weight 0 are ignored; at most 1,000
    others, the same in every call, are used, and the 256 labels that are most frequent among them.
    """
    if vectorizer.encoder_ is None:
        return X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit reads them again
        labels, _ = read_targets(y)
    check_lengths(X.shape[0], len(labels))
    kept = np.flatnonzero(_check_sample_weight(sample_weight, X) > 0)
    if not len(kept):
        return X  # which the fit rejects
    rows = kept[drawn_rows(len(kept), _MOST_ROWS)]
    some, parts, targets = X[rows], vectorizer.text_parts, _frequent(labels[rows])
    names = None if groups is None else np.asarray(groups).astype(str)
    check_lengths(X.shape[0], X.shape[0] if names is None else len(names))
    folds = None if names is None else np.unique(names[rows], return_inverse=True)[1] % _FOLDS
    losses = [oof_loss(_kernel(parts, some, weight), targets, folds) for weight in _WEIGHTS]
    return vectorizer._weigh(X, _WEIGHTS[int(np.argmin(losses))])


def _frequent(labels: LabelMatrix) -> Array:
    order = np.argsort(-labels.positive_counts(), kind="stable")[:_MOST_LABELS]
    return labels.select_labels(np.sort(order)).to_dense()


def _kernel(parts: TextParts, X: sp.csr_array, weight: float) -> RowsByRows:
    X = parts.weighed(X, weight)
    words, vectors = X[:, : parts.first], X[:, parts.first :].toarray()  # sparse ones are slow
    products = (words @ words.T).toarray() + vectors @ vectors.T
    squares = products.diagonal()
    distances = np.maximum(squares[:, None] + squares - 2.0 * products, 0.0)
    kernel: RowsByRows = np.exp(-distances / max(distances.mean(), 1e-300))
    return kernel
