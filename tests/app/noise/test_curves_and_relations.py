"""Curves between a lower and an upper limit, and ridge regressions of labels on the others, against
references.
"""

import numpy as np
import pytest
from scipy.special import expit

from labelweave import CliqueGraph, LabelCovariance, LabelMatrix, Taxonomy
from labelweave.app.noise.noisy_curves import NoisyCurves, _Problem, fit_noisy_curves
from labelweave.app.noise.related_labels import _Part, label_strengths, relate_labels
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


def test_no_label_explains_itself_and_the_rest_is_ridge_regression():
    rng = np.random.default_rng(0)
    table, residuals, folds = rng.random((30, 5)), rng.normal(size=(30, 5)), np.arange(30) % 3
    part = _Part(table, residuals, folds, 1, None)
    found = part.of_all()(0.7)
    rows = table[folds != 1] - table[folds != 1].mean(axis=0)
    for label in range(5):
        others = np.flatnonzero(np.arange(5) != label)
        A = rows[:, others]
        expected = np.linalg.solve(A.T @ A + 0.7 * np.eye(4), A.T @ residuals[folds != 1, label])
        assert found[others, label] == pytest.approx(expected, abs=1e-10)
        assert found[label, label] == 0.0


def test_evidence_is_the_sum_of_effects_and_the_better_table_is_taken():
    rng = np.random.default_rng(1)
    table = (rng.random((200, 4)) < 0.5).astype(float)
    residuals = 0.5 * (table[:, [1, 2, 3, 0]] - 0.5) + 0.1 * rng.normal(size=(200, 4))
    residuals[5, 2] = np.nan
    found = relate_labels(residuals, [rng.random((200, 4)), table], np.arange(200) % 4)
    assert found.known is table
    assert found.effects(7, 2).sum() == pytest.approx(found.evidence[7, 2])
    assert np.argmax(np.abs(found.effects(7, 2))) == 3
    assert np.isfinite(found.evidence).all()


def test_nothing_is_found_where_nothing_is():
    assert (
        relate_labels(np.zeros((20, 3)), [np.random.default_rng(0).random((20, 3))], np.arange(20) % 4)
        is None
    )


def test_related_labels_alone_have_ridge_regressions_with_penalties_of_their_own():
    rng = np.random.default_rng(3)
    table, residuals, folds = rng.random((40, 5)), rng.normal(size=(40, 5)), np.arange(40) % 4
    strengths = np.triu(rng.random((5, 5)) * (rng.random((5, 5)) < 0.6), 1)
    strengths += strengths.T
    strengths[:, 4] = strengths[4] = 0.0
    part = _Part(table, residuals, folds, 1, strengths)
    found = part.among()(0.7)
    rows, right = table[folds != 1] - table[folds != 1].mean(axis=0), residuals[folds != 1]
    for label in range(5):
        near = np.flatnonzero(strengths[:, label])
        A, penalties = rows[:, near], np.diag(0.7 / strengths[near, label])
        expected = np.linalg.solve(A.T @ A + penalties, A.T @ right[:, label])
        assert found[near, label] == pytest.approx(expected, abs=1e-10)
        assert np.count_nonzero(found[:, label]) == len(near)
    part.take(found)
    assert part.moments == pytest.approx(rows.T @ (right - rows @ found))
    assert part.residuals == pytest.approx(residuals[folds == 1] - part.rows @ found)


def test_a_structure_helps_where_rows_are_few_and_a_wrong_one_does_no_harm():
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.normal(size=(120, 15)), 4, axis=1)  # labels in fours
    table = truth + 0.5 * rng.normal(size=truth.shape)
    residuals, folds = truth + 2.0 * rng.normal(size=truth.shape), np.arange(120) % 5
    right = np.kron(np.eye(15), np.ones((4, 4))) - np.eye(60)
    order = rng.permutation(60)
    errors = {
        name: np.square(truth - relate_labels(residuals, [table], folds, given).evidence).mean()
        for name, given in (("none", None), ("right", right), ("wrong", right[order][:, order]))
    }
    assert errors["right"] < 0.8 * errors["none"]
    assert errors["wrong"] < 1.05 * errors["none"]


def test_strengths_are_read_from_any_structure():
    labels = LabelMatrix.from_any(np.eye(3, dtype=int), names=["a", "b", "c"])
    covariance = np.array([[4.0, -1.0, 0.0], [-1.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    expected = np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]])
    np.testing.assert_allclose(label_strengths(covariance, labels), expected)
    named = LabelCovariance.dense(covariance[::-1, ::-1], ["c", "b", "a"])
    np.testing.assert_allclose(label_strengths(named, labels), expected)
    tree = Taxonomy.from_nested({"r": ["a", "b"], "s": ["c"]})
    assert label_strengths(tree, labels)[0, 1] > label_strengths(tree, labels)[0, 2]
    for graph in (CliqueGraph(3, [(0, 2)], ["c", "x", "a"]), CliqueGraph(3, [(2, 0)], ["c", "b", "a"])):
        np.testing.assert_array_equal(label_strengths(graph, labels), np.fliplr(np.diag([1.0, 0.0, 1.0])))
    with pytest.raises(ValueError, match="The graph has 2 labels, but y has 3"):
        label_strengths(CliqueGraph(2, [(0, 1)]), labels)
    for nonsense in (None, 1.5, "tree", {"a": "b"}):
        with pytest.raises(ValueError, match="use True, False, or a covariance"):
            label_strengths(nonsense, labels)
    with pytest.raises(ValueError, match="over 2 labels but y has 3"):
        label_strengths(np.eye(2), labels)
