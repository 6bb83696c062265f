"""Zero-shot learning from vectors of classes, slowly: dense systems, one density at a time.

``vectors`` regresses on the vectors of the training rows; ``couple`` solves for all classes at once, unseen
ones included, with the prior covariance K(x, x') s_c . s_d between the scores of class c at x and of d at x'.
"""

import numpy as np
from scipy.optimize import minimize_scalar


def vectors(X, classes, X_new, table, penalty):
    """Return predicted vectors of new rows minus the training mean, and centered vectors of classes."""
    rows, center = table[classes], table[classes].mean(axis=0)
    constant, new = np.c_[X, np.ones(len(X))], np.c_[X_new, np.ones(len(X_new))]
    gram = constant.T @ constant + penalty * np.eye(constant.shape[1])
    weights = np.linalg.solve(gram, constant.T @ (rows - center))
    return (new @ weights - (constant @ weights).mean(axis=0)), table - center


def couple(X, classes, X_new, table, penalty):
    """Return scores of all classes under the prior, minus their training means, and their squares."""
    constant, new = np.c_[X, np.ones(len(X))], np.c_[X_new, np.ones(len(X_new))]
    moved = table - table[classes].mean(axis=0)
    seen = np.unique(classes)
    scale = np.mean(np.square(moved[seen]).sum(axis=1))
    R = moved @ moved.T / scale
    Y = (classes[:, None] == seen).astype(float)
    big = np.kron(constant @ constant.T, R[np.ix_(seen, seen)])
    alpha = np.linalg.solve(big + penalty * np.eye(len(big)), Y.ravel()).reshape(Y.shape)

    def of(rows):
        return rows @ constant.T @ alpha @ R[seen]

    return of(new) - of(constant).mean(axis=0), np.square(moved).sum(axis=1)


def held_out(predict, X, classes, parts):
    """Collect products s_c . g and squares of the held-out classes, and the truth, part by part."""
    for part in parts:
        out = np.isin(classes, part)
        products, squares = predict(X[~out], classes[~out], X[out])
        yield products[:, part], squares[part], np.searchsorted(part, classes[out])


def shrinkage_and_temperature(folds):
    """Find rho by least squares, and t of the greatest likelihood, with the shares of classes as prior."""
    folds = list(folds)
    found = sum(table[np.arange(len(truth)), truth].sum() for table, _, truth in folds)
    rho = max(0.0, found / sum(squares[truth].sum() for _, squares, truth in folds))

    def loss(power):
        return -sum(
            np.log(posterior(np.exp(power), rho, table, squares, np.bincount(truth))[row, truth[row]])
            for table, squares, truth in folds
            for row in range(len(truth))
        )

    powers = np.linspace(-8, 8, 65)
    start = powers[np.argmin([loss(power) for power in powers])]
    best = minimize_scalar(loss, bounds=(start - 0.5, start + 0.5), method="bounded", options={"xatol": 1e-7})
    return rho, np.exp(best.x)


def posterior(t, rho, products, squares, weights):
    """Weight Gaussian densities around rho s_c of variance rho / t, without what all classes share."""
    power = t * (products - rho / 2 * squares)
    density = weights * np.exp(power - power.max(axis=1, keepdims=True)) + np.finfo(float).tiny * (
        weights > 0
    )
    return density / density.sum(axis=1, keepdims=True)
