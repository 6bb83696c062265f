"""Calibrated probabilities against scikit-learn, against the truth, and for rare labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from labelweave.labels import LabelMatrix
from labelweave.metrics import expected_calibration_error
from labelweave.postprocessing import IsotonicCalibration, SigmoidCalibration, calibrate_labels
from labelweave.postprocessing.calibration.calibrate import known_classes
from labelweave.postprocessing.calibration.maps import fit_sigmoid
from labelweave.postprocessing.labeled_scores import LabeledScores


def make_problem(n_rows, n_labels, seed=0, slope_spread=0.3, base=-1.0, base_spread=1.0):
    """Scores whose true log-odds are linear, with other slopes and intercepts for every label."""
    rng = np.random.default_rng(seed)
    slopes = 2.0 + slope_spread * rng.normal(size=n_labels)
    intercepts = base + base_spread * rng.normal(size=n_labels)
    scores = rng.normal(size=(n_rows, n_labels))
    truth = expit(slopes * scores + intercepts)
    return scores, (rng.random(truth.shape) < truth).astype(int), truth


def test_without_shrinkage_it_is_platts_method():
    scores, labels, _ = make_problem(400, 3)
    found = calibrate_labels(labels, scores, shrinkage=0).probabilities(scores)
    for label in range(3):
        n = labels[:, label].sum()
        high, low = (n + 1) / (n + 2), 1 / (len(labels) - n + 2)
        targets = np.where(labels[:, label], high, low)
        rows = np.tile(scores[:, [label]], (2, 1))
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        model.fit(rows, np.repeat([1, 0], len(labels)), np.concatenate([targets, 1 - targets]))
        np.testing.assert_allclose(found[:, label], model.predict_proba(scores[:, [label]])[:, 1], atol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_scale_of_the_scores_does_not_matter(scale):
    scores, labels, _ = make_problem(300, 5)
    expected = calibrate_labels(labels, scores).probabilities(scores)
    found = calibrate_labels(labels, scale * scores + 3 * scale).probabilities(scale * scores + 3 * scale)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_scores_far_from_zero_keep_their_differences():
    scores, labels, _ = make_problem(300, 5)
    expected = calibrate_labels(labels, scores).probabilities(scores)
    moved = 1000.0 + 1e-6 * scores
    np.testing.assert_allclose(calibrate_labels(labels, moved).probabilities(moved), expected, atol=1e-4)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_row_without_weight_is_no_row(method):
    scores, labels, _ = make_problem(60, 4)
    weights = np.repeat([1.0, 0.0], 30)
    labels[:30, 0] = 0  # all positive rows of the first label have no weight
    weighted = calibrate_labels(labels, scores, method, min_positives=1, sample_weight=weights)
    without = calibrate_labels(labels[:30], scores[:30], method, min_positives=1)
    np.testing.assert_allclose(weighted.probabilities(scores), without.probabilities(scores), atol=1e-6)


def test_rare_labels_lean_on_the_others():
    """With four hundred rows, a label with a base rate of 1 % has few positive ones: shrinkage helps."""
    scores, labels, truth = make_problem(400, 60, base=-6.0, base_spread=0.5)
    loss = {}
    for shrinkage in ("auto", 0):
        found = calibrate_labels(labels, scores, shrinkage=shrinkage).probabilities(scores)
        loss[shrinkage] = np.mean(
            truth * np.log(truth / found) + (1 - truth) * np.log((1 - truth) / (1 - found))
        )
    assert loss["auto"] < 0.6 * loss[0]


def test_frequent_labels_keep_their_own_curves():
    scores, labels, truth = make_problem(5000, 12, slope_spread=1.0)
    found = calibrate_labels(labels, scores).probabilities(scores)
    assert np.abs(found - truth).mean() < 0.01


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration_lowers_the_error(method):
    scores, labels, _ = make_problem(4000, 8)
    wrong = expit(4 * scores)
    calibration = calibrate_labels(labels[:2000], scores[:2000], method)
    before = expected_calibration_error(labels[2000:], wrong[2000:], average="macro")
    found = calibration.probabilities(scores[2000:])
    after = expected_calibration_error(labels[2000:], found, average="macro")
    assert before > 0.1
    assert after < 0.05
    assert expected_calibration_error(labels[2000:], found) < 0.02


def test_isotonic_maps_are_those_of_scikit_learn():
    scores, labels, _ = make_problem(500, 3)
    calibration = calibrate_labels(labels, scores, "isotonic", shrinkage=0)
    found = calibration.probabilities(scores)
    for label in range(3):
        model = IsotonicRegression(y_min=1 / 502, y_max=501 / 502, out_of_bounds="clip")
        expected = model.fit(scores[:, label], labels[:, label]).predict(scores[:, label])
        np.testing.assert_allclose(found[:, label], expected, atol=1e-9)


def test_rare_labels_share_one_isotonic_map():
    scores, labels, _ = make_problem(500, 6)
    labels[:, 3:] = 0
    labels[:2, 3:] = 1
    calibration = calibrate_labels(labels, scores, "isotonic", min_positives=10)
    assert calibration.is_shared.tolist() == [False, False, False, True, True, True]
    found = calibration.probabilities(scores)
    assert ((found > 0) & (found < 1)).all()
    for label in range(6):
        order = np.argsort(scores[:, label])
        steps = np.diff(found[order, label])
        assert (steps >= -1e-12).all() or (steps <= 1e-12).all()  # a rare label may have a falling curve


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_unobserved_entries_and_blocks_change_nothing(method, monkeypatch):
    scores, labels, _ = make_problem(200, 5)
    hidden = np.random.default_rng(1).random(labels.shape) < 0.3
    targets = np.where(hidden, np.nan, labels)
    expected = calibrate_labels(targets, scores, method, min_positives=5).probabilities(scores)
    moved = np.where(hidden, 0.25, scores)  # the score of an unobserved entry does not matter
    monkeypatch.setattr("labelweave.postprocessing.labeled_scores.BLOCK_ENTRIES", 450)
    found = calibrate_labels(targets, moved, method, min_positives=5).probabilities(scores)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    dense = calibrate_labels(labels, scores, method).probabilities(scores)
    sparse = calibrate_labels(sp.csr_array(labels), scores, method).probabilities(scores)
    np.testing.assert_array_equal(sparse, dense)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("shrinkage", ["auto", 0])
@pytest.mark.parametrize("kind", ["nobody", "everybody", "one row", "same score", "separable"])
def test_degenerate_labels_have_probabilities(method, shrinkage, kind):
    labels = {"nobody": np.zeros((20, 1)), "everybody": np.ones((20, 1))}.get(kind, np.eye(20, 1))
    scores = np.linspace(0, 1, 20)[:, None]
    if kind == "one row":
        labels, scores = labels[:1], scores[:1]
    if kind == "same score":
        scores = np.zeros((20, 1))
    if kind == "separable":
        labels = (scores > 0.5).astype(int)
    found = calibrate_labels(labels, scores, method, shrinkage=shrinkage).probabilities(scores)
    assert ((found > 0) & (found < 1)).all()


def test_weights_count_like_repeated_rows():
    scores, labels, _ = make_problem(60, 2)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weights)
    weighted = calibrate_labels(labels, scores, shrinkage=0, sample_weight=weights).probabilities(scores)
    repeated = calibrate_labels(labels[rows], scores[rows], shrinkage=0).probabilities(scores)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


@pytest.mark.parametrize("shrinkage", ["auto", 0])
@pytest.mark.parametrize(("bend", "kind"), [(0.0, SigmoidCalibration), (6.0, IsotonicCalibration)])
def test_the_kind_of_maps_follows_the_rows(bend, kind, shrinkage):
    """Log-odds linear in the scores suit curves, those that level off suit steps."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2000, 5))
    truth = expit(2.0 * scores - 1.0 - bend * np.maximum(scores, 0.0))
    labels = (rng.random(truth.shape) < truth).astype(int)
    found = calibrate_labels(labels, scores, "auto", shrinkage=shrinkage)
    assert isinstance(found, kind)
    expected = calibrate_labels(
        labels, scores, "isotonic" if kind is IsotonicCalibration else "sigmoid", shrinkage=shrinkage
    )
    np.testing.assert_array_equal(found.probabilities(scores), expected.probabilities(scores))


def test_few_rows_get_curves():
    scores, labels, _ = make_problem(9, 2)
    assert isinstance(calibrate_labels(labels, scores, "auto"), SigmoidCalibration)


def test_the_kind_of_maps_minds_gaps_and_weights():
    scores, labels, _ = make_problem(300, 4)
    rows = np.arange(300) % 2 == 0
    gaps = np.where(rows[:, None], labels, np.nan)
    found = calibrate_labels(gaps, scores, "auto").probabilities(scores)
    assert np.isfinite(found).all()
    weighted = calibrate_labels(labels, scores, "auto", sample_weight=rows.astype(float))
    assert np.isfinite(weighted.probabilities(scores)).all()


def test_rows_of_one_known_class_calibrate_classes():
    labels = LabelMatrix(sp.csr_array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]]))
    table = LabeledScores(labels, np.zeros((4, 3)), np.array([1.0, 1.0, 1.0, 0.0]))
    rows, shares = known_classes(table)
    assert (rows.tolist(), shares.tolist()) == ([0], [[1.0, 0.0, 0.0]])


def test_doubts_of_nothing_change_no_curve():
    scores, labels, _ = make_problem(80, 4)
    sure = LabelMatrix.from_any(labels)
    places = sp.csr_array((np.zeros(3), ([0, 5, 9], [0, 1, 2])), shape=labels.shape)
    doubting = LabelMatrix(sure.positives, flip_probabilities=places)
    doubting.flip_probabilities = places  # computed without those of 0 otherwise
    for pooled in ("auto", 0):
        expected = fit_sigmoid(LabeledScores(sure, scores, np.ones(80)), pooled=pooled)
        found = fit_sigmoid(LabeledScores(doubting, scores, np.ones(80)), pooled=pooled)
        np.testing.assert_allclose(found.slopes, expected.slopes, rtol=1e-6)
