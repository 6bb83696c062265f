"""Which cliques violate the constraints of the learned graph's dual the most (Tan et al. 2015, section 4.3).

The score of a clique is ``s_c = ||v_c||^2`` with ``v_c`` the sum over rows of the true state's unit vector
less the expected one, times the features; in the units of z here.  For a pair of labels that is a quarter
of the squared norms of its three parities: the two labels' own, and that of the product of signs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from labelweave.array_types import Array, LabelsByLabels
from labelweave.arrays import panels
from labelweave.problems.structured_margin.moments import DualMoments

__all__ = ["ScoredProblem", "grown_cliques", "pair_scores", "violations"]


_NUMBERS_AT_ONCE = 16_000_000  # moments held in memory, 128 MB


class ScoredProblem(Protocol):
    """A problem at dual variables by which cliques are scored."""

    def moments(self) -> DualMoments:
        """Give the dual variables."""


def pair_scores(problem: ScoredProblem) -> LabelsByLabels:
    """Score all pairs of labels, some at a time.

    problem: the problem at its dual variables.
    Returns scores above the diagonal, 0 elsewhere.
    """
    moments = problem.moments()
    n_labels, sums = moments.data.n_labels, moments.label_sums()
    scores = np.zeros((n_labels, n_labels))
    lengths = 4.0 * np.einsum("ij,ij->j", sums, sums)
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, moments.data.n_rows + moments.data.n_features))
    for label in range(n_labels - 1):
        for part in panels(n_labels - label - 1, at_once):
            others = np.arange(label + 1 + part.start, label + 1 + part.stop)
            product = moments.pair_sums(label, others)
            own = np.einsum("ij,ij->j", product, product)
            scores[label, others] = 0.25 * (own + lengths[label] + lengths[others])
    return scores


def violations(problem: ScoredProblem, cliques: Iterable[tuple[int, ...]]) -> Array:
    """Score some cliques of any size.

    problem: the problem at its dual variables.
    Shapes: result (cliques,).
    """
    moments = problem.moments()
    return np.asarray([float(np.square(moments.clique_sums(clique)).sum()) for clique in cliques])


def grown_cliques(cliques: Iterable[tuple[int, ...]], size: int) -> list[tuple[int, ...]]:
    """Grow the chosen cliques by a label that is joined to one of theirs.

    Returns cliques of three labels or more that were not chosen, in order.
    """
    chosen = set(cliques)
    near: dict[int, set[int]] = {}
    for clique in chosen:
        for label in clique:
            near.setdefault(label, set()).update(clique)
    grown = {
        tuple(sorted({*clique, other}))
        for clique in chosen if len(clique) < size
        for label in clique
        for other in near[label] - set(clique)
    }  # fmt: skip
    return sorted(grown - chosen)
