"""Calibration and error-reject curves, drawn without a screen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave import CalibratedLabelClassifier, LabelMatrix, MaxMarginClassifier
from labelweave.display import CalibrationCurveDisplay, ErrorRejectDisplay
from labelweave.metrics import error_reject_curve, expected_calibration_error
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


def test_bins_of_few_entries_are_hollow_and_empty_ones_omitted():
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


def test_models_share_axes(case):
    Y, table = case
    first = CalibrationCurveDisplay.from_predictions(Y, table, name="one")
    second = CalibrationCurveDisplay.from_predictions(Y, table**1.5, ax=first.ax_, name="two", counts=False)
    assert [text.split(":")[0] for text in legend_texts(second)] == ["one", "two"]
    assert first.lines_[0].get_color() != second.lines_[0].get_color()
    assert first.lines_[0].get_marker() != second.lines_[0].get_marker()
    assert first.ax_.get_ylim()[0] < -0.2


def test_entries_that_are_safely_negative_are_omitted():
    generator = np.random.default_rng(0)
    table = generator.random((500, 40)) ** 8
    Y = (generator.random(table.shape) < table).astype(float)
    display = CalibrationCurveDisplay.from_predictions(Y, table)
    assert display.curves[0].counts.sum() == (table > 0.05).sum() < table.size / 2
    assert display.curves[0].error == expected_calibration_error(Y, table, n_bins=10, least=0.05)
    assert "Entries above 0.05 (log scale)" in [text.get_text() for text in display.ax_.texts]


@pytest.fixture
def classes_case():
    generator = np.random.default_rng(0)
    table = generator.dirichlet(np.ones(3), size=200)
    return np.array([generator.choice(3, p=row) for row in table]), table


@pytest.fixture
def rows():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(120, 2))
    return X, np.where(X[:, 0] + generator.normal(size=120) > 0, "yes", "no")


def test_the_line_is_the_curve(classes_case):
    truths, table = classes_case
    display = ErrorRejectDisplay.from_predictions(truths, table, name="model", max_rejected=1.0)
    fractions, errors = error_reject_curve(truths, table)
    np.testing.assert_array_equal(display.line_.get_xdata(), fractions)
    np.testing.assert_array_equal(display.line_.get_ydata(), errors)
    np.testing.assert_array_equal(display.rejected_fraction, fractions)
    assert legend_texts(display) == [f"model: {100 * errors[0]:.2f} %"]
    assert ErrorRejectDisplay.from_predictions(truths, table).ax_.get_legend() is None


def test_the_curve_is_cut_at_the_largest_fraction(classes_case):
    display = ErrorRejectDisplay.from_predictions(*classes_case, max_rejected=0.333)
    x, y = display.line_.get_data()
    assert x[-1] == 0.333
    assert len(x) == 68
    assert y[-1] == pytest.approx(np.interp(0.333, display.rejected_fraction, display.error))
    assert display.plot(max_rejected=0.5).line_.get_xdata()[-1] == 0.5


def test_fitted_models_of_classes(rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    display = ErrorRejectDisplay.from_estimator(model, X, y, sample_weight=np.arange(120), color="black")
    expected = error_reject_curve(y, model.predict_proba(X), model.classes_, sample_weight=np.arange(120))
    np.testing.assert_array_equal(display.error, expected[1])
    assert legend_texts(display)[0].startswith("LogisticRegression: ")
    assert display.line_.get_color() == "black"


def test_several_curves_share_axes_and_differ(classes_case):
    truths, table = classes_case
    first = ErrorRejectDisplay.from_predictions(truths, table, name="first")
    worse = ErrorRejectDisplay.from_predictions((truths + 1) % 3, table, name="second", ax=first.ax_)
    assert worse.ax_ is first.ax_
    assert len(legend_texts(worse)) == 2
    assert first.line_.get_linestyle() != worse.line_.get_linestyle()
    assert first.line_.get_color() != worse.line_.get_color()
    first.figure_.canvas.draw()
    assert first.ax_.get_xlim() == (0, 0.5)
    low, high = first.ax_.get_ylim()
    assert low == 0
    assert high > worse.error[0] > first.error[0]


def test_a_single_point_can_be_seen():
    display = ErrorRejectDisplay.from_predictions([0, 1], [[1.0, 0.0]] * 2)
    assert display.line_.get_marker() == "o"
    display.figure_.canvas.draw()
    assert display.ax_.get_xlim() == (0, 0.5)
    assert display.ax_.get_ylim()[0] == 0
