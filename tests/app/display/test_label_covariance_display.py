"""Heat maps of label covariances, drawn without a screen."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave.app.display.label_covariance_display import _strongest, beyond_common_share, is_mostly_common
from labelweave.display import LabelCovarianceDisplay
from labelweave.labels import LabelCovariance
from pictures import Fitted


def grouped(n_labels, n_groups=3, names=True):
    """Labels with the same remainder have a correlation of 1/2."""
    factor = np.eye(n_groups)[np.arange(n_labels) % n_groups]
    labels = [f"group {k % n_groups}, label {k}" for k in range(n_labels)]
    return LabelCovariance.low_rank(factor, 1.0, labels if names else None)


def drawn_names(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [1, 6, 60, 85, 1000])
def test_names_fit(n_labels):
    display = LabelCovarianceDisplay.from_covariance(grouped(n_labels))
    display.figure_.canvas.draw()
    texts = [text for text in display.ax_.get_yticklabels() if text.get_text()]
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
    assert all(below.y1 < above.y0 + 1 for below, above in pairwise(boxes))
    assert all(box.x0 >= 0 for box in boxes)
    assert all(text.get_fontsize() >= 5 for text in texts)
    assert len(texts) == n_labels if n_labels <= 60 else 40 <= len(texts) <= n_labels
    assert bool(drawn_names(display.ax_.xaxis)) == (n_labels <= 60)


def test_related_labels_stand_together():
    display = LabelCovarianceDisplay.from_covariance(grouped(30))
    groups = [name.split(",")[0] for name in display.label_names]
    assert sum(first != second for first, second in pairwise(groups)) == 2
    np.testing.assert_array_equal(display.image_.get_array(), display.matrix)
    kept = LabelCovarianceDisplay.from_covariance(grouped(30), order="given")
    np.testing.assert_allclose(kept.matrix, grouped(30).correlations())
    assert list(kept.label_names) == list(grouped(30).label_names)


def test_colors_are_centered_at_zero():
    strong = LabelCovarianceDisplay.from_covariance(grouped(4))
    assert strong.image_.get_clim() == (-1, 1)
    weak = LabelCovarianceDisplay.from_covariance(grouped(6).shrink(0.9))
    assert weak.image_.get_clim() == pytest.approx((-0.05, 0.05))
    raw = LabelCovarianceDisplay.from_covariance(grouped(6), correlations=False)
    assert raw.image_.get_clim() == (-2, 2)
    assert raw.quantity == "covariance"
    nothing = LabelCovarianceDisplay.from_covariance(LabelCovariance.low_rank(np.zeros((4, 1))))
    assert nothing.image_.get_clim() == (-1, 1)
    chosen = grouped(4).plot(limit=0.3, cmap="PuOr", colorbar=False)
    assert chosen.image_.get_clim() == (-0.3, 0.3)
    assert chosen.image_.get_cmap().name == "PuOr"
    assert len(chosen.figure_.axes) == 1
    assert strong.figure_.axes[-1].get_ylabel() == "correlation"


def test_few_labels_have_their_numbers_written():
    covariance = LabelCovariance.dense(grouped(4).to_dense() - 1e-17 * (1 - np.eye(4)))
    display = LabelCovarianceDisplay.from_covariance(covariance)
    assert sorted({text.get_text() for text in display.ax_.texts}) == ["0.00", "0.50", "1.00"]
    assert not LabelCovarianceDisplay.from_covariance(grouped(20)).ax_.texts


def test_of_too_many_labels_the_most_related_are_drawn():
    factor = np.zeros((50, 1))
    factor[[3, 30, 44]] = 1.0
    display = LabelCovariance.low_rank(factor, 1.0).plot(max_labels=3)
    assert sorted(display.label_names) == ["3", "30", "44"]
    assert display.ax_.get_xlabel() == "3 of 50 labels: those with the strongest correlations"
    assert len(LabelCovariance.identity(50).plot(max_labels=5).matrix) == 5


def nearly_alike(n_labels=40):
    """Labels that nearly always agree, some pairs more."""
    matrix = np.full((n_labels, n_labels), 0.9)
    for k in range(0, n_labels, 2):
        matrix[k, k + 1] = matrix[k + 1, k] = 0.97
    np.fill_diagonal(matrix, 1.0)
    return LabelCovariance.dense(matrix)


@pytest.mark.slow
def test_what_all_labels_share_is_omitted_where_it_is_nearly_all():
    display = LabelCovarianceDisplay.from_covariance(nearly_alike())
    between = display.matrix[np.triu_indices(40, 1)]
    assert np.median(np.abs(between)) < 0.05
    assert between.max() == pytest.approx(0.7, abs=0.05)
    assert display.ax_.get_xlabel() == "without the common factor: correlations around +0.90"
    kept = LabelCovarianceDisplay.from_covariance(nearly_alike(), centered=False)
    assert kept.matrix.min() == pytest.approx(0.9)
    assert kept.note == ""
    few = LabelCovarianceDisplay.from_covariance(nearly_alike(6))
    assert few.matrix.min() == pytest.approx(0.9)  # the numbers are written
    asked = LabelCovarianceDisplay.from_covariance(nearly_alike(6), centered=True)
    assert asked.matrix.min() < 0.2
    with pytest.raises(ValueError, match="centered=True needs correlations"):
        nearly_alike().plot(centered=True, correlations=False)


def test_cells_too_small_to_see_are_put_together():
    strong = np.zeros((900, 1))
    strong[[100, 800]] = 1.0
    covariance = LabelCovariance.low_rank(strong, 1.0)
    display = LabelCovarianceDisplay.from_covariance(covariance, order="given")
    squares = display.image_.get_array()
    together = round(900 / len(squares))
    assert together > 1
    found = {tuple(pair) for pair in np.argwhere(squares > 0.4).tolist()}
    one, other = 100 // together, 800 // together
    assert found == {(one, other), (other, one)}
    assert f"the strongest of {together} × {together}" in display.image_.colorbar.ax.get_ylabel()
    assert display.ax_.get_xlim() == (-0.5, 899.5)


@pytest.mark.parametrize("side", [3.0, 5.0])
def test_numbers_stay_in_their_cells(side):
    figure, ax = plt.subplots(figsize=(side * 1.2, side), layout="constrained")
    covariance = LabelCovariance.dense(1.15 * np.eye(6) - 0.15)
    LabelCovarianceDisplay.from_covariance(covariance, ax=ax)
    figure.canvas.draw()
    cell = ax.get_window_extent().width / 6
    assert all(text.get_window_extent().width < cell for text in ax.texts)


def test_blocks_of_cells_have_the_value_of_the_largest_size():
    matrix = np.random.default_rng(0).normal(size=(5, 5))
    found = _strongest(matrix.copy(), 2)
    np.fill_diagonal(matrix, 0.0)
    for row in range(3):
        for column in range(3):
            block = matrix[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            assert abs(found[row, column]) == np.abs(block).max()
            assert found[row, column] in block


def test_fitted_models_show_the_covariance_they_used():
    names = [f"name {k}" for k in range(6)]
    model = Fitted(label_covariance=grouped(6), label_names=names)
    for fitted in (model, make_pipeline(StandardScaler(), model).fit(np.eye(3))):
        assert list(LabelCovarianceDisplay.from_estimator(fitted, order="given").label_names) == names
    two = Fitted(label_covariance=LabelCovariance.identity(1), label_names=["no", "yes"])
    assert list(LabelCovarianceDisplay.from_estimator(two).label_names) == ["0"]


def rare_labels(n_labels=60, n_rows=4000, seed=0):
    """Labels with a frequency of one in a hundred, every second one mostly together with its neighbor."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n_rows, n_labels)) < rng.uniform(0.005, 0.05, n_labels)
    together = rng.random((n_rows, n_labels // 2)) < 0.7
    Y[:, 1::2] = np.where(together, Y[:, ::2], Y[:, 1::2])
    return Y.astype(float)


def test_rare_labels_get_their_usual_correlations_back():
    Y = rare_labels()
    raw = LabelCovariance.from_labels(Y, centered=False).correlations()
    assert is_mostly_common(raw)
    found, usual = beyond_common_share(raw), np.corrcoef(Y, rowvar=False)
    pairs = np.triu_indices(60, 1)
    assert np.corrcoef(found[pairs], usual[pairs])[0, 1] > 0.98
    assert np.abs(found - usual).max() < 0.1
    assert abs(np.corrcoef(raw[pairs], usual[pairs])[0, 1]) < 0.5


def test_one_common_factor_leaves_nothing():
    shared = np.linspace(0.3, 0.95, 30)
    shared[::3] *= -1.0
    correlations = np.outer(shared, shared)
    np.fill_diagonal(correlations, 1.0)
    np.testing.assert_allclose(beyond_common_share(correlations), np.eye(30), atol=1e-4)


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_independent_labels_stay_independent(n_labels):
    assert not is_mostly_common(np.eye(n_labels))
    np.testing.assert_array_equal(beyond_common_share(np.eye(n_labels)), np.eye(n_labels))


def test_labels_that_are_always_alike():
    found = beyond_common_share(np.ones((30, 30)))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1.0
