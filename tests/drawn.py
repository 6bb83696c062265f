"""Small random problems: rows, and labels or classes that are linear functions of them."""

import numpy as np


def draw_scores(n, d, n_labels, random, *, noise=1.0, kept=1.0, size=1.0, rank=None):
    """Draw rows and scores of labels.

    noise: the size of the part that no feature explains; kept: the share of features that are not 0; size:
    that of features; rank: of the weights.
    """
    X = size * random.normal(size=(n, d))
    if kept < 1:
        X *= random.random((n, d)) < kept
    if rank is None:
        scores = X @ random.normal(size=(d, n_labels))
    else:
        scores = X @ random.normal(size=(d, rank)) @ random.normal(size=(rank, n_labels))
    return X, scores + noise * random.normal(size=scores.shape) if noise else scores


def draw_labels(n=60, d=5, n_labels=4, *, seed=0, above=0.3, missing=None, **how):
    """Draw rows and a table of labels, those whose scores are above a level.

    missing: the share of entries that are NaN; None for a table of int.
    """
    random = np.random.default_rng(seed)
    X, scores = draw_scores(n, d, n_labels, random, **how)
    if missing is None:
        return X, (scores > above).astype(int)
    Y = (scores > above).astype(float)
    Y[random.random(Y.shape) < missing] = np.nan
    return X, Y


def draw_classes(n=60, d=4, n_classes=4, *, seed=0, **how):
    """Draw rows and a class per row, by name, whose score is the highest."""
    X, scores = draw_scores(n, d, n_classes, np.random.default_rng(seed), **how)
    return X, np.array(list("abcdefgh"))[scores.argmax(axis=1)]


def draw_classes_and_labels(n=50, n_classes=5):
    """Draw rows, a class per row by name, and labels whose scores are the same for both."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    scores = 2 * X @ random.normal(size=(4, n_classes)) + random.normal(size=(n, n_classes))
    return X, np.array(list("abcdefgh"))[scores.argmax(axis=1)], (scores > 0.5).astype(float)


def draw_waves(n=60, d=4, n_labels=3, *, seed=0, above=0.0, missing=0.0):
    """Draw rows and a table of labels, those where waves along the rows are above a level."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = np.sin(2.0 * X @ random.normal(size=(d, n_labels))) + 0.3 * random.normal(size=(n, n_labels))
    return X, np.where(random.random(scores.shape) < missing, np.nan, scores > above)


def draw_own(n=60, d=4, n_labels=3, *, noise=1.0, above=0.0):
    """Draw rows and a table of labels, each of which follows a feature of its own."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, (X[:, :n_labels] + noise * random.normal(size=(n, n_labels)) > above).astype(int)
