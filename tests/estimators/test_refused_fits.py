"""A refused or interrupted fit leaves the model unchanged; a fitted model keeps its input."""

import signal

import numpy as np
import pandas as pd
import pytest
from attacks.small_fits import EVERY, data_of, grouped, mark
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.estimators.journal import Journal
from labelweave.problems.losses.entry_losses import LogisticEntryLoss
from labelweave.solvers.frame import Solver
from refused import refusals
from small_models import press, within

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
Y = (X @ RANDOM.normal(size=(3, 4)) > 0).astype(int)
TWO = np.where(X[:, 0] > 0, "p", "n")

test_what_makes_no_sense_is_refused = refusals(__file__)


def logistic(**parameters):
    return lw.KernelLogisticClassifier(hyperparameters="fixed", gamma=0.3, **parameters)


class Scaled(LogisticEntryLoss):
    """The logistic loss of multiplied scores."""

    times = 1.0

    def log_odds(self, scores):
        return self.times * super().log_odds(scores)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_ends_in_a_warning_is_kept():
    model = lw.MaxMarginClassifier(max_iter=1, tol=1e-9)
    with pytest.raises(ConvergenceWarning):
        model.fit(X, Y)
    assert model.predict(X).shape == Y.shape


def test_a_fitted_model_keeps_its_loss():
    loss = Scaled()
    model = logistic(loss=loss).fit(X, Y)
    expected = model.predict_proba(X)
    loss.times = 3.0
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    np.testing.assert_array_equal(model.set_params(loss=Scaled()).predict_proba(X), expected)


@pytest.mark.parametrize("model", [logistic(), lw.MaxMarginClassifier(kernel="rbf"), lw.LowRankClassifier(2)])
def test_a_fitted_model_keeps_its_mean(model):
    mean = RANDOM.normal(size=(4, 3))
    expected = model.set_params(label_mean=mean).fit(X, Y).decision_function(X)
    mean *= 0
    np.testing.assert_array_equal(model.decision_function(X), expected)


@pytest.mark.parametrize("model", [logistic(), lw.MaxMarginClassifier(1e-3), lw.LowRankClassifier(2)])
def test_features_of_a_mean_go_by_name(model):
    rows = pd.DataFrame(X, columns=list("uvw"))
    mean = pd.DataFrame(RANDOM.normal(size=(4, 3)), columns=list("uvw"))
    expected = model.set_params(label_mean=mean).fit(rows, Y).decision_function(rows)
    found = model.set_params(label_mean=mean[list("wuv")]).fit(rows, Y).decision_function(rows)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="'z', which is not a feature, and lacks the feature 'w'"):
        model.set_params(label_mean=mean.rename(columns={"w": "z"})).fit(rows, Y)


def test_a_factor_of_a_kernel_needs_no_budget_for_the_weights_of_its_columns():
    many = np.random.default_rng(0).random((60, 300)) < 0.05
    model = lw.MaxMarginClassifier(kernel="rbf", kernel_rank=20, solver="coordinate_ascent", tol=0.1)
    large = clone(model).fit(X, many)
    small = within(0.04, model, X, many)
    np.testing.assert_allclose(small.decision_function(X), large.decision_function(X), atol=0.2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EfficiencyWarning")
def test_a_warm_start_from_a_c_that_is_far_away():
    model = lw.MaxMarginClassifier(1e-250, warm_start=True).fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        far = model.set_params(C=1e80, max_iter=100).fit(X, Y)
    assert np.isfinite(far.decision_function(X)).all()


@pytest.mark.parametrize(
    "kind", [lw.KernelLogisticClassifier, lw.MaxMarginClassifier, lw.LabelGraphClassifier]
)
@pytest.mark.parametrize("names", [["n"], ["n", "p"]])
def test_what_names_the_first_of_two_classes_is_refused(kind, names):
    words = "names the class 'n', but two classes have one score, that of 'p'"
    if kind is not lw.KernelLogisticClassifier:
        with pytest.raises(ValueError, match="false_negative_cost " + words):
            kind(false_negative_cost=pd.Series(9.0, index=names)).fit(X, TWO)
        one = kind(false_negative_cost=pd.Series([9.0])).fit(X, (X[:, 0] > 0) * 1)
        assert one.classes_.tolist() == [0, 1]
    if kind is not lw.LabelGraphClassifier:
        with pytest.raises(ValueError, match="label_mean " + words):
            kind(label_mean=pd.DataFrame(np.ones((len(names), 3)), index=names)).fit(X, TWO)


def test_folds_that_hold_out_one_row_of_many():
    rows = RANDOM.normal(size=(3100, 2))
    folds = [(np.arange(1, len(rows)), [0])]
    model = grouped(lw.KernelLogisticClassifier, kernel_rank=10, tol=1e-2, cv=folds, max_learning_iter=2)
    assert np.isfinite(model.fit(rows, rows[:, 0] > 0).cross_validation_loss_)


@pytest.mark.parametrize(
    ("values", "dtype", "classes"),
    [
        (2**53 + np.arange(60) % 3, "Int64", [2**53, 2**53 + 1, 2**53 + 2]),
        ([10, 20, None] * 20, "Int64", [10, 20]),
        ([True, False] * 30, "boolean", [False, True]),
    ],
)
def test_columns_that_may_have_gaps_keep_their_numbers(values, dtype, classes):
    found = logistic().fit(X, pd.Series(values, dtype=dtype)).classes_
    assert found.tolist() == classes
    assert found.dtype.kind == ("b" if dtype == "boolean" else "i")


@pytest.fixture
def pressed(monkeypatch):
    """Send Ctrl-C in the third round of any solver; yields the rounds."""
    rounds, signals, solve = [], [], Solver.solve

    def watched(self, problem, state=None, on_check=None):
        def check(record, state):
            rounds.append(record)
            if len(rounds) >= 3 and not signals:  # solvers in two threads may run up to four rounds
                signals.append(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
            return on_check is not None and on_check(record, state)

        return solve(self, problem, state, check)

    monkeypatch.setattr(Solver, "solve", watched)
    return rounds


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("n_jobs", [None, 1])
def test_one_interrupt_ends_a_search(pressed, keep, n_jobs):
    X, Y = data_of("tuned")
    search = GridSearchCV(lw.MaxMarginClassifier(tol=1e-9), {"C": [0.1, 1.0]}, cv=2, n_jobs=n_jobs)
    choice = "keep" if keep else "raise"
    with lw.config_context(on_interrupt=choice), pytest.raises(KeyboardInterrupt):
        search.fit(X, Y == 1)
    assert len(pressed) <= 4  # and the last measurement
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize(
    "call",
    [
        lambda X, Y: cross_val_score(lw.MaxMarginClassifier(tol=1e-9), X, Y, cv=2),
        lambda X, Y: make_pipeline(StandardScaler(), lw.MaxMarginClassifier(tol=1e-9)).fit(X, Y),
        lambda X, Y: lw.TunedThresholdClassifier(lw.MaxMarginClassifier(tol=1e-9), cv=2).fit(X, Y),
        lambda X, Y: lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(tol=1e-9), cv=2).fit(X, Y),
        lambda X, Y: lw.compare(
            {"a": lw.MaxMarginClassifier(tol=1e-9), "b": lw.LowRankClassifier(2)}, X, Y, 2
        ),
        lambda X, Y: lw.ZeroShotClassifier(signatures=np.eye(5, dtype=int), cv=2).fit(X, Y),
    ],
    ids=["cross_val_score", "pipeline", "tuned", "calibrated", "compare", "zero-shot"],
)
def test_one_interrupt_ends_all_that_calls_fits(pressed, call):
    X, Y = data_of("tuned")
    Y = np.eye(5, dtype=int)[np.arange(len(X)) % 5] if "signatures" in call.__code__.co_names else Y == 1
    with pytest.raises(KeyboardInterrupt):
        call(X, Y)
    assert len(pressed) <= 4


def test_what_is_said_before_a_block_holds_after_it():
    X, Y = data_of("low rank")
    try:
        lw.set_config(on_interrupt="keep")
        with lw.config_context(on_interrupt="raise"), pytest.raises(KeyboardInterrupt):
            lw.LowRankClassifier(3).set_callbacks(press(2)).fit(X, Y)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            lw.LowRankClassifier(3).set_callbacks(press(2)).fit(X, Y)
    finally:
        lw.set_config(on_interrupt="raise")
    with pytest.raises(ValueError, match="on_interrupt is 'no'; pass 'raise' or 'keep'"):
        lw.set_config(on_interrupt="no")


@pytest.mark.parametrize(
    "name", ["margins, coordinates", "margins, rbf", "logistic, fixed", "low rank", "tree", "graph, given",
             "tuned, by label"],
)  # fmt: skip
def test_an_interrupt_before_there_is_a_model_leaves_what_was_before(name, monkeypatch):
    X, Y = data_of(name)
    model, again = clone(EVERY[name]), clone(EVERY[name]).fit(X, Y)
    expected = mark(again, X)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "run", interrupted)
    for one in (model, again):
        with pytest.raises(KeyboardInterrupt):
            one.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert mark(again, X) == expected
