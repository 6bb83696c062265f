"""The arrays that the passes over rows read and write.

A row's score of labels y is ``sum_k unary_k y_k + sum_c table_c[state of clique c]``, where unaries and
tables are linear in the features: a column of z for every label and for every state of every
clique, times the column's scale.  The dual point of a row is a distribution over labelings that is a product
over the connected components of the graph: a mean for a label alone, shares of listed vertices for others.

What goes together is a table of records: the time that compiling takes grows with the number of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Floats

Integers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.int8]

Records = npt.NDArray[np.void]

COMPONENT = np.dtype([("labels", np.int64), ("cliques", np.int64)])
CLIQUE = np.dtype([("members", np.int64), ("column", np.int64)])


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

    Component c has ``labels`` from ``components[c].labels`` and ``cliques`` from ``components[c].cliques``;
    the labels after those of the last component are alone.  Clique q has ``members`` from
    ``cliques[q].members``, and its states are the columns from ``cliques[q].column``.
    """

    components: Records
    labels: Integers
    cliques: Records
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
