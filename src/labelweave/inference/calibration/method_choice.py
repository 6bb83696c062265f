"""Logistic curves or isotonic maps: chosen by the log loss of rows that the maps were not found on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.special import xlogy

from labelweave.array_types import Array
from labelweave.inference.labeled_scores import LabeledScores

__all__ = ["ProbabilityMap", "best_kind"]


_PARTS = 3
_FEWEST_ROWS = 10


class ProbabilityMap(Protocol):
    """A map from scores to probabilities, label by label."""

    def probabilities(self, scores: Array) -> Array:
        """Compute the probability of every label.

        Parameters
        ----------
        scores : ndarray of shape (n, L)
            Scores.

        Returns
        -------
        ndarray of float64, shape (n, L)
            The probabilities.
        """
        ...


def best_kind(table: LabeledScores, fit_kinds: Callable[[LabeledScores], Sequence[ProbabilityMap]]) -> int:
    """Find the kind of maps of the least log loss in a cross-validation of three parts.

    fit_kinds: finds maps of all kinds.
    Returns the number of the best kind; 0 where there are fewer than ten rows.
    Shapes: table (n, L).
    """
    n_rows = len(table.weights)
    if n_rows < _FEWEST_ROWS:
        return 0
    part = np.random.default_rng(0).permutation(n_rows) % _PARTS
    losses = []
    for number in range(_PARTS):
        rest, held = table.rows(np.flatnonzero(part != number)), table.rows(np.flatnonzero(part == number))
        losses.append([_log_loss(held, kind.probabilities(held.scores)) for kind in fit_kinds(rest)])
    return int(np.sum(losses, axis=0).argmin())


def _log_loss(table: LabeledScores, probabilities: Array) -> float:
    signs = table.labels.to_signs()
    losses = xlogy(signs > 0, probabilities) + xlogy(signs < 0, 1.0 - probabilities)
    return -float(table.weights @ losses.sum(axis=1))
