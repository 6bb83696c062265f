"""Means of probabilities under a Gaussian: quadrature, sampling and limits."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit, log_softmax, softmax

from labelweave.estimators.kernel_logistic.probabilities import mean_log_expit, mean_log_softmax


@pytest.mark.parametrize("mean", [-30.0, -5.0, -0.3, 0.0, 2.0, 10.0])
@pytest.mark.parametrize("deviation", [1e-6, 0.1, 0.9, 1.0, 1.1, 3.0, 30.0])
def test_logistic_means_are_those_of_quadrature(mean, deviation):
    def density(t):
        return expit(mean + deviation * t) * np.exp(-t * t / 2) / np.sqrt(2 * np.pi)

    step = float(np.clip(-mean / deviation, -12, 12))
    true = quad(density, -12, 12, epsabs=1e-13, limit=2000, points=[step])[0]
    found = mean_log_expit(np.array([mean]), np.array([deviation**2]))
    assert np.exp(found[0]) == pytest.approx(true, abs=1e-10)


def test_without_variance_means_are_the_functions():
    scores = np.random.default_rng(0).normal(scale=20.0, size=(50, 4))
    np.testing.assert_allclose(mean_log_expit(scores, 0.0 * scores), log_expit(scores), rtol=1e-9, atol=1e-12)
    found = mean_log_softmax(scores, np.zeros((50, 4, 4)))
    np.testing.assert_allclose(found, log_softmax(scores, axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6, 12])
def test_softmax_means_are_those_of_sampling(n_classes):
    random = np.random.default_rng(n_classes)
    root, means = random.normal(size=(n_classes, n_classes)), random.normal(size=n_classes)
    covariance = 4 * root @ root.T / n_classes
    drawn = means + random.normal(size=(100_000, n_classes)) @ np.linalg.cholesky(covariance).T
    found = np.exp(mean_log_softmax(means[None], covariance[None])[0])
    np.testing.assert_allclose(found, softmax(drawn, axis=1).mean(axis=0), atol=0.006)
    assert found.sum() == pytest.approx(1.0)


def test_two_classes_are_one_logistic_function():
    means = np.array([[0.3, -1.0], [2.0, 2.0]])
    covariances = np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 9.0]]])
    found = np.exp(mean_log_softmax(means, covariances))[:, 1]
    contrast = np.array([-1.0, 1.0])
    variances = np.einsum("c,ncd,d->n", contrast, covariances, contrast)
    np.testing.assert_allclose(found, np.exp(mean_log_expit(means @ contrast, variances)), atol=1e-3)


def test_of_classes_that_are_nearly_alike_the_one_of_the_greatest_mean_is_the_most_probable():
    means = np.random.default_rng(0).normal(size=(40, 8))
    found = mean_log_softmax(means, np.tile(1e6 * np.eye(8), (40, 1, 1)))
    np.testing.assert_array_equal(found.argmax(axis=1), means.argmax(axis=1))
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(found), 1 / 8, atol=0.03)
    certain = mean_log_softmax(np.array([[1.0, 0.9, 0.0]]), np.diag([0.0, 0.0, 300.0])[None])
    assert certain.argmax() == 2
