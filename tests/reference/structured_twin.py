"""The structured support vector machine by enumeration of labelings, with the paper's one-hot features."""

import itertools

import numpy as np
from scipy.optimize import minimize


class StructuredTwin:
    """All labelings of a few labels; two weight vectors per label and one per state of every clique.

    rounds: the round of every clique, or all its rounds; None for a ridge penalty.
    loss: of two label sets (m,), instead of costs; unobserved labels are omitted.
    """

    def __init__(self, X, Y, cliques, alpha, costs=None, weights=None, rounds=None, entries=1.0, loss=None):
        self.X, self.alpha, self.rounds = X, alpha, rounds
        self.observed, self.Y = ~np.isnan(Y), np.nan_to_num(Y).astype(int)
        n, n_labels = Y.shape
        self.weights = np.ones(n) / n if weights is None else np.asarray(weights, float) / np.sum(weights)
        self.costs = np.ones((2, n_labels)) if costs is None else costs
        self.labelings = np.array(list(itertools.product((0, 1), repeat=n_labels)))
        self.parts = [(label,) for label in range(n_labels)] + list(cliques)
        own = [np.atleast_1d(number) for number in (range(len(cliques)) if rounds is None else rounds)]
        sizes = [2 ** len(part) for part in self.parts]
        self.is_node = np.repeat([True] * n_labels + [False] * len(own), sizes)
        n_rounds = 1 + max((number.max() for number in own), default=-1)
        self.masks = [
            np.repeat([False] * n_labels + [number in part for part in own], sizes)
            for number in range(n_rounds)
        ]
        self.statistics = self.features(self.labelings)
        self.true = self.features(self.Y)
        wrong = self.labelings[None] != self.Y[:, None]
        cost = np.where(self.Y == 1, self.costs[1], self.costs[0]) * entries
        self.cost = (wrong * (cost * self.observed)[:, None]).sum(axis=2)
        if loss is not None:
            own = zip(self.Y, self.observed, strict=True)
            self.cost = np.array([[loss(y[seen], to[seen]) for to in self.labelings] for y, seen in own])

    def features(self, labels):
        """One-hot states of all labels and cliques."""
        states = [labels[:, list(part)] @ (1 << np.arange(len(part))) for part in self.parts]
        return np.hstack([np.eye(2 ** len(part))[own] for part, own in zip(self.parts, states, strict=True)])

    def z(self, alpha):
        moments = self.true - alpha @ self.statistics
        return (self.weights[:, None] * self.X).T @ moments / self.alpha

    def group_squares(self, z):
        squares = (z**2).sum(axis=0)
        return np.array([squares[mask].sum() for mask in self.masks])

    def dual(self, alpha):
        z = self.z(alpha)
        squares = self.group_squares(z)
        clique = squares.sum() if self.rounds is None else squares.max(initial=0.0)
        nodes = (z[:, self.is_node] ** 2).sum()
        return self.weights @ (alpha * self.cost).sum(axis=1) - 0.5 * self.alpha * (nodes + clique)

    def loss(self, w):
        scores = self.X @ w
        margins = self.cost + scores @ self.statistics.T - (scores * self.true).sum(axis=1)[:, None]
        return self.weights @ margins.max(axis=1)

    def primal(self, w):
        squares = self.group_squares(w)
        clique = squares.sum() if self.rounds is None else np.sqrt(squares).sum() ** 2
        nodes = (w[:, self.is_node] ** 2).sum()
        return 0.5 * self.alpha * (nodes + clique) + self.loss(w)

    def optimum(self):
        """The largest dual value, by sequential quadratic programming.

        With rounds the last variable is an upper bound of their squared norms.
        """
        n, n_states = self.cost.shape
        has_rounds = self.rounds is not None
        self.smooth = self.is_node if has_rounds else np.full(len(self.is_node), True)
        alpha = np.full((n, n_states), 1.0 / n_states)
        start = np.append(alpha, self.group_squares(self.z(alpha)).max())
        sums = np.hstack([np.repeat(np.eye(n), n_states, axis=1), np.zeros((n, 1))])
        limits = [{"type": "eq", "fun": lambda v: sums @ v - 1.0, "jac": lambda v: sums}]
        if has_rounds:
            limits += [self._limit(mask) for mask in self.masks]
        found = minimize(
            self._value, start, jac=True, method="SLSQP", constraints=limits,
            bounds=[(0.0, 1.0)] * (n * n_states) + [(0.0, None)], options={"maxiter": 500, "ftol": 1e-12},
        )  # fmt: skip
        return -found.fun

    def _square(self, v, which):
        z = self.z(v[:-1].reshape(len(self.X), -1))[:, which]
        gradient = -2.0 * (self.weights[:, None] * self.X) @ z @ self.statistics[:, which].T
        return (z**2).sum(), gradient.ravel() / self.alpha

    def _value(self, v):
        square, gradient = self._square(v, self.smooth)
        costs, half = (self.weights[:, None] * self.cost).ravel(), 0.5 * self.alpha
        tail = half if self.rounds is not None else 0.0
        return half * square + tail * v[-1] - costs @ v[:-1], np.append(half * gradient - costs, tail)

    def _limit(self, which):
        return {
            "type": "ineq",
            "fun": lambda v: v[-1] - self._square(v, which)[0],
            "jac": lambda v: np.append(-self._square(v, which)[1], 1.0),
        }
