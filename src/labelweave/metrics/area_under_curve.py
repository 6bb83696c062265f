"""The area under the receiver operating characteristic, averaged over labels or examples.

It is the share of (positive, negative) pairs in which the positive has the
higher score, a tie counting one half.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from labelweave.metrics._inputs import mean_of_defined, read_scores, read_targets
from labelweave.metrics._score_groups import ScoreGroups, per_line, transposed

__all__ = ["average_auc"]


def average_auc(Y_true: Any, scores: Any, average: Literal["label", "example"] = "label") -> float:
    """Average the area under the ROC curve over labels or over examples.

    Only pairs of observed entries are counted.  Labels (or examples) without
    an observed positive or without an observed negative have no area and are
    left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L)
        The higher the better.  A score of -inf, and in a sparse matrix an entry
        that is not stored, ranks below all others; those entries are tied.
    average : {"label", "example"}, default="label"
        Rank the examples for each label, or the labels for each example.

    Returns
    -------
    float
        The mean area, from 0 to 1 (best); NaN if no label (example) has one.

    Raises
    ------
    ValueError
        If the shapes disagree, scores hold NaN or nothing was observed.
    """
    if average not in ("label", "example"):
        raise ValueError(f"average is {average!r}; it must be 'label' or 'example'.")
    targets = read_targets(Y_true)
    values = read_scores(scores, targets)
    if average == "label":
        targets, values = transposed(targets, values)
    areas = per_line(targets, values, area_under_curve)[0]
    return mean_of_defined(areas, np.ones(len(areas)))


def area_under_curve(groups: ScoreGroups) -> npt.NDArray[np.float64]:
    """Compute the area of every line, NaN where there is no pair.

    groups: the observed entries grouped by equal score.
    Shapes: result (lines,).
    """
    pairs = groups.line_sums(groups.positives) * groups.line_sums(groups.negatives)
    won = groups.line_sums(groups.positives * (2 * groups.below(groups.negatives) + groups.negatives))
    areas = np.full(len(pairs), np.nan)
    np.divide(won, 2 * pairs, out=areas, where=pairs > 0)
    return areas
