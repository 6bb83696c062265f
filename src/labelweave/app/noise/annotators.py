"""Labels from several annotators with individual error rates.

Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", 1979, for
binary labels: annotator a answers yes for a present label with probability ``sensitivity[a]``, and no for an
absent one with probability ``specificity[a]``; label l is present with probability ``prevalence[l]``.
Missing answers are ignored.  Expectation maximization finds the maximum of the posterior density under beta
priors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from labelweave.foundation.arguments import checked, shown
from labelweave.foundation.array_types import Array, Floats, PerLabel, RowsByLabels
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import has_many_labels

_RIGHT = 0.8  # share of right answers in the prior
_CONVERGED = 1e-8


@dataclass(frozen=True)
class CombinedAnswers:
    """The combined answers of several annotators.

    Parameters
    ----------
    labels : LabelMatrix
        The probabilities as targets of any model; unobserved without answers.
    probabilities : ndarray of float64, shape (n, L)
        The probability that a label is present; NaN without answers.
    annotators : list of str
        Their names or numbers.
    sensitivity, specificity : ndarray of float64, shape (A,)
        The shares of right answers of every annotator on present and on absent labels.
    prevalence : ndarray of float64, shape (L,)
        The frequency of present labels.
    n_iter : int
        Rounds of expectation maximization.
    """

    labels: LabelMatrix
    probabilities: RowsByLabels
    annotators: list[str]
    sensitivity: Floats
    specificity: Floats
    prevalence: PerLabel
    n_iter: int

    def __repr__(self) -> str:
        n, n_labels = self.labels.shape
        lines = zip(self.annotators, self.sensitivity, self.specificity, strict=True)
        words = [f"{name}: sensitivity {one:.3f}, specificity {other:.3f}" for name, one, other in lines]
        size = f"{n} rows, {n_labels} labels, {len(self.annotators)} annotators"
        return "\n  ".join([f"CombinedAnswers({size})", *words])


@checked
def combine_annotators(answers: Any, *, smoothing: float = 5.0, max_iter: int = 500) -> CombinedAnswers:
    """Combine the labels of several annotators, weighted by their agreement with each other.

    Parameters
    ----------
    answers : dict of str to labels, or list of labels
        The labels of every annotator, of the same rows and labels: arrays of 0 and 1 with NaN without an
        answer, DataFrames or LabelMatrix.  Labels with names are matched by name.
    smoothing : float, default=5.0
        Pseudo-counts: how many answers of each kind the prior adds per annotator, four of five of them
        right, and how many rows per label, with the mean frequency of all labels.
    max_iter : int, default=500
        Maximum number of rounds.

    Returns
    -------
    CombinedAnswers
        Labels with their probabilities, and the error rates of annotators.

    Raises
    ------
    ValueError
        If there is no annotator, rows, labels or their names differ, or parameters are out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.noise import combine_annotators
    >>> ada, bob = np.array([[1, 0], [0, 1]]), np.array([[1, np.nan], [0, 1]])
    >>> combine_annotators({"ada": ada, "bob": bob}).labels.most_likely().to_dense()
    array([[1., 0.],
           [0., 1.]])
    """
    if not 0 < smoothing < np.inf:
        raise ValueError(f"smoothing is {smoothing}; use a number above 0.")
    if max_iter < 1:
        raise ValueError(f"max_iter is {max_iter}; use 1 or more.")
    names, given = _read_answers(answers)
    model = _Model([one.to_signs() for one in given], float(smoothing))
    found = model.solve(max_iter)
    probabilities = np.where(model.counts > 0, found[0], np.nan)
    named = next((one.names for one in given if one.names is not None), None)
    labels = LabelMatrix.from_probabilities(probabilities, named)
    return CombinedAnswers(labels, probabilities, names, *found[1:])


class _Model:
    """Answers as signs (n, L) per annotator, 0 where missing, and the EM steps."""

    def __init__(self, answers: list[Array], smoothing: float) -> None:
        self.answers, self.smoothing = answers, smoothing
        self.counts: Array = np.zeros(answers[0].shape, np.int64)
        yes: Array = np.zeros(answers[0].shape, np.int64)
        for one in answers:
            self.counts += one != 0
            yes += one > 0
        self.start: Array = (yes + 0.5) / (self.counts + 1.0)
        self.common = (float(yes.sum()) + 1.0) / (float(self.counts.sum()) + 2.0)

    def solve(self, max_iter: int) -> tuple[RowsByLabels, Floats, Floats, PerLabel, int]:
        """Return probabilities, sensitivities, specificities, prevalences and the number of rounds."""
        probabilities, rounds, change = self.start, 0, np.inf
        while rounds < max_iter and change > _CONVERGED:
            right, prevalence = self.maximized(probabilities)
            before, probabilities = probabilities, self.expected(right, prevalence)
            rounds, change = rounds + 1, float(np.abs(probabilities - before).max())
        return probabilities, right[0], right[1], prevalence, rounds

    def maximized(self, probabilities: RowsByLabels) -> tuple[Floats, PerLabel]:
        """Return shares of right answers, (2, A), and prevalences, (L,)."""
        right, extra = np.empty((2, len(self.answers))), self.smoothing
        for place, one in enumerate(self.answers):
            there, absent = probabilities[one != 0], 1.0 - probabilities[one != 0]
            is_yes = one[one != 0] > 0
            right[0, place] = (there[is_yes].sum() + extra * _RIGHT) / (there.sum() + extra)
            right[1, place] = (absent[~is_yes].sum() + extra * _RIGHT) / (absent.sum() + extra)
        seen = self.counts > 0
        total = np.where(seen, probabilities, 0.0).sum(axis=0) + extra * self.common
        return right, total / (seen.sum(axis=0) + extra)

    def expected(self, right: Floats, prevalence: PerLabel) -> RowsByLabels:
        odds = np.tile(logit(prevalence), (len(self.counts), 1))
        for one, sensitivity, specificity in zip(self.answers, *right, strict=True):
            yes, no = np.log(sensitivity / (1.0 - specificity)), np.log((1.0 - sensitivity) / specificity)
            odds += np.where(one > 0, yes, 0.0) + np.where(one < 0, no, 0.0)
        return np.asarray(expit(odds))


def _read_answers(answers: Any) -> tuple[list[str], list[LabelMatrix]]:
    if not isinstance(answers, Mapping | list | tuple) or not len(answers):
        raise ValueError(
            f"answers is {shown(answers)}; pass the labels of every annotator, in a list or by name."
        )
    pairs = answers.items() if isinstance(answers, Mapping) else enumerate(answers)
    found: dict[str, LabelMatrix] = {}
    for name, one in pairs:
        if not has_many_labels(one):
            raise ValueError(f"The answers of {name!r} are one class per row; use one column per label.")
        if str(name) in found:
            raise ValueError(f"Two annotators are named {str(name)!r}; use different names.")
        found[str(name)] = LabelMatrix.from_any(one).most_likely()
    names, given = list(found), list(found.values())
    named = next((name for name, one in found.items() if one.names is not None), names[0])
    for name, one in found.items():
        if one.shape != given[0].shape:
            raise ValueError(
                f"The answers of annotator {name!r} have shape {one.shape}, but those of {names[0]!r} have "
                f"{given[0].shape}; all need the same rows and labels, NaN without an answer."
            )
        theirs, ours = one.words, found[named].words
        if one.names is not None and theirs != ours:
            if set(theirs) != set(ours):
                raise ValueError(
                    f"The answers of annotator {name!r} have other labels than those of {named!r}."
                )
            found[name] = one.select_labels([theirs.index(word) for word in ours])
    if not given[0].shape[0] or not given[0].n_labels:
        raise ValueError("The answers have no rows or no labels; pass at least one of each.")
    return names, list(found.values())
