"""Which cliques violate the constraints of the learned graph's dual the most (Tan et al. 2015, section 4.3).

The score of a clique is ``s_c = ||v_c||^2`` with ``v_c`` the sum over rows of the true state's unit vector less
the expected one, times the features; in the units of z here.  For a pair of labels that is a
quarter of the squared norms of its three parities: the two labels' own, and that of the product of signs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave._loops.structured.moments import component_means, pair_moments
from labelweave.arrays import panels
from labelweave.problems.structured_margin.structured_margin import StructuredMargin

__all__ = ["grown_cliques", "pair_scores", "violations"]

Array = npt.NDArray[Any]

_NUMBERS_AT_ONCE = 16_000_000  # moments held in memory, 128 MB


def pair_scores(problem: StructuredMargin) -> Array:
    """Score all pairs of labels, some at a time.

    Parameters
    ----------
    problem : StructuredMargin
        The problem at its dual point.

    Returns
    -------
    ndarray of float64, shape (L, L)
        Scores above the diagonal, 0 elsewhere.
    """
    data, n_labels = problem.data, problem.data.n_labels
    component_means(problem.layout, problem.dual)
    scores = np.zeros((n_labels, n_labels))
    lengths = 4.0 * np.einsum("ij,ij->j", problem.model.sums[:, :n_labels], problem.model.sums[:, :n_labels])
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, data.n_rows + data.n_features))
    for label in range(n_labels - 1):
        for part in panels(n_labels - label - 1, at_once):
            others = np.arange(label + 1 + part.start, label + 1 + part.stop)
            moments = np.empty((data.n_rows, len(others)))
            pair_moments(label, others, problem.homes, data.arrays.targets, problem.dual, moments)
            product = data.transposed_product(moments) / problem.regularization
            own = np.einsum("ij,ij->j", product, product)
            scores[label, others] = 0.25 * (own + lengths[label] + lengths[others])
    return scores


def violations(problem: StructuredMargin, cliques: Iterable[tuple[int, ...]]) -> Array:
    """Score some cliques of any size.

    Parameters
    ----------
    problem : StructuredMargin
        The problem at its dual point.
    cliques : iterable of tuple of int
        Ascending labels.

    Returns
    -------
    ndarray of float64, shape (cliques,)
        Their scores.
    """
    component_means(problem.layout, problem.dual)
    found = []
    for clique in cliques:
        product = problem.data.transposed_product(problem.clique_moments(clique)) / problem.regularization
        found.append(float(np.einsum("ij,ij->", product, product)))
    return np.asarray(found)


def grown_cliques(cliques: Iterable[tuple[int, ...]], size: int) -> list[tuple[int, ...]]:
    """Grow the chosen cliques by a label that is joined to one of theirs.

    Parameters
    ----------
    cliques : iterable of tuple of int
        The chosen cliques.
    size : int
        The largest size.

    Returns
    -------
    list of tuple of int
        Cliques of three labels or more that were not chosen, in order.
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
