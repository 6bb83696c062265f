"""The area under precision-recall curves, of all entries together or of each label.

It is the average precision: the sum over thresholds of the precision there times what it adds in recall, as
the field of hierarchical classification measures it (Vens et al. 2008; Giunchiglia and Lukasiewicz 2020).
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Floats, PerLabel
from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import read_scores, read_targets, read_weights, signs_at, stored_rows
from labelweave.metrics.rankings import transposed, weights_not_stored


@checked
def average_precision_score(
    Y_true: Any,
    scores: Any,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    *,
    sample_weight: Any = None,
) -> float | PerLabel:
    """Compute the area under the precision-recall curve of observed entries.

    For the other parameters and errors see :func:`ranking_loss`.

    Parameters
    ----------
    average : {"micro", "macro", "weighted"} or None, default="micro"
        The curve of all entries; the mean over labels, or that weighted by their positive entries; or None
        for every label.  Labels without an observed positive entry are left out of means.

    Returns
    -------
    float or ndarray of shape (L,)
        The areas, up to 1 (best); NaN without an observed positive entry.

    Notes
    -----
    It is AU(PRC), and the mean of a curve a label, of hierarchical multi-label classification.  Leave out
    labels that are not to count, such as roots, with ``LabelMatrix.select_labels``.

    Examples
    --------
    >>> from labelweave.metrics import average_precision_score
    >>> average_precision_score([[1, 0], [1, 1]], [[0.9, 0.4], [0.3, 0.8]])
    0.9166666666666666
    """
    if average not in ("micro", "macro", "weighted", None):
        raise ValueError(f"average={average!r}; give 'micro', 'macro', 'weighted' or None.")
    targets = read_targets(Y_true)
    table = read_scores(scores, targets)
    weights = read_weights(sample_weight, targets)
    areas = _areas_of_stored if sp.issparse(table) else _areas_of_all
    found, counts = areas(targets, table, weights, is_micro=average == "micro")
    if average == "micro":
        return float(found[0])
    if average is None:
        return found
    known = counts > 0
    if not known.any():
        return float("nan")
    return float(np.average(found[known], weights=counts[known] if average == "weighted" else None))


def _areas_of_all(
    targets: LabelMatrix, table: Floats, weights: Floats, *, is_micro: bool
) -> tuple[Floats, Floats]:
    """Compute the area of all entries or of every label, and the weights of the positive entries."""
    signs = targets.to_signs()
    if is_micro:
        rows, _ = np.nonzero(signs)
        seen = signs != 0
        area, count = _area(weights[rows] * (signs[seen] > 0), table[seen], weights[rows])
        return np.array([area]), np.array([count])
    parts = []
    for label in range(targets.n_labels):
        seen = signs[:, label] != 0
        parts.append(_area(weights[seen] * (signs[seen, label] > 0), table[seen, label], weights[seen]))
    found, counts = np.array(parts).reshape(-1, 2).T
    return found, counts


def _areas_of_stored(
    targets: LabelMatrix, scores: sp.csr_array, weights: Floats, *, is_micro: bool
) -> tuple[Floats, Floats]:
    """Do the same where most entries have no score: these are one entry at the end of a label."""
    labels, turned = transposed(targets, scores)
    rest = np.array(weights_not_stored(labels, turned, weights))
    signs = signs_at(labels, stored_rows(turned), turned.indices)
    each, ends = weights[turned.indices], turned.indptr
    if is_micro:
        rest, ends = rest.sum(axis=1, keepdims=True), np.array([0, turned.nnz])
    parts = []
    for label, (start, end) in enumerate(itertools.pairwise(ends.tolist())):
        seen = start + np.flatnonzero(signs[start:end])
        hits = np.append(each[seen] * (signs[seen] > 0), rest[0, label])
        values = np.append(turned.data[seen].astype(np.float64), -np.inf)
        parts.append(_area(hits, values, np.append(each[seen], rest[:, label].sum())))
    found, counts = np.array(parts).reshape(-1, 2).T
    return found, counts


def written_out(table: sp.csr_array) -> Floats:
    """Write sparse scores out, -inf where none is stored."""
    dense = np.full(table.shape, -np.inf)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    dense[rows, table.indices] = table.data
    return dense


def _area(hits: Floats, scores: Floats, weights: Floats) -> tuple[float, float]:
    """Sum precisions at the thresholds between distinct scores, each times what it adds in recall.

    hits: the weights of the entries that are positive, 0 of others.
    Returns the area, NaN without a positive one, and the sum of hits.
    """
    order = np.argsort(-scores, kind="stable")
    scores, weights, hits = scores[order], weights[order], hits[order]
    total = float(hits.sum())
    if total <= 0:
        return float("nan"), total
    ends = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
    found, predicted = np.cumsum(hits)[ends], np.cumsum(weights)[ends]
    precision = np.divide(found, predicted, out=np.zeros_like(found), where=predicted > 0)
    return float(np.sum(np.diff(found, prepend=0.0) * precision) / total), total
