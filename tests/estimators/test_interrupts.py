"""Ctrl-C in a fit ends whatever called it, and what is said of interrupts holds where it is said."""

import signal

import numpy as np
import pytest
from attacks.small_fits import EVERY, data_of, mark
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.estimators.journal import Journal
from labelweave.solvers.frame import Solver
from small_models import press


@pytest.fixture
def pressed(monkeypatch):
    """Press Ctrl-C in the third round of any solver; gives the rounds."""
    rounds, signals, solve = [], [], Solver.solve

    def watched(self, problem, state=None, on_check=None):
        def check(record, state):
            rounds.append(record)
            if len(rounds) >= 3 and not signals:  # solvers in two threads may go from two rounds to four
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
