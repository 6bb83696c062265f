"""Priors over related labels are chosen by what explicit refits without a row say."""

from __future__ import annotations

import numpy as np
import pytest

from labelweave import LabelCovariance
from labelweave.hyperparameters.label_prior import base_rates, choose_label_prior


def _problem(missing=False):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(14, 3))
    targets = (rng.random((14, 4)) < 0.4).astype(float)
    if missing:
        targets[rng.random(targets.shape) < 0.2] = np.nan
    root = rng.normal(size=(4, 4))
    return X @ X.T, targets, rng.normal(size=(14, 4)), LabelCovariance.dense(root @ root.T + np.eye(4))


def _explicit(gram, targets, known, covariance, scale, strength):
    """Refit without each row, all labels at once."""
    rates = base_rates(targets)
    deviations = np.sqrt(rates * (1 - rates))
    observed = ~np.isnan(targets)
    t = np.where(observed, (targets - rates) / deviations, 0.0) - strength * deviations * known
    R = deviations[:, None] * covariance.to_dense() * deviations
    scores = np.zeros_like(t)
    for row in range(len(gram)):
        rest = np.delete(np.arange(len(gram)), row)
        system = scale * np.kron(gram[np.ix_(rest, rest)], R) + np.eye(len(rest) * len(R))
        dual = np.linalg.solve(system, t[rest].ravel()).reshape(len(rest), -1)
        scores[row] = scale * gram[row, rest] @ dual @ R / deviations + strength * known[row]
    scores += np.log(rates / (1 - rates))
    return np.logaddexp(0, np.where(targets > 0, -scores, scores))[observed].mean()


@pytest.mark.parametrize("missing", [False, True])
def test_losses_are_those_of_refits(missing):
    gram, targets, known, covariance = _problem(missing)
    identity = LabelCovariance.identity(4)
    for prior in choose_label_prior(gram, targets, known, [identity, covariance])[::5]:
        which = (identity, covariance)[prior.number]
        loss = _explicit(gram, targets, known, which, prior.scale, prior.strength)
        assert prior.loss == pytest.approx(loss, rel=1e-8)
        assert loss <= _explicit(gram, targets, known, which, prior.scale, 0.0) + 1e-12


def test_a_mean_that_tells_and_a_covariance_that_does_not():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 6))
    targets = (rng.random(scores.shape) < 1 / (1 + np.exp(-2 * scores))).astype(float)
    X = rng.normal(size=(200, 5))
    first = choose_label_prior(X @ X.T, targets, scores, [LabelCovariance.identity(6)])[0]
    assert 0.5 < first.strength < 2.0
    assert choose_label_prior(X @ X.T, targets, None, [LabelCovariance.identity(6)])[0].strength == 0.0
    assert choose_label_prior(X @ X.T, targets, -scores, [LabelCovariance.identity(6)])[0].strength == 0.0


def test_base_rates_of_labels_that_no_row_tells_of_are_those_of_all():
    targets = np.array([[1.0, np.nan], [0.0, np.nan]])
    assert base_rates(targets)[1] == pytest.approx(0.5)
    assert (base_rates(np.zeros((5, 2))) > 0).all()
