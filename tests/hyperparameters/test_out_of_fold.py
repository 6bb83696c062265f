"""Out-of-fold scores in closed form equal those of explicit refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.problems.hyperparameters.out_of_fold import OutOfFoldFactorRidge, OutOfFoldRidge, oof_loss

N = 24


def _data(missing=0.0, seed=0):
    random = np.random.default_rng(seed)
    rows = FeatureMatrix(random.normal(size=(N, 3)))
    targets = (random.random((N, 5)) < 0.4).astype(float)
    targets[:, 1:][random.random((N, 4)) < missing] = np.nan  # the first label is observed
    if missing:
        targets[:, 4] = np.where(np.isnan(targets[:, 3]), np.nan, targets[:, 4])
        targets[np.isnan(targets[:, 4]), 3] = np.nan  # two labels share their missing rows
    return RBFKernel(0.3).block(rows, rows), targets, random.uniform(0.2, 2.0, N)


def _refit(gram, target, weights, penalty, train):
    """Solve the bordered system of one target on some rows."""
    n = len(train)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = gram[np.ix_(train, train)] + penalty * np.diag(1 / weights[train])
    system[n, :n] = system[:n, n] = 1
    solved = np.linalg.solve(system, np.append(target[train], 0.0))
    coefficients = np.zeros(len(gram))
    coefficients[train] = solved[:n]
    return coefficients, solved[n]


def _refitted_scores(gram, targets, weights, penalty, folds):
    scores = np.empty_like(targets)
    for label, target in enumerate(targets.T):
        known = ~np.isnan(target)
        for fold in np.unique(folds):
            held = folds == fold
            coefficients, intercept = _refit(gram, target, weights, penalty, np.flatnonzero(known & ~held))
            scores[held, label] = gram[held] @ coefficients + intercept
    return scores


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [0.01, 0.3, 20.0])
@pytest.mark.parametrize("parts", [None, 4])
def test_scores_are_those_of_refits(missing, weighted, penalty, parts):
    gram, targets, weights = _data(missing)
    weights = weights if weighted else np.ones(N)
    folds = None if parts is None else np.arange(N) % parts
    ridge = OutOfFoldRidge(gram, weights if weighted else None)
    found = ridge.scores(targets, penalty, folds)
    expected = _refitted_scores(gram, targets, weights, penalty, np.arange(N) if parts is None else folds)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


class _ByRounds(OutOfFoldRidge):
    _completed = OutOfFoldFactorRidge._completed


@pytest.mark.parametrize("kind", [OutOfFoldRidge, _ByRounds])
@pytest.mark.parametrize("penalty", [0.3, 0.002])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.5])
def test_coefficients_are_those_of_a_fit_to_the_observed_rows(missing, penalty, kind):
    gram, targets, weights = _data(missing, 1)
    coefficients, intercepts = kind(gram, weights).coefficients(targets, penalty)
    for label, target in enumerate(targets.T):
        expected = _refit(gram, target, weights, penalty, np.flatnonzero(~np.isnan(target)))
        # rounds end at residuals of 1e-9 of the targets, which the penalty divides
        within = 1e-8 if kind is OutOfFoldRidge else 1e-9 * np.sqrt(np.nansum(weights * target**2)) / penalty
        assert_allclose(coefficients[:, label], expected[0], rtol=1e-6, atol=within)
        assert_allclose(intercepts[label], expected[1], rtol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_factor_serves_as_its_matrix_does(missing, monkeypatch):
    _, targets, weights = _data(missing, 2)
    factor = np.random.default_rng(3).normal(size=(N, 4))
    whole, part = OutOfFoldRidge(factor @ factor.T, weights), OutOfFoldFactorRidge(factor, weights)
    for folds in (None, np.arange(N) % 3):
        assert_allclose(part.scores(targets, 0.7, folds), whole.scores(targets, 0.7, folds), atol=1e-7)
    monkeypatch.setattr(OutOfFoldFactorRidge, "_residual_maker", None)  # of rows by rows
    for penalty in (0.7, 0.1):
        dual, intercepts = whole.coefficients(targets, penalty)
        found = part.coefficients(targets, penalty)
        assert_allclose(found[0], factor.T @ dual, atol=1e-7)
        assert_allclose(found[1], intercepts, atol=1e-7)


def test_a_label_that_is_never_observed_is_scored_0():
    gram, targets, _ = _data()
    targets[:, 2] = np.nan
    ridge = OutOfFoldRidge(gram)
    assert_allclose(ridge.scores(targets, 0.1)[:, 2], 0.0, atol=1e-8)
    coefficients, intercepts = ridge.coefficients(targets, 0.1)
    assert_allclose(coefficients[:, 2], 0.0, atol=1e-8)
    assert_allclose(intercepts[2], 0.0, atol=1e-8)


@pytest.mark.parametrize("folds", [None, np.arange(24) % 3])
def test_a_label_that_other_parts_do_not_show_is_scored_0(folds):
    random = np.random.default_rng(0)
    rows = random.integers(0, 2, (24, 5)).astype(float)
    targets = random.integers(0, 2, (24, 3)).astype(float)
    targets[:, 0] = np.nan
    targets[np.arange(24) % 3 > 0, 1] = np.nan
    scores = OutOfFoldRidge(rows @ rows.T).scores(targets, 1e-3, folds)
    assert np.isfinite(scores).all()
    assert not scores[:, 0].any()
    if folds is not None:
        assert not scores[folds == 0, 1].any()


def test_rows_that_are_alike_tell_of_each_other_however_small_the_penalty():
    gram = np.kron(np.eye(4), np.ones((3, 3)))
    targets = np.repeat([[1.0], [0.0], [1.0], [0.0]], 3, axis=0)
    scores = OutOfFoldRidge(gram).scores(targets, 1e-6)
    assert_allclose(scores, targets, atol=1e-4)


def test_the_out_of_fold_loss_is_that_of_refits_around_the_means_of_the_columns():
    gram, targets, _ = _data(0.3)
    targets = targets * [1, 5, 1, 1, 2] + [0, 100, 0, -3, 0]
    known = ~np.isnan(targets)
    centered = np.where(known, targets - np.nanmean(targets, axis=0), 0.0)
    losses = [
        np.square(
            (centered - _refitted_scores(gram, centered, np.ones(N), penalty, np.arange(N)))[known]
        ).sum()
        for penalty in OutOfFoldRidge(gram).penalties
    ]
    assert oof_loss(gram, targets) == pytest.approx(min(losses) / np.square(centered).sum())
    assert oof_loss(gram, np.ones((N, 2))) == 1.0
