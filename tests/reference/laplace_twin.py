"""Laplace's approximation with every matrix explicit; scores are flattened row by row."""

import numpy as np

from labelweave.features import FeatureMatrix
from reference.newton_twins import block_diagonal, optimum, prior


def inducing_prior(score_prior, X, active, n_training):
    """Compute the prior between training rows and new ones, exact or through the active rows."""
    features, grams = FeatureMatrix(X), []
    for term in score_prior.terms:
        K = term.kernel.block(features, features)
        if active is not None:
            corner = K[np.ix_(active, active)]
            corner = corner + 1e-8 * corner.max() * np.eye(len(active))
            own = K.diagonal().copy()
            K = K[:, active] @ np.linalg.solve(corner, K[active])
            np.fill_diagonal(K, own)
        grams.append(K)
    covariances = [term.covariance.to_dense() for term in score_prior.terms]
    return prior(grams, covariances, score_prior.intercept_variance)


def covariances(whole, W):
    """Return the posterior covariance of every row, (rows, L, L), from all priors and the first W."""
    m = len(W)
    across = whole[:, :m]
    posterior = whole - across @ np.linalg.solve(np.eye(m) + W @ whole[:m, :m], W @ across.T)
    labels = 5
    blocks = posterior.reshape(len(whole) // labels, labels, -1, labels)
    return np.einsum("icid->icd", blocks)


def evidence(twin, K, shape):
    """Return minus the log marginal likelihood."""
    value, scores = optimum(twin, K, shape)
    W = block_diagonal(twin.curvature(scores))
    return value + np.linalg.slogdet(np.eye(len(K)) + W @ K)[1] / 2
