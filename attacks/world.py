"""Valid data that attacks pass together with hostile values."""

from typing import Any

import numpy as np

import labelweave as lw
from attacks.small_fits import grouped

_N, _D, _L = 14, 6, 4


class World:
    """Small valid data of all kinds, and models fitted to them on first use."""

    def __init__(self, number: int) -> None:
        random = np.random.default_rng(number)
        self.X = np.where(random.random((_N, _D)) < 0.5, random.normal(size=(_N, _D)), 0.0)
        self.Y = (random.random((_N, _L)) < 0.4).astype(np.int64)
        self.Y[0], self.Y[1] = 1, 0
        self.S = np.where(random.random((_N, _L)) < 0.8, random.normal(size=(_N, _L)), 0.0)
        self.P = 1.0 / (1.0 + np.exp(-self.S))
        self.W = np.where(random.random((_N, _L)) < 0.5, random.uniform(0.5, 2.0, (_N, _L)), 0.0)
        self.F = np.where(random.random((_L, 3)) < 0.6, random.normal(size=(_L, 3)), 0.0) + np.eye(_L, 3)
        self.G = (random.random((5, _L)) < 0.5).astype(np.int64)
        self.G[0], self.G[1] = 1, 0
        self._fitted: dict[str, Any] = {}

    def estimators(self) -> dict[str, Any]:
        quick: dict[str, Any] = {"max_iter": 5}
        linear = lw.MaxMarginClassifier(tol=0.1)
        return {
            "MaxMargin": linear,
            "MaxMargin rbf": lw.MaxMarginClassifier(kernel="rbf", tol=0.1),
            "KernelLogistic": lw.KernelLogisticClassifier(hyperparameters="fixed", tol=0.1),
            "LowRank": lw.LowRankClassifier(2, **quick),
            "LowRank ridge": lw.LowRankClassifier(2, penalty="ridge", kernel="rbf", **quick),
            "LowRank cv": grouped(lw.LowRankClassifier, ranks=[2], alphas=[1.0], cv=2, **quick),
            "LabelGraph": grouped(lw.LabelGraphClassifier, max_rounds=1, tol=0.1, **quick),
            "LabelTree": lw.LabelTreeClassifier(leaf_size=2, branching=2, tol=0.1),
            "BinaryRelevance": lw.BinaryRelevance(tol=0.1),
            "TunedThreshold": lw.TunedThresholdClassifier(linear),
            "CalibratedLabel": lw.CalibratedLabelClassifier(linear, cv=2),
            "ConformalLabel": lw.ConformalLabelClassifier(linear, level=0.5, confidence=0.5),
            "ZeroShot": lw.ZeroShotClassifier(linear, self.G, temperature=1.0),
        }

    def fitted(self, name: str) -> Any:
        if name not in self._fitted:
            self._fitted[name] = self.estimators()[name].fit(self.X, self.Y)
        return self._fitted[name]
