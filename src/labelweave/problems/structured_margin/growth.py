"""A graph that grows: which cliques violate the learned graph's dual the most (Tan et al. 2015, section 4.3).

The score of a clique is ``s_c = ||v_c||^2`` with ``v_c`` the sum over rows of the true state's unit vector
less the expected one, times the features; in the units of z here.  For a pair of labels that is a quarter
of the squared norms of its three parities: the two labels' own, and that of the product of signs.

The convex relaxation (equation 10 over all sets of r candidates, not only those that were activated) has the
same dual with ``1/2 max over sets of r candidates of sum s_c`` in place of the largest sum of a round.  So a
dual point of a graph bounds the relaxation too, best after all its distributions were mixed with the true
labels by one share t: then expected costs are t times what they were, and squares t^2 times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from labelweave.foundation.array_types import Array, LabelsByLabels
from labelweave.foundation.arrays import panels
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.margin_model import LABEL_SCALE, DualMoments, RoundPenalty
from labelweave.solvers.clique_generation import Cliques, Proposal

_NUMBERS_AT_ONCE = 16_000_000  # moments held in memory, 128 MB
Problem = TypeVar("Problem", bound=Any)


@dataclass(eq=False)
class GrowingMargin(Generic[Problem]):
    """What clique generation asks for: the problem of every graph, and the cliques that come next.

    per_round: cliques to activate in a round (r in the paper).
    clique_size: the largest number of labels in a clique; those above pairs are grown from chosen ones.
    measure: gives the loss of a model on held-out rows.
    """

    n_labels: int
    state_problem: Callable[[CliqueGraph, RoundPenalty], Problem]
    per_round: int
    clique_size: int
    measure: Callable[[Problem, Any], float] = lambda problem, point: float("nan")
    _last: tuple[tuple[Cliques, ...], Problem] | None = field(default=None, init=False)

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
        own, found = violations(moments, chosen), self._candidates(moments, chosen)
        found += [item for item in zip(own.tolist(), chosen, strict=True) if len(item[1]) > 2]
        best = sorted(found, key=lambda item: (-item[0], item[1]))[: self.per_round]
        score = sum(item[0] for item in best)
        bound = float(problem.penalty.round_squares(own).max(initial=0.0))
        is_whole = len(chosen) >= self.n_labels * (self.n_labels - 1) // 2
        excess = 0.5 * problem.regularization * (score - bound)
        return Proposal(tuple(item[1] for item in best), score, excess, is_whole)

    def _candidates(self, moments: DualMoments, chosen: Cliques) -> list[tuple[float, tuple[int, ...]]]:
        scores = pair_scores(moments)
        found = [(float(scores[pair]), pair) for pair in _largest_pairs(scores, self.per_round)]
        if self.clique_size > 2:
            grown = grown_cliques(chosen, self.clique_size)
            found += list(zip(violations(moments, grown).tolist(), grown, strict=True))
        return found

    def relaxed_bound(self, problem: Any, point: Any, dual: float) -> float:
        """Bound the objective of the relaxation from below, by a point of dual value ``dual``."""
        largest, (labels, squares) = self.scored(problem, point).score, problem.squares(point)
        own, penalty = 0.5 * LABEL_SCALE * labels, problem.penalty.dual(squares)
        cost = dual + problem.regularization * (own + penalty)
        bend = problem.regularization * (own + max(penalty, 0.5 * largest))
        share = min(1.0, 0.5 * cost / bend) if bend > 0 else 1.0
        return float(share * cost - share**2 * bend)

    def activated(self, rounds: tuple[Cliques, ...], point: Any, cliques: Cliques) -> Any:
        earlier = self.at(rounds)
        return self.at((*rounds, cliques)).grown_from(earlier, point)


def round_graph(n_labels: int, rounds: tuple[Cliques, ...]) -> tuple[CliqueGraph, RoundPenalty]:
    """Join the cliques of all rounds, with the penalty that goes with them; the first round has none."""
    entries = [(number, clique) for number, cliques in enumerate(rounds[1:]) for clique in cliques]
    places = {clique: place for place, clique in enumerate(dict.fromkeys(clique for _, clique in entries))}
    groups, members = [number for number, _ in entries], [places[clique] for _, clique in entries]
    return CliqueGraph(n_labels, list(places)), RoundPenalty(groups, members=members)


def _largest_pairs(scores: LabelsByLabels, count: int) -> list[tuple[int, int]]:
    one, other = np.triu_indices(len(scores), 1)
    order = np.argsort(-scores[one, other], kind="stable")[:count]
    return list(zip(one[order].tolist(), other[order].tolist(), strict=True))


def pair_scores(moments: DualMoments) -> LabelsByLabels:
    """Score all pairs of labels, some at a time: scores above the diagonal, 0 elsewhere."""
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


def violations(moments: DualMoments, cliques: Iterable[tuple[int, ...]]) -> Array:
    return np.asarray([float(np.square(moments.clique_sums(clique)).sum()) for clique in cliques])


def grown_cliques(cliques: Iterable[tuple[int, ...]], size: int) -> list[tuple[int, ...]]:
    """Grow the chosen cliques by a label joined to one of theirs; those of three or more, not yet chosen."""
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
