"""Losses of single entries: a score for a positive or negative label (Yu et al. 2014, appendix B.1).

A loss is a sum over observed entries of ``loss(sign, score)``.  The squared loss has targets 1 and 0,
so that a sparse label matrix is a sparse target; the others use signs +1 and -1.
All functions work on arrays of any shape, entry by entry; :class:`EntrywiseLoss` adapts any of them
to Newton's method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import as_type, group_products, is_numpy, like
from labelweave.model_files.storable import OwnParameters
from labelweave.problems.losses.score_loss import Root, ScoreEvaluation


class EntryLoss(OwnParameters, ABC):
    """A loss of single entries, a score for a positive or negative label.

    Subclass it for ``loss=`` of :class:`LowRankClassifier` and :class:`KernelLogisticClassifier`, and test it
    with ``check_loss`` of :mod:`labelweave.testing`.  All methods get arrays that broadcast against each
    other and work entry by entry, in the type of the scores.  A sign is 1 for a positive label, -1 for
    a negative one, and 0 where unobserved: the result there is multiplied by 0, and must
    be finite.

    Attributes
    ----------
    threshold : float
        The score above which a label is predicted.
    is_quadratic : bool
        Whether the loss is a quadratic function of the score, so that its curvature is constant.
    is_convex : bool
        Whether the loss is convex, so that a duality gap can certify a fit; :class:`LowRankClassifier` takes
        others too.
    """

    is_quadratic: bool = False
    is_convex: bool = True
    threshold: float = 0.0

    @abstractmethod
    def value(self, signs: Array, scores: Array) -> Array:
        """Compute the losses.

        Parameters
        ----------
        signs, scores : ndarray
            The labels' signs and the scores.

        Returns
        -------
        ndarray
            The losses, finite for scores of any typical size.
        """

    @abstractmethod
    def gradient(self, signs: Array, scores: Array) -> Array:
        """Compute the first derivatives by the scores; see :meth:`value`."""

    @abstractmethod
    def curvature(self, signs: Array, scores: Array) -> Array:
        """Compute the second derivatives by the scores, 0 where they are negative; see :meth:`value`.

        At kinks of the first derivatives, those of one side.
        """

    def evaluate(self, signs: Array, scores: Array) -> tuple[Array, Array, Array]:
        """Compute values and both derivatives, which may share work; see :meth:`value`."""
        return self.value(signs, scores), self.gradient(signs, scores), self.curvature(signs, scores)

    def conjugate(self, signs: Array, gradients: Array) -> Array:
        """Compute the convex conjugate ``max over s of gradient * s - loss(sign, s)``, for duality gaps.

        Losses that are not convex need none.

        Parameters
        ----------
        signs, gradients : ndarray
            The labels' signs, and numbers between 0 and a derivative that the loss can have.

        Returns
        -------
        ndarray
            The conjugate.
        """
        raise NotImplementedError(f"{type(self).__name__} has no conjugate, which convex losses need.")

    def log_odds(self, scores: Array) -> Array:
        """Compute log(p / (1 - p)) of labels whose probabilities are proportional to ``exp(-loss)``.

        This is the loss of a negative label minus that of a positive one; for the logistic loss the scores
        themselves.  For the scores see :meth:`value`.
        """
        ones = namespace(scores).ones_like(scores)
        return self.value(-ones, scores) - self.value(ones, scores)


class SquaredEntryLoss(EntryLoss):
    """``1/2 (score - target)^2`` with target 1 for a positive label and 0 for a negative one."""

    is_quadratic = True
    threshold = 0.5

    def value(self, signs: Array, scores: Array) -> Array:
        miss = self.gradient(signs, scores)
        return miss * miss / 2

    def gradient(self, signs: Array, scores: Array) -> Array:
        return scores - as_type(signs > 0, scores.dtype)

    def curvature(self, signs: Array, scores: Array) -> Array:
        return namespace(scores).ones_like(scores)

    def conjugate(self, signs: Array, gradients: Array) -> Array:
        return gradients * (0.5 * gradients + as_type(signs > 0, gradients.dtype))


class LogisticEntryLoss(EntryLoss):
    """``log(1 + exp(-sign * score))``."""

    def value(self, signs: Array, scores: Array) -> Array:
        return _log_one_plus_exp(-signs * scores)

    def gradient(self, signs: Array, scores: Array) -> Array:
        return -signs * _expit(-signs * scores)

    def curvature(self, signs: Array, scores: Array) -> Array:
        return _expit(scores) * _expit(-scores)

    def evaluate(self, signs: Array, scores: Array) -> tuple[Array, Array, Array]:
        margins = signs * scores
        miss = _expit(-margins)  # the probability of the other sign
        return _log_one_plus_exp(-margins), -signs * miss, miss * (1.0 - miss)

    def conjugate(self, signs: Array, gradients: Array) -> Array:
        share = namespace(gradients).clip(-signs * gradients, 0.0, 1.0)
        return _entropy(share) + _entropy(1.0 - share)

    def log_odds(self, scores: Array) -> Array:
        return scores


class SquaredHingeEntryLoss(EntryLoss):
    """``1/2 max(0, 1 - sign * score)^2``."""

    def value(self, signs: Array, scores: Array) -> Array:
        short = self._short(signs, scores)
        return short * short / 2

    def gradient(self, signs: Array, scores: Array) -> Array:
        return -signs * self._short(signs, scores)

    @staticmethod
    def _short(signs: Array, scores: Array) -> Array:
        xp, short = namespace(scores), 1.0 - signs * scores
        return xp.maximum(short, xp.zeros_like(short))

    def curvature(self, signs: Array, scores: Array) -> Array:
        return as_type(signs * scores < 1.0, scores.dtype)

    def conjugate(self, signs: Array, gradients: Array) -> Array:
        return gradients * (0.5 * gradients + signs)


class GradedEntryLoss(EntryLoss):
    """``q loss(1, score) + (1 - q) loss(-1, score)`` at signs ``2 q - 1`` of targets q, 0 where unobserved.

    For losses with ``loss(-1, score) - loss(1, score) = score - threshold``, the logistic and the squared
    one: it is then that of the more likely sign plus a multiple of the score.  Convex for every q; for q
    below 0 and above 1 the logistic one is unbounded below.
    """

    def __init__(self, loss: EntryLoss) -> None:
        self.loss, self.is_quadratic, self.threshold = loss, loss.is_quadratic, loss.threshold

    @staticmethod
    def _parts(signs: Array) -> tuple[Array, Array]:
        """Return the more likely signs, and the factor of the score that is added to their loss."""
        most_likely: Array = namespace(signs).sign(signs)
        return most_likely, 0.5 * (most_likely - signs)

    def value(self, signs: Array, scores: Array) -> Array:
        most_likely, slope = self._parts(signs)
        return self.loss.value(most_likely, scores) + slope * (scores - self.threshold)

    def gradient(self, signs: Array, scores: Array) -> Array:
        most_likely, slope = self._parts(signs)
        return self.loss.gradient(most_likely, scores) + slope

    def curvature(self, signs: Array, scores: Array) -> Array:
        return self.loss.curvature(self._parts(signs)[0], scores)

    def evaluate(self, signs: Array, scores: Array) -> tuple[Array, Array, Array]:
        most_likely, slope = self._parts(signs)
        value, gradient, curvature = self.loss.evaluate(most_likely, scores)
        return value + slope * (scores - self.threshold), gradient + slope, curvature

    def conjugate(self, signs: Array, gradients: Array) -> Array:
        most_likely, slope = self._parts(signs)
        return self.loss.conjugate(most_likely, gradients - slope) + slope * self.threshold


def _entropy(shares: Array) -> Array:
    if is_numpy(shares):
        return np.asarray(special.xlogy(shares, shares))
    xp = namespace(shares)
    return shares * xp.log(xp.where(shares > 0, shares, xp.ones_like(shares)))


def _expit(values: Array) -> Array:
    if is_numpy(values):
        return np.asarray(special.expit(values))
    return namespace(values).exp(-_log_one_plus_exp(-values))


def _log_one_plus_exp(values: Array) -> Array:
    if is_numpy(values):
        return np.asarray(np.logaddexp(0.0, values))
    xp = namespace(values)
    return xp.logaddexp(xp.zeros_like(values), values)


ENTRY_LOSSES: dict[str, type[EntryLoss]] = {
    "squared_error": SquaredEntryLoss,
    "log_loss": LogisticEntryLoss,
    "squared_hinge": SquaredHingeEntryLoss,
}


class EntrywiseLoss:
    """A multi-label loss: the weighted sum of an entry loss over the observed entries.

    loss: one, or a name in ``ENTRY_LOSSES``.
    signs (n, L): 1 and -1, or 2 q - 1 of targets q, and 0 where unobserved.
    weights (n, fits): the weight of each row in each fit.
    is_separate: whether every label is a group of its own: groups then count labels within fits.
    entry_weights (n, L): factors of the weights of single entries.
    shape: (n, fits, L), or (n, fits L, 1) for separate labels.
    """

    def __init__(
        self,
        loss: str | EntryLoss,
        signs: npt.NDArray[Any],
        weights: Array,
        *,
        is_separate: bool,
        entry_weights: Array | None = None,
    ) -> None:
        (n, labels), fits = signs.shape, weights.shape[1]
        self.loss = loss if isinstance(loss, EntryLoss) else ENTRY_LOSSES[loss]()
        both = np.array([-1.0, 1.0])
        self.least = 0.0 if (self.loss.conjugate(both, 0.0 * both) <= 0).all() else -np.inf
        if signs.dtype.kind == "f" and type(self.loss) in (SquaredEntryLoss, LogisticEntryLoss):
            self.loss = GradedEntryLoss(self.loss)
            self.least = 0.0 if np.abs(signs).max(initial=0.0) <= 1 else -np.inf
        elif signs.dtype.kind == "f":  # then they are weights of the more likely sign
            sure = np.abs(signs)
            entry_weights = sure if entry_weights is None else entry_weights * sure
            signs = np.sign(signs).astype(np.int8)
        self.signs, self.weights = signs, weights
        self.entry_weights, self.is_separate = entry_weights, is_separate
        self.shape = (n, fits * labels, 1) if is_separate else (n, fits, labels)

    def _entries(self, rows: slice, groups: Array, scores: Array) -> tuple[Array, Array]:
        """Return signs and weights in the array library of the scores, of shapes that broadcast to theirs."""
        signs = self._grouped(self.signs[rows], groups).astype(np.float64)
        fits = groups // self.signs.shape[1] if self.is_separate else groups
        weights = self.weights[rows][:, fits, None] * (signs != 0)
        if self.entry_weights is not None:
            weights *= self._grouped(self.entry_weights[rows], groups)
        return like(signs, scores), like(weights, scores)

    def _grouped(self, table: Array, groups: Array) -> Array:
        return table[:, groups % table.shape[1], None] if self.is_separate else table[:, None, :]

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> ScoreEvaluation:
        signs, weights = self._entries(rows, groups, scores)
        losses, gradient, curvature = self.loss.evaluate(signs, scores)
        return ScoreEvaluation(group_products(weights, losses), -weights * gradient, weights * curvature)

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        return state * vectors

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        return np.diag(state.sum(axis=(0, 1)))

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        return np.asarray(state.sum(axis=2))

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        return Root(np.sqrt(state), None)

    def trace_gradient(self, scores: Array, covariances: Array, rows: slice, groups: Array) -> Array:
        """See :meth:`ScoreLoss.trace_gradient`; for the logistic loss only."""
        curvature = self.evaluate(scores, rows, groups).state
        return np.asarray(-curvature * np.tanh(scores / 2) * np.einsum("ngcc->ngc", covariances))
