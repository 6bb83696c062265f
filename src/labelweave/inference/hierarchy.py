"""Scores that obey a hierarchy of labels: none above one of its ancestors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.arguments import checked
from labelweave.array_types import Array, RowsByLabels
from labelweave.arrays import numbers_of
from labelweave.labels import Taxonomy
from labelweave.labels.label_matrix import checked_names

Enforcement = Literal["max", "projection"]


@checked
def enforce_hierarchy(
    scores: Any,
    taxonomy: Taxonomy,
    label_names: Any,
    enforce: Enforcement = "max",
    *,
    label_weight: Any = None,
) -> RowsByLabels:
    """Change scores so that no label has a higher one than a label above it.

    Parameters
    ----------
    scores : array-like of shape (n, L)
        The scores or probabilities.
    taxonomy : Taxonomy
        What is above what; nodes may have several parents.
    label_names : sequence of str
        The labels, each the name of a node; all nodes or some.
    enforce : {"max", "projection"}, default="max"
        "max" gives a label the greatest score at or below it.  "projection" gives the scores that obey the
        hierarchy and are nearest to the given ones in weighted least squares (isotonic regression), exact
        for trees and for graphs: blocks of labels are cut in two at their means by maximum flows (Spouge, Wan
        and Wilbur 2003; Luss, Rosset and Shahar 2012).
    label_weight : array-like of shape (L,) or None, default=None
        Weights of the labels in the projection, above 0.

    Returns
    -------
    ndarray of float64, shape (n, L)
        The scores.

    Raises
    ------
    ValueError
        If a label is no node, shapes disagree, or a score or weight makes no sense.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.inference import enforce_hierarchy
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> enforce_hierarchy([[0.2, 0.8, 0.1]], tree, ["animal", "dog", "cat"])
    array([[0.8, 0.8, 0.1]])
    >>> enforce_hierarchy([[0.2, 0.8, 0.1]], tree, ["animal", "dog", "cat"], "projection")
    array([[0.5, 0.5, 0.1]])
    """
    names = checked_names(label_names, None)
    if names is None:
        raise ValueError("label_names is None; give the name of every label, as nodes of the taxonomy.")
    order = LabelOrder.of(taxonomy, names)
    table = numbers_of(scores, "scores").astype(np.float64)
    if table.ndim != 2 or table.shape[1] != len(order.columns):
        raise ValueError(
            f"scores has shape {table.shape}, but there are {len(order.columns)} labels; give a column each."
        )
    if enforce not in get_args(Enforcement):
        raise ValueError(f"enforce={enforce!r}; give 'max' or 'projection'.")
    if not np.isfinite(table).all():
        row, label = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"scores at row {row}, label {label} is {table[row, label]}; scores must be finite.")
    weights = None if label_weight is None else _checked_weights(label_weight, len(order.columns))
    return order.enforced(table, enforce, weights)


def _checked_weights(label_weight: Any, n_labels: int) -> Array:
    weights = numbers_of(label_weight, "label_weight").astype(np.float64)
    if weights.shape != (n_labels,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(
            f"label_weight is {label_weight!r}; give {n_labels} finite numbers above 0, one a label."
        )
    return weights


@dataclass(frozen=True)
class LabelOrder:
    """Which labels are right above which, by way of whatever nodes are between.

    columns (L,): the labels, those above first.
    starts, parents, owners: the edges up, by place in ``columns``; whose each is.
    child_starts, children, child_edges: the edges down, with their places among those up.
    """

    columns: npt.NDArray[np.intp]
    starts: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    child_starts: npt.NDArray[np.int64]
    children: npt.NDArray[np.int64]
    child_edges: npt.NDArray[np.int64]

    @classmethod
    def of(cls, taxonomy: Taxonomy, label_names: Any) -> Self:
        """Find the edges, without those that follow from others."""
        names = [str(name) for name in label_names]
        above = taxonomy.at_or_above(names)
        columns = np.argsort(taxonomy._numbers(names), kind="stable")
        strict = sp.csr_array(above - sp.eye_array(len(names), dtype=above.dtype, format="csr"))
        strict.eliminate_zeros()
        edges = sp.coo_array(strict - strict.multiply((strict @ strict).astype(bool)))
        is_edge = edges.data > 0
        place = np.empty(len(names), np.int64)
        place[columns] = np.arange(len(names))
        owners, parents = place[edges.row[is_edge]], place[edges.col[is_edge]]
        up = np.lexsort((parents, owners))
        owners, parents = owners[up], parents[up]
        down = np.argsort(parents, kind="stable")
        ends = np.arange(len(names) + 1)
        return cls(
            columns,
            np.searchsorted(owners, ends),
            parents,
            owners,
            np.searchsorted(parents[down], ends),
            owners[down],
            down,
        )

    def enforced(
        self, scores: RowsByLabels, enforce: Enforcement, weights: Array | None = None
    ) -> RowsByLabels:
        """Change scores so that they obey the order: shape (n, L)."""
        from labelweave._loops.isotonic import greatest_below, project

        ordered = np.ascontiguousarray(scores[:, self.columns], dtype=np.float64)
        if enforce == "max":
            greatest_below(ordered, self.starts, self.parents)
        else:
            weights = np.ones(len(self.columns)) if weights is None else weights[self.columns]
            up, down = (self.starts, self.parents, self.owners), (self.child_starts, self.children)
            project(ordered, weights, (*up, *down, self.child_edges))
        found = np.empty_like(ordered)
        found[:, self.columns] = ordered
        return found
