"""Shared by tests of plots: words of legends, small axes, and records of fits and of growing graphs."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator

from labelweave.solvers.clique_generation import GraphRecord


def legend_texts(shown):
    """Words of the legend of a display, or of axes."""
    return [text.get_text() for text in getattr(shown, "ax_", shown).get_legend().get_texts()]


def new_axes(width, height):
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def records(counts, losses=None):
    """Rounds in which this many cliques of label 0 and another one were added."""
    numbers = iter(range(1, 1000))
    return [
        GraphRecord(
            k, tuple((0, next(numbers)) for _ in range(count)), 1.0, 0.1, 5, 3.0 - 0.1 * k, 2.0,
            float("nan") if losses is None else losses[k],
        )
        for k, count in enumerate(counts)
    ]  # fmt: skip


class Fitted(BaseEstimator):
    """The part of a fitted model that plots read."""

    def __init__(self, **fitted):
        vars(self).update({f"{name}_": value for name, value in fitted.items()})

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answers_

    def decision_function(self, X):
        return np.asarray(X)[:, :2]
