"""A classifier with label texts: priors by texts, labels without rows, labels added later."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import softmax

import labelweave as lw
from labelweave import LabelText, LabelTextClassifier, TableModel, load

RNG = np.random.default_rng(5)
TOPICS = RNG.normal(size=(6, 8))  # of labels
WORDS = np.vstack([TOPICS + 0.3 * RNG.normal(size=TOPICS.shape) for _ in range(5)])
FEATURES = [f"word:w{number}" for number in range(len(WORDS))]
NAMES = [f"l{number}" for number in range(6)]
VECTORS = {f"w{n}": row for n, row in enumerate(WORDS)} | dict(zip(NAMES, TOPICS, strict=True))


def embedding(texts):
    return [np.mean([VECTORS.get(word, np.zeros(8)) for word in text.split()], axis=0) for text in texts]


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 6)) < 0.3
    chances = np.tile(truth, 5) * 2.0 + 0.3
    return sp.csr_array(rng.poisson(chances).astype(float)), truth.astype(int)


X, Y = _rows(60)
X_TEST, Y_TEST = _rows(150, 1)


def _model(estimator=None, **more):
    settings = {"embedding": embedding, "feature_names": FEATURES} | more
    return LabelTextClassifier(estimator, **settings)


def _auc(model, label):
    column = np.asarray(model.label_names_).tolist().index(label)
    return lw.metrics.average_auc(Y_TEST[:, [int(label[1:])]], model.decision_function(X_TEST)[:, [column]])


KINDS = {
    "usual": None,
    "logistic of a kernel": lw.KernelLogisticClassifier(hyperparameters="fixed"),
    "margins": lw.MaxMarginClassifier(),
    "margins, thresholds": lw.MaxMarginClassifier(threshold=-0.1),
    "low rank": lw.LowRankClassifier(4, alpha=3.0),
    "low rank, logistic": lw.LowRankClassifier(4, "log_loss", penalty="ridge"),
    "low rank of a kernel": lw.LowRankClassifier(4, "squared_hinge", kernel="rbf"),
}


@pytest.mark.parametrize("name", KINDS)
def test_labels_that_no_row_tells_of_are_predicted(name, tmp_path, reloaded):
    known = pd.DataFrame(Y[:, :5], columns=NAMES[:5])
    model = _model(KINDS[name], descriptions=NAMES).fit(X, known)
    assert model.label_names_.tolist() == NAMES
    assert model.unobserved_labels_.tolist() == [5]
    assert _auc(model, "l5") > 0.8
    assert list(model.predict(X_TEST).columns) == NAMES
    read = reloaded(model)
    np.testing.assert_array_equal(read.decision_function(X_TEST), model.decision_function(X_TEST))
    added = _model(KINDS[name]).fit(X, known)
    before = added.decision_function(X_TEST)
    assert added.add_labels({"l5": ""}) is added
    # processors may sum a product of six columns in another order than one of five
    np.testing.assert_allclose(added.decision_function(X_TEST)[:, :5], before, rtol=1e-11, atol=1e-13)
    assert added.label_names_.tolist() == NAMES
    assert _auc(added, "l5") > 0.8
    added.save(tmp_path / "n.lw")
    np.testing.assert_array_equal(
        load(tmp_path / "n.lw").decision_function(X_TEST), added.decision_function(X_TEST)
    )


def test_probabilities_of_unknown_labels_are_those_of_usual_ones():
    model = _model(descriptions=NAMES).fit(X, pd.DataFrame(Y[:, :5], columns=NAMES[:5]))
    found = model.predict_proba(X_TEST)
    assert found[:, 5].mean() == pytest.approx(0.3, abs=0.15)
    np.testing.assert_array_equal(model.predict(X_TEST).to_numpy() > 0, found > model.estimator_.thresholds_)


def test_labels_that_are_probabilities_are_not_all_there():
    sure = _model().fit(X, lw.LabelMatrix(Y, names=NAMES))
    probable = _model().fit(X, lw.LabelMatrix.from_probabilities(0.8 * Y + 0.1, NAMES))
    assert probable.prior_.level == sure.prior_.level
    assert probable.prior_.mean == sure.prior_.mean
    assert lw.metrics.average_auc(Y_TEST, probable.decision_function(X_TEST)) > 0.8


def test_labels_held_out_say_how_far_log_odds_of_unknown_labels_are_too_low():
    names = [f"m{number}" for number in range(24)]
    rng = np.random.default_rng(2)
    vectors = np.repeat(TOPICS, 4, axis=0) + 0.2 * rng.normal(size=(24, 8))
    rates = np.tile([0.9, 0.05, 0.05, 0.05], 6)  # of the rows that have the topic: few are usual
    table = (np.repeat(Y, 4, axis=1) * (rng.random((60, 24)) < rates)).astype(float)
    truth = np.repeat(Y_TEST, 4, axis=1) * rates
    hidden = np.arange(20, 24)
    table[:, hidden] = np.nan
    model = _model(descriptions=LabelText(names, vectors)).fit(X, pd.DataFrame(table, columns=names))
    raised = model.prior_.unseen
    assert 0.0 < abs(raised) < 4.0
    assert model.predict_proba(X_TEST)[:, hidden].mean() == pytest.approx(truth[:, hidden].mean(), rel=0.6)
    before = model.decision_function(X_TEST)
    known = model.estimator_.scorer_
    bare = replace(known, intercept_=known.intercept_ - raised * np.isin(np.arange(24), hidden))
    model.estimator_.scorer_ = bare
    np.testing.assert_allclose(
        before - model.decision_function(X_TEST), raised * np.isin(np.arange(24), hidden) + np.zeros((150, 1))
    )


def test_few_rows_gain_and_words_without_meaning_do_no_harm():
    few, names = slice(0, 20), pd.DataFrame(Y[:20], columns=NAMES)
    plain = _model(mean=0.0, covariance="none").fit(X[few], names)
    both = _model().fit(X[few], names)
    auc = {m: lw.metrics.average_auc(Y_TEST, m.decision_function(X_TEST)) for m in (plain, both)}
    assert auc[both] > auc[plain] + 0.02
    assert both.prior_.mean > 0.2
    shuffled = dict(zip(NAMES, np.roll(TOPICS, 1, axis=0), strict=True))
    wrong = LabelText(NAMES, np.array([shuffled[name] for name in NAMES]))
    misled = _model(descriptions=wrong).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert misled.prior_.mean == 0.0


def test_classes_seen_and_unseen_together(reloaded):
    places = np.array([np.flatnonzero(row)[0] if row.any() else 0 for row in Y])
    one = np.eye(6, dtype=int)[places]
    rows = sp.csr_array(np.random.default_rng(0).poisson(np.tile(one, 5) * 3.0 + 0.2).astype(float))
    seen = places < 5
    model = _model(descriptions=NAMES).fit(rows[seen], np.array(NAMES)[places[seen]])
    assert model.classes_.tolist() == NAMES
    assert np.mean(model.predict(rows[seen]) == np.array(NAMES)[places[seen]]) > 0.9
    if (~seen).any():
        assert np.mean(model.predict(rows[~seen]) == "l5") > 0.5
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert (reloaded(model).predict(rows) == model.predict(rows)).all()
    model.add_labels(["w3"])
    assert model.predict_proba(rows).shape[1] == 7


def test_two_classes_are_one_score_to_which_no_label_is_added():
    y = np.where(Y[:, 0] > Y[:, 1], "l0", "l1")
    with pytest.raises(ValueError, match="a single score for its two classes"):
        _model().fit(X, y).add_labels(["l2"])
    wide = _model(descriptions=NAMES[:3]).fit(X, y)
    assert wide.classes_.tolist() == NAMES[:3]


def test_a_taxonomy_is_tried_beside_the_texts():
    tree = {"r": NAMES[:3], "s": NAMES[3:]}
    model = _model(taxonomy=tree).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert model.prior_.tree_share in (0.0, 0.5, 1.0)
    mixed = lw.decisions.text_prior.TextPrior(share=0.8, tree_share=0.5).covariance(
        model.text_, model.taxonomy_
    )
    np.testing.assert_allclose(mixed.diagonal(), 1.0)
    low = _model(lw.LowRankClassifier(3, loss="log_loss")).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert low.prior_.mean > 0.0
    assert low.estimator_.label_mean_ is not None


def test_columns_of_texts_go_through_a_table_model():
    frame = pd.DataFrame({"text": [" ".join(f"w{w}" for w in X[[row]].indices) for row in range(60)]})
    model = TableModel(LabelTextClassifier(embedding=embedding), text="text")
    model.fit(frame, pd.DataFrame(Y, columns=NAMES))
    assert model.classifier_.prior_.mean > 0


def test_wrappers_around_it_and_weights_and_odd_sizes():
    names = pd.DataFrame(Y, columns=NAMES)
    tuned = lw.TunedThresholdClassifier(_model(), cv=2).fit(X, names)
    assert tuned.predict(X_TEST).shape == (150, 6)
    weights = np.r_[np.ones(30), np.zeros(30)]
    some = _model().fit(X, names, sample_weight=weights)
    half = _model().fit(X[:30], names[:30])
    assert some.prior_ == half.prior_
    assert _model().fit(X[:1], names[:1]).predict(X_TEST).shape == (150, 6)
    assert LabelTextClassifier(embedding=embedding).fit(X, names).text_scores_ is None  # no words


def test_a_class_of_one_row_is_not_held_out_alone():
    y = np.array(["l0"] * 23 + ["l1"])
    for seed in range(4):
        model = _model(random_state=seed).fit(X[:24], y)
        assert set(model.predict(X_TEST)) <= {"l0", "l1"}


def test_probabilities_of_classes_that_all_underflow_are_compared():
    y = np.array(NAMES)[Y.argmax(axis=1)]
    model = _model().fit(X, y)
    usual = model.predict_proba(X_TEST)
    each = model.estimator_.predict_proba(X_TEST)
    np.testing.assert_array_equal(usual, each / each.sum(axis=1, keepdims=True))
    scorer = model.estimator_.scorer_
    model.estimator_.scorer_ = replace(scorer, intercept_=scorer.intercept_ - 2000.0)
    scores = model.decision_function(X_TEST)
    np.testing.assert_allclose(model.predict_proba(X_TEST), softmax(scores, axis=1), atol=1e-12)


@pytest.mark.parametrize("kind", [int, float, object])
def test_classes_that_are_numbers_stay_numbers(kind, reloaded):
    y = (Y[:, 0] > 0).astype(int).astype(kind)
    model = _model(descriptions=dict(enumerate(NAMES[:3]))).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.5
    predicted = model.add_labels({3: "l3"}).predict(X_TEST)
    assert set(predicted) <= {0, 1, 2, 3}
    np.testing.assert_array_equal(reloaded(model).predict(X_TEST), predicted)


def test_probable_classes_with_a_class_that_is_only_described():
    chance = np.where(Y[:, 0] > 0, 0.9, 0.2)
    y = lw.labels.ClassProbabilities(np.column_stack([chance, 1 - chance]), NAMES[:2])
    model = _model(descriptions=NAMES[:3]).fit(X, y)
    assert model.classes_.tolist() == NAMES[:3]
    assert (model.predict(X) == y.most_likely()).mean() > 0.7


def test_a_label_observed_in_rows_of_no_weight_only_is_unseen():
    weights = np.where(np.arange(60) < 10, 0.0, 1.0)
    known = pd.DataFrame(Y, columns=NAMES).astype(float)
    known.loc[10:, "l5"] = np.nan
    model = _model().fit(X, known, sample_weight=weights)
    assert model.unobserved_labels_.tolist() == [5]
    without = _model(descriptions=NAMES).fit(X, known[NAMES[:5]], sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(X_TEST), without.decision_function(X_TEST), atol=1e-6)
