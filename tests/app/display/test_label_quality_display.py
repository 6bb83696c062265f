"""Metrics of labels against their frequency, drawn without a screen."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression

from labelweave import LabelMatrix, MaxMarginClassifier
from labelweave.app.display.label_quality_display import running_quartiles
from labelweave.display import LabelQualityDisplay


def labels_and_predictions(n_labels, n_rows=400, seed=0):
    generator = np.random.default_rng(seed)
    shares = 0.4 / (1 + np.arange(n_labels)) + 3 / n_rows
    Y = generator.random((n_rows, n_labels)) < shares
    flipped = generator.random(Y.shape) < np.where(Y, 0.3, 0.3 * shares)
    return LabelMatrix.from_any(Y, [f"label {k}" for k in range(n_labels)]), Y ^ flipped


def written(ax):
    """The names next to points, with their boxes."""
    ax.figure.canvas.draw()
    return [(text.get_text(), Text.get_window_extent(text)) for text in ax.texts]


def test_the_measures_are_those_of_scikit_learn():
    truth, predicted = labels_and_predictions(8)
    Y = truth.to_dense().astype(int)
    display = LabelQualityDisplay.from_predictions(truth, predicted)
    for name in ("precision", "recall", "f1"):
        expected = getattr(sklearn.metrics, f"{name}_score")(Y, predicted, average=None)
        np.testing.assert_allclose(getattr(display, name), expected)
    np.testing.assert_array_equal(display.frequency, Y.sum(axis=0))
    assert len(display.ax_) == 3
    assert sorted(display.named_[0]) == sorted(truth.names)


def test_unobserved_entries_are_not_counted():
    truth, predicted = labels_and_predictions(5)
    hidden = np.random.default_rng(1).random(truth.shape) < 0.4
    display = LabelQualityDisplay.from_predictions(truth.masked(~hidden), predicted, measures=["recall"])
    Y = truth.to_dense()
    hits = (Y == 1) & predicted & ~hidden
    np.testing.assert_allclose(display.recall, hits.sum(axis=0) / ((Y == 1) & ~hidden).sum(axis=0))


@pytest.mark.parametrize(
    ("n_labels", "size"), [(1, (9, 6)), (6, (4, 3)), (100, (9, 6)), (983, (4, 3)), (983, (9, 6))]
)
def test_names_lie_inside_and_not_on_each_other(n_labels, size):
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    display = LabelQualityDisplay.from_predictions(*labels_and_predictions(n_labels), ax=ax, measures="f1")
    boxes = [box for _, box in written(ax)]
    assert min(n_labels, 5) <= len(boxes) <= 12
    frame = ax.get_window_extent()
    assert all(frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1 for box in boxes)
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    assert display.figure_ is figure
    assert len(display.named_[0]) == len(boxes)


def test_the_weakest_labels_of_their_frequency_are_named():
    truth, _ = labels_and_predictions(60, n_rows=600)
    predicted = truth.to_dense() == 1
    predicted[:, [2, 40]] = False
    predicted[:5, 2] = True
    display = LabelQualityDisplay.from_predictions(truth, predicted, measures=["recall"], n_named=2)
    assert set(display.named_[0]) == {"label 2", "label 40"}
    assert display.ax_.get_xscale() == "log"


def test_points_that_lie_on_each_other_share_a_name():
    Y = np.repeat([[1, 1, 1, 0]], 4, axis=0).T @ np.ones((4, 30)) / 4
    predicted = Y.copy()
    predicted[0, :5] = 0
    display = LabelQualityDisplay.from_predictions(Y, predicted, measures=["recall"], n_named=3)
    assert "0, 1, 2, 3, 4" in display.named_[0]
    assert any(name.endswith(" +24") for name in display.named_[0])


def test_labels_without_a_measure_are_counted_in_the_title():
    Y = np.zeros((20, 4))
    Y[:5, :3] = 1
    predicted = Y.copy()
    predicted[:, 1] = 0
    display = LabelQualityDisplay.from_predictions(Y, predicted)
    assert np.isnan(display.precision[[1, 3]]).all()
    assert np.isnan(display.recall[3])
    assert display.f1[1] == 0
    titles = [ax.get_title() for ax in display.ax_]
    assert titles[0] == "2 of 4 labels omitted: not predicted, or no positive rows"
    assert titles[1] == "1 of 4 labels omitted: no positive rows"


def test_frequencies_in_training():
    truth, predicted = labels_and_predictions(4)
    display = LabelQualityDisplay.from_predictions(
        truth, predicted, frequency=[10, 20, 40, 80], measures=["f1"]
    )
    np.testing.assert_array_equal(display.ax_.collections[0].get_offsets()[:, 0], [10, 20, 40, 80])
    assert display.ax_.get_xlabel() == "Positive rows in training"
    for wrong in ([1, 2], [1, 2, 3, -1], [1, 2, 3, np.nan]):
        with pytest.raises(ValueError, match="frequency has shape"):
            LabelQualityDisplay.from_predictions(truth, predicted, frequency=wrong)


def test_running_quartiles():
    frequency = np.repeat(np.arange(1.0, 201.0), 3)
    values = np.tile([0.2, 0.5, 0.9], 200)
    places, low, middle, high = running_quartiles(frequency, values)
    assert (np.diff(places) > 0).all()
    assert places[0] == 1
    assert places[-1] == pytest.approx(200)
    np.testing.assert_allclose(middle, 0.5)
    assert (low <= middle).all()
    assert (high >= middle).all()


def test_fitted_models():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 4))
    frame = pd.DataFrame((X[:, :3] > 0.5).astype(int), columns=["a", "b", "c"])
    model = MaxMarginClassifier().fit(X, frame)
    assert LabelQualityDisplay.from_estimator(model, X, frame.to_numpy()).label_names == ["a", "b", "c"]
    classes = np.array(["x", "y", "z"])[np.argmax(X[:, :3], axis=1)]
    flat = LogisticRegression().fit(X, classes)
    display = LabelQualityDisplay.from_estimator(flat, X, classes)
    expected = sklearn.metrics.recall_score(classes, flat.predict(X), average=None)
    np.testing.assert_allclose(display.recall, expected)
    two = np.where(X[:, 0] > 0, 3, 7)
    assert LabelQualityDisplay.from_estimator(LogisticRegression().fit(X, two), X, two).label_names == ["7"]
