"""Metrics of label sets and scores in a hierarchy, ancestors included; unobserved entries are ignored.

Sets with all ancestors (Kiritchenko, Matwin and Famili 2005), the loss of first mistakes (Cesa-Bianchi,
Gentile and Zaniboni 2006; Bi and Kwok 2011 for graphs), and the maximum F1 and the minimum semantic distance
of the Critical Assessment of Function Annotation (Clark and Radivojac 2013; Jiang et al. 2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Floats
from labelweave.foundation.arrays import numbers_of, ratios, read_row_weights
from labelweave.labels import Taxonomy
from labelweave.metrics import _inputs
from labelweave.metrics._nodes import NodeScores, NodeSets, all_nodes
from labelweave.metrics.label_sets import f1_score, precision_score, recall_score
from labelweave.metrics.rankings import average_precision_score

SetAverage = Literal["micro", "macro", "example", "samples"]


@checked
def hierarchical_precision_score(
    Y_true: Any,
    Y_pred: Any,
    taxonomy: Taxonomy,
    *,
    average: SetAverage = "micro",
    leave_out: Sequence[str] = (),
    zero_division: float = 0.0,
    sample_weight: Any = None,
) -> float:
    """Compute the fraction of predicted classes, ancestors included, that are true, from 0 to 1 (best).

    For parameters and errors see :func:`hierarchical_f1_score`.
    """
    given = {"average": average, "zero_division": zero_division, "sample_weight": sample_weight}
    return NodeSets.read(Y_true, Y_pred, taxonomy).score(precision_score, leave_out, given)


@checked
def hierarchical_recall_score(
    Y_true: Any,
    Y_pred: Any,
    taxonomy: Taxonomy,
    *,
    average: SetAverage = "micro",
    leave_out: Sequence[str] = (),
    zero_division: float = 0.0,
    sample_weight: Any = None,
) -> float:
    """Compute the fraction of true classes, ancestors included, that are predicted, from 0 to 1 (best).

    For parameters and errors see :func:`hierarchical_f1_score`.
    """
    given = {"average": average, "zero_division": zero_division, "sample_weight": sample_weight}
    return NodeSets.read(Y_true, Y_pred, taxonomy).score(recall_score, leave_out, given)


@checked
def hierarchical_f1_score(
    Y_true: Any,
    Y_pred: Any,
    taxonomy: Taxonomy,
    *,
    average: SetAverage = "micro",
    leave_out: Sequence[str] = (),
    zero_division: float = 0.0,
    sample_weight: Any = None,
) -> float:
    """Compute the F1 score of label sets with all their ancestors (Kiritchenko et al. 2005).

    Parameters
    ----------
    Y_true : LabelMatrix or DataFrame of shape (n, L), or n lists of tags
        True classes, named by nodes, NaN where not observed.  They are completed
        (:meth:`Taxonomy.with_ancestors`); ancestors without a column are observed where the columns below
        them determine their value.
    Y_pred : DataFrame, sparse matrix, array-like of shape (n, L) or n lists of tags
        Predicted classes, without missing entries.
    taxonomy : Taxonomy
        The hierarchy.
    average : {"micro", "macro", "example", "samples"}, default="micro"
        Over all entries, as is usual for hierarchies; over classes or rows; see :func:`f1_score`.
    leave_out : sequence of str, default=()
        Nodes to exclude, such as a root that every row has: ``taxonomy.roots``; not all of them.
        Unknown names are ignored.
    zero_division : {0.0, 1.0, nan}, default=0.0
        The value where nothing is positive or predicted; see :func:`f1_score`.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight per row, by default ones.

    Returns
    -------
    float
        The F1 score, from 0 to 1 (best).

    Raises
    ------
    ValueError
        If classes have no names or names that are not nodes, shapes differ, or nothing is observed.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import hierarchical_f1_score
    >>> tree = Taxonomy.from_nested({"animal": {"dog": ["poodle"], "cat": None}})
    >>> hierarchical_f1_score([["poodle"]], [["cat"]], tree)
    0.4
    >>> hierarchical_f1_score([["poodle"]], [["cat"]], tree, leave_out=["animal"])
    0.0
    """
    given = {"average": average, "zero_division": zero_division, "sample_weight": sample_weight}
    return NodeSets.read(Y_true, Y_pred, taxonomy).score(f1_score, leave_out, given)


@checked
def h_loss(
    Y_true: Any,
    Y_pred: Any,
    taxonomy: Taxonomy,
    *,
    cost: Literal["siblings", "one"] = "siblings",
    sample_weight: Any = None,
) -> float:
    """Compute the mean cost of first mistakes: a wrong class counts if no ancestor of it is wrong.

    The loss of Cesa-Bianchi, Gentile and Zaniboni (2006); for graphs of Bi and Kwok (2011).  Rows without an
    observed entry are ignored.  For the other parameters and errors see :func:`hierarchical_f1_score`.
    :func:`hierarchical_f1_score`.

    Parameters
    ----------
    cost : {"siblings", "one"}, default="siblings"
        The cost of a class: roots share 1, and each child has its share of its parents' costs; or 1 each.

    Returns
    -------
    float
        The mean loss per row, at least 0 (best).

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import h_loss
    >>> tree = Taxonomy.from_nested({"animal": {"dog": ["poodle", "boxer"], "cat": None}})
    >>> h_loss([["poodle"]], [["dog"]], tree), h_loss([["poodle"]], [["cat"]], tree)
    (0.25, 1.0)
    """
    if cost not in ("siblings", "one"):
        raise ValueError(f"cost={cost!r}; pass 'siblings' or 'one'.")
    sets = NodeSets.read(Y_true, Y_pred, taxonomy)
    weights = _inputs.read_weights(sample_weight, sets.targets)
    costs = np.ones(len(sets.graph))
    if cost == "siblings":
        costs = taxonomy.sibling_shares()[taxonomy._numbers(sets.graph.nodes)]
    wrong = abs(sp.csr_array(sets.predicted - sets.targets.positives)).astype(np.int32)
    if sets.targets.observed is not None:
        wrong = sp.csr_array(wrong.multiply(abs(sets.targets.observed)))
    wrong.eliminate_zeros()
    # the number of mistakes at or above each wrong class: 1 for a first mistake
    above = sets.graph.at_or_above(sets.graph.nodes)
    first = sp.csr_array((wrong @ above.T).multiply(wrong))
    first.data = (first.data == 1).astype(np.float64)
    losses = np.where(_inputs.row_observed_counts(sets.targets) > 0, first @ costs, np.nan)
    return _inputs.mean_of_defined(losses, weights)


@checked
def information_content(labels: Any, taxonomy: Taxonomy) -> dict[str, float]:
    """Compute the information of each class, given its parents, from training rows.

    It is ``-log2((n_class + 1) / (n_above + 1))`` with the numbers of rows that have the class and that have
    all its parents; for a root, of all rows where it is observed (Clark and Radivojac 2013).  Adding 1 keeps
    the value finite for classes without a row.

    Parameters
    ----------
    labels : LabelMatrix or DataFrame of shape (n, L), or n lists of tags
        The classes of the training rows, named by nodes; they are completed.
    taxonomy : Taxonomy
        The hierarchy.

    Returns
    -------
    dict of str to float
        The information in bits of the classes and all their ancestors.

    Raises
    ------
    ValueError
        If classes have no names, or names that are not nodes.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import information_content
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> information_content([["dog"], ["dog"], ["cat"]], tree)
    {'animal': 0.0, 'dog': 0.4150374992788438, 'cat': 1.0}
    """
    targets, graph = all_nodes(_inputs.read_targets(labels), taxonomy)
    edges = graph._edges
    upward = sp.csr_array((np.ones(len(edges)), (edges[:, 1], edges[:, 0])), shape=(len(graph),) * 2)
    parents = np.bincount(edges[:, 1], minlength=len(graph))
    has_all = sp.csr_array(targets.positives.astype(np.int64) @ upward.T)
    has_all.data = (has_all.data == parents[has_all.indices]).astype(np.int64)
    known = None if targets.observed is None else abs(targets.observed).astype(np.int64)
    counts = np.asarray((has_all if known is None else has_all.multiply(known)).sum(axis=0))
    rows = np.full(len(graph), len(targets)) if known is None else np.asarray(known.sum(axis=0))
    counts = np.where(parents == 0, rows, counts)
    bits = -np.log2((targets.positive_counts() + 1) / (counts + 1))
    return dict(zip(graph.nodes, np.abs(bits).tolist(), strict=True))


@checked
def fmax_score(
    Y_true: Any,
    probabilities: Any,
    taxonomy: Taxonomy,
    *,
    thresholds: Any = None,
    leave_out: Sequence[str] = (),
    sample_weight: Any = None,
) -> float:
    """Compute Fmax of CAFA: the best F1 of mean precision and mean recall over thresholds.

    Scores are first made consistent: a class has the largest score at or below it.  The precision at a
    threshold is the mean over rows with a predicted class, the recall over all rows with a true class; other
    rows are ignored (Jiang et al. 2016).  For other parameters and errors see :func:`hierarchical_f1_score`.

    Parameters
    ----------
    probabilities : DataFrame, sparse matrix or array-like of shape (n, L)
        Scores; higher is better.
    thresholds : array-like of ascending numbers or None, default=None
        Classes with at least this score are predicted; by default 0.01, 0.02, ..., 1.

    Returns
    -------
    float
        The score, from 0 to 1 (best); NaN where no row has a class.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import fmax_score
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> known = pd.DataFrame({"animal": [1, 1], "dog": [1, 0], "cat": [0, 1]})
    >>> fmax_score(known, [[0.9, 0.8, 0.1], [0.9, 0.6, 0.5]], tree)
    0.9090909090909091
    """
    scored = NodeScores.read(Y_true, probabilities, taxonomy, sample_weight).without(leave_out)
    hits, predicted, positive = scored.by_threshold(_checked_thresholds(thresholds), None)
    weights = scored.weights
    precision = ratios(weights @ ratios(hits, predicted), weights @ (predicted > 0))
    total = np.full(hits.shape[1], weights.sum())
    recall = ratios(weights @ ratios(hits, np.broadcast_to(positive[:, None], hits.shape)), total, np.nan)
    best = ratios(2 * precision * recall, precision + recall)
    return float(best.max()) if weights.sum() > 0 else float("nan")


@checked
def smin_loss(
    Y_true: Any,
    probabilities: Any,
    taxonomy: Taxonomy,
    information: Mapping[str, float],
    *,
    thresholds: Any = None,
    sample_weight: Any = None,
) -> float:
    """Compute Smin of CAFA: the minimum semantic distance over thresholds.

    At a threshold it is ``sqrt(ru^2 + mi^2)``: the mean information of true classes that are not predicted,
    and of predicted ones that are not true, over rows with a true class (Clark and Radivojac 2013).  For the
    other parameters and errors see :func:`fmax_score`.

    Parameters
    ----------
    information : mapping of str to float
        The information of every class, from training rows (:func:`information_content`).

    Returns
    -------
    float
        The distance in bits, at least 0 (best); NaN where no row has a class.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import smin_loss
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> known = pd.DataFrame({"animal": [1], "dog": [1], "cat": [0]})
    >>> smin_loss(known, [[0.9, 0.4, 0.6]], tree, {"animal": 0, "dog": 2, "cat": 1})
    1.0
    """
    scored = NodeScores.read(Y_true, probabilities, taxonomy, sample_weight)
    absent = [name for name in scored.graph.nodes if name not in information]
    if absent:
        raise ValueError(
            f"information lacks {len(absent)} of {len(scored.graph)} classes, such as {absent[0]!r}; "
            "compute it with information_content from training rows that have these classes as columns."
        )
    bits = np.array([_checked_bits(name, information[name]) for name in scored.graph.nodes])
    hits, predicted, positive = scored.by_threshold(_checked_thresholds(thresholds), bits)
    if not scored.weights.sum() > 0:
        return float("nan")
    share = scored.weights / scored.weights.sum()
    remaining, wrong = share @ (positive[:, None] - hits), share @ (predicted - hits)
    return float(np.sqrt(np.square(remaining) + np.square(wrong)).min())


@checked
def depth_table(
    Y_true: Any, scores: Any = None, Y_pred: Any = None, *, taxonomy: Taxonomy, sample_weight: Any = None
) -> dict[int, dict[str, float]]:
    """Compute scores of the predictions per depth of the hierarchy; roots have depth 0.

    For the other parameters and errors see :func:`hierarchical_f1_score`.

    Parameters
    ----------
    scores : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        Higher is better; made consistent as in :func:`fmax_score`.
    Y_pred : DataFrame, sparse matrix, array-like of shape (n, L), n lists of tags or None, default=None
        Predicted classes; by default those with a score above 0.

    Returns
    -------
    dict of int to dict of str to float
        By depth (:meth:`Taxonomy.depth`): "classes" and "positives", the numbers of classes and of positive
        entries by weight, "precision", "recall" and "f1" over all entries, and with scores
        "average_precision".

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.metrics import depth_table
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> found = depth_table([["dog"], ["cat"]], Y_pred=[["dog"], ["dog"]], taxonomy=tree)
    >>> found[0]["f1"], found[1]["f1"]
    (1.0, 0.5)
    """
    if scores is None and Y_pred is None:
        raise ValueError("Neither scores nor Y_pred was given; pass at least one of them.")
    scored = (
        None if scores is None else NodeScores.read(Y_true, scores, taxonomy, sample_weight, all_rows=True)
    )
    if scored is not None and Y_pred is None:
        found = sp.csr_array((scored.scores > 0).astype(np.int8))
        sets = NodeSets(scored.graph, scored.targets, found)
    else:
        sets = NodeSets.read(Y_true, Y_pred, taxonomy)
    weights = read_row_weights(sample_weight, len(sets.targets), most=_inputs.LARGEST)
    depths, table = sets.graph._depths, dict[int, dict[str, float]]()
    for depth in np.unique(depths).tolist():
        columns = np.flatnonzero(depths == depth)
        truth, predicted = sets.targets.select_labels(columns), sets.predicted[:, columns]
        positives = weights @ np.diff(truth.positives.indptr)
        row = {"classes": float(len(columns)), "positives": float(positives)}
        is_known = truth.observed is None or truth.observed.nnz
        for name, metric in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
            row[name] = float(metric(truth, predicted, sample_weight=sample_weight)) if is_known else np.nan
        if scored is not None:
            part = scored.scores[:, columns]
            area = average_precision_score(truth, part, sample_weight=sample_weight) if is_known else np.nan
            row["average_precision"] = float(area)
        table[depth] = row
    return table


def _checked_bits(name: str, bits: Any) -> float:
    if isinstance(bits, Real) and 0 <= float(bits) < np.inf:
        return float(bits)
    raise ValueError(
        f"information of the class {name!r} is {bits!r}; pass a finite number of bits, 0 or more."
    )


def _checked_thresholds(thresholds: Any) -> Floats:
    if thresholds is None:
        return np.arange(1, 101) / 100
    found = numbers_of(thresholds, "thresholds").astype(np.float64)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
        raise ValueError(f"thresholds is {thresholds!r}; pass finite, strictly ascending numbers.")
    return found
