"""The usual metrics of one model in one table, for reports and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.arguments import checked
from labelweave.array_types import Floats
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.metrics._classes import (
    NOT_A_CLASS,
    Classes,
    ClassRows,
    Codes,
    class_codes,
    read_class_rows,
    read_predicted,
)
from labelweave.metrics._inputs import (
    Scores,
    check_k,
    mean_of_defined,
    read_predictions,
    read_scores,
    read_targets,
    read_weights,
)
from labelweave.metrics.class_metrics import parent_accuracy, reciprocal_ranks, taxonomic_loss
from labelweave.metrics.label_sets import Average, f1_score, hamming_loss, subset_accuracy
from labelweave.metrics.probabilities import class_log_loss
from labelweave.metrics.rankings import (
    area_under_curve,
    average_auc,
    average_precision,
    coverage,
    pairs_out_of_order,
    per_line,
)
from labelweave.metrics.top_k import row_gains, row_precisions, top_hits


@checked
def score_table(
    Y_true: Any,
    scores: Any | None = None,
    Y_pred: Any | None = None,
    k: Iterable[int] = (1, 3, 5),
    *,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Collect the usual metrics of scores, of predicted label sets, or of both.

    For Y_true and errors see :func:`ranking_loss`.

    Parameters
    ----------
    scores : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        The higher the better; needed for the ranking metrics.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        Predicted labels; by default those with a score above 0.
    k : iterable of int, default=(1, 3, 5)
        For precision and discounted gain at k; those above L are left out.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the rows, in every metric.

    Returns
    -------
    dict of str to float
        "hamming_loss", "subset_accuracy", "micro_f1", "macro_f1" and "example_f1"; of scores also
        "precision@1", "ndcg@1" and so on for each k, "auc_label", "auc_example", "ranking_loss",
        "coverage_error" and "label_ranking_average_precision".  NaN where nothing defines the metric.
    """
    if scores is None and Y_pred is None:
        raise ValueError("Neither scores nor Y_pred was given; give at least one of them.")
    targets = read_targets(Y_true, Y_pred, keeps_doubts=True)
    weights = None if sample_weight is None else read_weights(sample_weight, targets)
    if scores is None:
        return _set_table(targets, Y_pred, weights)
    values = read_scores(scores, targets)
    if Y_pred is None:
        Y_pred = values > 0 if not sp.issparse(values) else (values > 0).astype(np.int8)
    of_sets, targets = _set_table(targets, Y_pred, weights), targets.likelier()
    return of_sets | _top_table(targets, values, k, weights) | _rank_table(targets, values, weights)


def _set_table(targets: LabelMatrix, Y_pred: Any, weights: Floats | None) -> dict[str, float]:
    Y_pred = read_predictions(Y_pred, targets)
    table = {
        "hamming_loss": hamming_loss(targets, Y_pred, sample_weight=weights),
        "subset_accuracy": subset_accuracy(targets, Y_pred, sample_weight=weights),
    }
    averages: tuple[Average, ...] = ("micro", "macro", "example")
    for name in averages:
        table[f"{name}_f1"] = float(f1_score(targets, Y_pred, average=name, sample_weight=weights))
    return table


def _top_table(
    targets: LabelMatrix, scores: Scores, k: Iterable[int], weights: Floats | None
) -> dict[str, float]:
    n_labels = targets.n_labels
    sizes = [check_k(j, targets) for j in k if not (isinstance(j, (int, np.integer)) and j > n_labels)]
    if not sizes:
        return {}
    hits = top_hits(targets, scores, max(sizes))
    table = {f"precision@{j}": mean_of_defined(row_precisions(targets, hits, j), weights) for j in sizes}
    return table | {f"ndcg@{j}": mean_of_defined(row_gains(targets, hits, j), weights) for j in sizes}


def _rank_table(targets: LabelMatrix, scores: Scores, weights: Floats | None) -> dict[str, float]:
    """Compute the metrics of whole rankings; those of examples share one sort."""
    statistics = {
        "auc_example": area_under_curve,
        "ranking_loss": pairs_out_of_order,
        "coverage_error": coverage,
        "label_ranking_average_precision": average_precision,
    }
    by_row = per_line(targets, scores, *statistics.values())
    means = {name: mean_of_defined(row, weights) for name, row in zip(statistics, by_row, strict=True)}
    return {"auc_label": average_auc(targets, scores, sample_weight=weights)} | means


@checked
def class_summary(
    y_true: Any,
    probabilities: Any,
    classes: Classes = None,
    *,
    taxonomy: Taxonomy | None = None,
    y_pred: Any = None,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Collect the usual metrics of class probabilities and of the classes predicted from them.

    Rows whose truth is an inner node are left out of the accuracy and the mean reciprocal rank.  For the
    other parameters and errors see :func:`log_loss`.

    Parameters
    ----------
    taxonomy : Taxonomy or None, default=None
        A tree in which every class is a node.
    y_pred : array-like of shape (n,) or None, default=None
        Predicted classes, by default the most probable ones.

    Returns
    -------
    dict of str to float
        "accuracy", "mean_reciprocal_rank" and "log_loss", with a taxonomy also "taxonomic_loss" and
        "parent_accuracy".  NaN where no row defines the metric.

    Examples
    --------
    >>> from labelweave.metrics import class_summary
    >>> class_summary(["a", "b"], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"])["accuracy"]
    0.5
    """
    given = read_class_rows(y_true, probabilities, classes, sample_weight, taxonomy)
    predicted = _predicted_codes(given, y_pred)
    known = given.codes >= 0
    exact = given.where(known)
    right = given.codes[known] == predicted[known]
    table = {
        "accuracy": float(np.average(right, weights=exact.weights)) if len(right) else np.nan,
        "mean_reciprocal_rank": mean_of_defined(reciprocal_ranks(exact), exact.weights),
        "log_loss": class_log_loss(given, taxonomy),
    }
    if taxonomy is None:
        return table
    names, weights = [given.classes[code] for code in predicted], given.weights
    return table | {
        "taxonomic_loss": taxonomic_loss(given.values, names, taxonomy, sample_weight=weights),
        "parent_accuracy": parent_accuracy(given.values, names, taxonomy, sample_weight=weights),
    }


def _predicted_codes(given: ClassRows, y_pred: Any) -> Codes:
    """Number the predicted classes of the counted rows."""
    if y_pred is None:
        return given.per_row(lambda block, _: block.argmax(axis=1))
    values = read_predicted(y_pred, len(given.table))
    codes = class_codes(values, given.classes)
    other = np.flatnonzero(codes == NOT_A_CLASS)
    if len(other):
        raise ValueError(
            f"y_pred at row {other[0]} is {values[other[0]]!r}, which is not among the {len(given.classes)} "
            "classes; give one of them."
        )
    return codes[given.numbers]
