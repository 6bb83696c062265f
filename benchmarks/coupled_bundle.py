"""Coupled labels by a bundle method over partitions, in one process, to compare rounds with travelling ones.

    python -m benchmarks.coupled_bundle --rows 1000 --partitions 4 --rounds 200

In the primal, 1/2 |W|^2 in the metric of R plus the losses f_p of partitions, f_p gets a plane a round:

    min_W  1/2 |W|^2 + sum_p max_j [c_pj + <G_pj, W>],    W = -sum_pj a_pj G_pj R,  a_p on a simplex,

whose dual in a, over the planes kept, is solved on the client.  It is accelerated as in Franc and Sonnenburg,
"Optimized cutting plane algorithm for large-scale risk minimization", JMLR 10 (2009): a line search from the
best W to that of the model, and planes taken a little beyond the best.  A round is a product with all rows
and one with their transpose: what a sweep costs.  ``benchmarks.travelling_rounds`` has the other method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from benchmarks.frame import flag, read_options
from benchmarks.needed_data import needs_data
from benchmarks.travelling_rounds import coupled, load
from labelweave.problems import MarginData
from labelweave.solvers.frame import relative_gap

_BEYOND = 0.1  # of the way to the model's optimum
_MASTER_STEPS = 2000


def _on_simplices(weights: Any, groups: Any) -> Any:
    """Project the weights of each group of planes on the simplex."""
    out = np.empty_like(weights)
    for group in np.unique(groups):
        at = groups == group
        down = np.sort(weights[at])[::-1]
        excess = (np.cumsum(down) - 1) / np.arange(1, len(down) + 1)
        out[at] = np.maximum(weights[at] - excess[down > excess][-1], 0)
    return out


def solve_master(products: Any, constants: Any, groups: Any, begin: Any) -> Any:
    """Maximise a'c - a'Qa / 2 over simplices by accelerated projected gradients."""
    a = ahead = _on_simplices(begin, groups)
    step, momentum = 1 / np.linalg.eigvalsh(products)[-1], 1.0
    for _ in range(_MASTER_STEPS):
        new = _on_simplices(ahead + step * (constants - products @ ahead), groups)
        if (ahead - new) @ (new - a) > 0:
            momentum = 1.0  # begun anew where it turns back
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, a, momentum = new + (momentum - 1) / later * (new - a), new, later
    return a


class Bundle:
    """Planes, and the best weights until now."""

    def __init__(self, data: MarginData, n_parts: int, most: int) -> None:
        X = sp.csr_array(data.features.data)
        X = X[:, np.unique(X.indices)]
        self.X = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr") if data.intercept else X
        self.Xt = sp.csr_array(self.X.T)
        self.signs, self.upper = data.labels.to_signs().astype(float), data.upper[:, None]
        self.R = data.covariance.to_dense()
        rows = np.random.default_rng(5).permutation(X.shape[0])
        self.parts, self.most = np.array_split(rows, n_parts), most
        self.planes: list[Any] = []
        self.groups, self.constants = np.zeros(0, int), np.zeros(0)
        self.products, self.a = np.zeros((0, 0)), np.zeros(0)
        self.best: Any = 0.0
        self.scores: Any = np.zeros(self.signs.shape)

    def loss(self, scores: Any) -> float:
        return float((self.upper * np.maximum(0, 1 - self.signs * scores)).sum())

    def add_planes(self, scores: Any) -> None:
        """Add a plane of each partition at weights of these scores."""
        table = self.upper * self.signs * (self.signs * scores < 1)
        for number, rows in enumerate(self.parts):
            own = np.zeros_like(table)
            own[rows] = table[rows]
            plane = -(self.Xt @ own).astype(np.float32)
            wide = plane @ self.R.astype(np.float32)
            column = np.array([np.vdot(wide, other) for other in [*self.planes, plane]], float)
            grown = np.empty((len(column), len(column)))
            grown[:-1, :-1], grown[-1], grown[:, -1] = self.products, column, column
            self.planes.append(plane)
            self.products, self.groups = grown, np.append(self.groups, number)
            self.constants = np.append(self.constants, np.abs(table[rows]).sum())
            self.a = np.append(self.a, 0.0)

    def forget(self) -> None:
        """Drop the planes of least weight."""
        if len(self.planes) > self.most:
            kept = np.sort(np.argsort(-self.a, kind="stable")[: self.most])
            self.planes = [self.planes[place] for place in kept]
            self.products, self.groups = self.products[np.ix_(kept, kept)], self.groups[kept]
            self.constants, self.a = self.constants[kept], self.a[kept]

    def step(self) -> tuple[float, float]:
        """Solve the model, search, add planes; give primal and dual value."""
        self.a = solve_master(self.products, self.constants, self.groups, self.a)
        dual = float(self.a @ self.constants - self.a @ self.products @ self.a / 2)
        model = -sum(weight * plane for weight, plane in zip(self.a, self.planes, strict=True)) @ self.R
        way, before = self.X @ model - self.scores, self.best
        inverse = np.linalg.inv(self.R)

        def value(length: float) -> float:
            at = (1 - length) * before + length * model
            return float(((at @ inverse) * at).sum() / 2) + self.loss(self.scores + length * way)

        length = float(minimize_scalar(value, bounds=(0, 1), method="bounded", options={"xatol": 1e-4}).x)
        primal = value(length)
        self.best = (1 - length) * before + length * model
        self.forget()
        self.add_planes(self.scores + min(1.0, length + _BEYOND) * way)
        self.scores = self.scores + length * way
        return primal, dual


@needs_data
def main() -> None:
    given = read_options(
        __doc__,
        problem="rcv1-subset1",
        rows=1000,
        partitions=4,
        planes=flag(120, "that are kept"),
        rounds=100,
        tol=1e-3,
    )
    data = coupled(load(given.problem), given.rows)
    bundle = Bundle(data, given.partitions, given.planes)
    bundle.add_planes(bundle.scores)
    for number in range(1, given.rounds + 1):
        gap = relative_gap(*bundle.step())
        if number % 10 == 0 or gap <= given.tol:
            print(f"{given.partitions} partitions: a gap of {gap:.1e} after {number}", flush=True)
        if gap <= given.tol:
            return


if __name__ == "__main__":
    main()
