"""Thresholds chosen on held-out rows, around each of our own estimators."""

import numpy as np
import pytest
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import rbf_kernel

import labelweave as lw
from drawn import draw_own

RARE = np.array([0.3, 0.9, 1.2, 1.5])


def max_margin(**parameters):
    return lw.MaxMarginClassifier(**parameters)


def kernel_max_margin(**parameters):
    return lw.MaxMarginClassifier(kernel="rbf", **parameters)


def logistic(**parameters):
    return lw.KernelLogisticClassifier(hyperparameters="fixed", **parameters)


def low_rank(**parameters):
    return lw.LowRankClassifier(3, **parameters)


MODELS = pytest.mark.parametrize("make", [max_margin, kernel_max_margin, logistic, low_rank])


def draw(n):
    return draw_own(n, 6, 4, above=RARE)


@pytest.fixture(scope="module")
def data():
    return draw(300)


@pytest.fixture(scope="module")
def many_rows():
    X, Y = draw(1000)
    return (X[:600], Y[:600]), (X[600:], Y[600:])


@MODELS
@pytest.mark.parametrize(
    ("objective", "scope", "average"),
    [
        ("micro_f1", "global", "micro"),
        ("micro_f1", "label", "micro"),
        ("macro_f1", "label", "macro"),
        ("example_f1", "label", "example"),
    ],
)
def test_chosen_thresholds_are_better_on_new_rows(make, objective, scope, average, many_rows):
    (X, Y), (X_new, Y_new) = many_rows
    hidden = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
    plain = make().fit(X, hidden)
    tuned = lw.TunedThresholdClassifier(make(), objective, scope=scope, validation_fraction=0.3).fit(
        X, hidden
    )
    scores = [lw.metrics.f1_score(Y_new, model.predict(X_new), average=average) for model in (plain, tuned)]
    assert scores[1] > scores[0]
    assert len(np.unique(tuned.thresholds_)) == (1 if scope == "global" else 4)


@MODELS
def test_thresholds_of_labels_spoil_no_ranking(make, data):
    X, Y = data
    # the fit of all rows starts where that of a part ended, so the two agree within their tolerance
    plain = make(tol=1e-5).fit(X, Y)
    tuned = lw.TunedThresholdClassifier(make(tol=1e-5), "macro_f1").fit(X, Y)
    raw = tuned.decision_function(X) + tuned.thresholds_.min()
    if make is logistic:
        np.testing.assert_allclose(raw, plain.predict_proba(X), atol=1e-6)
    else:
        np.testing.assert_allclose(raw, plain.decision_function(X), atol=2e-2)
    compared = tuned.predict_proba(X) if make is logistic else raw
    np.testing.assert_array_equal(tuned.predict(X), compared > tuned.thresholds_)
    ranked, scores = tuned.predict_top(X, 4)
    np.testing.assert_array_equal(ranked, np.argsort(-tuned.decision_function(X), axis=1, kind="stable"))
    np.testing.assert_array_equal(scores, -np.sort(-tuned.decision_function(X), axis=1))


@MODELS
@pytest.mark.parametrize("scope", ["global", "label"])
def test_two_classes_have_one_threshold(make, scope, many_rows):
    (X, Y), (X_new, Y_new) = many_rows
    y, y_new = (np.where(table[:, 2] > 0, "yes", "no") for table in (Y, Y_new))
    plain, tuned = make().fit(X, y), lw.TunedThresholdClassifier(make(), "macro_f1", scope=scope).fit(X, y)
    assert tuned.thresholds_.shape == (1,)
    np.testing.assert_array_equal(tuned.predict(X) == "yes", tuned.decision_function(X) > 0)
    f1 = [f1_score(y_new, model.predict(X_new), pos_label="yes") for model in (plain, tuned)]
    assert f1[1] > f1[0]


def test_two_classes_of_a_taxonomy_of_which_some_are_unknown(data):
    X, Y = data
    y = np.where(Y[:, 2] > 0, "yes", "no").astype(object)
    y[:20], y[20:30] = None, "any"
    model = lw.TunedThresholdClassifier(logistic(taxonomy={"any": ["yes", "no"]}), scope="global").fit(X, y)
    assert model.thresholds_.shape == (1,)
    assert model.thresholds_[0] < 0.5
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


def test_thresholds_of_two_classes_are_chosen_without_their_weights():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    classes = (X[:, 0] + random.normal(size=200) > 1).astype(int)
    inner = lw.LabelGraphClassifier(graph="none", class_weight={1: 8.0})
    model = lw.TunedThresholdClassifier(inner, scope="global")
    shares = [model.fit(X, y).predict(X).mean() for y in (classes, classes[:, None])]
    model.set_params(estimator__class_weight=None)
    weighted = model.fit(X, classes, sample_weight=np.where(classes, 8.0, 1.0)).predict(X).mean()
    assert max(shares) < 0.5 < weighted


@MODELS
def test_weights_count_rows(make, data):
    """Rows of weight 0 have no effect, neither in the fit nor in the choice."""
    X, Y = data
    weights = (np.arange(300) % 3 > 0).astype(float)
    kept = np.flatnonzero(weights)
    inner = make(**{"tol": 1e-6} | ({} if make is low_rank else {"gamma": 0.1}))
    whole = [(np.arange(0, 300, 2), np.arange(1, 300, 2)), (np.arange(1, 300, 2), np.arange(0, 300, 2))]
    part = [tuple(np.flatnonzero(np.isin(kept, rows)) for rows in fold) for fold in whole]
    # the best shrinkage is found on fifths of the rows, which differ if some rows are absent
    weighted = lw.TunedThresholdClassifier(inner, "macro_f1", shrinkage=50, cv=whole)
    without = lw.TunedThresholdClassifier(inner, "macro_f1", shrinkage=50, cv=part)
    weighted.fit(X, Y, sample_weight=weights)
    without.fit(X[kept], Y[kept])
    np.testing.assert_allclose(weighted.thresholds_, without.thresholds_, atol=5e-3)


@pytest.mark.parametrize("make", [max_margin, logistic])
def test_kernel_matrices_that_are_given(make, data):
    X, Y = data
    K = rbf_kernel(X, gamma=0.1)
    # parts are fitted to a looser gap, and nearly equally good thresholds may be far apart
    given = lw.TunedThresholdClassifier(make(kernel="precomputed", tol=1e-6), "macro_f1").fit(K, Y)
    own = lw.TunedThresholdClassifier(make(kernel="rbf", gamma=0.1, tol=1e-6), "macro_f1").fit(X, Y)
    np.testing.assert_allclose(given.thresholds_, own.thresholds_, atol=2e-2)
    np.testing.assert_allclose(given.decision_function(K), own.decision_function(X), atol=5e-2)


@MODELS
@pytest.mark.parametrize("scope", ["global", "label"])
def test_labels_without_positive_rows_keep_the_usual_threshold(make, scope, data):
    X, Y = data
    model = lw.TunedThresholdClassifier(make(), scope=scope).fit(X, 0 * Y)
    np.testing.assert_array_equal(model.predict(X), make().fit(X, 0 * Y).predict(X))
    assert not model.predict(X).any()


@pytest.mark.parametrize("objective", ["micro_f1", "macro_f1", "example_f1", "hamming_loss"])
@pytest.mark.parametrize("scope", ["global", "label"])
def test_probable_labels_count_as_far_as_they_are_expected(objective, scope, data):
    X, Y = data
    P = np.where(Y > 0, 0.9, 0.2)[:60]
    P[0], P[7, 1] = 0.5, np.nan
    model = lw.TunedThresholdClassifier(max_margin(), objective, scope=scope)
    model.fit(X[:60], lw.LabelMatrix.from_probabilities(P))
    assert np.isfinite(model.thresholds_).all()


def test_a_model_that_knows_its_training_rows_by_heart_is_warned_of():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(150, 400)), (generator.random((150, 5)) < 0.15).astype(int)
    model = lw.TunedThresholdClassifier(max_margin(), "macro_f1")
    with pytest.warns(UserWarning, match="F1 score is 1.00 on rows that the model was fitted to") as caught:
        model.fit(X, Y)
    assert caught[0].filename == __file__
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore:The micro-averaged F1 score is")
def test_thresholds_of_rare_labels_do_not_run_wild():
    """Chosen without shrinkage on a fifth, they predict a multiple of the labels that rows have."""
    data = lw.datasets.make_text_like(700, 300, 60, labels_per_row=2.0, words_per_row=20, random_state=1)
    X, Y, truth = data.X[:400], data.Y[:400], data.Y[400:]
    bare = lw.TunedThresholdClassifier(max_margin(), "macro_f1", shrinkage=0, validation_fraction=0.2).fit(
        X, Y
    )
    usual = lw.TunedThresholdClassifier(max_margin(), "macro_f1").fit(X, Y)
    plain = max_margin().fit(X, Y)
    losses = [lw.metrics.hamming_loss(truth, model.predict(data.X[400:])) for model in (plain, usual, bare)]
    assert losses[1] < 2 * losses[0]
    assert losses[1] < 0.7 * losses[2]
