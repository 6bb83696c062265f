"""Properties of all wrappers around all kinds of classifiers, and the callbacks of their fits."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import labelweave as lw
from labelweave import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
)
from labelweave.estimators.held_out import HeldOutScores
from refused import refusals

WRAPPERS = {
    "label": lw.TunedThresholdClassifier,
    "global": lambda inner, **more: lw.TunedThresholdClassifier(inner, "macro_f1", scope="global", **more),
    "top": lambda inner, **more: lw.TunedThresholdClassifier(inner, scope="top_k", **more),
    "curves": lw.CalibratedLabelClassifier,
    "steps": lambda inner, **more: lw.CalibratedLabelClassifier(
        inner, "isotonic", decision="expected_f1", **more
    ),
    "conformal": lambda inner, **more: lw.ConformalLabelClassifier(inner, level=0.3, **more),
}
INNER = {
    "margin": lw.MaxMarginClassifier(),
    "one against the rest": OneVsRestClassifier(LinearSVC()),
    "forest": RandomForestClassifier(10, random_state=0),
    "neighbors": KNeighborsClassifier(),
    "a model a label": MultiOutputClassifier(LogisticRegression()),
}
wrappers = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)

test_what_makes_no_sense_is_refused = refusals(__file__)


def _follow(predicted, scores, axis):
    """Return whether along an axis predicted labels have scores no lower than others."""
    lowest = np.where(predicted == 1, scores, np.inf).min(axis=axis)
    return (lowest >= np.where(predicted == 1, -np.inf, scores).max(axis=axis)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_predictions_follow_the_decision_function(name, inner, rows):
    X, Y, X_test, _ = rows
    model = WRAPPERS[name](clone(inner)).fit(X, Y.toarray())
    scores = model.decision_function(X_test)
    predicted = model.predict(X_test)
    assert scores.shape == predicted.shape == (300, 8)
    if name == "label":  # a threshold per label
        assert _follow(predicted, scores, axis=0)
    elif name in ("top", "steps"):  # the best labels of a row
        assert _follow(predicted, scores, axis=1)
    else:
        np.testing.assert_array_equal(predicted, scores > 0)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X_test)
        assert probabilities.shape == (300, 8)
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


@pytest.mark.parametrize("inner", [OneVsRestClassifier(LinearSVC()), RandomForestClassifier(2, max_depth=3)])
def test_complete_label_matrices_and_lists_are_for_every_classifier(inner, rows):
    X, Y, X_test, _ = rows
    names = [f"topic {number}" for number in range(8)]
    model = lw.TunedThresholdClassifier(inner, random_state=0)
    found = model.fit(X, lw.LabelMatrix(Y, names=names)).predict(X_test)
    assert model.label_names_.tolist() == names
    assert found.shape == (300, 8)
    if isinstance(inner, RandomForestClassifier):
        tagged = model.fit(X, [[names[k] for k in row.nonzero()[0]] for row in Y.toarray()]).predict(X_test)
        assert {tag for tags in tagged for tag in tags} <= set(names)


@wrappers
def test_a_foreign_classifier_cannot_be_kept_in_a_model_file(wrap, rows, tmp_path):
    X, Y, *_ = rows
    model = wrap(KNeighborsClassifier()).fit(X, Y.toarray())
    with pytest.raises(TypeError, match="around a KNeighborsClassifier cannot be stored in a model file"):
        model.save(tmp_path / "model.lw")
    assert not list(tmp_path.iterdir())


@wrappers
def test_a_fitted_classifier_is_taken_as_it_is(wrap, rows):
    X, Y, X_test, Y_test = rows
    inner = lw.MaxMarginClassifier().fit(X, Y)
    model = wrap(inner, cv="prefit").fit(X_test, Y_test)
    assert model.estimator_ is inner
    assert model.predict(X_test).shape == Y_test.shape


@wrappers
def test_two_classes(wrap, rows):
    X, Y, X_test, _ = rows
    classes = np.where(Y.toarray()[:, 0], "yes", "no")
    model = wrap(LogisticRegression())
    if model._for_sets:  # which would always predict the second class
        with pytest.raises(ValueError, match="is for label sets"):
            model.fit(X, classes)
        return
    assert set(model.fit(X, classes).predict(X_test)) == {"yes", "no"}
    assert model.decision_function(X_test).shape == (300,)


@wrappers
def test_texts_in_a_pipeline_and_a_search(wrap):
    texts = ["fast solver", "tall tree", "fast map of trees", "slow solver", "old map", "tree house"] * 20
    topics = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 0], [0, 1]] * 20)
    model = wrap(make_pipeline(TfidfVectorizer(), lw.MaxMarginClassifier()))
    search = GridSearchCV(model, {"estimator__maxmarginclassifier__C": [0.1, 10.0]}, scoring="f1_micro", cv=2)
    assert search.fit(texts, topics).predict(["fast tree", "map"]).shape == (2, 2)


@pytest.mark.slow
@wrappers
def test_blocks_of_rows_change_nothing(wrap, rows, monkeypatch):
    X, Y, X_test, _ = rows
    expected = wrap(lw.BinaryRelevance()).fit(X, Y).decision_function(X_test)
    monkeypatch.setattr("labelweave.decisions.label_scores._SCORES_AT_ONCE", 50)
    found = wrap(lw.BinaryRelevance()).fit(X, Y).decision_function(X_test)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@wrappers
@pytest.mark.parametrize("cv", [None, "prefit"])
def test_of_too_many_scores_some_rows_are_kept(wrap, cv, rows, monkeypatch):
    """Scores of 100,000 labels would not fit into memory for all rows."""
    X, Y, X_test, _ = rows
    monkeypatch.setattr("labelweave.decisions.label_scores._MOST_SCORES", 8 * 80)
    monkeypatch.setattr("labelweave.decisions.label_scores._MOST_PRECISE", 8)
    kept = []
    true = HeldOutScores.__init__

    def watched(self, labels, scores, *others, **more):
        kept.append((labels.shape, scores.shape, scores.dtype))
        true(self, labels, scores, *others, **more)

    monkeypatch.setattr(HeldOutScores, "__init__", watched)
    model = wrap(lw.MaxMarginClassifier().fit(X, Y), cv=cv).fit(X, Y)
    assert kept[0] == ((80, 8), (80, 8), np.float32)
    assert all(shape == scores == (80, 8) for shape, scores, _ in kept)
    assert model.predict(X_test).shape == (300, 8)


def test_a_precomputed_kernel_is_cut_on_both_sides(rows):
    X, Y, *_ = rows
    gram = (X @ X.T).toarray()
    model = lw.TunedThresholdClassifier(lw.MaxMarginClassifier(kernel="precomputed")).fit(gram, Y)
    assert model.predict(gram[:7]).shape == (7, 8)
    prefit = lw.TunedThresholdClassifier(model.estimator_, cv="prefit").fit(gram[:50], Y[:50])
    assert prefit.predict(gram[:7]).shape == (7, 8)


def test_folds_may_be_marked_or_numbered(rows):
    X, Y, *_ = rows
    part = np.arange(Y.shape[0]) % 3
    marked = lw.TunedThresholdClassifier(
        lw.MaxMarginClassifier(), cv=[(part != k, part == k) for k in range(3)]
    )
    numbered = lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), cv=PredefinedSplit(part))
    np.testing.assert_array_equal(marked.fit(X, Y).thresholds_, numbered.fit(X, Y).thresholds_)


class _GoesOn(lw.MaxMarginClassifier):
    """A classifier whose fit to all rows can start from the model of a part of them."""

    def _fit_from(self, part, kept_rows, X, y, **fit_params):
        assert len(kept_rows) < X.shape[0]
        assert part.n_features_in_ == X.shape[1]
        self.started_from_ = part, kept_rows, sorted(fit_params)
        return self.fit(X, y, **fit_params)


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("wrap", [lw.TunedThresholdClassifier, lw.CalibratedLabelClassifier])
def test_the_second_fit_starts_from_the_first(wrap, cv, rows):
    X, Y = rows[:2]
    inner = _GoesOn(tol=1e-3 if cv is None else 1e-6)
    wrapped = wrap(inner, cv=cv, validation_fraction=0.2)
    model = wrapped.fit(X, Y.toarray(), sample_weight=np.ones(X.shape[0]))
    part, kept, fit_params = model.estimator_.started_from_
    share = 0.8 if cv is None else 2 / 3
    assert len(kept) == pytest.approx(share * X.shape[0], abs=1)
    assert fit_params == ["sample_weight"]
    assert not hasattr(part, "started_from_")
    again = inner._for_a_part().fit(X[kept], Y[kept].toarray(), sample_weight=np.ones(len(kept)))
    # folds start from one another, and agree within their tolerance
    atol = 0 if cv is None else 5e-3
    np.testing.assert_allclose(part.decision_function(X), again.decision_function(X), rtol=0, atol=atol)


def test_labels_of_a_fitted_classifier_are_matched_by_name():
    X = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(X[:, :2] > 0, columns=["a", "b"]).astype(int)
    inner = lw.MaxMarginClassifier().fit(X, frame)
    with pytest.raises(ValueError, match="other labels than the fitted estimator, or in another order"):
        lw.TunedThresholdClassifier(inner, cv="prefit").fit(X, frame[["b", "a"]])
    by_name, by_place = (
        lw.TunedThresholdClassifier(inner, cv="prefit").fit(X, y) for y in (frame, frame.to_numpy())
    )
    np.testing.assert_array_equal(by_name.predict(X), by_place.predict(X))


def test_tags_that_a_fitted_classifier_does_not_know_do_not_count():
    X = np.random.default_rng(0).normal(size=(60, 3))
    tags = [[name for name, score in zip("abc", row, strict=True) if score > 0] for row in X]
    inner = lw.MaxMarginClassifier().fit(X, tags)
    others = [["d" if tag == "b" else tag for tag in row] for row in tags]
    model = lw.TunedThresholdClassifier(inner, cv="prefit").fit(X, others)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert {tag for row in model.predict(X) for tag in row} <= {"a", "b", "c"}


@pytest.mark.parametrize("classes", [["neg", "pos"], [1, 2], [0, 1, 2]])
def test_classes_of_a_fitted_classifier_are_matched_by_name(classes):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(90, 3)), np.array(classes)[random.integers(0, len(classes), 90)]
    inner = LogisticRegression().fit(X, y)
    expected = lw.CalibratedLabelClassifier(inner, cv="prefit").fit(X, y).predict(X)
    same = [y[:, None]] if y.dtype.kind == "U" else [y[:, None], y.astype(float)]
    for one in same if len(classes) > 2 else same[1:]:
        model = lw.CalibratedLabelClassifier(inner, cv="prefit").fit(X, one)
        np.testing.assert_array_equal(model.predict(X), expected)
    model = lw.CalibratedLabelClassifier(inner, cv="prefit").fit(X[y == y[0]], y[y == y[0]])
    assert model.classes_.tolist() == classes
    strange = np.char.add(y, "s") if y.dtype.kind == "U" else y + 1
    with pytest.raises(ValueError, match="which the fitted estimator lacks"):
        lw.CalibratedLabelClassifier(inner, cv="prefit").fit(X, strange)


class Watch:
    """Record every task that ends, as the path of names that leads to it; includes inner estimators."""

    max_propagation_depth = None

    def __init__(self):
        self.paths, self.set_up, self.torn_down, self.most = [], 0, 0, None

    def setup(self, estimator, context):
        self.set_up += 1

    def on_fit_task_begin(self, estimator, context):
        if context.parent is None:
            self.most = context.max_subtasks

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.paths.append((type(estimator).__name__, context.task_name))
        self.last = fitted_estimator

    def teardown(self, estimator, context):
        self.torn_down += 1


@pytest.mark.parametrize(
    ("wrap", "fits"),
    [
        (TunedThresholdClassifier, 6),
        (lambda inner: TunedThresholdClassifier(inner, validation_fraction=0.2), 2),
        (lambda inner: CalibratedLabelClassifier(inner, cv=3), 4),
        (lambda inner: ConformalLabelClassifier(inner, level=0.3), 1),
    ],
)
def test_callbacks_see_the_fits_of_wrapper_and_inside(wrap, fits, rows):
    X, Y, X_test, _ = rows
    watch, inner = Watch(), MaxMarginClassifier(tol=1e-2)
    model = wrap(inner).set_callbacks(watch).fit(X, Y)
    assert (watch.set_up, watch.torn_down, watch.most) == (1, 1, fits)
    ended = [name for kind, name in watch.paths if kind == "MaxMarginClassifier" and name == "fit"]
    assert len(ended) == fits
    assert ("MaxMarginClassifier", "duality gap") in watch.paths
    assert watch.paths[-1] == (type(model).__name__, "fit")
    np.testing.assert_array_equal(watch.last.predict(X_test).toarray(), model.predict(X_test).toarray())
    np.testing.assert_array_equal(
        wrap(inner).fit(X, Y).decision_function(X_test), model.decision_function(X_test)
    )
    assert not hasattr(model.estimator_, "_skl_callbacks")


def test_an_estimator_without_callbacks_is_warned_of(rows):
    X, Y, *_ = rows
    model = TunedThresholdClassifier(OneVsRestClassifier(LogisticRegression()), cv=2).set_callbacks(Watch())
    with pytest.warns(UserWarning, match="does not support callbacks"):
        model.fit(X, Y)


def test_a_fitted_estimator_is_one_task(rows):
    X, Y, *_ = rows
    watch = Watch()
    TunedThresholdClassifier(MaxMarginClassifier().fit(X, Y), cv="prefit").set_callbacks(watch).fit(X, Y)
    assert watch.paths == [("TunedThresholdClassifier", "fit")]
    assert ProgressBar().max_propagation_depth == 1
