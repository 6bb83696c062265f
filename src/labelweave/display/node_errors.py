"""For every node of a taxonomy: how many rows belong to it, and how many of them are predicted elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, Floats
from labelweave.display.given_labels import named_labels, names_of
from labelweave.estimators.targets import has_many_labels
from labelweave.labels import Taxonomy
from labelweave.metrics._classes import NOT_A_CLASS, class_codes, read_predicted, read_values
from labelweave.metrics._inputs import read_predictions

__all__ = ["NodeErrors", "node_errors"]


class NodeErrors(NamedTuple):
    """Counts of rows, in the order of the taxonomy's nodes.

    rows (nodes,): rows with a true label at the node or below it.
    wrong (nodes,): those of them without a predicted label at the node or below it.
    """

    rows: Floats
    wrong: Floats

    def shares(self) -> Floats:
        """Compute the error of every node.

        Returns (nodes,): the share of its rows that are predicted outside it, NaN without rows.
        """
        shares = np.full(len(self.rows), np.nan)
        np.divide(self.wrong, self.rows, out=shares, where=self.rows > 0)
        return shares


def node_errors(taxonomy: Taxonomy, y_true: Any, y_pred: Any) -> NodeErrors:
    """Count rows and errors by node.

    y_true (n,): names of nodes, None or NaN where not observed; or labels that are named by nodes.
    y_pred (n,): the predictions, of the same kind.
    Raises ValueError if a name is no node, shapes disagree or nothing was observed.
    """
    if has_many_labels(y_true):
        below, found = _of_labels(taxonomy, y_true, y_pred)
    else:
        below, found = _of_classes(taxonomy, y_true, y_pred)
    rows = np.asarray(below.sum(axis=0), np.float64)
    return NodeErrors(rows, rows - np.asarray(below.multiply(found).sum(axis=0), np.float64))


def _of_labels(taxonomy: Taxonomy, y_true: Any, y_pred: Any) -> tuple[sp.csr_array, sp.csr_array]:
    labels = named_labels(y_true, y_pred)
    above = taxonomy.membership(names_of(labels))
    return _any(labels.positives, above), _any(read_predictions(y_pred, labels), above)


def _of_classes(taxonomy: Taxonomy, y_true: Any, y_pred: Any) -> tuple[sp.csr_array, sp.csr_array]:
    truths = read_values(y_true, "y_true")
    seen = np.flatnonzero(truths != None)  # noqa: E711
    if not len(seen):
        raise ValueError(
            f"y_true of {len(truths)} rows has no observed class, so there are no errors to show; give at "
            "least one."
        )
    predictions = read_predicted(y_pred, len(truths))
    above = taxonomy.membership(taxonomy.nodes)
    places = [
        _node_numbers(values[seen], seen, taxonomy, given)
        for values, given in ((truths, "y_true"), (predictions, "y_pred"))
    ]
    return above[places[0]], above[places[1]]


def _any(labels: sp.csr_array, above: sp.csr_array) -> sp.csr_array:
    """Mark the nodes with at least one of a row's labels below."""
    counts = sp.csr_array(labels.astype(np.float64) @ above)
    counts.data[:] = 1.0
    return counts


def _node_numbers(values: Array, rows: Array, taxonomy: Taxonomy, given: str) -> Array:
    codes = class_codes(values, taxonomy.nodes)
    unknown = np.flatnonzero(codes == NOT_A_CLASS)
    if len(unknown):
        raise ValueError(
            f"{given} at row {rows[unknown[0]]} is {values[unknown[0]]!r}, which is no node of the taxonomy; "
            f"give names of its {len(taxonomy)} nodes."
        )
    return codes
