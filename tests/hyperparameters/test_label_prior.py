"""Priors over related labels are chosen by the results of explicit refits without a row."""

from dataclasses import replace

import numpy as np
import pytest

from labelweave import LabelCovariance
from labelweave.problems.hyperparameters.label_prior import OutOfFoldRows, base_rates, ranks_better


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
    for prior in OutOfFoldRows(gram, targets, known).choose([identity, covariance])[::5]:
        which = (identity, covariance)[prior.number]
        loss = _explicit(gram, targets, known, which, prior.scale, prior.strength)
        assert prior.loss == pytest.approx(loss, rel=1e-8)
        assert loss <= _explicit(gram, targets, known, which, prior.scale, 0.0) + 1e-12


def test_a_mean_that_tells_and_a_covariance_that_does_not():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 6))
    targets = (rng.random(scores.shape) < 1 / (1 + np.exp(-2 * scores))).astype(float)
    X = rng.normal(size=(200, 5))
    first = OutOfFoldRows(X @ X.T, targets, scores).choose([LabelCovariance.identity(6)])[0]
    assert 0.5 < first.strength < 2.0
    assert OutOfFoldRows(X @ X.T, targets, None).choose([LabelCovariance.identity(6)])[0].strength == 0.0
    assert OutOfFoldRows(X @ X.T, targets, -scores).choose([LabelCovariance.identity(6)])[0].strength == 0.0


def test_base_rates_of_labels_that_no_row_tells_of_are_those_of_all():
    targets = np.array([[1.0, np.nan], [0.0, np.nan]])
    assert base_rates(targets)[1] == pytest.approx(0.5)
    assert (base_rates(np.zeros((5, 2))) > 0).all()


@pytest.mark.parametrize("is_mislaid", [False, True])
def test_a_covariance_of_labels_dealt_out_at_random_is_found_out(is_mislaid):
    rng = np.random.default_rng(0)
    blocks = np.kron(np.eye(4), np.full((3, 3), 0.9)) + 0.1 * np.eye(12)
    X = rng.normal(size=(60, 20))
    targets = (X @ rng.multivariate_normal(np.zeros(12), blocks, 20) > 3.0).astype(float)
    targets[::7, 0] = np.nan
    order = rng.permutation(12) if is_mislaid else np.arange(12)
    covariance = LabelCovariance.dense(blocks[np.ix_(order, order)])
    data = X @ X.T, targets, rng.normal(size=targets.shape)
    choices = [
        (OutOfFoldRows(*data).choose([one])[0], one) for one in (covariance, LabelCovariance.identity(12))
    ]
    assert ranks_better(*choices, data, 0) is not is_mislaid
    assert not ranks_better(choices[1], choices[1], data, 0)


def test_scores_of_other_rows_are_those_of_explicit_fits():
    gram, targets, known, covariance = _problem(missing=True)
    kept, held = np.arange(10), np.arange(10, 14)
    rows = OutOfFoldRows(gram[:10, :10], targets[:10], known[:10])
    prior = replace(rows.choose([covariance])[0], strength=0.7)
    rates = base_rates(targets[:10])
    deviations = np.sqrt(rates * (1 - rates))
    t = np.where(np.isnan(targets[:10]), 0.0, (targets[:10] - rates) / deviations)
    t -= 0.7 * deviations * known[:10]
    R = deviations[:, None] * covariance.to_dense() * deviations
    system = prior.scale * np.kron(gram[:10, :10], R) + np.eye(40)
    dual = np.linalg.solve(system, t.ravel()).reshape(10, 4)
    expected = prior.scale * gram[np.ix_(held, kept)] @ dual @ R / deviations
    found = rows.scores(prior, covariance, gram[np.ix_(held, kept)])
    np.testing.assert_allclose(found, expected, atol=1e-10)
