"""CombinationDisplay: one bar per member, with loss and weight, and one for the combination."""

import matplotlib.pyplot as plt
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from drawn import draw_own
from labelweave import AutoLabelClassifier, TunedThresholdClassifier
from labelweave.display import CombinationDisplay


@pytest.fixture(scope="module")
def data():
    return draw_own(noise=0.3)


def quick():
    return AutoLabelClassifier(members=["linear", "rbf"], time_budget=1e-3)


def test_bars_are_the_losses(data):
    model = quick().fit(*data)
    display = CombinationDisplay.from_estimator(model)
    widths = [bar.get_width() for bar in display.bars_]
    assert widths == [*(one["oof_loss"] for one in model.members_), model.oof_loss_]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["linear", "rbf", "combination"]
    assert display.ax_.yaxis_inverted()  # the first member is at the top
    first = display.ax_.texts[0].get_text()
    assert first == f"{widths[0]:.3f}, weight {model.members_[0]['weight']:.2f}"


@pytest.mark.parametrize("size", [(2.4, 1.6), (9, 5)])
def test_words_stay_in_the_axes(size):
    members = [{"name": "rbf", "weight": 0.0, "oof_loss": 0.5}] * 4
    _, ax = plt.subplots(figsize=size, layout="compressed")
    display = CombinationDisplay(members, 0.4).plot(ax)
    display.figure_.draw_without_rendering()
    frame = ax.get_window_extent()
    assert all(text.get_window_extent().x1 <= frame.x1 + 3 for text in ax.texts)
    assert ("weight" in ax.texts[0].get_text()) == (size == (9, 5))
    assert display.bars_[0].get_facecolor() != display.bars_[4].get_facecolor()


def test_models_inside_others(data):
    X, Y = data
    inside = make_pipeline(MinMaxScaler(), TunedThresholdClassifier(quick(), "macro_f1", cv=2)).fit(X, Y)
    assert len(CombinationDisplay.from_estimator(inside).bars_) == 3
