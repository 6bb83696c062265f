"""One class per row: calibrated probabilities, and adaptive sets that seldom miss the class."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import labelweave as lw
from labelweave.metrics.known_labels import TruthWarning
from labelweave.model_files import ModelFileError
from labelweave.postprocessing import (
    SigmoidCalibration,
    adaptive_scores,
    calibrate_classes,
    class_probabilities,
)

NAMES = np.array(["ash", "birch", "cedar", "elm"])
INNER = {
    "probabilities": LogisticRegression(),
    "forest": RandomForestClassifier(20, random_state=0),
    "scores": LinearSVC(),
    "margin": lw.MaxMarginClassifier(),
    "log_loss": lw.KernelLogisticClassifier("linear", hyperparameters="fixed"),
}


def draw(n_rows, seed=0):
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 4, n_rows)
    X = generator.normal(size=(n_rows, 4)) + 1.2 * np.eye(4)[codes]
    return X, NAMES[codes]


@pytest.fixture(scope="module")
def rows():
    return *draw(400), *draw(1000, 1)


def covered(model, X, y):
    sets = model.predict(X)
    return sets[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_sets_of_classes(inner, rows):
    X, y, X_test, y_test = rows
    model = lw.ConformalLabelClassifier(inner, level=0.2, guarantee="expectation").fit(X, y)
    sets = model.predict(X_test)
    assert sets.shape == (1000, 4)
    assert model.classes_.tolist() == NAMES.tolist()
    assert sets.any(axis=1).all()
    assert covered(model, X_test, y_test) > 0.7
    assert 1 < sets.sum(axis=1).mean() < 3.5
    np.testing.assert_array_equal(sets > 0, model.decision_function(X_test) > 0)
    # the set of a row does not depend on the other rows
    np.testing.assert_array_equal(model.predict(X_test[500:503]), sets[500:503])


def test_the_score_of_sets_of_classes_is_their_coverage(rows):
    X, y, X_test, y_test = rows
    model = lw.ConformalLabelClassifier(LogisticRegression(), level=0.2, guarantee="expectation").fit(X, y)
    assert model.score(X_test, y_test) == pytest.approx(covered(model, X_test, y_test))
    truth = y_test.astype(object)
    truth[:5], truth[5:8] = None, "yew"  # unknown, and a class that the model has not seen
    has_class = model.predict(X_test)[np.arange(8, 1000), np.searchsorted(NAMES, y_test[8:])]
    weights = np.linspace(0, 1, 1000)
    expected = (weights[8:] * has_class).sum() / weights[5:].sum()
    with pytest.warns(TruthWarning, match=r"1 class .* count as missed.*'yew' \(3\)"):
        assert model.score(X_test, truth, weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match="'yew' of row 5 is unknown"):
        model.score(X_test, truth, unknown_labels="raise")
    for few in (y_test[:5], np.tile(y_test, 2)):
        with pytest.raises(ValueError, match="rows"):
            model.score(X_test, few)
    labels = lw.ConformalLabelClassifier(lw.MaxMarginClassifier()).fit(X, y == "ash")
    assert 0.5 < labels.score(X_test, y_test == "ash") <= 1  # two classes have no sets


@pytest.mark.parametrize("guarantee", ["expectation", "probability"])
def test_sets_cover_over_many_splits(guarantee):
    """The mean over splits is at least 1 - level; with the "probability" guarantee few splits fail."""
    X, y = draw(4000, 2)
    inner, level = GaussianNB().fit(X[:100], y[:100]), 0.2
    shares, random = [], np.random.default_rng(0)
    for seed in range(200):
        order = 100 + random.permutation(3900)
        rows, others = order[:150], order[150:]
        model = lw.ConformalLabelClassifier(
            inner, level=level, guarantee=guarantee, confidence=0.9, cv="prefit", random_state=seed
        )
        shares.append(covered(model.fit(X[rows], y[rows]), X[others], y[others]))
    if guarantee == "expectation":
        error = np.std(shares) / np.sqrt(len(shares))
        assert 1 - level - 2 * error < np.mean(shares) < 1 - level + 1 / 150 + 2 * error
    else:
        assert np.mean(np.array(shares) < 1 - level) <= 0.1 + 2 * np.sqrt(0.09 / len(shares))


def test_adaptive_scores_are_masses_before_a_class():
    table = np.random.default_rng(0).dirichlet(np.ones(5), 2000)
    scores = adaptive_scores(table, seed=3)
    assert (scores.max(axis=1) == 0).all()
    order = np.argsort(-table, axis=1)
    ranked, masses = (np.take_along_axis(part, order, axis=1) for part in (table, -scores))
    shares = (masses - np.cumsum(ranked, axis=1) + ranked)[:, 1:] / ranked[:, 1:]
    np.testing.assert_allclose(shares, shares[:, :1] * np.ones((1, 4)), atol=1e-6)  # one number per row
    assert ((shares >= -1e-9) & (shares <= 1)).all()
    np.testing.assert_allclose(np.histogram(shares[:, 0], 10, (0, 1))[0], 200, atol=60)
    np.testing.assert_array_equal(adaptive_scores(table[::-1], seed=3)[::-1], scores)
    assert (adaptive_scores(table, seed=4) != scores).any()
    np.testing.assert_array_equal(adaptive_scores(table * (1 + 1e-13), 3).round(9), scores.round(9))


def test_sets_are_large_where_the_model_is_unsure(rows):
    X, y, X_test, _ = rows
    inner = LogisticRegression().fit(X, y)
    model = lw.ConformalLabelClassifier(inner, level=0.2, cv="prefit").fit(*draw(400, 5))
    sizes, sure = model.predict(X_test).sum(axis=1), inner.predict_proba(X_test).max(axis=1)
    assert sizes[sure > 0.9].mean() < 1.5 < 2.2 < sizes[sure < 0.5].mean()


@pytest.mark.parametrize("method", ["auto", "sigmoid", "isotonic"])
@pytest.mark.parametrize("name", ["forest", "scores", "log_loss"])
def test_probabilities_of_classes(method, name, rows):
    X, y, X_test, y_test = rows
    model = lw.CalibratedLabelClassifier(INNER[name], method, cv=5).fit(X, y)
    table = model.predict_proba(X_test)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X_test), NAMES[table.argmax(axis=1)])
    peer = CalibratedClassifierCV(INNER[name], method="sigmoid", cv=5, ensemble=False).fit(X, y)
    worse = 0.1 if method == "isotonic" else 0.05  # steps of 400 rows; votes of 20 trees
    assert log_loss(y_test, table) < log_loss(y_test, peer.predict_proba(X_test)) + worse
    assert not hasattr(model, "thresholds_")
    with pytest.raises(ValueError, match="is for label sets, but y has one of 4 classes per row"):
        lw.CalibratedLabelClassifier(INNER[name], decision="expected_f1").fit(X, y)


def test_the_softmax_finds_temperature_and_intercepts():
    generator = np.random.default_rng(0)
    scores, true = generator.normal(size=(40_000, 3)), np.array([0.5, 0.0, -0.5])
    table = np.exp(2.0 * scores + true)
    table /= table.sum(axis=1, keepdims=True)
    codes = (generator.random((40_000, 1)) > np.cumsum(table, axis=1)).sum(axis=1)
    for shrinkage in (0, "auto"):
        found = calibrate_classes(np.eye(3)[codes], scores, shrinkage=shrinkage)
        assert found.slope == pytest.approx(2.0, abs=0.06)
        np.testing.assert_allclose(found.intercepts - found.intercepts.mean(), true, atol=0.06)
    np.testing.assert_allclose(class_probabilities(found, scores).sum(axis=1), 1.0)
    weights = (codes != 2).astype(float)
    without = calibrate_classes(np.eye(3)[codes], scores, sample_weight=weights)
    assert class_probabilities(without, scores)[:, 2].mean() < 0.01


@pytest.mark.parametrize("method", ["sigmoid", "auto"])
def test_probabilities_of_classes_are_calibrated_on_as_they_are(method):
    """Those of the truth give the curve of the truth; unobserved rows contribute nothing."""
    generator = np.random.default_rng(0)
    scores, true = generator.normal(size=(600, 3)), np.array([0.5, 0.0, -0.5])
    table = np.exp(2.0 * scores + true)
    table /= table.sum(axis=1, keepdims=True)
    assert (table.max(axis=1) < 0.5).any()
    table[:100] = np.nan
    found = calibrate_classes(lw.LabelMatrix.from_probabilities(table), scores, method, shrinkage=0)
    assert found.slope == pytest.approx(2.0, abs=1e-3)
    np.testing.assert_allclose(found.intercepts - found.intercepts.mean(), true, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-6, 1e8, 1e300])
def test_the_softmax_does_not_see_the_unit_of_scores(unit):
    generator = np.random.default_rng(0)
    scores, codes = generator.normal(size=(600, 3)), generator.integers(3, size=600)
    scores[np.arange(600), codes] += 1.0
    one, found = (calibrate_classes(np.eye(3)[codes], u * scores) for u in (1.0, unit))
    if unit > 1e-300:
        np.testing.assert_allclose(found.intercepts, one.intercepts, rtol=1e-6)
        assert found.slope * unit == pytest.approx(one.slope, rel=1e-6)
    assert np.isfinite(class_probabilities(found, unit * scores)).all()


def test_sets_of_classes_are_not_of_a_model_of_labels(rows):
    """As in an edited file: probabilities of labels are no distribution over classes."""
    X, y, *_ = rows
    state = lw.ConformalLabelClassifier(lw.KernelLogisticClassifier()).fit(X, y).to_state()
    lw.ConformalLabelClassifier._check_state(state)
    classes = np.unique(y)
    labels = pd.DataFrame(y[:, None] == classes, columns=classes)
    inner = lw.KernelLogisticClassifier().fit(X, labels)
    with pytest.raises(ModelFileError, match="does not match the classifier inside"):
        lw.ConformalLabelClassifier._check_state(state | {"estimator": inner})


def test_scores_that_leave_no_class_a_probability():
    flat = SigmoidCalibration(np.ones(3), np.zeros(3))
    found = class_probabilities(flat, np.array([[-1e4, -1e4, -1e4], [0.0, -1e4, 0.0]]))
    np.testing.assert_allclose(found, [[1 / 3] * 3, [0.5, 0, 0.5]])


def test_classes_that_some_rows_lack(rows):
    """Folds, and rows for calibration, may lack a class that the model knows."""
    X, y, X_test, _ = rows
    few = np.concatenate([np.flatnonzero(y != "elm"), np.flatnonzero(y == "elm")[:1]])
    for inner in (LogisticRegression(), lw.MaxMarginClassifier()):
        model = lw.CalibratedLabelClassifier(inner, cv=3).fit(X[few], y[few])
        np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1.0)
        fitted = inner.fit(X, y)
        rest = np.flatnonzero(y != "elm")
        sets = lw.ConformalLabelClassifier(fitted, cv="prefit").fit(X[rest], y[rest])
        assert sets.predict(X_test).shape == (1000, 4)
        with pytest.raises(ValueError, match="y has the class 'yew', which the"):
            lw.ConformalLabelClassifier(fitted, cv="prefit").fit(
                X[:4], np.array(["ash", "elm", "yew", "birch"])
            )
    with pytest.raises(ValueError, match="is for many labels per row, but y has one of 4 classes per row"):
        lw.ConformalLabelClassifier(LogisticRegression(), "false_discoveries").fit(X, y)


def test_rows_of_unknown_or_partly_known_class_do_not_count(rows):
    X, y, *_ = rows
    tree = lw.Taxonomy([("soft", "cedar"), ("hard", "ash"), ("hard", "birch"), ("hard", "elm")])
    inner = lw.KernelLogisticClassifier("linear", hyperparameters="fixed", taxonomy=tree).fit(X, y)
    partly = y.astype(object)
    partly[:30], partly[30:50] = None, "hard"
    whole, some = (
        lw.ConformalLabelClassifier(inner, cv="prefit").fit(*given)
        for given in ((X[50:], y[50:]), (X, partly))
    )
    assert some.n_calibration_rows_ == 350
    assert some.threshold_ == whole.threshold_
