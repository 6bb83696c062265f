"""Requirements of all displays: axes of any size, names as text, free legends, plain errors."""

import inspect
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from labelweave import AutoLabelClassifier, CliqueGraph, LabelGraphClassifier, MaxMarginClassifier, Taxonomy
from labelweave import display as displays
from labelweave.app.display.figures import place_legend
from labelweave.labels import LabelCovariance
from labelweave.solvers import TraceRecord
from pictures import new_axes, records
from refused import refusals

NAMES = ["$x", "_b", "a label with a name that is far too long for a picture of any size", "$y$"]
RANDOM = np.random.default_rng(0)
P = RANDOM.random((60, 4))
Y = np.where(RANDOM.random(P.shape) < 0.1, np.nan, (RANDOM.random(P.shape) < P).astype(float))
TREE = Taxonomy([("all", name) for name in NAMES])
TRACE = [TraceRecord(k, 0.1 * k, 5 / k, 1 - 1 / k, 1 / k, 1.0) for k in range(1, 9)]
MEMBERS = [{"name": f"member {k}", "weight": 0.5, "oof_loss": 0.4 + 0.1 * k} for k in range(2)]
DRAWN = {
    "CalibrationCurveDisplay": lambda kind, **ax: kind.from_predictions(
        Y, P, labels=range(4), label_names=NAMES, **ax
    ),
    "CombinationDisplay": lambda kind, **ax: kind(MEMBERS, 0.3).plot(**ax),
    "DualProgressDisplay": lambda kind, **ax: kind.from_traces(
        dict.fromkeys(NAMES, TRACE), panels="gap", **ax
    ),
    "ErrorRejectDisplay": lambda kind, **ax: kind.from_predictions(
        np.arange(60) % 4, P / P.sum(axis=1, keepdims=True), name=NAMES[0], **ax
    ),
    "LabelCovarianceDisplay": lambda kind, **ax: kind.from_covariance(
        LabelCovariance.dense(np.eye(4) + 0.5), NAMES, **ax
    ),
    "LabelGraphDisplay": lambda kind, **ax: kind.from_graph(CliqueGraph(4, [(0, 1), (1, 2, 3)]), NAMES, **ax),
    "LabelGraphPathDisplay": lambda kind, **ax: kind(records([0, 1, 1, 1], [0.3] * 4), NAMES, 1).plot(**ax),
    "LabelQualityDisplay": lambda kind, **ax: kind.from_predictions(
        Y, P > 0.5, measures="f1", label_names=NAMES, **ax
    ),
    "PredictionPathDisplay": lambda kind, **ax: kind.from_predictions(
        TREE, NAMES[2], [0.1, 0.2, 0.6, 0.1], NAMES, **ax
    ),
    "TaxonomyDisplay": lambda kind, **ax: kind.from_predictions(TREE, NAMES * 5, NAMES[::-1] * 5, **ax),
    "ThresholdCurveDisplay": lambda kind, **ax: kind.from_predictions(
        Y, P, labels=range(4), thresholds=0.4, label_names=NAMES, **ax
    ),
}
AGAIN = {"DualProgressDisplay": {"panels": "gap"}, "LabelQualityDisplay": {"measures": "f1"}}
each_display = pytest.mark.parametrize("name", displays.__all__)

test_what_makes_no_sense_is_refused = refusals(__file__)


def drawn(name, **ax):
    return DRAWN[name](getattr(displays, name), **ax)


@each_display
@pytest.mark.parametrize("size", [(3.4, 3.0), (12, 8)])
def test_it_draws_into_axes_of_any_size_and_can_draw_again(name, size):
    first, second = new_axes(*size), new_axes(*size)
    shown = drawn(name, ax=first)
    assert shown.ax_ is first
    assert shown.figure_ is first.figure
    width = first.get_window_extent().width
    shown.figure_.canvas.draw()
    assert shown.plot(second, **AGAIN.get(name, {})) is shown
    assert shown.ax_ is second
    assert first.get_window_extent().width > 0.5 * width  # texts fit into the available space


@each_display
def test_names_are_text_and_no_formulas(name):
    shown = drawn(name)
    shown.figure_.canvas.draw()
    texts = [text.get_text() for text in shown.figure_.findobj(Text)]
    assert all("$" not in text.replace(r"\$", "") for text in texts if "mathdefault" not in text)
    assert all(NAMES[2] not in text for text in texts)
    legends = [one.get_texts() for ax in shown.figure_.axes if (one := ax.get_legend()) is not None]
    assert not any(text.get_text().startswith("_") for words in legends for text in words)


@each_display
def test_what_is_missing_is_said(name, monkeypatch):
    with pytest.raises(ValueError, match="ax is 5; pass matplotlib axes"):
        drawn(name, ax=5)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"install labelweave\[app\]"):
        drawn(name)


UNFITTED = {
    "CombinationDisplay": AutoLabelClassifier(),
    "LabelGraphDisplay": LabelGraphClassifier(),
    "LabelGraphPathDisplay": LabelGraphClassifier(),
}
REFUSED = {
    "CombinationDisplay": "is not an ensemble",
    "DualProgressDisplay": "LogisticRegression has no trace_",
    "LabelCovarianceDisplay": "has no label_covariance_ to plot",
    "LabelGraphDisplay": "has no label_graph_ to plot",
    "LabelGraphPathDisplay": "has no learned graph, so there are no rounds",
    "PredictionPathDisplay": "was fitted without a taxonomy",
    "TaxonomyDisplay": "was fitted without a taxonomy",
}


@each_display
def test_models_that_do_not_fit_are_refused(name):
    kind, y = getattr(displays, name), np.arange(60) % 2
    taken = inspect.signature(kind.from_estimator).parameters
    rows = {part: given for part, given in (("X", P), ("y", y)) if part in taken}
    with pytest.raises(NotFittedError):
        kind.from_estimator(UNFITTED.get(name, MaxMarginClassifier()), **rows)
    if name in REFUSED:
        with pytest.raises(TypeError, match=REFUSED[name]):
            kind.from_estimator(LogisticRegression().fit(P, y), **rows)


def legend_on(ax, scale="linear", n_lines=4):
    x = np.linspace(0, 1, 200)
    lines = [
        ax.plot(x, 2.0 + np.sin(30 * x + k), label=f"a curve with a long name, {k}")[0]
        for k in range(n_lines)
    ]
    ax.set_yscale(scale)
    legend = place_legend(ax, lines)
    ax.figure.canvas.draw()
    return legend, lines


def is_over(legend, lines):
    box = legend.get_window_extent()
    return any(box.count_contains(line.get_transform().transform(line.get_xydata())) for line in lines)


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("size", [(3.4, 3.0), (8.0, 6.0)])
def test_room_is_made_above_curves_that_are_everywhere(scale, size):
    _, ax = plt.subplots(figsize=size, layout="constrained")
    legend, lines = legend_on(ax, scale)
    assert not is_over(legend, lines)
    assert ax.bbox.y1 >= legend.get_window_extent().y1


def test_limits_stay_where_there_is_room():
    _, ax = plt.subplots()
    (line,) = ax.plot([0, 1], [0, 1], label="a")
    limits = ax.get_ylim()
    place_legend(ax, [line])
    assert ax.get_ylim() == limits


def test_twin_axes_are_raised_together():
    _, ax = plt.subplots(figsize=(3.4, 3.0), layout="constrained")
    twin = ax.twinx()
    x = np.linspace(0, 1, 200)
    lines = [*ax.plot(x, np.sin(30 * x), label="left"), *twin.plot(x, 50 * np.cos(30 * x), label="right")]
    legend = place_legend(twin, lines, handles=lines)
    twin.figure.canvas.draw()
    assert not is_over(legend, lines)
    assert len(legend.get_texts()) == 2


def test_axes_too_small_for_any_legend_keep_their_curves():
    _, ax = plt.subplots(figsize=(2.0, 1.5))
    legend_on(ax, n_lines=8)
    assert ax.get_ylim()[1] < 4.0
