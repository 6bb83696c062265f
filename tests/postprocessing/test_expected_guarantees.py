"""Guarantees for labels given as probabilities, and edge cases of thresholds."""

import numpy as np
import pandas as pd
import pytest

import labelweave as lw
from labelweave.decisions.layers import guarantee_words
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.postprocessing import calibrate_labels, choose_thresholds, choose_top_k, control_mistakes


def test_classes_by_probabilities_are_in_their_sets_as_often_as_is_said():
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 3))
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    inner = lw.KernelLogisticClassifier("linear", hyperparameters="fixed")
    model = lw.ConformalLabelClassifier(inner, level=0.1, guarantee="expectation")
    model.fit(X, ClassProbabilities(P, list("abc")))
    assert model.n_calibration_rows_ == 225
    new = random.normal(size=(4000, 3))
    shares = np.exp(new) / np.exp(new).sum(axis=1, keepdims=True)
    assert (np.asarray(model.predict(new)) * shares).sum(axis=1).mean() > 0.88


@pytest.mark.parametrize("control", ["false_negatives", "false_discoveries"])
def test_labels_by_probabilities_count_as_far_as_they_are_expected(control):
    random = np.random.default_rng(1)
    scores = random.normal(size=(4000, 5))
    shares = 1 / (1 + np.exp(-scores))
    found = control_mistakes(LabelMatrix.from_probabilities(shares), scores, control, level=0.3)
    drawn, above = random.random(shares.shape) < shares, scores > found.threshold
    wrong = above & ~drawn if control == "false_discoveries" else drawn & ~above
    of = above if control == "false_discoveries" else drawn
    risk = (wrong.sum(axis=1) / np.maximum(of.sum(axis=1), 1)).mean()
    # for false negatives the expected numbers are divided, including rows without any label
    assert found.risk - (0.01 if control == "false_discoveries" else 0.05) < risk < found.risk + 0.01
    assert 0.2 < found.risk <= 0.3


def test_where_nothing_can_be_wrong_everything_is_predicted():
    scores = np.random.default_rng(2).normal(size=(300, 3))
    found = control_mistakes(np.ones((300, 3)), scores, "false_discoveries", level=0.3)
    assert (scores > found.threshold).all()
    assert found.risk == 0


def test_the_risk_is_that_of_the_threshold_where_rows_have_many_labels():
    random = np.random.default_rng(3)
    scores = random.normal(size=(300, 1500))
    labels = (random.random(scores.shape) < 0.9) * 1
    found = control_mistakes(labels, scores, "false_discoveries", level=0.25)
    above = scores > found.threshold
    shares = (above & (labels == 0)).sum(axis=1) / np.maximum(above.sum(axis=1), 1)
    assert found.risk == pytest.approx(shares.mean(), abs=1e-9)


def test_the_guarantee_is_that_of_the_fit():
    random = np.random.default_rng(4)
    X = random.normal(size=(200, 2))
    model = lw.ConformalLabelClassifier(lw.BinaryRelevance(), level=0.2).fit(X, (X > 0) * 1)
    said = guarantee_words(model)
    assert "at most 0.2, with probability 0.95" in said
    model.set_params(level=0.01, confidence=0.999)
    assert guarantee_words(model) == said


def test_equal_weights_that_are_no_powers_of_two():
    random = np.random.default_rng(56)
    X = random.normal(size=(25, 3))
    Y = (random.random((25, 4)) < random.random(4)).astype(int)
    model = lw.TunedThresholdClassifier(lw.BinaryRelevance()).fit(X, Y, sample_weight=np.full(25, 0.3))
    assert np.isfinite(model.thresholds_).all()


@pytest.mark.parametrize("choose", [choose_thresholds, choose_top_k, calibrate_labels, control_mistakes])
def test_scores_go_by_name_and_no_labels_are_refused(choose):
    random = np.random.default_rng(5)
    scores = pd.DataFrame(random.normal(size=(60, 2)), columns=["a", "b"])
    labels = pd.DataFrame((scores + random.normal(size=(60, 2)) > 0).astype(int))
    expected, found = choose(labels, scores), choose(labels, scores[["b", "a"]])
    if choose is calibrate_labels:
        expected, found = (one.probabilities(scores.to_numpy()) for one in (expected, found))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="There are no labels"):
        choose(np.zeros((30, 0)), np.zeros((30, 0)))
