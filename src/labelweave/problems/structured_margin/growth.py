"""Growing a graph: which cliques violate the learned graph's dual the most (Tan et al. 2015, section 4.3).

The score of a clique is ``s_c = ||v_c||^2`` with ``v_c`` the sum over rows of the true state's unit vector
minus the expected one, times the features; here in the units of z.  A state's unit vector is a sum of
products of signs, one for every set of the clique's labels, so with m labels the score is the sum of the
squared norms of these 2^m - 1 products, over 2^m.  Cliques that share labels share products.

The convex relaxation (equation 10 over all sets of r candidates, not only those that were activated) has the
same dual with ``1/2 max over sets of r candidates of sum s_c`` instead of the largest sum of a round.  So a
dual point of a graph also bounds the relaxation, best after all its distributions are mixed with the true
labels by one share t: this multiplies expected costs by t, and squares by t^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, combinations, groupby
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, LabelsByLabels
from labelweave.foundation.arrays import panels
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.margin_model import LABEL_SCALE, DualMoments, RoundPenalty
from labelweave.solvers.clique_generation import Cliques, Proposal

_NUMBERS_AT_ONCE = 16_000_000  # moments held in memory, 128 MB
MOST_CANDIDATES = 25_000  # pairs and triples of 53 labels
Problem = TypeVar("Problem", bound=Any)


@dataclass(eq=False)
class GrowingMargin(Generic[Problem]):
    """The interface for clique generation: the problem of every graph, and the next cliques.

    per_round: cliques to activate in a round (r in the paper).
    clique_size: the maximum number of labels in a clique.
    candidates: the cliques to choose from; None for all up to that size.  Where these are more than 25,000,
        those above pairs are grown from chosen ones, and the relaxation over all has no bound.
    measure: computes the loss of a model on held-out rows.
    """

    n_labels: int
    state_problem: Callable[[CliqueGraph, RoundPenalty], Problem]
    per_round: int
    clique_size: int
    candidates: Cliques | None = None
    measure: Callable[[Problem, Any], float] = lambda problem, point: float("nan")
    _last: tuple[tuple[Cliques, ...], Problem] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        listed, count = self.candidates, n_cliques(self.n_labels, self.clique_size)
        self.scores_all = listed is not None or self.clique_size == 2 or count <= MOST_CANDIDATES
        if listed is None and self.clique_size > 2 and self.scores_all:
            listed = all_cliques(self.n_labels, self.clique_size)
        self._count = count if listed is None else len(listed)
        self._listed = None if listed is None else ListedCliques(listed)

    def at(self, rounds: tuple[Cliques, ...]) -> Problem:
        if self._last is None or self._last[0] != rounds:
            self._last = rounds, self.state_problem(*round_graph(self.n_labels, rounds))
        return self._last[1]

    def held_out_loss(self, rounds: tuple[Cliques, ...], point: Any) -> float:
        return self.measure(self.at(rounds), point)

    def propose(self, rounds: tuple[Cliques, ...], point: Any) -> Proposal:
        return self.scored(self.at(rounds), point)

    def scored(self, problem: Any, point: Any) -> Proposal:
        moments, chosen = problem.moments(point), problem.graph.cliques
        own = violations(moments, chosen)
        found = self._candidates(moments, own.tolist(), chosen)
        best = sorted(found, key=lambda item: (-item[0], item[1]))[: self.per_round]
        score = sum(item[0] for item in best)
        bound = float(problem.penalty.round_squares(own).max(initial=0.0))
        excess = 0.5 * problem.alpha * (score - bound)
        return Proposal(tuple(item[1] for item in best), score, excess, len(chosen) >= self._count)

    def _candidates(
        self, moments: DualMoments, own: list[float], chosen: Cliques
    ) -> list[tuple[float, tuple[int, ...]]]:
        if self._listed is not None:
            return list(zip(self._listed.scores(moments).tolist(), self._listed.cliques, strict=True))
        scores = pair_scores(moments)
        found: list[tuple[float, tuple[int, ...]]] = [
            (float(scores[pair]), pair) for pair in _largest_pairs(scores, self.per_round)
        ]
        if self.clique_size > 2:
            grown = grown_cliques(chosen, self.clique_size)
            found += zip(violations(moments, grown).tolist(), grown, strict=True)
            found += [item for item in zip(own, chosen, strict=True) if len(item[1]) > 2]
        return found

    def relaxed_bound(self, problem: Any, point: Any, dual: float) -> float:
        """Bound the relaxation from below, by a point of dual value ``dual``; NaN if not all were scored."""
        if not self.scores_all:
            return math.nan
        largest, (labels, squares) = self.scored(problem, point).score, problem.squares(point)
        own, penalty = 0.5 * LABEL_SCALE * labels, problem.penalty.dual(squares)
        cost = dual + problem.alpha * (own + penalty)
        bend = problem.alpha * (own + max(penalty, 0.5 * largest))
        share = min(1.0, 0.5 * cost / bend) if bend > 0 else 1.0
        return float(share * cost - share**2 * bend)

    def activated(self, rounds: tuple[Cliques, ...], point: Any, cliques: Cliques) -> Any:
        earlier = self.at(rounds)
        return self.at((*rounds, cliques)).grown_from(earlier, point)


def n_cliques(n_labels: int, size: int) -> int:
    return sum(math.comb(n_labels, own) for own in range(2, size + 1))


def all_cliques(n_labels: int, size: int) -> Cliques:
    """List all cliques of two labels or more, up to a size."""
    return tuple(chain.from_iterable(combinations(range(n_labels), own) for own in range(2, size + 1)))


def round_graph(n_labels: int, rounds: tuple[Cliques, ...]) -> tuple[CliqueGraph, RoundPenalty]:
    """Combine the cliques of all rounds, with the corresponding penalty; the first round has none."""
    entries = [(number, clique) for number, cliques in enumerate(rounds[1:]) for clique in cliques]
    places = {clique: place for place, clique in enumerate(dict.fromkeys(clique for _, clique in entries))}
    groups, members = [number for number, _ in entries], [places[clique] for _, clique in entries]
    return CliqueGraph(n_labels, list(places)), RoundPenalty(groups, members=members)


def _largest_pairs(scores: LabelsByLabels, count: int) -> list[tuple[int, int]]:
    one, other = np.triu_indices(len(scores), 1)
    order = np.argsort(-scores[one, other], kind="stable")[:count]
    return list(zip(one[order].tolist(), other[order].tolist(), strict=True))


def pair_scores(moments: DualMoments) -> LabelsByLabels:
    """Score all pairs of labels, in blocks: scores above the diagonal, 0 elsewhere."""
    n_labels, sums = moments.data.n_labels, moments.label_sums()
    scores = np.zeros((n_labels, n_labels))
    lengths = 4.0 * np.einsum("ij,ij->j", sums, sums)
    for label in range(n_labels - 1):
        others = np.arange(label + 1, n_labels)
        own = sign_squares(moments, np.column_stack([np.full_like(others, label), others]))
        scores[label, others] = 0.25 * (own + lengths[label] + lengths[others])
    return scores


class ListedCliques:
    """Cliques, and the label sets whose products of signs determine their scores."""

    def __init__(self, cliques: Cliques) -> None:
        own = [[part for size in range(1, len(c) + 1) for part in combinations(c, size)] for c in cliques]
        self._parts = sorted(set(chain.from_iterable(own)), key=lambda part: (len(part), part))
        places = {part: place for place, part in enumerate(self._parts)}
        columns = np.array([places[part] for parts in own for part in parts], np.int64)
        counts = np.array([len(parts) for parts in own], np.int64)
        starts, shares = np.append(0, np.cumsum(counts)), np.repeat(1.0 / (counts + 1), counts)
        self.cliques = cliques
        self._shares = sp.csr_array((shares, columns, starts), (len(cliques), len(self._parts)))

    def scores(self, moments: DualMoments) -> Array:
        if moments.data.blocks is not None:  # products of signs are of equal features
            return violations(moments, self.cliques)
        sizes = groupby(self._parts, key=len)
        squares = [sign_squares(moments, np.array(list(parts))) for _, parts in sizes]
        return np.asarray(self._shares @ np.concatenate(squares)) if squares else np.zeros(0)


def sign_squares(moments: DualMoments, sets: Array) -> Array:
    """Compute the squared norms of the products of the signs of label sets (K, m), in blocks."""
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, moments.data.n_rows + moments.data.n_features))
    squares = np.empty(len(sets))
    for part in panels(len(sets), at_once):
        product = moments.sign_sums(sets[part])
        squares[part] = np.einsum("ij,ij->j", product, product)
    return squares


def violations(moments: DualMoments, cliques: Iterable[tuple[int, ...]]) -> Array:
    return np.asarray([float(np.square(moments.clique_sums(clique)).sum()) for clique in cliques])


def grown_cliques(cliques: Iterable[tuple[int, ...]], size: int) -> list[tuple[int, ...]]:
    """Extend the chosen cliques by a label adjacent to one of theirs; omit pairs and chosen ones."""
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
