"""AutoLabelClassifier: one call, from data of any type to a model with its expected score."""

import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import EfficiencyWarning
from sklearn.metrics import jaccard_score

import labelweave as lw
from labelweave.decisions.automatic.label_sets import KnownSets
from labelweave.decisions.automatic.members import Members
from labelweave.foundation.config import note_interrupt
from labelweave.model_files import ModelFileError
from refused import refusals
from watching import Count

QUICK = {"time_budget": 1e-3}

test_what_makes_no_sense_is_refused = refusals(__file__)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 5))
    Y = X[:, :4] + np.roll(X[:, :4], 1, axis=1) + 0.7 * random.normal(size=(150, 4)) > [0, 0.8, -0.5, 1.5]
    return X[:110], Y[:110].astype(int), X[110:], Y[110:].astype(int)


@pytest.fixture(scope="module")
def fitted(data):
    return small().fit(*data[:2])


def small(**parameters):
    return lw.AutoLabelClassifier(**{"members": ["rbf", "forest", "rbf+forest"], **QUICK} | parameters)


def test_members_are_combined_to_something_better_than_chance(data, fitted):
    X_test, Y_test = data[2:]
    assert lw.metrics.f1_score(Y_test, fitted.predict(X_test)) > 0.7
    assert [member["name"] for member in fitted.members_] == fitted.plan_["members"]
    # weights have the least log loss, not the least of this loss
    assert fitted.oof_loss_ < 1.02 * min(member["oof_loss"] for member in fitted.members_)
    assert sum(member["weight"] > 0 for member in fitted.members_) == len(fitted.scorer_.members)
    assert fitted.status_ == "complete"


def test_it_says_what_it_is_worth(data, fitted):
    _, _, X_test, Y_test = data
    found = lw.metrics.f1_score(Y_test, fitted.predict(X_test))
    assert 0 < fitted.oof_standard_error_ < 0.1
    assert abs(found - fitted.oof_score_) < 3 * np.hypot(fitted.oof_standard_error_, 0.04)


def test_labels_without_reason_are_out_of_fold_at_chance():
    random = np.random.default_rng(1)
    X, Y = random.normal(size=(120, 4)), (random.random((120, 3)) < 0.3).astype(int)
    model = small().fit(X, Y)
    assert model.oof_loss_ > 0.95
    at_random = 2 * 0.3 / 1.3  # all labels predicted
    assert model.oof_score_ < at_random + 0.1


def test_probabilities_thresholds_and_decisions_are_on_one_scale(data, fitted):
    X = data[2]
    probabilities, scores = fitted.predict_proba(X), fitted.decision_function(X)
    assert_array_equal(fitted.predict(X), (probabilities > fitted.thresholds_).astype(int))
    lowest = fitted.thresholds_.min()
    assert_allclose(
        scores, np.log(probabilities / (1 - probabilities)) - np.log(lowest / (1 - lowest)), atol=1e-9
    )


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s["fitted"].__setitem__("thresholds_", np.zeros(4)),
        lambda s: s["fitted"].__setitem__("thresholds_", np.full(3, 0.5)),
        lambda s: s["fitted"].__setitem__("scorer_", s["fitted"]["scorer_"].members[0]),
        lambda s: s["fitted"].__setitem__("n_features_in_", 6),
        lambda s: s["fitted"]["plan_"].__setitem__("trees", -1),
        lambda s: s["fitted"]["members_"][0].pop("words"),
        lambda s: s["parameters"].__setitem__("metric", "accuracy"),
        lambda s: s["fitted"].__setitem__("known_sets_", KnownSets(np.eye(4), np.zeros(4))),
        lambda s: s["fitted"].pop("thresholds_"),
    ],
)
def test_edited_states_are_refused(fitted, edit):
    state = fitted.to_state()
    state["fitted"]["plan_"] = dict(state["fitted"]["plan_"])
    state["fitted"]["members_"] = [dict(member) for member in state["fitted"]["members_"]]
    edit(state)
    with pytest.raises(ModelFileError):
        lw.AutoLabelClassifier.from_state(state)


def test_another_metric_needs_no_fit(data, fitted, reloaded):
    X, Y, X_test, _ = data
    other = fitted.optimize_for("hamming_loss")
    assert clone(other).metric == "hamming_loss"
    assert fitted.metric == "micro_f1"
    assert_array_equal(other.predict_proba(X_test), fitted.predict_proba(X_test))
    refitted = small(metric="hamming_loss").fit(X, Y)
    assert_array_equal(other.thresholds_, refitted.thresholds_)
    assert other.oof_score_ == refitted.oof_score_
    with pytest.raises(ValueError, match="metric is 'auc'; it must be"):
        fitted.optimize_for("auc")
    again = reloaded(fitted)
    assert (again.members_, again.plan_) == (fitted.members_, fitted.plan_)
    with pytest.raises(ValueError, match="has no out-of-fold scores"):
        again.optimize_for("macro_f1")


def test_the_most_probable_known_set_is_predicted(data, fitted, reloaded):
    _, Y, X_test, Y_test = data
    model = fitted.optimize_for("subset_accuracy")
    assert not hasattr(model, "thresholds_")
    found = model.predict(X_test)
    known = {tuple(row) for row in Y}
    assert {tuple(row) for row in found} <= known
    halves = (fitted.predict_proba(X_test) > 0.5).astype(int)
    assert lw.metrics.subset_accuracy(Y_test, found) >= lw.metrics.subset_accuracy(Y_test, halves) - 0.05
    odds = np.log(model.predict_proba(X_test) / (1 - model.predict_proba(X_test)))
    assert_allclose(model.decision_function(X_test), odds, atol=1e-9)
    sets = model.known_sets_
    best = max(range(len(sets.sets)), key=lambda k: odds[0] @ sets.sets[k] + sets.bonus[k])
    assert_array_equal(found[0], sets.sets[best])
    assert_array_equal(reloaded(model).predict(X_test), found)


def test_labels_above_a_half_are_predicted_where_few_rows_are_known_in_full(data):
    X, Y, X_test, _ = data
    partly = Y.astype(float)
    partly[np.arange(len(Y)), np.arange(len(Y)) % 4] = np.nan
    model = small(metric="subset_accuracy", members=["rbf"]).fit(X, partly)
    assert_array_equal(model.thresholds_, np.full(4, 0.5))
    assert_array_equal(model.predict(X_test), (model.predict_proba(X_test) > 0.5).astype(int))
    assert model.oof_score_ > 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_out_of_fold_accuracy_of_classes_that_are_probabilities_is_expected(data, n_classes):
    X, Y = data[:2]
    shares = np.full((len(X), n_classes), 0.55 / (n_classes - 1))
    shares[np.arange(len(X)), Y[:, 0] + (n_classes > 2) * Y[:, 1]] = 0.45
    model = small(members=["rbf"]).fit(X, lw.ClassProbabilities(shares))
    assert 0.25 < model.oof_score_ < 0.56


def test_the_jaccard_index_takes_the_better_of_two_decisions(fitted):
    model = fitted.optimize_for("jaccard")
    assert hasattr(model, "known_sets_") != hasattr(model, "thresholds_")
    out_of_fold, values = fitted._out_of_fold, []
    for metric in ("example_f1", "subset_accuracy"):
        sets, truth = out_of_fold.decide(metric)[1], out_of_fold.held.labels.to_dense()
        values.append(jaccard_score(truth, sets, average="samples", zero_division=1.0))
    assert_allclose(model.oof_score_, max(values))


def test_a_fit_that_takes_much_memory_says_so_before():
    rows = sp.csr_array((300_000, 5))
    with pytest.warns(
        EfficiencyWarning, match="rows of 100 labels takes about 4.8 GB of memory; use LowRank"
    ):
        small()._read(rows, lw.LabelMatrix.from_any(sp.eye_array(300_000, 100, format="csr")), None)


def test_missing_labels_add_nothing(data):
    X, Y, X_test, Y_test = data
    partly = Y.astype(float)
    partly[np.random.default_rng(2).random(Y.shape) < 0.3] = np.nan
    model = small().fit(X, partly)
    assert lw.metrics.f1_score(Y_test, model.predict(X_test)) > 0.65


def test_rows_of_weight_0_are_ignored(data):
    X, Y, X_test, _ = data
    weights = np.ones(len(X))
    weights[::4] = 0
    kept = weights > 0
    one = small(members=["rbf"]).fit(X, Y, weights)
    other = small(members=["rbf"]).fit(X[kept], Y[kept])
    assert_array_equal(one.decision_function(X_test), other.decision_function(X_test))


def test_missing_features_get_the_means_of_training_rows(data, reloaded):
    X, Y, X_test, _ = data
    random, weights = np.random.default_rng(3), np.ones(len(X))
    gaps, gaps_test = X.copy(), X_test.copy()
    gaps[random.random(X.shape) < 0.1] = np.nan
    gaps_test[random.random(X_test.shape) < 0.1] = np.nan
    weights[:20] = 0
    means = np.nanmean(gaps[20:], axis=0)
    model = small().fit(gaps, Y, weights)
    assert_allclose(model.feature_means_, means)
    whole = small().fit(np.where(np.isnan(gaps), means, gaps), Y, weights)
    found = model.decision_function(gaps_test)
    assert_allclose(
        found, whole.decision_function(np.where(np.isnan(gaps_test), means, gaps_test)), rtol=1e-6
    )
    assert_array_equal(reloaded(model).decision_function(gaps_test), found)
    frame = pd.DataFrame(gaps, columns=list("abcde")).convert_dtypes()
    assert_array_equal(small().fit(frame, Y, weights).feature_means_, model.feature_means_)
    never = np.column_stack([X, np.full(len(X), np.nan)])
    assert np.isfinite(small(members=["rbf"]).fit(never, Y).decision_function(never)).all()
    sparse = sp.csr_array(np.where(np.isnan(gaps), np.nan, np.maximum(gaps, 0)))
    assert np.isfinite(small(members=["rbf"]).fit(sparse, Y).decision_function(sparse)).all()
    assert small(members=["rbf"]).fit(sp.csr_array(np.abs(X)), Y).feature_means_ is None
    tuned = lw.TunedThresholdClassifier(small(members=["rbf"]), "macro_f1", cv=2).fit(gaps, Y)
    assert tuned.predict(gaps_test).shape == (40, 4)


def test_an_interrupt_keeps_the_members_there_are(data, monkeypatch):
    X, Y, X_test, _ = data
    whole = small(members=["rbf"]).fit(X, Y)
    make = Members.make

    def make_or_interrupt(self, name):
        if name == "forest":
            raise KeyboardInterrupt
        return make(self, name)

    monkeypatch.setattr(Members, "make", make_or_interrupt)
    model = small()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.status_ == "interrupted"
    assert_array_equal(model.decision_function(X_test), whole.decision_function(X_test))
    with pytest.raises(KeyboardInterrupt):
        small(members=["forest"]).fit(X, Y)


def test_the_scale_of_weights_does_not_matter(data):
    X, Y, X_test, _ = data
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    one, other = (small(members=["rbf"]).fit(X, Y, weights * scale) for scale in (1.0, 1 / weights.sum()))
    assert other.oof_loss_ == pytest.approx(one.oof_loss_)
    assert_allclose(other.predict_proba(X_test), one.predict_proba(X_test), atol=1e-8)


class Interrupted(lw.MaxMarginClassifier):
    """Gets Ctrl-C in its second fit, which ends with the complete members."""

    fits = 0

    def fit(self, *given, **more):
        type(self).fits += 1
        if self.fits == 2:
            note_interrupt(KeyboardInterrupt())
        return super().fit(*given, **more)


def test_an_interrupt_that_a_member_notes_ends_the_fit(data):
    X, Y, _, _ = data
    model = small(members=["rbf", Interrupted()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert Interrupted.fits == 2
    assert model.status_ == "interrupted"
    assert [member["name"] for member in model.members_] == ["rbf"]


def test_an_interrupt_of_the_combination_comes_after_it(data, monkeypatch):
    X, Y, X_test, _ = data
    combine = lw.AutoLabelClassifier._combine

    def combine_interrupted(self, *given):
        signal.raise_signal(signal.SIGINT)
        combine(self, *given)

    whole = small(members=["rbf"]).fit(X, Y)
    monkeypatch.setattr(lw.AutoLabelClassifier, "_combine", combine_interrupted)
    model = small(members=["rbf"])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.status_ == "complete"
    assert_array_equal(model.decision_function(X_test), whole.decision_function(X_test))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "members", [["forest"], ["rbf", "rbf+forest"], ["linear"], ["rbf", "forest", "rbf+forest"]]
)
def test_callbacks_hear_of_every_step(data, members):
    steps = Count()
    small(members=members).set_callbacks(steps).fit(*data[:2])
    assert len(steps.names) == steps.expected


def test_a_callback_can_end_the_fit(data):
    model = small().set_callbacks(Count(10))
    with pytest.warns(UserWarning, match="interrupted after 1 of 3 members"):
        model.fit(*data[:2])
    assert model.status_ == "interrupted"
    assert [member["name"] for member in model.members_] == ["rbf"]


def test_a_single_row_is_refused():
    assert small().fit([[0.0], [1.0]], [[1, 0], [0, 1]]).predict([[0.0]]).shape == (1, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_an_accuracy_on_out_of_fold_rows(n_classes):
    X, y = make_classification(240, 6, n_informative=4, n_classes=n_classes, random_state=0)
    model = small(members=["rbf"]).fit(X[:120], np.array(["a", "b", "c"])[y[:120]])
    assert abs(model.score(X[120:], np.array(["a", "b", "c"])[y[120:]]) - model.oof_score_) < 0.12
    share = model.oof_score_
    assert_allclose(model.oof_standard_error_, np.sqrt(share * (1 - share) / 119))
    assert f"accuracy {share:.4f}" in model._repr_html_()


def test_it_explains_itself(data, fitted):
    from labelweave.app.facts import model_facts

    facts = model_facts(fitted)
    found = facts.to_json()["combination"]
    assert [member["name"] for member in found["members"]] == ["rbf", "forest", "rbf+forest"]
    assert found["value"] == fitted.oof_score_
    html = fitted._repr_html_()
    for words in ("member rbf+forest", "out-of-fold loss", "micro_f1", "standard error"):
        assert words in html


def test_probabilities_of_classes_that_are_all_far_away(monkeypatch):
    """No class has log-odds whose probability is above 0 in float64; the most likely class still has the
    largest.
    """
    X, Y = make_multilabel_classification(60, 5, n_classes=3, random_state=0)
    model = lw.AutoLabelClassifier(time_budget=1).fit(X, Y.argmax(axis=1))
    far = np.array([[-5000.0, -4000.0, -4000.0], [1.0, 2.0, 3.0]])
    monkeypatch.setattr(lw.AutoLabelClassifier, "_score_blocks", lambda self, X, scores: [far])
    found = model.predict_proba(X[:2])
    assert_allclose(found[0], [0, 0.5, 0.5])
    assert_allclose(found[1], expit(far[1]) / expit(far[1]).sum())
