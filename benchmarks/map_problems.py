"""Problems of MAP inference: random graphs of label pairs, with scores as a model gives them.

A label's own score is drawn from N(0, 1).  A pair adds +w where its two labels agree and -w where
they differ, with w from N(0, coupling^2); in an *attractive* problem w is |w|, and the problem is one of
a least cut.  Edges are drawn evenly, or like those of learned graphs, in which some labels have many: then
label k is drawn with a chance in proportion to 1 / (k + 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.labels.clique_graph import CliqueGraph

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairProblem:
    """A graph of pairs with the scores of some examples."""

    graph: CliqueGraph
    unary: Floats
    pairs: Floats  # w of every example and pair

    @property
    def tables(self) -> Floats:
        """The scores of the four states of every pair."""
        signs = np.tile([1.0, -1.0, -1.0, 1.0], self.graph.n_cliques)
        return np.repeat(self.pairs, 4, axis=1) * signs

    def first(self, count: int) -> PairProblem:
        """Keep the first examples."""
        return PairProblem(self.graph, self.unary[:count], self.pairs[:count])


def graph_of(kind: str, n_labels: int, n_edges: int, seed: int = 1) -> CliqueGraph:
    """Draw a graph: "tree", "complete", "even" or "hubs"."""
    generator = np.random.default_rng(seed)
    if kind == "complete":
        return CliqueGraph.complete(n_labels)
    if kind == "tree":
        return CliqueGraph(n_labels, [(int(generator.integers(k)), k) for k in range(1, n_labels)])
    shares = 1.0 / np.arange(1, n_labels + 1) if kind == "hubs" else np.ones(n_labels)
    edges: dict[tuple[int, ...], None] = {}
    while len(edges) < n_edges:
        pair = generator.choice(n_labels, 2, replace=False, p=shares / shares.sum())
        edges[tuple(sorted(pair.tolist()))] = None
    return CliqueGraph(n_labels, edges)


def draw_problem(
    graph: CliqueGraph, coupling: float, n_examples: int, attractive: bool = False, seed: int = 2
) -> PairProblem:
    """Draw the scores of some examples."""
    generator = np.random.default_rng(seed)
    unary = generator.normal(size=(n_examples, graph.n_labels))
    pairs = coupling * generator.normal(size=(n_examples, graph.n_cliques))
    return PairProblem(graph, unary, np.abs(pairs) if attractive else pairs)
