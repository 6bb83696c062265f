"""From a prior and training rows to the operator that a solver works with."""

from __future__ import annotations

from collections.abc import Callable

from labelweave.arrays import Workers
from labelweave.features import Kernel
from labelweave.features.gram import Gram
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.score_prior import ScorePrior

__all__ = ["MakeGram", "coupled_gram"]

MakeGram = Callable[[Kernel | None], Gram]
"""Makes the kernel matrix of the training rows."""


def coupled_gram(prior: ScorePrior, make: MakeGram, workers: Workers, *, ties_labels: bool) -> CoupledGram:
    """Make the prior covariance of all scores at the training rows.

    make: makes the kernel matrix for a kernel.
    ties_labels: whether labels are solved for together; needed where the prior or the loss ties them.
    """
    terms = [GramTerm(make(term.kernel), term.covariance) for term in prior.terms]
    return CoupledGram(terms, prior.intercept_variance, workers, is_separate=not ties_labels)
