"""The cross-validation likelihoods of several blocks of rows as one criterion.

The kernel matrix of n rows costs n^2, so many rows are dear to learn on; a few leave so much to chance
that many hyper-parameters fit what is particular to them.  Several blocks of few rows each cost no more
than their number, and what is particular to one block is not so to the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelweave.array_types import Array
from labelweave.hyperparameters.cross_validation import CrossValidationLikelihood, Evaluation
from labelweave.hyperparameters.prior_family import PriorFamily
from labelweave.hyperparameters.ridge_cross_validation import RidgeCrossValidation

__all__ = ["MeanCriterion"]


class MeanCriterion:
    """The mean held-out loss of a row over several cross-validations.

    parts: the cross-validations, at least one, all with the same family.
    """

    def __init__(self, parts: Sequence[CrossValidationLikelihood | RidgeCrossValidation]) -> None:
        self.parts = list(parts)
        total = sum(part.mass for part in self.parts)
        self.shares = [part.mass / total for part in self.parts]

    @property
    def family(self) -> PriorFamily:
        """The priors."""
        return self.parts[0].family

    @property
    def inner_states(self) -> list[Array | None]:
        """The dual variables of every part's last success, from which the next evaluation starts."""
        return [part.inner_state for part in self.parts]

    def start_from(self, states: Sequence[Array | None]) -> None:
        """Start the next evaluation from dual variables of the same parts.

        states: what ``inner_states`` gives; None to start a part anew.
        """
        for part, state in zip(self.parts, states, strict=True):
            part.inner_state = state

    def __call__(self, theta: Array) -> Evaluation:
        """Evaluate value and gradient; where one part fails the value is not known.

        Returns the criterion, its gap the largest of all parts.
        Shapes: theta (p,).
        """
        value, slope = 0.0, np.zeros(len(theta))
        gap = products = seconds = 0.0
        for part, share in zip(self.parts, self.shares, strict=True):
            found = part(theta)
            gap, products, seconds = max(gap, found.gap), products + found.products, seconds + found.time
            if not found.converged:
                return found._replace(gap=gap, products=products, time=seconds)
            value, slope = value + share * found.value, slope + share * found.slope
        return Evaluation(value, slope, gap, products, seconds, True)
