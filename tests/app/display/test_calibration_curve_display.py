"""Calibration curves, drawn without a screen, against scikit-learn's bins."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from labelweave import CalibratedLabelClassifier, MaxMarginClassifier
from labelweave.display import CalibrationCurveDisplay
from labelweave.labels import LabelMatrix
from labelweave.metrics import expected_calibration_error
from pictures import legend_texts


@pytest.fixture
def case():
    generator = np.random.default_rng(0)
    table = generator.random((400, 3))
    return (generator.random((400, 3)) < table**1.5).astype(float), table


def test_the_bins_are_those_of_scikit_learn(case):
    Y, table = case
    display = CalibrationCurveDisplay.from_predictions(Y, table, n_bins=8, least=0)
    observed, predicted = calibration_curve(Y.ravel(), table.ravel(), n_bins=8)
    np.testing.assert_allclose(display.curves[0].observed, observed)
    np.testing.assert_allclose(display.curves[0].predicted, predicted)
    assert display.curves[0].counts.sum() == Y.size
    np.testing.assert_allclose(display.lines_[0].get_ydata(), observed)
    error = expected_calibration_error(Y, table, n_bins=8)
    assert legend_texts(display) == [f"all 3 labels: ECE {error:.3f}"]


def test_chosen_labels_without_unobserved_entries(case):
    Y, table = case
    Y[:100, 1] = np.nan
    table[:100, 1] = 1.0
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    display = CalibrationCurveDisplay.from_predictions(frame, table, labels=["b", "c"], least=0)
    observed, _ = calibration_curve(Y[100:, 1], table[100:, 1], n_bins=10)
    np.testing.assert_allclose(display.curves[0].observed, observed)
    assert display.curves[0].counts.sum() == 300
    errors = expected_calibration_error(frame, table, n_bins=10, average=None)
    assert legend_texts(display) == [f"b: ECE {errors[1]:.3f}", f"c: ECE {errors[2]:.3f}"]


def test_labels_by_probabilities_count_as_far_as_they_are_expected():
    table = np.linspace(0.06, 0.45, 60).reshape(20, 3)
    drawn = CalibrationCurveDisplay.from_predictions(LabelMatrix.from_probabilities(table), table)
    np.testing.assert_allclose(drawn.curves[0].observed, drawn.curves[0].predicted)
    assert drawn.curves[0].error == pytest.approx(0, abs=1e-12)


def test_bins_of_few_entries_are_hollow_and_empty_ones_left_out():
    Y, table = np.array([[1.0], [0.0], [1.0]] * 10), np.array([[0.05], [0.05], [0.95]] * 10)
    display = CalibrationCurveDisplay.from_predictions(Y, table, least=0)
    assert len(display.lines_[0].get_xdata()) == 2
    few = CalibrationCurveDisplay.from_predictions(Y[:3], table[:3], least=0)
    hollow = [line for line in few.ax_.lines if line.get_markerfacecolor() == "white"]
    assert len(hollow[0].get_xdata()) == 2
    few.figure_.canvas.draw()


def test_numbers_of_entries_are_written(case):
    display = CalibrationCurveDisplay.from_predictions(
        np.tile(case[0], (30, 1)), np.tile(case[1], (30, 1)), least=0
    )
    texts = [text.get_text() for text in display.ax_.texts]
    assert "Entries (log scale)" in texts
    assert sum(text.endswith("k") for text in texts) == 10
    without = CalibrationCurveDisplay.from_predictions(*case, counts=False, least=0)
    assert not without.ax_.texts
    assert without.ax_.get_ylim()[0] == pytest.approx(-0.02)


def test_fitted_models(case):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(300, 4))
    Y = (X[:, :3] + generator.normal(size=(300, 3)) > 0).astype(int)
    for model in (
        CalibratedLabelClassifier(MaxMarginClassifier()),
        RandomForestClassifier(10, random_state=0),
    ):
        display = CalibrationCurveDisplay.from_estimator(model.fit(X, Y), X, Y, least=0)
        assert display.curves[0].counts.sum() == 900
    classes = np.where(Y[:, 0] == 1, "yes", "no")
    two = CalibrationCurveDisplay.from_estimator(LogisticRegression().fit(X, classes), X, classes)
    assert legend_texts(two)[0].startswith("yes: ECE")
    with pytest.raises(TypeError, match="MaxMarginClassifier has no predict_proba"):
        CalibrationCurveDisplay.from_estimator(MaxMarginClassifier().fit(X, Y), X, Y)


def test_models_share_axes(case):
    Y, table = case
    first = CalibrationCurveDisplay.from_predictions(Y, table, name="one")
    second = CalibrationCurveDisplay.from_predictions(Y, table**1.5, ax=first.ax_, name="two", counts=False)
    assert [text.split(":")[0] for text in legend_texts(second)] == ["one", "two"]
    assert first.lines_[0].get_color() != second.lines_[0].get_color()
    assert first.lines_[0].get_marker() != second.lines_[0].get_marker()
    assert first.ax_.get_ylim()[0] < -0.2


def test_what_cannot_be_drawn_is_refused(case):
    Y, table = case
    with pytest.raises(ValueError, match=r"is 1\.5; probabilities must be"):
        CalibrationCurveDisplay.from_predictions(Y, np.where(table > 0.9, 1.5, table))
    with pytest.raises(ValueError, match="n_bins is 0"):
        CalibrationCurveDisplay.from_predictions(Y, table, n_bins=0)
    Y[:, 2] = np.nan
    with pytest.raises(ValueError, match="2 has no observed entry"):
        CalibrationCurveDisplay.from_predictions(Y, table, labels=[2])


def test_entries_that_are_safely_negative_are_left_out():
    generator = np.random.default_rng(0)
    table = generator.random((500, 40)) ** 8
    Y = (generator.random(table.shape) < table).astype(float)
    display = CalibrationCurveDisplay.from_predictions(Y, table)
    assert display.curves[0].counts.sum() == (table > 0.05).sum() < table.size / 2
    assert display.curves[0].error == expected_calibration_error(Y, table, n_bins=10, least=0.05)
    assert "Entries above 0.05 (log scale)" in [text.get_text() for text in display.ax_.texts]
    with pytest.raises(
        ValueError, match=r"no observed entry of a probability above 0\.5; give a lower least"
    ):
        CalibrationCurveDisplay.from_predictions(Y, 0.1 * table, least=0.5)
