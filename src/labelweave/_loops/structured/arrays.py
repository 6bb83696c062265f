"""The arrays that the passes over rows read and write.

A row's score of labels y is ``sum_k unary_k y_k + sum_c table_c[state of clique c]``, where unaries and
tables are linear in the features: a column of z for every label and for every state of every
clique, times the column's scale.  The dual point of a row is a distribution over labelings that is a product
over the connected components of the graph: a mean for a label alone, shares of listed vertices for others.

Arrays of one length and type are rows of one table, and the rows have names: the time that compiling takes
grows with the number of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Floats

__all__ = [
    "CLIQUES",
    "COLUMN",
    "INNER",
    "LABELS",
    "LOOP",
    "MEMBERS",
    "DualPoint",
    "Layout",
    "MarginRows",
    "RowBlock",
]

LOOP = {"nogil": True, "cache": True, "error_model": "numpy"}
# for loops that only other loops call: what Python needs to call one takes half of the time of compiling
INNER = LOOP | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

Integers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.int8]

# rows of Layout.components and of Layout.cliques
LABELS, CLIQUES = range(2)
MEMBERS, COLUMN = range(2)


class MarginRows(NamedTuple):
    """What is known of the rows.

    ``targets`` are the true labels, completed where unobserved; ``costs`` those of errors, 0 where
    unobserved; ``weights`` sum to one; ``squares`` are the squared norms of the features.
    """

    targets: Bits
    observed: Bits
    costs: Floats
    weights: Floats
    squares: Floats


class Layout(NamedTuple):
    """The components of two labels or more with their cliques, and the labels alone.

    Component c has ``labels`` from ``components[LABELS, c]`` and ``cliques`` from ``components[CLIQUES, c]``;
    the labels after those of the last component are alone.  Clique q has ``members`` from
    ``cliques[MEMBERS, q]`` and its states are the columns from ``cliques[COLUMN, q]``.
    """

    components: Integers
    labels: Integers
    cliques: Integers
    members: Integers


class DualPoint(NamedTuple):
    """The distribution of every row: means of labels alone, vertices and their shares for components."""

    means: Floats
    vertices: Bits
    shares: Floats


class RowBlock(NamedTuple):
    """Rows that are visited one after the other, and what their visits change.

    ``products`` are theirs with z, which the visits keep up to date by ``gram``, the inner products of
    the rows; ``changes`` are what the rows are to be multiplied by and added to z.  ``labelings`` are what
    to move to.
    """

    rows: Integers
    labelings: Bits
    products: Floats
    gram: Floats
    changes: Floats
