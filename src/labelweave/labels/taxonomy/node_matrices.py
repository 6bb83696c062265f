"""Arrays of a taxonomy that models need: memberships, distances, groups, classes of rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.arrays import panels
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_tables import split_targets
from labelweave.labels.taxonomy.node_graph import Names, NodeGraph

_GROUPINGS = ("shared", "class", "level", "subtree")
_MOST_PAIRS = 10**8
_ENTRIES_AT_ONCE = 10**7


class NodeMatrices(NodeGraph):
    """Mixin of ``Taxonomy`` that computes arrays; see :class:`NodeGraph`."""

    def membership(self, label_names: Names) -> sp.csr_array:
        """Return the ancestors of each label, including itself: the matrix Phi of Seeger's section 3.

        Parameters
        ----------
        label_names : sequence of str
            The labels, each the name of a node, a leaf or not.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (L, nodes)
            Ones at a label's own node and at its ancestors.

        Raises
        ------
        ValueError
            If a label is no node of the taxonomy.
        """
        numbers = self._numbers(label_names, "label")
        if not self.is_tree:
            return self._closure[numbers]
        counts = self._depths[numbers] + 1
        starts = np.concatenate([[0], np.cumsum(counts)])
        columns = np.empty(starts[-1], np.int64)
        going = np.arange(len(numbers))
        while len(going):
            # from the label up, so that each row's columns are ascending
            columns[starts[going] + self._depths[numbers[going]]] = numbers[going]
            numbers[going] = self._above[numbers[going]]
            going = going[numbers[going] >= 0]
        shape = (len(counts), len(self.nodes))
        return sp.csr_array((np.ones(len(columns)), columns, starts), shape=shape)

    @cached_property
    def _closure(self) -> sp.csr_array:
        """Ones at every node and at its ancestors, shape (nodes, nodes)."""
        starts, places = self._rows_of_parents
        rows = list[npt.NDArray[np.int64]]()
        total = 0
        for k in range(len(self)):
            above = [rows[up] for up in places[starts[k] : starts[k + 1]]]
            # a parent's index is smaller than its child's, and its row is sorted
            merged = np.unique(np.concatenate(above)) if len(above) > 1 else above[0] if above else places[:0]
            rows.append(np.append(merged, k))
            total += len(rows[-1])
            if total > _MOST_PAIRS:
                raise ValueError(
                    f"The taxonomy has more than {_MOST_PAIRS:,} pairs of a node and an ancestor, more than "
                    "the limit; pass one with fewer levels."
                )
        ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        columns = np.concatenate(rows)
        return sp.csr_array((np.ones(len(columns)), columns, ends), shape=(len(self), len(self)))

    def distances(self, names: Names, others: Names | None = None) -> npt.NDArray[np.float64]:
        """Compute half the lengths of the shortest paths between nodes of a tree.

        This is Delta of Seeger's section 6.1, the taxonomic loss: for leaves of equal depth, the steps up to
        the lowest common ancestor.  The roots of several trees count as children of one common node.

        Parameters
        ----------
        names : sequence of str
            Nodes, one per row.
        others : sequence of str or None, default=None
            Nodes, one per column; by default ``names``.

        Returns
        -------
        ndarray of float64, shape (k, k) or (k, others)
            The distances, possibly half-integers between nodes of different depths.

        Examples
        --------
        >>> from labelweave import Taxonomy
        >>> Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": None}).distances(["dog", "cat", "plant"])
        array([[0. , 1. , 1.5],
               [1. , 0. , 1.5],
               [1.5, 1.5, 0. ]])
        """
        self.require_tree("A distance between nodes")
        rows = self.membership(names)
        columns = rows if others is None else self.membership(others)
        lengths, widths = np.diff(rows.indptr), np.diff(columns.indptr)
        common = (rows @ columns.T).toarray()
        return np.asarray((lengths[:, None] + widths) / 2 - common)

    def _pair_distances(self, names: Names, others: Names) -> npt.NDArray[np.float64]:
        """Compute the distances between corresponding names, as :meth:`distances` does."""
        self.require_tree("A distance between nodes")
        rows, columns = self.membership(names), self.membership(others)
        common = np.asarray(rows.multiply(columns).sum(axis=1))
        return np.asarray((np.diff(rows.indptr) + np.diff(columns.indptr)) / 2 - common)

    def under(self, target_names: Names, leaf_names: Names) -> sp.csr_array:
        """Return the leaves below each node, where targets may be inner nodes.

        Parameters
        ----------
        target_names : sequence of str
            Nodes, one per row: a leaf, or the end of a partial path.
        leaf_names : sequence of str
            The leaves, one per column.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (k, leaves)
            Ones where the leaf is the target or below it.
        """
        if not self.is_tree:
            return sp.csr_array(self.membership(leaf_names)[:, self._numbers(target_names)].T)
        leaves = self._numbers(leaf_names)
        targets, row = np.unique(self._numbers(target_names), return_inverse=True)
        inside = (targets[:, None] <= leaves) & (leaves < self._ends[targets][:, None])
        return sp.csr_array(inside.astype(np.float64))[row.ravel()]

    def groups(
        self, by: Literal["shared", "class", "level", "subtree"], names: Names | None = None
    ) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Assign nodes to groups, so that those of a group share a parameter.

        Parameters
        ----------
        by : {"shared", "class", "level", "subtree"}
            One group of all nodes; one per node; one per depth; or one per top-level subtree (Seeger 2008,
            section 6.1).  With several roots each root heads a subtree.  With one root its children do, and
            the root is a separate group.
        names : sequence of str or None, default=None
            The nodes to group; by default all, in the order of ``nodes``.

        Returns
        -------
        groups : ndarray of int64, shape (k,)
            The group of each node, from 0, numbered in order of appearance.
        group_names : list of str
            The printed name of each group: ``"all"``, the node, ``"level 0"``,
            or the node at the head of the subtree.

        Raises
        ------
        ValueError
            If ``by`` is something else, or requires a tree, as level and subtree do.

        Examples
        --------
        >>> from labelweave import Taxonomy
        >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": None})
        >>> tree.groups("subtree")
        (array([0, 0, 0, 1]), ['animal', 'plant'])
        >>> tree.groups("level", ["dog", "plant", "cat"])
        (array([0, 1, 0]), ['level 1', 'level 0'])
        """
        if not isinstance(by, str) or by not in _GROUPINGS:
            raise ValueError(f"by is {by!r}; it must be one of {', '.join(map(repr, _GROUPINGS))}.")
        if by in ("level", "subtree"):
            self.require_tree(f"A group a {by}")
        numbers = np.arange(len(self.nodes)) if names is None else self._numbers(names)
        keys = self._group_keys(by)
        found = dict.fromkeys(keys[k] for k in numbers)
        place = {key: group for group, key in enumerate(found)}
        return np.array([place[keys[k]] for k in numbers], np.int64), list(found)

    def _group_keys(self, by: str) -> list[str]:
        if by == "shared":
            return ["all"] * len(self.nodes)
        if by == "level":
            return [f"level {depth}" for depth in self._depths.tolist()]
        if by == "class":
            return self.nodes
        heads = self._ancestors_at(0 if len(self.roots) > 1 else 1)
        return [self.nodes[k] for k in heads]

    def deepest(self, labels: Any) -> npt.NDArray[np.object_]:
        """Return the most specific node per row.

        Parameters
        ----------
        labels : LabelMatrix or DataFrame of shape (n, L)
            Targets whose label names are nodes.  The positives of a row are on one path: a node with all its
            ancestors, or with some or none of them.

        Returns
        -------
        ndarray of object, shape (n,)
            The names of leaves or, where the path ends earlier, of inner nodes;
            None for a row without a positive, such as an unobserved one.

        Raises
        ------
        ValueError
            If the labels have no names or names of no nodes, or a row has two most specific nodes.

        Examples
        --------
        >>> import pandas as pd
        >>> from labelweave import Taxonomy
        >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
        >>> tree.deepest(pd.DataFrame({"animal": [1, 1, 0], "dog": [1, 0, 0], "cat": [0, 0, 0]}))
        array(['dog', 'animal', None], dtype=object)
        """
        Y = LabelMatrix.from_any(labels)
        node = self._numbers(self._names_of(Y), "label")[Y.positives.indices]
        row = np.repeat(np.arange(len(Y)), np.diff(Y.positives.indptr))
        last = np.full(len(Y), -1)
        # a descendant's index is larger than its ancestors', so the largest is most specific
        np.maximum.at(last, row, node)
        self._refuse_second_path(row, node, last)
        names: npt.NDArray[np.object_] = np.array([*self.nodes, None], object)
        return np.asarray(names[last], object)

    @checked
    def with_ancestors(self, labels: Any, *, incomplete: bool = False) -> LabelMatrix:
        """Complete labels by the taxonomy.

        A row with a class has all classes above it; a row known not to have a class has none below it.  If
        the two contradict each other, as in a table of 0 and 1 that marks only the most specific classes, the
        positives take precedence.

        Parameters
        ----------
        labels : LabelMatrix or DataFrame of shape (n, L)
            Targets whose label names are nodes, all or some.
        incomplete : bool, default=False
            Whether rows may have unrecorded classes, as genes have functions that are not known yet.  The
            classes below the most specific classes of a row are then unobserved, not negative.

        Returns
        -------
        LabelMatrix of shape (n, L)
            The same labels: implied entries are positive or negative, the rest is unchanged.

        Raises
        ------
        ValueError
            If the labels have no names, or names of no nodes.

        Examples
        --------
        >>> import pandas as pd
        >>> from labelweave import Taxonomy
        >>> tree = Taxonomy.from_nested({"animal": {"dog": ["poodle"], "cat": None}})
        >>> known = pd.DataFrame({"animal": [0, 0], "dog": [1, 0], "cat": [0, 0], "poodle": [0, None]})
        >>> tree.with_ancestors(known).to_dense()
        array([[1., 1., 0., 0.],
               [0., 0., 0., 0.]])
        >>> tree.with_ancestors(known, incomplete=True).to_dense()
        array([[ 1.,  1.,  0., nan],
               [ 0.,  0.,  0.,  0.]])
        """
        Y = LabelMatrix.from_any(labels)
        above = self.at_or_above(self._names_of(Y))
        positives = sp.csr_array(Y.positives @ above)
        flips = None if Y.flip_probabilities is None else _closed_flips(Y, above)
        if Y.observed is None and not incomplete:
            return LabelMatrix(positives, None, Y.names, flips)
        whole = LabelMatrix(positives, None, Y.names)
        observed = [
            _observed(Y[rows], whole[rows], above, incomplete)
            for rows in panels(len(Y), max(1, _ENTRIES_AT_ONCE // max(1, Y.n_labels)))
        ]
        seen = sp.vstack(observed, format="csr") if observed else Y.observed
        return LabelMatrix(positives, seen, Y.names, flips)

    def at_or_above(self, label_names: Names) -> sp.csr_array:
        """Return the labels at or above each label, also across other nodes between them: (L, L), int32.

        Ones where the label of the column is that of the row or an ancestor; see :meth:`membership`.
        """
        numbers = self._numbers(label_names, "label")
        columns = sp.csr_array(self.membership(label_names))[:, numbers]
        columns.sort_indices()
        parts = (columns.data, columns.indices, columns.indptr)
        return sp.csr_array(tuple(part.astype(np.int32) for part in parts), shape=columns.shape)

    def sibling_shares(self) -> npt.NDArray[np.float64]:
        """Compute the costs of nodes: roots share 1, and children share the costs of their parents.

        The costs of Cesa-Bianchi, Gentile and Zaniboni (2006), and of Bi and Kwok (2011) for graphs.

        Returns
        -------
        ndarray of float64, shape (nodes,)
            The costs, in the order of ``nodes``.
        """
        starts, places = self._rows_of_parents
        children = np.bincount(self._edges[:, 0], minlength=len(self))
        shares = np.full(len(self), 1.0 / max(1, len(self.roots)))
        for k in np.flatnonzero(np.diff(starts)).tolist():  # parents come first
            above = places[starts[k] : starts[k + 1]]
            shares[k] = (shares[above] / children[above]).sum()
        return shares

    def _names_of(self, Y: LabelMatrix) -> npt.NDArray[Any]:
        if Y.names is None:
            raise ValueError("The labels have no names; name them: LabelMatrix.from_any(Y, names=[...]).")
        return Y.names

    def _refuse_second_path(self, row: Any, node: Any, last: npt.NDArray[np.int64]) -> None:
        beside = np.flatnonzero(~self._is_above(node, last[row]))
        if len(beside):
            first = row[beside[0]]
            other = node[beside[row[beside] == first]].max()
            raise ValueError(
                f"Row {first} has two most specific nodes, {self.nodes[other]!r} and "
                f"{self.nodes[last[first]]!r} ({len(np.unique(row[beside]))} of {len(last)} rows have "
                "several); the positives of a row must be on one path."
            )

    def _is_above(self, nodes: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> Any:
        """Return which nodes equal the others, elementwise, or are above them; none has a smaller index."""
        if self.is_tree:
            return self._ends[nodes] > others
        above = sp.coo_array(self._closure)
        pairs = np.sort(above.row * np.int64(len(self)) + above.col)
        asked = others * np.int64(len(self)) + nodes
        return pairs[np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)] == asked


def _closed_flips(Y: LabelMatrix, above: sp.csr_array) -> sp.csr_array | None:
    """Return the flips of targets that are the maximum over the labels at or below each label."""
    targets, below = sp.csc_array(Y.expected_positives), above.tocsc()
    parts = [
        sp.csc_array(targets[:, below.indices[start:stop]].max(axis=1).reshape(-1, 1))
        for start, stop in zip(below.indptr, below.indptr[1:], strict=False)
    ]
    return split_targets(sp.csr_array(sp.hstack(parts)))[1]


def _observed(Y: LabelMatrix, closed: LabelMatrix, above: sp.csr_array, incomplete: bool) -> sp.csr_array:
    """Return the observed entries: positives, and negatives with all labels below them.

    closed: the same rows with the ancestors of their classes.
    above (L, L): the labels at or above each label.
    """
    is_positive = closed.positives.toarray() > 0
    is_negative = np.ones(Y.shape, bool) if Y.observed is None else Y.to_signs() == -1
    is_negative &= ~is_positive
    if incomplete:
        # a class counts once for itself, and once for each one below it
        times = (closed.positives.astype(above.dtype) @ above).toarray()
        specific = sp.csr_array(times == 1).astype(above.dtype)
        is_negative &= (specific @ above.T).toarray() == 0
    lacks = (sp.csr_array(is_negative).astype(above.dtype) @ above.T).toarray() > 0
    return sp.csr_array(is_positive | lacks)
