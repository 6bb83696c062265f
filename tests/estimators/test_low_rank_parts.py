"""Parts of low-rank fits on their own: scores of held-out rows, and where fits start."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.estimators.low_rank import path, starts
from labelweave.estimators.low_rank.path import HeldOutRows, ScoreSettings, held_out_score
from labelweave.estimators.low_rank.starts import Start, continued, first_label_factor
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.metrics import average_auc, f1_score, precision_at_k

RANDOM = np.random.default_rng(0)
Y = (RANDOM.random((30, 6)) < 0.4).astype(float)
Y[RANDOM.random(Y.shape) < 0.2] = np.nan
Y[4] = np.nan
IMAGE, FACTOR = RANDOM.normal(size=(30, 3)), RANDOM.normal(size=(6, 3))
WEIGHTS = np.where(np.arange(30) < 10, 0.0, RANDOM.uniform(0.5, 2.0, 30))
ROWS = HeldOutRows(LabelMatrix.from_any(Y), WEIGHTS, IMAGE, FACTOR)
SCORES = IMAGE @ FACTOR.T


def _settings(threshold=0.5):
    return ScoreSettings("squared_error", 1.0, threshold, Workers())


def test_scores_are_those_of_the_metrics_in_blocks_of_any_size(monkeypatch):
    counted = np.flatnonzero((WEIGHTS > 0) & ~np.isnan(Y).all(axis=1))
    labels, weights = ROWS.labels[counted], WEIGHTS[counted]
    for at_once in (16_000_000, 24):
        monkeypatch.setattr(path, "_SCORES_AT_ONCE", at_once)
        for k in (1, 3, 5):
            expected = precision_at_k(labels, SCORES[counted], k, sample_weight=weights)
            assert held_out_score(f"precision_at_{k}", ROWS, _settings()) == pytest.approx(expected)
        predicted = (SCORES > 0.5).astype(int)
        expected = f1_score(ROWS.labels, predicted, sample_weight=WEIGHTS)
        assert held_out_score("micro_f1", ROWS, _settings()) == pytest.approx(expected)
    rows = np.flatnonzero(WEIGHTS)
    assert held_out_score("average_auc", ROWS, _settings()) == average_auc(ROWS.labels[rows], SCORES[rows])


def test_the_loss_is_the_mean_over_observed_entries():
    is_seen = ~np.isnan(Y)
    losses = 0.5 * np.where(is_seen, (SCORES - np.nan_to_num(Y)) ** 2, 0.0)
    expected = -(WEIGHTS @ losses.sum(axis=1)) / (WEIGHTS @ is_seen.sum(axis=1))
    assert held_out_score("loss", ROWS, _settings()) == pytest.approx(expected)


def test_rows_without_an_observed_entry_have_no_score():
    empty = HeldOutRows(ROWS.labels[[4]], WEIGHTS[[10]], IMAGE[[4]], FACTOR)
    assert np.isnan(held_out_score("loss", empty, _settings()))
    full = HeldOutRows(LabelMatrix.from_any(np.eye(6)), np.ones(6), IMAGE[:6], FACTOR)
    assert list(full.observed_counts()) == [6] * 6


def test_a_start_spans_what_the_leading_singular_vectors_span():
    groups = np.arange(700) % 3
    table = sp.csr_array((groups[:, None] == np.arange(600)[None] % 3).astype(np.int8))
    labels = LabelMatrix(table, None)
    factor = first_label_factor(labels, 3, "svd", 0)
    sizes = np.sqrt(200 * np.array([234.0, 233.0, 233.0]))  # of blocks of ones
    np.testing.assert_allclose((factor**2).sum(axis=0), sizes, rtol=1e-6)  # vectors times roots of sizes
    gram = factor @ factor.T
    same = np.equal.outer(np.arange(600) % 3, np.arange(600) % 3)
    assert np.abs(gram[~same]).max() < 1e-6 * gram[same].min()


def test_columns_that_no_label_fills_are_small_random_numbers():
    labels = LabelMatrix.from_any(np.eye(2))
    factor = first_label_factor(labels, 4, "svd", 0)
    assert 0 < np.abs(factor[:, 2:]).max() < 0.01
    wide = first_label_factor(LabelMatrix.from_any(np.ones((2, 5))), 2, "svd", 0, np.array([1.0, 3.0]))
    assert (wide[:, 0] ** 2).sum() == pytest.approx(np.sqrt(5 * 4.0))
    random = first_label_factor(labels, 4, "random", 0)
    assert np.abs(random).min() > 0


def test_dependent_columns_become_zero():
    block = RANDOM.normal(size=(8, 2))
    found = starts._orthonormalised(np.column_stack([block, block[:, 0]]))
    np.testing.assert_allclose(np.sort(np.linalg.svd(found, compute_uv=False)), [0.0, 1.0, 1.0], atol=1e-7)


def test_starts_take_other_ranks_and_more_rows():
    known = np.array([[1.0, 1e-6], [2.0, 0.0]])
    first = np.full((2, 3), 9.0)
    np.testing.assert_array_equal(continued(known, first, 3), [[1.0, 9.0, 9.0], [2.0, 9.0, 9.0]])
    start = Start(known, np.array([[5.0, 6.0]]))
    spread = start.spread(np.array([1]), 3)
    np.testing.assert_array_equal(spread.features, [[0, 0], [5, 6], [0, 0]])
    assert Start(known).spread(np.array([1]), 3).features is None
    assert start.at_rank(3).labels.shape == (2, 3)
    assert Start(known).at_rank(1).features is None
