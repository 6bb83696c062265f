"""Error-reject curves, drawn without a screen."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from labelweave.display import ErrorRejectDisplay
from labelweave.metrics import error_reject_curve
from pictures import legend_texts


@pytest.fixture
def case():
    generator = np.random.default_rng(0)
    table = generator.dirichlet(np.ones(3), size=200)
    return np.array([generator.choice(3, p=row) for row in table]), table


@pytest.fixture
def rows():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(120, 2))
    return X, np.where(X[:, 0] + generator.normal(size=120) > 0, "yes", "no")


def test_the_line_is_the_curve(case):
    truths, table = case
    display = ErrorRejectDisplay.from_predictions(truths, table, name="model", max_rejected=1.0)
    fractions, errors = error_reject_curve(truths, table)
    np.testing.assert_array_equal(display.line_.get_xdata(), fractions)
    np.testing.assert_array_equal(display.line_.get_ydata(), errors)
    np.testing.assert_array_equal(display.rejected_fraction, fractions)
    assert legend_texts(display) == [f"model: {100 * errors[0]:.2f} %"]
    assert ErrorRejectDisplay.from_predictions(truths, table).ax_.get_legend() is None


def test_the_curve_is_cut_at_the_largest_fraction(case):
    display = ErrorRejectDisplay.from_predictions(*case, max_rejected=0.333)
    x, y = display.line_.get_data()
    assert x[-1] == 0.333
    assert len(x) == 68
    assert y[-1] == pytest.approx(np.interp(0.333, display.rejected_fraction, display.error))
    assert display.plot(max_rejected=0.5).line_.get_xdata()[-1] == 0.5


def test_fitted_models(rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    display = ErrorRejectDisplay.from_estimator(model, X, y, sample_weight=np.arange(120), color="black")
    expected = error_reject_curve(y, model.predict_proba(X), model.classes_, sample_weight=np.arange(120))
    np.testing.assert_array_equal(display.error, expected[1])
    assert legend_texts(display)[0].startswith("LogisticRegression: ")
    assert display.line_.get_color() == "black"
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        ErrorRejectDisplay.from_estimator(LinearSVC().fit(X, y), X, y)


def test_several_curves_share_axes_and_differ(case):
    truths, table = case
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


@pytest.mark.parametrize("fraction", [0.0, 1.5, float("nan")])
def test_fractions_that_cannot_be_drawn_are_refused(case, fraction):
    with pytest.raises(ValueError, match=r"max_rejected is .*; it must be above 0"):
        ErrorRejectDisplay.from_predictions(*case, max_rejected=fraction)
