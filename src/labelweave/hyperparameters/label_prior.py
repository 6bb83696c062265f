"""Which prior over related labels, by left-out rows in closed form: covariance, scale, strength of a mean.

The model is logistic: log-odds ``c s_il + u_il``, with known scores s, and u of prior covariance
``v K (x) R``.  One Newton step from the base rates p_l turns it into a ridge regression, with
t_il = (y_il - p_l) / sigma_l and sigma_l^2 = p_l (1 - p_l):

    t = sigma_l (c s + u) + noise of variance 1,    sigma u ~ v K (x) D R D,    D = diag(sigma).

In the eigenvectors V of D R D labels come apart: column j of t V has the penalty 1 / (v r_j), and as rows are
left out with all of their labels, each has its left-out residuals from one eigendecomposition of K
(:mod:`labelweave.hyperparameters.left_out`).  Residuals are linear in the targets, so the strength of least
squares follows: ``c = <r(sigma s), r(t)> / <r(sigma s), r(sigma s)>``, no less than 0.  Choices are compared
by the log loss of the left-out log-odds ``logit p + (t - r) / sigma``, with shares of that strength: squares
of rare labels' residuals ask for scales at which log-odds are far too large.  An unobserved entry counts as
its label's base rate and adds no loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from labelweave.array_types import Array, PerLabel, RowsByLabels, RowsByRows
from labelweave.labels import LabelCovariance

_SCALES = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0])  # over the mean of the diagonal of K
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the strength of least squares
_LEAST = 1e-6  # of a residual that a row leaves to itself


@dataclass(frozen=True)
class LabelPrior:
    """A choice.

    number: which of the covariances.
    scale: v.
    strength: c.
    loss: the mean log loss of left-out entries.
    """

    number: int
    scale: float
    strength: float
    loss: float


def base_rates(targets: RowsByLabels) -> PerLabel:
    """Compute the share of positives of each label, (L,), drawn to that of all where few rows tell of it.

    targets (n, L): 0 and 1, NaN where unobserved.
    """
    known = ~np.isnan(targets)
    positives, counts = np.where(known, targets, 0.0).sum(axis=0), known.sum(axis=0)
    overall = (positives.sum() + 0.5) / (counts.sum() + 1.0)
    return np.asarray((positives + overall) / (counts + 1.0))


def choose_label_prior(
    gram: RowsByRows,
    targets: RowsByLabels,
    known: RowsByLabels | None,
    covariances: Iterable[LabelCovariance],
) -> list[LabelPrior]:
    """Measure the best scale and strength with each covariance; the best choice comes first.

    gram (n, n): the kernel matrix.
    targets (n, L): 0 and 1, NaN where unobserved.
    known (n, L): s; None for no mean.
    covariances: R, each over all labels.
    """
    rates, observed = base_rates(targets), ~np.isnan(targets)
    deviations = np.sqrt(rates * (1.0 - rates))
    tables = [np.where(observed, (targets - rates) / deviations, 0.0)]
    if known is not None:
        tables.append(deviations * known)
    eigenvalues, vectors = sl.eigh(gram, check_finite=False)
    spectrum = np.maximum(eigenvalues, 0.0), vectors, np.square(vectors)
    unit = max(float(np.mean(np.diagonal(gram))), np.finfo(float).tiny)
    found = []
    for number, covariance in enumerate(covariances):
        of_labels = _label_spectrum(covariance, deviations)
        turned = [
            spectrum[1].T @ (table if of_labels[1] is None else table @ of_labels[1]) for table in tables
        ]
        for scale in _SCALES / unit:
            residuals = _left_out(spectrum, of_labels, turned, scale)
            loss, strength = _best_strength(residuals, tables[0], rates, np.where(observed, targets, np.nan))
            found.append(LabelPrior(number, float(scale), strength, loss))
    return sorted(found, key=lambda prior: prior.loss)


def _label_spectrum(covariance: LabelCovariance, deviations: PerLabel) -> tuple[PerLabel, Array | None]:
    """Give eigenvalues and eigenvectors of D R D; no vectors where labels are independent."""
    if covariance.is_diagonal:
        return np.square(deviations) * covariance.diagonal(), None
    values, vectors = sl.eigh(deviations[:, None] * covariance.to_dense() * deviations, check_finite=False)
    return np.maximum(values, 0.0), vectors


def _left_out(
    spectrum: tuple[Array, Array, Array],
    of_labels: tuple[PerLabel, Array | None],
    turned: list[Array],
    scale: float,
) -> list[Array]:
    """Give the left-out residuals of tables that are turned into the eigenvectors of rows and labels."""
    (eigenvalues, vectors, squares), (values, back) = spectrum, of_labels
    shrunk = 1.0 / (1.0 + scale * np.outer(eigenvalues, values))
    own = np.maximum(squares @ shrunk, _LEAST)
    residuals = [vectors @ (shrunk * table) / own for table in turned]
    return residuals if back is None else [table @ back.T for table in residuals]


def _best_strength(
    residuals: list[Array], standardized: Array, rates: PerLabel, targets: Array
) -> tuple[float, float]:
    """Give the least mean log loss over strengths of the mean, and the strength that has it.

    standardized (n, L): t.
    """
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
