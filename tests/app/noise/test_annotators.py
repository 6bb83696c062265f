"""Answers of several annotators: a slow reference, a posterior that rises, and simulated annotators."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy

from labelweave import LabelMatrix, MaxMarginClassifier
from labelweave.app.noise.annotators import _Model
from labelweave.noise import combine_annotators

RIGHT = np.array([[0.95, 0.7, 0.55, 0.8], [0.98, 0.95, 0.6, 0.9]])


def simulated(n=400, n_labels=5, share=0.7, seed=0):
    """Draw true labels and the answers of four annotators for a share of the entries."""
    rng = np.random.default_rng(seed)
    true = (rng.random((n, n_labels)) < np.linspace(0.1, 0.5, n_labels)).astype(float)
    answers = []
    for sensitivity, specificity in RIGHT.T:
        is_right = rng.random(true.shape) < np.where(true == 1, sensitivity, specificity)
        said = np.where(is_right, true, 1 - true)
        answers.append(np.where(rng.random(true.shape) < share, said, np.nan))
    return true, answers


def test_annotators_are_known_by_their_agreement():
    true, answers = simulated()
    found = combine_annotators(answers)
    assert found.sensitivity == pytest.approx(RIGHT[0], abs=0.07)
    assert found.specificity == pytest.approx(RIGHT[1], abs=0.04)
    assert found.prevalence == pytest.approx(np.linspace(0.1, 0.5, 5), abs=0.06)
    seen = ~np.isnan(answers).all(axis=0)
    assert (np.isnan(found.probabilities) == ~seen).all()
    assert (found.labels.to_signs() == 0).sum() == (~seen).sum()
    votes = np.nanmean(np.where(seen, answers, 0), axis=0) > 0.5
    wrong = (found.labels.most_likely().to_dense() != true)[seen].mean()
    assert wrong < 0.75 * (votes != true)[seen].mean()
    assert np.abs(found.probabilities[seen] - true[seen]).mean() == pytest.approx(wrong, rel=0.7)
    assert np.isnan(found.labels.to_dense()[~seen]).all()


def test_a_round_is_that_of_a_slow_twin():
    _, answers = simulated(12, 3, 0.6, seed=2)
    model = _Model([LabelMatrix.from_any(one).to_signs() for one in answers], 5.0)
    right, prevalence = model.maximized(model.start)
    found = model.expected(right, prevalence)
    for place, one in enumerate(answers):
        hits = there = correct = absent = 0.0
        for row in range(12):
            for label in range(3):
                if not np.isnan(one[row, label]):
                    p = model.start[row, label]
                    there, absent = there + p, absent + 1 - p
                    hits += p * one[row, label]
                    correct += (1 - p) * (1 - one[row, label])
        assert right[0, place] == pytest.approx((hits + 4) / (there + 5))
        assert right[1, place] == pytest.approx((correct + 4) / (absent + 5))
    for row in range(12):
        for label in range(3):
            yes, no = prevalence[label], 1 - prevalence[label]
            for place, one in enumerate(answers):
                if one[row, label] == 1:
                    yes, no = yes * right[0, place], no * (1 - right[1, place])
                elif one[row, label] == 0:
                    yes, no = yes * (1 - right[0, place]), no * right[1, place]
            assert found[row, label] == pytest.approx(yes / (yes + no))


def test_the_posterior_density_rises():
    _, answers = simulated(60, 4, 0.5, seed=3)
    model = _Model([LabelMatrix.from_any(one).to_signs() for one in answers], 2.0)
    probabilities, values = model.start, []
    for _ in range(12):
        right, prevalence = model.maximized(probabilities)
        yes, no = np.tile(prevalence, (60, 1)), np.tile(1 - prevalence, (60, 1))
        for one, sensitivity, specificity in zip(model.answers, *right, strict=True):
            yes = yes * np.where(one > 0, sensitivity, np.where(one < 0, 1 - sensitivity, 1))
            no = no * np.where(one < 0, specificity, np.where(one > 0, 1 - specificity, 1))
        prior = (xlogy(2.0 * 0.8, right) + xlogy(2.0 * 0.2, 1 - right)).sum()
        prior += (
            xlogy(2.0 * model.common, prevalence) + xlogy(2.0 * (1 - model.common), 1 - prevalence)
        ).sum()
        values.append(np.log(yes + no)[model.counts > 0].sum() + prior)
        probabilities = model.expected(right, prevalence)
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > values[0]


def test_names_frames_and_a_fit():
    true, answers = simulated(80, 3, 0.9, seed=4)
    frames = {name: pd.DataFrame(one, columns=list("abc")) for name, one in zip("wxyz", answers, strict=True)}
    found = combine_annotators(frames)
    assert found.annotators == list("wxyz")
    assert found.labels.names.tolist() == list("abc")
    assert "w: sensitivity 0.9" in repr(found)
    X = true + np.random.default_rng(0).normal(0, 0.5, true.shape)
    model = MaxMarginClassifier().fit(X, found.labels)
    assert np.isfinite(model.decision_function(X)).all()


def test_odd_answers():
    alone = combine_annotators([np.array([[1.0, np.nan], [0.0, np.nan]])])
    assert alone.labels.to_signs().tolist() == [[1, 0], [-1, 0]]
    nothing = combine_annotators([np.full((3, 2), np.nan)])
    assert np.isnan(nothing.probabilities).all()
    assert nothing.sensitivity == pytest.approx([0.8])


def test_labels_in_another_order_are_matched_by_name():
    random = np.random.default_rng(0)
    given = [pd.DataFrame(random.integers(0, 2, (30, 3)), columns=list("abc")) for _ in range(3)]
    found = combine_annotators(given)
    turned = combine_annotators([given[0], given[1][list("cab")], given[2][list("bca")]])
    np.testing.assert_array_equal(turned.probabilities, found.probabilities)
    assert turned.labels.names.tolist() == list("abc")
