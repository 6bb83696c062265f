"""The area under precision-recall curves, of all entries together or of each label.

It is the average precision: the sum over thresholds of the precision there times what it adds in recall, as
the field of hierarchical classification measures it (Vens et al. 2008; Giunchiglia and Lukasiewicz 2020).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.arguments import checked
from labelweave.array_types import Floats, PerLabel
from labelweave.metrics._inputs import read_scores, read_targets, read_weights


@checked
def average_precision_score(
    Y_true: Any,
    scores: Any,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    *,
    sample_weight: Any = None,
) -> float | PerLabel:
    """Compute the area under the precision-recall curve of observed entries.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L)
        The higher the better; see :func:`ranking_loss`.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        The curve of all entries; the mean over labels, or that weighted by their positive entries; or None
        for every label.  Labels without an observed positive entry are left out of means.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float or ndarray of shape (L,)
        The areas, up to 1 (best); NaN without an observed positive entry.

    Raises
    ------
    ValueError
        If the shapes disagree, a score is NaN or nothing was observed.

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
    weights, signs = read_weights(sample_weight, targets), targets.to_signs()
    table = written_out(table) if sp.issparse(table) else table
    if average == "micro":
        rows, _ = np.nonzero(signs)
        seen = signs != 0
        return _area(signs[seen] == 1, table[seen], weights[rows])
    found, counts = np.full(targets.n_labels, np.nan), np.zeros(targets.n_labels)
    for label in range(targets.n_labels):
        seen = signs[:, label] != 0
        positive = signs[seen, label] == 1
        counts[label] = weights[seen] @ positive
        found[label] = _area(positive, table[seen, label], weights[seen])
    if average is None:
        return found
    known = counts > 0
    if not known.any():
        return float("nan")
    return float(np.average(found[known], weights=counts[known] if average == "weighted" else None))


def written_out(table: sp.csr_array) -> Floats:
    """Write sparse scores out, -inf where none is stored."""
    dense = np.full(table.shape, -np.inf)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    dense[rows, table.indices] = table.data
    return dense


def _area(positive: Any, scores: Any, weights: Floats) -> float:
    """Sum precisions at the thresholds between distinct scores, each times what it adds in recall."""
    order = np.argsort(-scores, kind="stable")
    scores, weights, hits = scores[order], weights[order], (weights * positive)[order]
    total = hits.sum()
    if total <= 0:
        return float("nan")
    ends = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
    found, predicted = np.cumsum(hits)[ends], np.cumsum(weights)[ends]
    precision = np.divide(found, predicted, out=np.zeros_like(found), where=predicted > 0)
    return float(np.sum(np.diff(found, prepend=0.0) * precision) / total)
