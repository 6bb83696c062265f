"""The best primal and dual points that a run has met, and the gap between them.

A run begins with the point 0, which is both, so the relative gap is never above 1.  A dual
point V may be shrunk towards 0, which stays within the box: for labels that nothing
couples to others the best share of V is min(1, <T, V> / <V, A V>) over their entries.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from labelweave.array_types import Array, RowsByLabels
from labelweave.solvers.box_values import BoxTerms, primal_value, relative_gap

__all__ = ["BestPoints", "CoupledTerms"]


class CoupledTerms(BoxTerms, Protocol):
    """A problem that knows which labels it couples."""

    def coupled_labels(self) -> list[Array]:
        """Give the sets of labels that A couples, each an ndarray of int."""


class BestPoints:
    """The best points of one run.

    free, boxed (n, L): the best primal and the best dual point.
    """

    def __init__(self, problem: CoupledTerms) -> None:
        self.problem = problem
        zero = np.zeros_like(problem.targets)
        self.free = self.boxed = zero
        self.primal, self.dual = primal_value(problem, zero, zero), 0.0

    @property
    def gap(self) -> float:
        """The relative duality gap between the points."""
        return relative_gap(self.primal, self.dual)

    def note_primal(self, free: RowsByLabels, scores: RowsByLabels) -> None:
        """Take note of a primal point."""
        primal = primal_value(self.problem, free, scores)
        if primal < self.primal:
            self.primal, self.free = primal, free

    def note_dual(self, boxed: RowsByLabels, scores: RowsByLabels) -> float:
        """Take note of a dual point.

        Returns the dual value at V itself.
        """
        rise = (self.problem.targets * boxed).sum(axis=0, dtype=np.float64)
        bend = (boxed * scores).sum(axis=0, dtype=np.float64)
        shares = np.ones(len(rise))
        for group in self.problem.coupled_labels():
            up, down = rise[group].sum(), bend[group].sum()
            if up < down:
                shares[group] = max(up, 0.0) / down
        dual = float((shares * rise - shares * shares * bend / 2).sum())
        if dual > self.dual:
            self.dual = dual
            self.boxed = boxed if (shares == 1).all() else boxed * shares.astype(boxed.dtype)
        return float((rise - bend / 2).sum())

    def replace(self, free: RowsByLabels, boxed: RowsByLabels, primal: float, dual: float) -> None:
        """Put other points in the place of these."""
        self.free, self.boxed, self.primal, self.dual = free, boxed, primal, dual
