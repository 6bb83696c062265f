"""Losses of whole rows of scores, in the form that Newton solvers need, and the softmax loss.

Scores are arrays of shape (rows, groups, columns).  The groups are separate fits, such as
the folds of a cross-validation or uncoupled labels; the columns of a
group belong together.  A fit whose weight for a row is 0 ignores that row.

The softmax loss has one class per row: ``-w log P(y | u)``, P(c | u) = exp(u_c) / sum exp(u) (Seeger 2008).
A row may have probabilities q of the classes: its loss is the expected one,
``-w sum_c q_c log P(c | u)``, with q as the target of the residuals and the same curvature.

A row may be partially observed, with a set of possible classes, as one whose path in a taxonomy ends at an
inner node (section 7.4.2).  Its likelihood is the sum over these.  The gradient of
its loss is that of the E step's expected loss, with the target ``q_c = P(c | u, c allowed)``,
and the curvature used is the M step's, so a Newton step is a step of expectation maximization
with updated expectations.  Unlike all others, the loss of such a row is not convex; the expected
loss at the target q is, touches it at u and lies above it elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import block_diag

from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import group_products, is_numpy, like


class ScoreEvaluation(NamedTuple):
    """A loss at some scores.

    residuals (rows, groups, columns): minus the gradient: weight times target minus expectation.
    Shapes: values (groups,), state (rows, groups, columns).
    """

    values: Array
    residuals: Array
    state: Array


class Root(NamedTuple):
    """A root V of the second derivatives ``W = V V^T``: ``V = S (I - U U^T)`` in every row and group.

    shares (rows, groups, columns): U, of length 1 in every row and group; None for ``V = S``.
    Shapes: scale (rows, groups, columns).
    """

    scale: Array
    shares: Array | None


class ScoreLoss(Protocol):
    """A loss, a sum over rows; convex, except for partially observed rows of :class:`SoftmaxLoss`.

    Scores, states and vectors are of some rows and groups: shape (rows, groups, columns).
    """

    shape: tuple[int, int, int]
    """Rows, groups, columns."""
    least: float
    """What the loss is at least, 0 or minus infinity."""

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> ScoreEvaluation:
        """Compute values, residuals and the state for curvatures."""

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        """Multiply by the matrix of second derivatives; the product is a new array."""

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        """Sum the matrices of second derivatives over rows and groups: shape (columns, columns)."""

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        """Compute the trace of the matrix of second derivatives of every row and group."""

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        """Compute a root of the matrices of second derivatives."""

    def trace_gradient(self, scores: Array, covariances: Array, rows: slice, groups: Array) -> Array:
        """Differentiate ``tr(C W)`` by the scores, for fixed C (rows, groups, columns, columns)."""


class ShiftedLoss:
    """A loss of scores plus prior scores (n, L); separate groups count labels within fits."""

    def __init__(self, loss: ScoreLoss, known: RowsByLabels, *, is_separate: bool) -> None:
        self.loss, self.known, self.is_separate, self.shape = loss, known, is_separate, loss.shape
        self.least, self.curve, self.root = loss.least, loss.curve, loss.root
        self.mean_curvature, self.row_curvatures = loss.mean_curvature, loss.row_curvatures

    def _shifted(self, scores: Array, rows: slice, groups: Array) -> Array:
        known = self.known[rows]
        shift = known[:, groups % known.shape[1], None] if self.is_separate else known[:, None, :]
        return scores + like(shift, scores)

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> ScoreEvaluation:
        return self.loss.evaluate(self._shifted(scores, rows, groups), rows, groups)

    def trace_gradient(self, scores: Array, covariances: Array, rows: slice, groups: Array) -> Array:
        return self.loss.trace_gradient(self._shifted(scores, rows, groups), covariances, rows, groups)


class SoftmaxLoss:
    """Multinomial logistic model; all classes of a fit are one group.

    codes (n,): the class of each row; for a partially observed row, any possible class.
    n_classes: the number of classes C.
    weights (n, fits): the weight of each row in each fit; 0 for a row of unobserved class.
    partial (k,): partially observed rows, ascending.
    allowed (k, C): their possible classes.
    shares (n, C): the probabilities of the classes, which are then the targets of all rows.
    """

    def __init__(
        self,
        codes: Array,
        n_classes: int,
        weights: Array,
        partial: Array | None = None,
        allowed: Array | None = None,
        shares: Array | None = None,
    ) -> None:
        self.codes, self.weights, self.shares = codes, weights, shares
        self.shape, self.least = (len(codes), weights.shape[1], n_classes), 0.0
        self.partial = np.empty(0, np.intp) if partial is None else partial
        self.allowed = np.empty((0, n_classes), bool) if allowed is None else allowed

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> ScoreEvaluation:
        xp, weights = namespace(scores), like(self.weights[rows][:, groups], scores)
        if self.shares is not None:
            probabilities, log_sums = _softmax(scores)
            residuals = probabilities * -weights[:, :, None]
            shares = like(self.shares[rows][:, None, :], scores)
            own = xp.sum(shares * scores, axis=2)
            residuals = residuals + weights[:, :, None] * shares
            return ScoreEvaluation(group_products(weights, log_sums - own), residuals, probabilities)
        codes = self.codes[rows]
        probabilities, sums, missing, losses = _of_classes(scores, codes)
        residuals = probabilities * -weights[:, :, None]
        missing *= weights
        if not is_numpy(scores):
            residuals = xp.where(_are_own(scores, codes), missing[:, :, None], residuals)
            return ScoreEvaluation(group_products(weights, losses), residuals, probabilities)
        partial = slice(*np.searchsorted(self.partial, [rows.start, rows.stop]))
        which, allowed = self.partial[partial] - rows.start, self.allowed[partial]
        own = missing, codes, np.arange(len(scores))
        if len(which):
            own, some = tuple(np.delete(part, which, axis=0) for part in own), scores[which]
            expected, log_sums = _softmax(np.where(allowed[:, None, :], some, -np.inf))
            losses[which] = some.max(axis=2) + np.log(sums[which]) - log_sums
            residuals[which] += weights[which][:, :, None] * expected
        residuals[own[2], :, own[1]] = own[0]
        return ScoreEvaluation(group_products(weights, losses), residuals, probabilities)

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        product = state * vectors
        product -= state * namespace(product).sum(product, axis=2, keepdims=True)
        product *= like(self.weights[rows][:, groups, None], product)
        return product

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        flat = state.reshape(-1, state.shape[2])
        total = flat.T @ (flat * -self.weights[rows][:, groups].reshape(-1, 1))
        # the rows of the sum add to 0: a difference from sum(w p) would round to 0 for certain classes
        np.fill_diagonal(total, 0.0)
        np.fill_diagonal(total, -total.sum(axis=1))
        return np.asarray(total)

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        """Compute ``w (1 - |p|^2)``; see :meth:`ScoreLoss.row_curvatures`.

        It is ``w ((1 + p_1) r - |p_others|^2)``, 1 being the most likely class and r the sum over the others,
        which stays accurate where r is below the rounding of 1.
        """
        others = state.copy()
        np.put_along_axis(others, state.argmax(axis=2, keepdims=True), 0.0, axis=2)
        rest = others.sum(axis=2)
        traces = (1.0 + state.max(axis=2)) * rest - np.einsum("ngc,ngc->ng", others, others)
        return np.asarray(self.weights[rows][:, groups] * traces)

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        """Return ``A D^(1/2)``, ``sqrt(w) diag(sqrt p) (I - sqrt(p) sqrt(p)^T)`` (section 5.1.1)."""
        shares = np.sqrt(state)
        return Root(shares * np.sqrt(self.weights[rows][:, groups, None]), shares)

    def trace_gradient(self, scores: Array, covariances: Array, rows: slice, groups: Array) -> Array:
        """Compute ``W (diag C - 2 C p)``; see :meth:`ScoreLoss.trace_gradient`."""
        state, _ = _softmax(scores)
        mixed = np.matmul(covariances, state[..., None])[..., 0]
        return self.curve(state, np.einsum("ngcc->ngc", covariances) - 2.0 * mixed, rows, groups)


class ColumnsLoss:
    """The sum of softmax losses of columns of classes: those of a column are some of the scores.

    losses: the loss of each column.
    parts: its columns of the scores.
    """

    def __init__(self, losses: list[SoftmaxLoss], parts: list[slice]) -> None:
        self.columns = list(zip(losses, parts, strict=True))
        self.shape, self.least = (*losses[0].shape[:2], parts[-1].stop), 0.0

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> ScoreEvaluation:
        xp, values = namespace(scores), list[Array]()
        residuals, state = xp.empty_like(scores), xp.empty_like(scores)
        for loss, part in self.columns:
            found = loss.evaluate(scores[:, :, part], rows, groups)
            residuals[:, :, part], state[:, :, part] = found.residuals, found.state
            values.append(found.values)
        return ScoreEvaluation(sum(values[1:], values[0]), residuals, state)

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        product: Array = namespace(state).empty_like(state)
        for loss, part in self.columns:
            product[:, :, part] = loss.curve(state[:, :, part], vectors[:, :, part], rows, groups)
        return product

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        sums = [loss.mean_curvature(state[:, :, part], rows, groups) for loss, part in self.columns]
        return np.asarray(block_diag(*sums))

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        traces = [loss.row_curvatures(state[:, :, part], rows, groups) for loss, part in self.columns]
        return np.asarray(sum(traces))

    def root(self, *_: Any) -> Any:
        """Raise, as a row has one share vector per column; the fit refuses what needs it."""
        raise NotImplementedError("columns of classes have no root of rank one")

    trace_gradient = root


def _are_own(table: Array, codes: Array) -> Array:
    """Mark the class of each row, in the array library of ``table``: shape (n, 1, C)."""
    marks = np.arange(table.shape[2]) == codes[:, None, None]
    return namespace(table).asarray(marks, device=table.device)


def _of_classes(scores: Array, codes: Array) -> tuple[Array, Array, Array, Array]:
    """Return probabilities, sums of powers, 1 minus that of the own class, and its minus log-probability.

    The last two are accurate where they are below the rounding of 1.  Shapes: codes (n,), results
    (n, groups, C) and (n, groups).
    """
    xp = namespace(scores)
    powers = scores - xp.max(scores, axis=2, keepdims=True)
    if is_numpy(scores):
        places = np.arange(len(codes)), slice(None), codes
        shifted = powers[places]
        powers[places] = -np.inf
        np.exp(powers, out=powers)
        others, own = powers.sum(axis=2), np.exp(shifted)
        powers[places] = own
    else:
        are_own, zero = _are_own(scores, codes), xp.zeros_like(scores)
        shifted = xp.sum(xp.where(are_own, powers, zero), axis=2)
        powers = xp.exp(powers)
        others, own = xp.sum(xp.where(are_own, zero, powers), axis=2), xp.exp(shifted)
    sums = others + own
    powers /= sums[:, :, None]
    losses = xp.log1p(xp.where(shifted < 0, sums - 1, others)) - shifted
    return powers, sums, others / sums, losses


def _softmax(scores: Array) -> tuple[Array, Array]:
    """Return probabilities and log-sums, without overflow."""
    xp = namespace(scores)
    largest = xp.max(scores, axis=2, keepdims=True)
    probabilities = xp.exp(scores - largest)
    sums = xp.sum(probabilities, axis=2, keepdims=True)
    probabilities /= sums
    return probabilities, (xp.log(sums) + largest)[:, :, 0]
