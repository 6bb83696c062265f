"""Scores consistent with a hierarchy, none above an ancestor's score; label sets as lists of terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import numbers_of
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.labels.label_names import checked_names, columns_by_name, places_by_name, rows_by_name

Enforcement = Literal["max", "projection"]

_ROUNDING = 1e-12


@checked
def enforce_hierarchy(
    scores: Any,
    taxonomy: Taxonomy,
    label_names: Any,
    enforce: Enforcement = "max",
    *,
    label_weight: Any = None,
) -> RowsByLabels:
    """Make scores consistent with a hierarchy: no label scores higher than one of its ancestors.

    Parameters
    ----------
    scores : array-like of shape (n, L)
        The scores or probabilities; named columns are matched with the labels.
    taxonomy : Taxonomy
        The hierarchy; nodes may have several parents.
    label_names : sequence of str
        The label of each column, a node of the taxonomy; all nodes or some.
    enforce : {"max", "projection"}, default="max"
        "max" sets a label's score to the maximum at or below it.  "projection" returns the consistent scores
        that are nearest in weighted least squares (isotonic regression), exact for trees and graphs: blocks
        of labels are split at their means by maximum flows (Spouge, Wan and Wilbur 2003; Luss, Rosset and
        Shahar 2012).
    label_weight : array-like of shape (L,) or None, default=None
        Weights of the labels in the projection, above 0; a Series that names them is matched by name.

    Returns
    -------
    ndarray of float64, shape (n, L)
        The scores.

    Raises
    ------
    ValueError
        If a label is not a node, shapes differ, or a score or weight is invalid.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.postprocessing import enforce_hierarchy
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> enforce_hierarchy([[0.2, 0.8, 0.1]], tree, ["animal", "dog", "cat"])
    array([[0.8, 0.8, 0.1]])
    >>> enforce_hierarchy([[0.2, 0.8, 0.1]], tree, ["animal", "dog", "cat"], "projection")
    array([[0.5, 0.5, 0.1]])
    """
    names = checked_names(label_names, None)
    if names is None:
        raise ValueError("label_names is None; pass the node of the taxonomy for every label.")
    order = LabelOrder.of(taxonomy, names)
    table = numbers_of(columns_by_name(scores, list(map(str, names)), "scores"), "scores").astype(np.float64)
    if table.ndim != 2 or table.shape[1] != len(order.columns):
        raise ValueError(
            f"scores has shape {table.shape}, but there are {len(order.columns)} labels; pass one column per "
            f"label."
        )
    if enforce not in get_args(Enforcement):
        raise ValueError(f"enforce={enforce!r}; pass 'max' or 'projection'.")
    if not np.isfinite(table).all():
        row, label = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"scores at row {row}, label {label} is {table[row, label]}; pass finite scores.")
    weights = None if label_weight is None else _checked_weights(label_weight, [str(name) for name in names])
    return order.enforced(table, enforce, weights)


@checked
def h_loss_sets(probabilities: Any, taxonomy: Taxonomy, label_names: Any) -> npt.NDArray[np.int8]:
    """Choose consistent label sets with the smallest expected h-loss.

    The loss is :func:`labelweave.metrics.h_loss`: a wrong class costs its share of its parents' costs if no
    ancestor is wrong.  In trees the sets are optimal (Cesa-Bianchi, Gentile and Zaniboni 2006; Bi and Kwok
    2011).  In graphs they are optimal for an upper bound: all parents of a class are as probable as the least
    probable one, and a missed class costs the mean over its predicted parents.  For the other parameters and
    errors see :func:`enforce_hierarchy`.

    Parameters
    ----------
    probabilities : array-like of shape (n, L)
        Of the labels, from 0 to 1; first made consistent: a label gets the maximum at or below it.

    Returns
    -------
    ndarray of int8, shape (n, L)
        Ones where labels are predicted.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.postprocessing import h_loss_sets
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> h_loss_sets([[0.9, 0.6, 0.3], [0.4, 0.4, 0.0]], tree, ["animal", "dog", "cat"])
    array([[1, 1, 0],
           [0, 0, 0]], dtype=int8)
    """
    table = enforce_hierarchy(probabilities, taxonomy, label_names)
    if table.size and not (table.min() >= -_ROUNDING and table.max() <= 1 + _ROUNDING):
        raise ValueError(f"probabilities are from {table.min()} to {table.max()}; pass numbers from 0 to 1.")
    order = LabelOrder.of(taxonomy, checked_names(label_names, None))
    return (order.h_loss_gains(table) > 0).astype(np.int8)


def _checked_weights(label_weight: Any, names: Sequence[str]) -> Array:
    weights = numbers_of(rows_by_name(label_weight, names, "label_weight"), "label_weight").astype(np.float64)
    if weights.shape != (len(names),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"label_weight is {label_weight!r}; pass {len(names)} finite numbers above 0.")
    return weights


@dataclass(frozen=True)
class LabelOrder:
    """The hierarchy between labels, with paths through nodes that are not labels.

    columns (L,): the labels, ancestors first.
    costs (L,): of mistakes, in the same order.
    starts, parents, owners: the edges to parents, by position in ``columns``, and the child of each.
    """

    columns: npt.NDArray[np.intp]
    costs: Array
    starts: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]

    @classmethod
    def of(cls, taxonomy: Taxonomy, label_names: Any) -> Self:
        """Build the edges, without those implied by others."""
        names = [str(name) for name in label_names]
        above = taxonomy.at_or_above(names)
        numbers = taxonomy._numbers(names)
        columns = np.argsort(numbers, kind="stable")
        strict = sp.csr_array(above - sp.eye_array(len(names), dtype=above.dtype, format="csr"))
        strict.eliminate_zeros()
        edges = sp.coo_array(strict - strict.multiply((strict @ strict).astype(bool)))
        is_edge = edges.data > 0
        place = np.empty(len(names), np.int64)
        place[columns] = np.arange(len(names))
        owners, parents = place[edges.row[is_edge]], place[edges.col[is_edge]]
        up = np.lexsort((parents, owners))
        owners, parents = owners[up], parents[up]
        ends = np.arange(len(names) + 1)
        return cls(
            columns,
            taxonomy.sibling_shares()[numbers[columns]],
            np.searchsorted(owners, ends),
            parents,
            owners,
        )

    def enforced(
        self, scores: RowsByLabels, enforce: Enforcement, weights: Array | None = None
    ) -> RowsByLabels:
        """Make scores consistent with the order: shape (n, L)."""
        from labelweave.foundation.loops.isotonic import greatest_below, project

        ordered = np.ascontiguousarray(scores[:, self.columns], dtype=np.float64)
        if enforce == "max":
            greatest_below(ordered, self.starts, self.parents)
        else:
            weights = np.ones(len(self.columns)) if weights is None else weights[self.columns]
            project(ordered, weights, self.parents.astype(np.uint32), self.owners.astype(np.uint32))
        return self._put_back(ordered)

    def _put_back(self, ordered: RowsByLabels) -> RowsByLabels:
        """Restore the original order of the columns."""
        found = np.empty(ordered.shape, ordered.dtype)
        found[:, self.columns] = ordered
        return found

    def _above(self, place: int) -> Array:
        return self.parents[self.starts[place] : self.starts[place + 1]]

    def multiplied(self, probabilities: RowsByLabels) -> RowsByLabels:
        """Multiply conditional probabilities, given the parents, down the hierarchy: shape (n, L).

        All parents of a label hold with the probability of the least probable one, an upper bound.
        """
        lines = np.ascontiguousarray(probabilities.T[self.columns], dtype=np.float64)
        for place in range(len(lines)):
            above = self._above(place)
            if len(above):
                lines[place] *= lines[above].min(axis=0)
        return self._put_back(lines.T)

    def least_steps(self, probabilities: RowsByLabels) -> RowsByLabels:
        """Return the smallest conditional probability on the path to each label, inclusive: shape (n, L).

        A step's probability is that of a label given its parents, of which the smallest counts.
        """
        lines = np.ascontiguousarray(probabilities.T[self.columns], dtype=np.float64)
        steps = lines.copy()
        for place in range(len(lines)):
            above = self._above(place)
            if len(above):
                given = lines[above].min(axis=0)
                share = np.divide(lines[place], given, out=np.zeros_like(given), where=given > 0)
                steps[place] = np.minimum(share, steps[above].min(axis=0))
        return self._put_back(steps.T)

    def h_loss_gains(self, probabilities: RowsByLabels) -> RowsByLabels:
        """Return values that are above 0 for the labels of the set of smallest expected h-loss: shape (n, L).

        They are consistent.  The best consistent set has the positive labels of the projection of the labels'
        gains (Picard 1976; see ``loops.isotonic``).
        """
        table = probabilities[:, self.columns]
        counts = np.diff(self.starts)
        below, least = counts > 0, np.ones_like(table)
        if below.any():
            least[:, below] = np.minimum.reduceat(table[:, self.parents], self.starts[:-1][below], axis=1)
        shares = self.costs[self.owners] / counts[self.owners]
        missed = sp.csr_array((shares, (self.owners, self.parents)), shape=(len(counts),) * 2)
        gains = self.costs * (2.0 * table - least) - table @ missed
        found = self.enforced(self._put_back(gains), "projection")
        return np.where(found > _ROUNDING * self.costs.max(), found, np.minimum(found, 0.0))

    def conditional(self, labels: LabelMatrix) -> LabelMatrix:
        """Keep the entries of rows that have all parents of a label; the others are unobserved.

        Probabilities become conditional on the parents, of which the least probable counts.
        """
        parents = sp.csr_array(
            (np.ones(len(self.owners), np.int64), (self.columns[self.parents], self.columns[self.owners])),
            shape=(labels.n_labels,) * 2,
        )
        needed = np.zeros(labels.n_labels, np.int64)
        needed[self.columns] = np.diff(self.starts)
        has = sp.csr_array(labels.positives.astype(np.int64) @ parents)
        has.data = (has.data == needed[has.indices]).astype(np.int8)
        has.eliminate_zeros()
        tops = sp.csr_array(np.broadcast_to((needed == 0).astype(np.int8), labels.shape))
        seen = sp.csr_array(has + tops)
        if labels.observed is not None:
            seen = sp.csr_array(seen.multiply(abs(labels.observed)))
        kept = LabelMatrix(labels.positives, sp.csr_array(seen.astype(bool)), labels.names)
        if labels.flip_probabilities is None:
            return kept
        expected = sp.csr_matrix(labels.expected_positives)
        shares = sp.coo_array(expected.multiply(seen.astype(bool)))
        rows, place = shares.row, np.argsort(self.columns)[shares.col]
        least, counts = np.ones(len(rows)), np.diff(self.starts)[place]
        for number in range(counts.max(initial=0)):
            below = np.flatnonzero(counts > number)
            above = self.columns[self.parents[self.starts[place[below]] + number]]
            least[below] = np.minimum(least[below], expected[rows[below], above].A1)
        shares.data = shares.data / least
        return LabelMatrix._of_targets(sp.csr_array(shares), kept.observed, kept.names)


Terms = Literal["predicted", "closed", "specific"]


@overload
def term_lists(
    labels: Any, taxonomy: Taxonomy, label_names: Any = None, terms: Terms = "predicted",
) -> list[list[str]]: ...  # fmt: skip
@overload
def term_lists(
    labels: Any, taxonomy: Taxonomy, label_names: Any = None, terms: Terms = "predicted", *,
    probabilities: Any,
) -> list[list[tuple[str, float]]]: ...  # fmt: skip
@checked
def term_lists(
    labels: Any, taxonomy: Taxonomy, label_names: Any = None, terms: Terms = "predicted", *,
    probabilities: Any = None,
) -> Any:  # fmt: skip
    """Convert label sets to lists of terms, one per row.

    Parameters
    ----------
    labels : LabelMatrix, DataFrame or array-like of shape (n, L)
        The label sets, such as the output of ``predict``.
    taxonomy : Taxonomy
        The hierarchy; nodes may have several parents.
    label_names : sequence of str or None, default=None
        The label of each column, a node of the taxonomy; None if ``labels`` has names.  Columns with the
        same names are put into this order.
    terms : {"predicted", "closed", "specific"}, default="predicted"
        The returned labels: the sets as they are; with all their ancestors; or only labels without a
        descendant in the set.
    probabilities : DataFrame or array-like of shape (n, L), or None, default=None
        Probabilities or scores of the labels, returned with them.

    Returns
    -------
    list of n lists
        The names, in the order of the labels; with ``probabilities``, pairs of a name and its number in
        descending order.

    Raises
    ------
    ValueError
        If labels have no names, one is not a node of the taxonomy, shapes differ, or a number is not finite.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.postprocessing import term_lists
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> names = ["animal", "dog", "cat"]
    >>> term_lists([[1, 1, 0], [0, 0, 1]], tree, names, "specific")
    [['dog'], ['cat']]
    >>> term_lists([[0, 0, 1]], tree, names, "closed", probabilities=[[0.9, 0.1, 0.6]])
    [[('animal', 0.9), ('cat', 0.6)]]
    """
    sets = LabelMatrix.from_any(labels)
    names = checked_names(label_names, sets.n_labels) if label_names is not None else sets.names
    if names is None:
        raise ValueError("labels has no names to find in the taxonomy; pass label_names.")
    words = [str(name) for name in names]
    taxonomy._numbers(words, "label")
    places = None if sets.names is None else places_by_name(sets.words, words, "labels")
    sets = sets if places is None else sets.select_labels(places)
    if terms not in get_args(Terms):
        raise ValueError(f"terms={terms!r}; pass 'predicted', 'closed' or 'specific'.")
    chosen = sp.csr_array(chosen_terms(sets.positives, taxonomy, names, terms))
    rows = [chosen.indices[a:b] for a, b in zip(chosen.indptr, chosen.indptr[1:], strict=False)]
    if probabilities is None:
        return [[str(names[k]) for k in np.sort(row)] for row in rows]
    own = words if sets.names is None else sets.words
    numbers = numbers_of(columns_by_name(probabilities, own, "probabilities"), "probabilities")
    if numbers.shape != sets.shape:
        raise ValueError(f"probabilities has shape {numbers.shape}, labels {sets.shape}; they must agree.")
    if not np.isfinite(numbers).all():
        row, label = np.argwhere(~np.isfinite(numbers))[0]
        raise ValueError(
            f"probabilities at row {row}, label {label} is {numbers[row, label]}; pass finite numbers."
        )
    lists = []
    for row, values in zip(map(np.sort, rows), numbers, strict=True):
        order = row[np.argsort(-values[row], kind="stable")]
        lists.append([(str(names[k]), float(values[k])) for k in order])
    return lists


def chosen_terms(sets: sp.csr_array, taxonomy: Taxonomy, names: Any, terms: Terms) -> sp.csr_array:
    """Extend label sets (n, L) by all ancestors, or reduce them to the most specific labels."""
    if terms == "predicted":
        return sets
    above = taxonomy.at_or_above([str(name) for name in names])
    sets = sp.csr_array(sets).astype(np.int32)
    times = sp.csr_array(sets @ above)  # the number of labels of the set at or below a label
    found = times > 0 if terms == "closed" else sets.multiply(times == 1)
    found = sp.csr_array(found, dtype=np.int8)
    found.eliminate_zeros()
    return found
