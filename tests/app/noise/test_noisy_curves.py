"""Logistic curves between a floor and a ceiling: derivatives, a slow twin, and rates that are known."""

import numpy as np
import pytest
from scipy.special import expit

from labelweave.app.noise.noisy_curves import NoisyCurves, _Problem, fit_noisy_curves
from labelweave.labels.flip_rates import FlipRates

FREE = np.nan


def simulated(rates, n=4000, n_labels=12, seed=0):
    """Draw scores, true labels whose log-odds these are, and labels as recorded."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-2.0, 3.0, (n, n_labels))
    true = (rng.random(scores.shape) < expit(scores)).astype(float)
    flips = rng.random(scores.shape) < np.where(true == 1, *rates)
    return scores, true, np.where(flips, 1 - true, true)


def rates_of(missed, false, n_labels):
    return np.full(n_labels, missed), np.full(n_labels, false)


def test_loss_is_that_of_a_slow_twin_and_slopes_are_its_differences():
    rng = np.random.default_rng(1)
    targets = rng.integers(0, 2, (7, 3)).astype(float)
    targets[2, 1] = np.nan
    scores, evidence = rng.normal(size=(2, 3, 7))
    problem = _Problem(targets, scores, evidence, rates_of(FREE, FREE, 3))
    numbers = rng.normal(size=(5, 3)) - np.array([0, 0, 0, 2, 2])[:, None]

    def slow(numbers):
        total = 0.0
        for label in range(3):
            slope, pull, level, missed, false = numbers[:, label]
            missed, false = expit(missed), expit(false)
            for row in range(7):
                truth = expit(slope * scores[label, row] + pull * evidence[label, row] + level)
                there = false + (1 - missed - false) * truth
                if not np.isnan(targets[row, label]):
                    total -= np.log(there if targets[row, label] else 1 - there)
        away = numbers - numbers.mean(axis=1, keepdims=True)
        prior = np.square(away) / np.array([0.25, 0.25, 2.25, 0.02, 0.02])[:, None]
        return (total + prior.sum() / 2) / problem.size

    value, slopes = problem.loss(numbers.ravel())
    assert value == pytest.approx(slow(numbers), rel=1e-12)
    for step in (1e-4, 1e-5, 1e-6):
        for place in range(15):
            change = np.zeros(15)
            change[place] = step
            difference = (
                problem.loss(numbers.ravel() + change)[0] - problem.loss(numbers.ravel() - change)[0]
            ) / (2 * step)
            assert slopes[place] == pytest.approx(difference, rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("rates", [(0.2, 0.05), (0.0, 0.1), (0.0, 0.0)])
def test_rates_are_estimated(rates):
    scores, true, recorded = simulated(rates)
    found = fit_noisy_curves(recorded, scores, rates_of(FREE, FREE, 12))
    assert found.rates.missed == pytest.approx(rates[0], abs=0.03)
    assert found.rates.false == pytest.approx(rates[1], abs=0.02)
    assert found.rates.false.mean() == pytest.approx(rates[1], abs=0.005)
    assert np.square(found.truth - expit(scores)).mean() < 1e-3
    assert np.square(found.posterior(recorded) - true).mean() < np.square(found.truth - true).mean()


def test_given_rates_are_kept_and_evidence_is_used():
    scores, _, recorded = simulated((0.1, 0.1), n=500, n_labels=3)
    noisy = scores + np.random.default_rng(3).normal(0, 3, scores.shape)
    known = np.array([0.1, 0.2, 0.0]), np.array([0.1, FREE, 0.0])
    alone = fit_noisy_curves(recorded, noisy, known)
    both = fit_noisy_curves(recorded, noisy, known, scores - noisy, alone)
    assert alone.rates.missed.tolist() == [0.1, 0.2, 0.0]
    assert (alone.rates.false[[0, 2]] == [0.1, 0.0]).all()
    clean = expit(scores)
    assert np.square(both.truth - clean).mean() < 0.5 * np.square(alone.truth - clean).mean()


def test_posterior_is_bayes_rule():
    truth = np.array([[0.3], [0.3], [0.3]])
    curves = NoisyCurves(FlipRates(np.array([0.2]), np.array([0.1])), truth, np.zeros((5, 1)))
    found = curves.posterior(np.array([[1.0], [0.0], [np.nan]])).ravel()
    assert found == pytest.approx([0.24 / (0.24 + 0.07), 0.06 / (0.06 + 0.63), 0.3])
    assert curves.expected()[0, 0] == pytest.approx(0.31)
