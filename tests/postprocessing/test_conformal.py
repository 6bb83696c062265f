"""The guarantees of conformal label sets, over many draws."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from labelweave.postprocessing import control_mistakes
from labelweave.postprocessing.conformal import _Test, p_values


def make_rows(n_rows, n_labels=8, seed=0):
    rng = np.random.default_rng(seed)
    scores = 2.5 * rng.normal(size=(n_rows, n_labels)) - 2.0
    return scores, rng.random(scores.shape) < expit(scores)


def mean_share(control, scores, labels, threshold):
    predicted = scores > threshold
    hits = (predicted & labels).sum(axis=1)
    whole = (labels if control == "false_negatives" else predicted).sum(axis=1)
    return ((whole - hits) / np.maximum(whole, 1)).mean()


@pytest.mark.parametrize("level", [0.1, 0.3])
@pytest.mark.parametrize("control", ["false_negatives", "false_discoveries"])
def test_the_risk_is_below_the_level_in_most_of_many_splits(control, level):
    """The risk itself is known from many rows, so that only the draw of the calibration rows matters."""
    many_scores, many_labels = make_rows(20_000, seed=1)
    risks = []
    for seed in range(250):
        scores, labels = make_rows(150, seed=100 + seed)
        found = control_mistakes(labels, scores, control, level=level, confidence=0.9)
        risks.append(mean_share(control, many_scores, many_labels, found.threshold))
    assert np.mean(np.array(risks) <= level) >= 0.9
    assert np.mean(risks) > 0.4 * level  # and not by predicting everything, or nothing


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_the_expected_share_of_missed_labels_is_at_most_the_level_and_close_to_it(level):
    shares = []
    for seed in range(400):
        scores, labels = make_rows(100, seed=seed)
        found = control_mistakes(labels[:60], scores[:60], level=level, guarantee="expectation")
        shares.append(mean_share("false_negatives", scores[60:], labels[60:], found.threshold))
    error = np.std(shares) / np.sqrt(len(shares))
    assert level - 1 / 61 - 3 * error <= np.mean(shares) <= level + 3 * error


@pytest.mark.parametrize("control", ["false_negatives", "false_discoveries"])
def test_the_reported_risk_is_that_of_the_threshold(control):
    scores, labels = make_rows(120)
    scores = scores.round(1)  # many ties
    found = control_mistakes(labels, scores, control, level=0.3)
    assert found.risk == pytest.approx(mean_share(control, scores, labels, found.threshold))
    assert found.n_rows == 120


def test_no_higher_threshold_would_do_in_expectation():
    scores, labels = make_rows(80)
    found = control_mistakes(labels, scores, level=0.2, guarantee="expectation")
    above = np.unique(scores)[np.unique(scores) > found.threshold]
    for threshold in above[:20]:
        share = mean_share("false_negatives", scores, labels, threshold)
        assert (share * 80 + 1) / 81 > 0.2 or share == pytest.approx(found.risk)


def test_unobserved_labels_do_not_count():
    scores, labels = make_rows(100)
    hidden = np.random.default_rng(0).random(labels.shape) < 0.3
    targets = np.where(hidden, np.nan, labels)
    targets[:10] = np.nan
    for control in ("false_negatives", "false_discoveries"):
        found = control_mistakes(targets, scores, control, level=0.3)
        moved = control_mistakes(targets, np.where(np.isnan(targets), 99.0, scores), control, level=0.3)
        assert found == moved
        assert found.n_rows == 90


def test_p_values_are_valid():
    """Where the risk is the level, a p-value below p has at most the probability p, for losses 0 or 1."""
    for n_rows, level in ((30, 0.1), (200, 0.3)):
        counts = np.arange(n_rows + 1)
        values = p_values(counts / n_rows, n_rows, level)
        probabilities = binom.pmf(counts, n_rows, level)
        for p in (0.01, 0.05, 0.2):
            assert probabilities[values <= p].sum() <= p
    assert (np.diff(p_values(np.linspace(0, 1, 50), 40, 0.2)) >= -1e-12).all()


def test_many_labels_are_followed_down_to_the_thousandth():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 1500))
    labels = np.ones(scores.shape, bool)  # nothing can be wrong
    found = control_mistakes(labels, scores, "false_discoveries")
    assert found.threshold >= np.sort(scores, axis=1)[:, -1001].max()


def test_labels_that_nobody_has():
    scores, labels = make_rows(60)
    for control in ("false_negatives", "false_discoveries"):
        found = control_mistakes(0 * labels, scores, control)
        assert mean_share(control, scores, 0 * labels > 1, found.threshold) == found.risk <= 0.1


@pytest.mark.parametrize(("level", "confidence"), [(0.5, 0.875), (0.5, 0.75), (0.98, 0.98)])
def test_the_fewest_rows_are_enough_and_fewer_are_refused(level, confidence):
    scores, labels = np.arange(8.0).reshape(4, 2), np.ones((4, 2))
    fewest = _Test(level, confidence, "probability", 0).fewest_rows()
    options = {"level": level, "confidence": confidence}
    assert control_mistakes(labels[:fewest], scores[:fewest], **options).risk <= level
    with pytest.raises(ValueError, match=f"needs at least {fewest}"):
        control_mistakes(labels[: fewest - 1], scores[: fewest - 1], **options)
