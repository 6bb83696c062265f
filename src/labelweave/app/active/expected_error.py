"""Expected error reduction by an answer, in closed form, and batches of complementary answers.

The scores of a label are Gaussian around those of the model, with the posterior covariance of a prior
``F F^T`` given the known entries (Laplace's approximation, with the logistic loss' curvature
h = p (1 - p) as the precision of an answer).  With v_i the variance of the score of row i, c_ij a covariance
and t the log-odds above which a label is predicted, an answer at row i reduces every variance v_j by
c_ij^2 / (v_i + 1 / h_i).  The decision about j is wrong by |f_j - t| on the wrong side of t, on average
E max(0, ...), a function of v_j whose derivative is half the density of f_j at t.  The gain of entry i is

    g_i = sum_j w_j c_ij^2 / (v_i + 1 / h_i),    w_j = N(t; m_j, v_j),

the expected error reduction over all unknown entries (compare Roy and McCallum, "Toward optimal
active learning through sampling estimation of error reduction", 2001, who refit the model for every
answer; and the A-optimal designs of Schein and Ungar, "Active learning for logistic regression", 2007).

The reduction does not depend on the answer.  A batch is therefore chosen greedily, each entry given the
variances after the ones before it, which avoids redundant queries.

For correlated labels, with a score f_k = r f_l + noise of variance (1 - r^2) v_k, an answer about l acts
like one about k with the noise (1 / h_l + (1 - r^2) v) / r^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from labelweave.foundation.array_types import Array, LabelsByLabels, RowsByLabels

_LEAST_SHARE = 1e-3  # clips probabilities, since models may be overconfident
_LEAST_CORRELATION = 0.2  # labels below it are treated as independent
_MUCH = 0.1  # smallest relative reduction of a variance that counts as informative


class Choice(NamedTuple):
    """A chosen entry: its place, its gain, and the number of other rows it informs."""

    row: int
    label: int
    gain: float
    informs: int


class ExpectedError:
    """The variances of all scores, and their reduction by answers.

    factor (n, r): F, its last column the intercept.
    probabilities (n, L): of the model.
    known (n, L): which entries are known.
    cut: the probability above which labels are predicted.
    correlations (L, L): of labels' scores, or None where an answer informs only its own label.
    """

    def __init__(
        self, factor: Array, probabilities: RowsByLabels, known: RowsByLabels, cut: float,
        correlations: LabelsByLabels | None = None,
    ) -> None:  # fmt: skip
        self.factor, self.known = factor, known.copy()
        p = np.clip(probabilities, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        self.spread = np.stack([self._posterior(p[:, label], known[:, label]) for label in range(p.shape[1])])
        self.variances, self.values = np.empty(p.shape), np.empty(p.shape)
        self.weights, self.noise = np.empty(p.shape), np.empty(p.shape)
        level = float(logit(np.clip(cut, _LEAST_SHARE, 1.0 - _LEAST_SHARE)))
        for label in range(p.shape[1]):
            self._begin(label, logit(p[:, label]), level)
        self.related = _related(correlations, p.shape[1])

    def _posterior(self, p: Array, known: Array) -> Array:
        seen = self.factor[known]
        precision = seen.T @ ((p * (1.0 - p))[known, None] * seen)
        precision[np.diag_indices_from(precision)] += 1.0
        inverse: Array = np.linalg.inv(precision)
        return (inverse + inverse.T) / 2.0

    def _begin(self, label: int, odds: Array, level: float) -> None:
        across = self.factor @ self.spread[label]
        v = np.maximum(np.einsum("ij,ij->i", across, self.factor), 1e-12)
        mean = expit(odds / np.sqrt(1.0 + np.pi * v / 8.0))  # of the probability (MacKay 1992)
        w = np.exp(-0.5 * (odds - level) ** 2 / v) / np.sqrt(v)
        w[self.known[:, label]] = 0.0
        inner = self.factor.T @ (w[:, None] * self.factor)
        self.values[:, label] = np.einsum("ij,ij->i", across @ inner, across)
        self.variances[:, label], self.weights[:, label] = v, w
        self.noise[:, label] = 1.0 / (mean * (1.0 - mean))

    def choose(self, count: int, costs: RowsByLabels) -> list[Choice]:
        """Choose unknown entries greedily, by gain per cost.

        costs (n, L): of an answer, above 0.
        """
        self.gains = self.all_gains() / costs
        best = self.gains.max(axis=0)
        found = list[Choice]()
        for _ in range(min(count, int((~self.known).sum()))):
            label = int(best.argmax())
            row = int(self.gains[:, label].argmax())
            gain = float(self.gains[row, label])
            informs = self._take(row, label)
            found.append(Choice(row, label, gain, informs))
            for changed in self._changed(label):
                self.gains[:, changed] = self._gains(changed) / costs[:, changed]
                best[changed] = self.gains[:, changed].max()
        return found

    def all_gains(self) -> RowsByLabels:
        return np.stack([self._gains(label) for label in range(self.known.shape[1])], axis=1)

    def _gains(self, label: int) -> Array:
        value = self.values[:, label].copy()
        others, squares = self.related[label]
        if len(others):
            value += self.values[:, others] @ squares
        gain = value / (self.variances[:, label] + self.noise[:, label])
        return np.where(self.known[:, label], -np.inf, gain)

    def _changed(self, label: int) -> set[int]:
        """Return the labels whose gains an answer changes: those it informs, and labels related to these."""
        told = {label, *self.related[label][0].tolist()}
        return told.union(*(self.related[one][0].tolist() for one in told))

    def _take(self, row: int, label: int) -> int:
        """Count an entry as answered; return the number of other rows it informs."""
        noise, variance = self.noise[row, label], self.variances[row, label]
        self.known[row, label] = True
        others, squares = self.related[label]
        for other, square in zip(others.tolist(), squares.tolist(), strict=True):
            own = self.variances[row, other]
            self._observe(row, other, (noise + (1.0 - square) * max(variance, own)) / square)
        shares = self._observe(row, label, noise)
        self._forget(row, label)
        return int((shares > _MUCH).sum()) - int(shares[row] > _MUCH)

    def _observe(self, row: int, label: int, noise: float) -> Array:
        """Condition the covariance on an answer of this noise; return relative reductions of variances."""
        spread = self.spread[label]
        step = spread @ self.factor[row]
        covariance = self.factor @ step
        total = covariance[row] + noise
        weighted = self.weights[:, label] * covariance
        self.values[:, label] += (
            covariance**2 / total**2 * (weighted @ covariance)
            - 2.0 * covariance / total * (self.factor @ (spread @ (self.factor.T @ weighted)))
        )  # fmt: skip
        spread -= np.outer(step, step / total)
        fallen = covariance**2 / total
        shares: Array = fallen / self.variances[:, label]
        self.variances[:, label] = np.maximum(self.variances[:, label] - fallen, 1e-12)
        return shares

    def _forget(self, row: int, label: int) -> None:
        """Set the weight of an entry to zero, since its decision is made."""
        across = self.factor @ (self.spread[label] @ self.factor[row])
        self.values[:, label] -= self.weights[row, label] * across**2
        self.weights[row, label] = 0.0


def _related(correlations: LabelsByLabels | None, n_labels: int) -> list[tuple[Array, Array]]:
    """Return for every label its correlated labels, and the squares of the correlations."""
    if correlations is None:
        return [(np.empty(0, np.intp), np.empty(0))] * n_labels
    squares = np.minimum(np.square(correlations), 0.99)
    np.fill_diagonal(squares, 0.0)
    others = [np.flatnonzero(line > _LEAST_CORRELATION**2) for line in squares]
    return [(found, line[found]) for found, line in zip(others, squares, strict=True)]


def micro_f1_cut(probabilities: RowsByLabels) -> float:
    """Return the probability above which to predict labels for the best expected micro-F1.

    The ratio of expected counts approximates the expectation of the ratio.
    """
    falling = np.sort(probabilities, axis=None)[::-1]
    hits = np.cumsum(falling)
    f1 = 2.0 * hits / (hits[-1] + np.arange(1, len(falling) + 1)) if len(falling) and hits[-1] > 0 else None
    return 0.5 if f1 is None else float(falling[int(np.argmax(f1))])
