"""Small structured margin problems for tests."""

import numpy as np

from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import RidgePenalty, StructuredMargin, StructuredRows

TRIANGLE = ((0, 1), (1, 2), (0, 2))


def rows(seed=0, n=60, d=4, n_labels=5, missing=0.0):
    """Features and labels that depend on them and, the first three, on each other."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    W = random.normal(size=(d, n_labels))
    Y = (X @ W + random.normal(size=(n, n_labels)) > 0).astype(float)
    if n_labels > 2:
        Y[:, 2] = Y[:, 0] != Y[:, 1]
    Y[random.random(Y.shape) < missing] = np.nan
    return X, Y


def margin_data(X, Y, weights=None, costs=None, entries=1.0, loss="hamming"):
    costs = np.ones((2, Y.shape[1])) if costs is None else costs
    costs = np.where(Y == 1, costs[1], costs[0]) * entries
    weights = np.ones(len(Y)) if weights is None else weights
    return StructuredRows(FeatureMatrix(X), LabelMatrix.from_any(Y), weights, costs, loss)


def structured(data, cliques, alpha=0.05, penalty=None, capacity=16, inference=None):
    graph = CliqueGraph(data.n_labels, cliques)
    penalty = RidgePenalty(graph.n_cliques) if penalty is None else penalty
    problem = StructuredMargin(data, graph, penalty, alpha, inference or {}, Workers(1))
    problem.capacity = capacity
    return AtPoint(problem)


class AtPoint:
    """A problem with a point of its own, whose arrays read like the problem's attributes."""

    def __init__(self, problem, point=None):
        self.problem, self.point = problem, problem.first_point() if point is None else point

    def __getattr__(self, name):
        own = getattr(self.point, name, None)
        if own is not None:
            return own
        value = getattr(self.problem, name)
        if name in _OF_POINTS:
            return lambda *arguments, **options: value(self.point, *arguments, **options)
        return value

    def solve(self, solver):
        """Continue at the point, with its targets; return the result."""
        self.problem.complete = lambda point: False
        result, state = solver.solve(self.problem, solver.start(self.problem, self.point))
        del self.problem.complete
        self.point = state.point
        return result

    def regraph(self, problem):
        """Continue with a graph that has one round more."""
        self.problem, self.point = problem, problem.grown_from(self.problem, self.point)


_OF_POINTS = {"sweep", "evaluate", "complete", "recompute", "rebalance"}
_OF_POINTS |= {"moments", "squares", "ceiling", "hinge_loss"}
