"""Thresholds of our own estimators: given, or chosen on rows that are held out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import rbf_kernel

from labelweave import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LabelMatrix,
    LowRankClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    datasets,
    metrics,
)
from labelweave.estimators.held_out import count_parts, held_out_parts
from labelweave.estimators.kernel_logistic import fit as likelihood_fit
from watching import Count

RARE = np.array([0.3, 0.9, 1.2, 1.5])


def max_margin(**parameters):
    return MaxMarginClassifier(**parameters)


def kernel_max_margin(**parameters):
    return MaxMarginClassifier(kernel="rbf", **parameters)


def logistic(**parameters):
    return KernelLogisticClassifier(hyperparameters="fixed", **parameters)


def low_rank(**parameters):
    return LowRankClassifier(3, **parameters)


MODELS = pytest.mark.parametrize("make", [max_margin, kernel_max_margin, logistic, low_rank])
OURS = pytest.mark.parametrize("make", [max_margin, kernel_max_margin, logistic])


def draw(n):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 6))
    return X, (X[:, :4] + generator.normal(size=(n, 4)) > RARE).astype(int)


@pytest.fixture(scope="module")
def rows():
    return draw(300)


@pytest.fixture(scope="module")
def many_rows():
    X, Y = draw(1000)
    return (X[:600], Y[:600]), (X[600:], Y[600:])


@MODELS
@pytest.mark.parametrize(
    ("threshold", "average"),
    [("f1", "micro"), ("micro_f1", "micro"), ("macro_f1", "macro"), ("example_f1", "example")],
)
def test_chosen_thresholds_are_better_on_new_rows(make, threshold, average, many_rows):
    (X, Y), (X_new, Y_new) = many_rows
    hidden = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
    plain, tuned = (
        make(threshold=choice, validation_fraction=0.3).fit(X, hidden) for choice in ("auto", threshold)
    )
    scores = [metrics.f1_score(Y_new, model.predict(X_new), average=average) for model in (plain, tuned)]
    assert scores[1] > scores[0]
    assert len(np.unique(tuned.thresholds_)) == (1 if threshold == "f1" else 4)


@MODELS
def test_thresholds_of_labels_spoil_no_ranking(make, rows):
    X, Y = rows
    # the fit of all rows begins where that of a part ended, so the two agree as far as their tolerance says
    plain, tuned = (make(threshold=choice, tol=1e-5).fit(X, Y) for choice in ("auto", "macro_f1"))
    lowest = [logit(m.thresholds_.min()) if make is logistic else m.thresholds_.min() for m in (plain, tuned)]
    raw = [model.decision_function(X) + low for model, low in zip((plain, tuned), lowest, strict=True)]
    np.testing.assert_allclose(raw[1], raw[0], atol=2e-2)
    compared = tuned.predict_proba(X) if make is logistic else raw[1]
    np.testing.assert_array_equal(tuned.predict(X), compared > tuned.thresholds_)
    ranked, scores = tuned.predict_top(X, 4)
    np.testing.assert_array_equal(ranked, np.argsort(-tuned.decision_function(X), axis=1, kind="stable"))
    np.testing.assert_array_equal(scores, -np.sort(-tuned.decision_function(X), axis=1))


def test_thresholds_of_probabilities(rows):
    X, Y = rows
    plain, given, tuned = (logistic(threshold=choice).fit(X, Y) for choice in ("auto", 0.3, "macro_f1"))
    for model in (given, tuned):
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X), plain.predict_proba(X) > model.thresholds_)
    np.testing.assert_array_equal(given.thresholds_, 0.3)


def test_a_given_score_is_the_threshold(rows):
    X, Y = rows
    plain, given = (max_margin(threshold=choice).fit(X, Y) for choice in ("auto", -0.5))
    np.testing.assert_array_equal(given.predict(X), plain.decision_function(X) > -0.5)


@MODELS
@pytest.mark.parametrize("threshold", ["f1", "macro_f1"])
def test_two_classes_have_one_threshold(make, threshold, many_rows):
    (X, Y), (X_new, Y_new) = many_rows
    y, y_new = (np.where(table[:, 2] > 0, "yes", "no") for table in (Y, Y_new))
    plain, tuned = (make(threshold=choice).fit(X, y) for choice in ("auto", threshold))
    assert tuned.thresholds_.shape == (1,)
    np.testing.assert_array_equal(tuned.predict(X) == "yes", tuned.decision_function(X) > 0)
    f1 = [f1_score(y_new, model.predict(X_new), pos_label="yes") for model in (plain, tuned)]
    assert f1[1] > f1[0]


def test_two_classes_of_a_taxonomy_of_which_some_are_unknown(rows):
    X, Y = rows
    y = np.where(Y[:, 2] > 0, "yes", "no").astype(object)
    y[:20], y[20:30] = None, "any"
    model = logistic(threshold="f1", taxonomy={"any": ["yes", "no"]}).fit(X, y)
    assert model.thresholds_.shape == (1,)
    assert model.thresholds_[0] < 0.5
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


def label_graph(**parameters):
    return LabelGraphClassifier("none", **parameters)


@pytest.mark.parametrize("make", [max_margin, kernel_max_margin, logistic, low_rank, label_graph])
@pytest.mark.parametrize("threshold", ["f1", 0.3])
def test_more_classes_are_refused(make, threshold, rows):
    with pytest.raises(ValueError, match="one of 3 classes a row; use threshold='auto'"):
        make(threshold=threshold).fit(rows[0], np.arange(300) % 3)


@MODELS
def test_weights_count_rows(make, rows):
    """Rows of weight 0 are as good as absent, in the fit and in the choice."""
    X, Y = rows
    weights = (np.arange(300) % 3 > 0).astype(float)
    kept = weights > 0
    options = {"threshold": "macro_f1", "tol": 1e-6} | ({} if make is low_rank else {"gamma": 0.1})
    weighted = make(**options).fit(X, Y, sample_weight=weights)
    without = make(**options).fit(X[kept], Y[kept])
    np.testing.assert_allclose(weighted.thresholds_, without.thresholds_, atol=5e-3)


@pytest.mark.parametrize("make", [max_margin, logistic])
def test_kernel_matrices_that_are_given(make, rows):
    X, Y = rows
    K = rbf_kernel(X, gamma=0.1)
    # parts are fitted to a looser gap, and cuts that are all but equally good lie apart
    given = make(kernel="precomputed", threshold="macro_f1", tol=1e-6).fit(K, Y)
    own = make(kernel="rbf", gamma=0.1, threshold="macro_f1", tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(given.thresholds_, own.thresholds_, atol=2e-2)
    np.testing.assert_allclose(given.decision_function(K), own.decision_function(X), atol=5e-2)


@MODELS
def test_labels_without_positive_rows_keep_the_usual_threshold(make, rows):
    X, Y = rows
    model = make(threshold="f1").fit(X, 0 * Y)
    np.testing.assert_array_equal(model.thresholds_, make().fit(X, 0 * Y).thresholds_)


@MODELS
def test_two_rows_are_needed(make, rows):
    X, Y = rows
    with pytest.raises(ValueError, match="give more rows, or a number"):
        make(threshold="f1").fit(X[:1], Y[:1])


@OURS
@pytest.mark.parametrize(("share", "parts"), [(0.2, 1), ("auto", 5)])
def test_callbacks_see_all_fits(make, share, parts, rows):
    watch = Count()
    make(threshold="f1", tol=1e-3, validation_fraction=share).set_callbacks(watch).fit(*rows)
    assert watch.names == ["duality gap of a part"] * 30 * parts + ["duality gap"] * 30
    assert watch.expected == 30 * parts + 30


def test_learned_hyperparameters_serve_both_fits(rows, monkeypatch):
    X, Y = rows
    searches, true = [], likelihood_fit.LikelihoodFit.learn
    monkeypatch.setattr(
        likelihood_fit.LikelihoodFit, "learn", lambda *given: searches.append(None) or true(*given)
    )
    plain, tuned = (
        KernelLogisticClassifier(max_learning_iter=5, threshold=choice).fit(X[:120], Y[:120])
        for choice in ("auto", "macro_f1")
    )
    assert len(searches) == 2
    assert tuned.hyperparameters_ == plain.hyperparameters_
    np.testing.assert_allclose(tuned.predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("n_rows", "share", "parts"), [(57, "auto", 5), (3, "auto", 3), (5001, "auto", 1), (57, 0.1, 1)]
)
def test_which_rows_are_held_out(n_rows, share, parts):
    labels = LabelMatrix(np.random.default_rng(0).random((n_rows, 2)) < 0.3)
    found = held_out_parts(labels, share, 0)
    assert len(found) == count_parts(share, n_rows) == parts
    for kept, held in found:
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(n_rows))
    scored = np.concatenate([held for _, held in found])
    expected = n_rows if parts > 1 else round((0.2 if share == "auto" else share) * n_rows)
    assert len(np.unique(scored)) == len(scored) == expected


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_model_that_knows_its_training_rows_by_heart_is_warned_of(wrapped):
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(150, 400)), (generator.random((150, 5)) < 0.15).astype(int)
    model = max_margin() if wrapped else max_margin(threshold="macro_f1")
    model = TunedThresholdClassifier(model, "macro_f1") if wrapped else model
    with pytest.warns(UserWarning, match="F1 score is 1.00 on rows that the model was fitted to") as caught:
        model.fit(X, Y)
    assert caught[0].filename == __file__
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore:The micro-averaged F1 score is")
def test_thresholds_of_rare_labels_do_not_run_wild():
    """Chosen bare on a fifth, they predict a multiple of the labels that rows have."""
    data = datasets.make_text_like(700, 300, 60, labels_per_row=2.0, words_per_row=20, random_state=1)
    X, Y, truth = data.X[:400], data.Y[:400], data.Y[400:]
    bare = TunedThresholdClassifier(max_margin(), "macro_f1", pooling=0, validation_fraction=0.2).fit(X, Y)
    usual = TunedThresholdClassifier(max_margin(), "macro_f1").fit(X, Y)
    plain = max_margin().fit(X, Y)
    losses = [metrics.hamming_loss(truth, model.predict(data.X[400:])) for model in (plain, usual, bare)]
    assert losses[1] < 2 * losses[0]
    assert losses[1] < 0.7 * losses[2]
