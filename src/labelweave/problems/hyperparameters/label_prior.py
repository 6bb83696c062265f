"""Closed-form leave-one-out choice of the prior of related labels: covariance, scale, strength of a mean.

The model is logistic: log-odds ``c s_il + u_il``, with prior scores s, and u of prior covariance
``v K (x) R``.  One Newton step from the base rates p_l turns it into a ridge regression, with
t_il = (y_il - p_l) / sigma_l and sigma_l^2 = p_l (1 - p_l):

    t = sigma_l (c s + u) + noise of variance 1,    sigma u ~ v K (x) D R D,    D = diag(sigma).

The eigenvectors V of D R D decouple the labels: column j of t V has the penalty 1 / (v r_j), and as rows are
held out with all of their labels, each has its leave-one-out residuals from one eigendecomposition of K
(:mod:`labelweave.problems.hyperparameters.out_of_fold`).  Residuals are linear in the targets, so the
strength of least squares follows: ``c = <r(sigma s), r(t)> / <r(sigma s), r(sigma s)>``, no less than 0.
Choices are compared by the log loss of the leave-one-out log-odds ``logit p + (t - r) / sigma``, with shares
of that strength: least squares on rare labels' residuals would choose scales with log-odds far too large.  An
unobserved entry counts as its label's base rate and adds no loss.

A covariance that is positive throughout lowers the log loss by what all labels of a row have in common,
whichever labels it relates, and may rank rows worse.  So it has to rank held-out parts of
the rows better than independent labels do, by more than two standard errors over labels
(:func:`ranks_better`).  Leave-one-out cannot measure this: without its only positive row a label scores
this row lower than all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
from scipy.stats import rankdata

from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels, RowsByRows
from labelweave.labels import LabelCovariance

_SCALES = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0])  # over the mean of the diagonal of K
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the strength of least squares
_FOLDS, _CLEAR = 4, 2.0  # held-out parts; standard errors
_LEAST = 1e-6  # diagonal entry of I - H, by which residuals are divided


@dataclass(frozen=True)
class LabelPrior:
    """A choice.

    number: the number of the covariance.
    scale: v.
    strength: c.
    loss: the mean log loss of out-of-fold entries.
    """

    number: int
    scale: float
    strength: float
    loss: float


def base_rates(targets: RowsByLabels) -> PerLabel:
    """Compute each label's share of positives, shrunk to that of all labels with few rows; NaN is missing."""
    known = ~np.isnan(targets)
    positives, counts = np.where(known, targets, 0.0).sum(axis=0), known.sum(axis=0)
    overall = (positives.sum() + 0.5) / (counts.sum() + 1.0)
    return np.asarray((positives + overall) / (counts + 1.0))


class OutOfFoldRows:
    """Rows that are held out one by one, with all of their labels.

    targets (n, L): 0 and 1, NaN where unobserved.
    known (n, L): s; None for no mean.
    """

    def __init__(self, gram: RowsByRows, targets: RowsByLabels, known: RowsByLabels | None) -> None:
        self.targets, self.rates = targets, base_rates(targets)
        self.deviations = np.sqrt(self.rates * (1.0 - self.rates))
        standardized = (targets - self.rates) / self.deviations
        self.tables = [np.where(np.isnan(targets), 0.0, standardized)]
        if known is not None:
            self.tables.append(self.deviations * known)
        eigenvalues, vectors = sl.eigh(gram, check_finite=False)
        self.spectrum = np.maximum(eigenvalues, 0.0), vectors, np.square(vectors)
        self.unit = max(float(np.mean(np.diagonal(gram))), np.finfo(float).tiny)

    def choose(self, covariances: Iterable[LabelCovariance]) -> list[LabelPrior]:
        """Evaluate scales and strengths with each covariance R over all labels; the best come first."""
        found = []
        for number, covariance in enumerate(covariances):
            of_labels, turned = self._turned(covariance)
            for scale in _SCALES / self.unit:
                residuals = _out_of_fold(self.spectrum, of_labels, turned, scale)
                loss, strength = _best_strength(residuals, self.tables[0], self.rates, self.targets)
                found.append(LabelPrior(number, float(scale), strength, loss))
        return sorted(found, key=lambda prior: prior.loss)

    def _turned(self, covariance: LabelCovariance) -> tuple[tuple[PerLabel, Array | None], list[Array]]:
        of_labels = _label_spectrum(covariance, self.deviations)
        back, vectors = of_labels[1], self.spectrum[1]
        return of_labels, [vectors.T @ (table if back is None else table @ back) for table in self.tables]

    def scores(self, prior: LabelPrior, covariance: LabelCovariance, across: Array) -> RowsByLabels:
        """Score m other rows, up to a constant per label, by their kernel ``across`` (m, n) to these."""
        (values, back), turned = self._turned(covariance)
        eigenvalues, vectors, _ = self.spectrum
        dual = vectors @ (turned[0] / (1.0 + prior.scale * np.outer(eigenvalues, values)))
        if len(turned) > 1:
            known = vectors @ (turned[1] / (1.0 + prior.scale * np.outer(eigenvalues, values)))
            dual -= prior.strength * known
        found = prior.scale * (across @ dual) * values
        return np.asarray((found if back is None else found @ back.T) / self.deviations)


def ranks_better(
    one: tuple[LabelPrior, LabelCovariance],
    other: tuple[LabelPrior, LabelCovariance],
    data: tuple[RowsByRows, RowsByLabels, RowsByLabels | None],
    seed: int,
) -> bool:
    """Whether a choice ranks held-out rows better than another one; also true with too few rows to decide.

    data: the arguments of :class:`OutOfFoldRows`.
    """
    gram, targets, known = data
    folds = np.random.default_rng(seed).permutation(len(gram)) % _FOLDS
    gains = []
    for fold in range(_FOLDS if len(gram) >= 2 * _FOLDS else 0):
        kept, held = folds != fold, folds == fold
        rows = OutOfFoldRows(gram[np.ix_(kept, kept)], targets[kept], None if known is None else known[kept])
        aucs = []
        for prior, covariance in (one, other):
            scores = rows.scores(prior, covariance, gram[np.ix_(held, kept)])
            if known is not None:
                scores += prior.strength * known[held]
            aucs.append(_label_aucs(targets[held], scores))
        gains.append(aucs[0] - aucs[1])
    by_label = np.array(
        [np.mean(own[~np.isnan(own)]) for own in np.transpose(gains) if not np.isnan(own).all()]
    )
    if len(by_label) < 2:
        return True
    return bool(by_label.mean() > _CLEAR * by_label.std(ddof=1) / np.sqrt(len(by_label)))


def _label_aucs(targets: RowsByLabels, scores: RowsByLabels) -> PerLabel:
    """Compute the AUC of each label, NaN unless it has both positive and negative entries."""
    found = np.full(targets.shape[1], np.nan)
    for label, (target, score) in enumerate(zip(targets.T, scores.T, strict=True)):
        seen = ~np.isnan(target)
        is_positive = target[seen] > 0
        n_positive, n_negative = int(is_positive.sum()), int((~is_positive).sum())
        if n_positive and n_negative:
            above = rankdata(score[seen])[is_positive].sum() - n_positive * (n_positive + 1) / 2
            found[label] = above / (n_positive * n_negative)
    return found


def _label_spectrum(covariance: LabelCovariance, deviations: PerLabel) -> tuple[PerLabel, Array | None]:
    """Return eigenvalues and eigenvectors of D R D; no vectors where labels are independent."""
    if covariance.is_diagonal:
        return np.square(deviations) * covariance.diagonal(), None
    values, vectors = sl.eigh(deviations[:, None] * covariance.to_dense() * deviations, check_finite=False)
    return np.maximum(values, 0.0), vectors


def _out_of_fold(
    spectrum: tuple[Array, Array, Array],
    of_labels: tuple[PerLabel, Array | None],
    turned: list[Array],
    scale: float,
) -> list[Array]:
    """Return the leave-one-out residuals of tables in the eigenvectors of rows and labels."""
    (eigenvalues, vectors, squares), (values, back) = spectrum, of_labels
    shrunk = 1.0 / (1.0 + scale * np.outer(eigenvalues, values))
    own = np.maximum(squares @ shrunk, _LEAST)
    residuals = [vectors @ (shrunk * table) / own for table in turned]
    return residuals if back is None else [table @ back.T for table in residuals]


def _best_strength(
    residuals: list[Array], standardized: Array, rates: PerLabel, targets: Array
) -> tuple[float, float]:
    """Return the least mean log loss over strengths of the mean, and the strength; ``standardized`` is t."""
    observed, deviations = ~np.isnan(targets), np.sqrt(rates * (1.0 - rates))
    signs, base = np.where(targets > 0, 1.0, -1.0)[observed], np.log(rates / (1.0 - rates))
    own = (base + (standardized - residuals[0]) / deviations)[observed]
    if len(residuals) == 1:
        return _log_loss(signs, own), 0.0
    other, of_mean = np.where(observed, residuals[0], 0.0), np.where(observed, residuals[1], 0.0)
    square = float(np.vdot(of_mean, of_mean))
    largest = max(0.0, float(np.vdot(other, of_mean)) / square) if square > 0 else 0.0
    moved = (residuals[1] / deviations)[observed]
    strengths = [part * largest for part in _PARTS] if largest > 0 else [0.0]
    return min((_log_loss(signs, own + strength * moved), strength) for strength in strengths)


def _log_loss(signs: Array, scores: Array) -> float:
    return float(np.logaddexp(0.0, -signs * scores).mean()) if len(signs) else 0.0
