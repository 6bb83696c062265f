"""Best labelings of clique graphs by enumeration of all 2^L of them."""

import itertools

import numpy as np


def all_labelings(n_labels):
    return (np.arange(1 << n_labels)[:, None] >> np.arange(n_labels)) & 1


def scores(graph, unary, tables):
    """Score every labeling of every row; shape (rows, 2^L)."""
    labelings = all_labelings(graph.n_labels)
    found = unary @ labelings.T
    tables = np.atleast_2d(tables)
    for clique, start in zip(graph.cliques, graph.table_starts, strict=False):
        states = sum(labelings[:, label] << bit for bit, label in enumerate(clique))
        size = 1 << len(clique)
        membership = (states == np.arange(size)[:, None]).astype(float)
        found = found + tables[:, start : start + size] @ membership
    return found


def max_marginals(graph, unary, tables):
    all_scores, labelings = scores(graph, unary, tables), all_labelings(graph.n_labels)
    best = [[all_scores[:, column == value].max(axis=1) for value in (0, 1)] for column in labelings.T]
    return np.stack([one - zero for zero, one in best], axis=1)


def score_one(graph, unary, tables, labels):
    """Score one labeling, term by term."""
    score = sum(value for value, label in zip(unary, labels, strict=True) if label)
    for clique, start in zip(graph.cliques, graph.table_starts, strict=False):
        score += tables[start + sum(int(labels[label]) << bit for bit, label in enumerate(clique))]
    return score


def random_cliques(generator, n_labels, n_cliques, sizes=(2, 2, 2, 3, 4)):
    found = set()
    for _ in range(n_cliques):
        size = min(n_labels, int(generator.choice(sizes)))
        found.add(tuple(sorted(generator.choice(n_labels, size, replace=False).tolist())))
    return sorted(found)


def random_edges(generator, n_labels, n_edges):
    pairs = list(itertools.combinations(range(n_labels), 2))
    chosen = generator.choice(len(pairs), n_edges, replace=False)
    return [pairs[place] for place in sorted(chosen.tolist())]
