"""Ctrl-C while a baseline is fitted: the model so far where there is one."""

import itertools
import signal
import threading
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import labelweave
from drawn import draw_labels
from labelweave import config_context
from labelweave._loops import ranking_steps
from labelweave.baselines import (
    CPLST,
    PLST,
    WSABIE,
    BinaryRelevance,
    binary_relevance,
    label_space,
    wsabie,
)
from watching import Count

LOSSES = ("squared", "logistic", "squared_hinge")


_data = partial(draw_labels, n_labels=6, missing=0.0)


def _interrupt(monkeypatch, place, name, call):
    """Send SIGINT in some call of a function, as Ctrl-C would."""
    original, calls = getattr(place, name), []

    def interrupted(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments, **options)

    monkeypatch.setattr(place, name, interrupted)
    return calls


@pytest.mark.parametrize("loss", LOSSES)
def test_binary_relevance_keeps_the_labels_that_were_fitted(loss, monkeypatch, tmp_path):
    X, Y = _data(missing=0.2)  # labels that were observed in other rows are fitted one by one
    whole = BinaryRelevance(loss).fit(X, Y)
    assert (whole.status_, whole.labels_fitted_) == ("converged", 6)
    _interrupt(monkeypatch, binary_relevance, "make_ridge" if loss == "squared" else "_fit_label", 4)
    model = BinaryRelevance(loss)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 3 of 6 labels; the weights of the others"):
        model.fit(X, Y)
    assert (model.status_, model.labels_fitted_, model.converged_) == ("interrupted", 3, False)
    is_fitted = model.coef_.any(axis=1)
    assert is_fitted.sum() == 3
    np.testing.assert_array_equal(model.coef_[is_fitted], whole.coef_[is_fitted])
    assert not model.predict(X)[:, ~is_fitted].any()
    model.save(tmp_path / "m.lw")
    assert labelweave.load(tmp_path / "m.lw").labels_fitted_ == 3


def test_binary_relevance_in_threads_keeps_what_is_done(monkeypatch):
    X, Y = _data(n_labels=40)
    original, calls, served = binary_relevance._fit_label, itertools.count(1), threading.Event()

    def interrupted(*arguments):
        number = next(calls)
        if number == 12:  # the other thread has one in hand: ten are done
            signal.raise_signal(signal.SIGINT)  # which the main thread is to serve
        if number >= 12:
            served.wait(2.0)
            served.set()
        return original(*arguments)

    monkeypatch.setattr(binary_relevance, "_fit_label", interrupted)
    model = BinaryRelevance("logistic", n_jobs=2)
    with pytest.raises(KeyboardInterrupt, match="interrupted after"):
        model.fit(X, Y)
    assert 10 <= model.labels_fitted_ < 40
    assert model.coef_.any(axis=1).sum() == model.labels_fitted_


@pytest.mark.parametrize("loss", LOSSES)
def test_binary_relevance_without_any_label_is_interrupted(loss, monkeypatch):
    _interrupt(monkeypatch, binary_relevance, "make_ridge" if loss == "squared" else "_fit_label", 1)
    with pytest.raises(KeyboardInterrupt):
        BinaryRelevance(loss).fit(*_data())


def test_wsabie_keeps_the_vectors_so_far(monkeypatch, tmp_path):
    X, Y = _data()
    monkeypatch.setattr(wsabie, "_VISITS_AT_ONCE", 20)
    calls = _interrupt(monkeypatch, ranking_steps, "rank_pairs", 16)  # the sixth part of the second epoch
    message = "interrupted after 1 of 10 epochs"
    with config_context(on_interrupt="keep"), pytest.warns(ConvergenceWarning, match=message) as caught:
        model = WSABIE(rank=3).fit(X, Y)
    assert caught[0].filename == __file__
    assert len(calls) == 16
    assert model.status_ == "interrupted"
    assert len(model.trace_) == 1
    assert model.threshold_ != 0
    whole = WSABIE(rank=3).fit(X, Y)
    assert whole.status_ == "complete"
    assert not np.array_equal(model.feature_factors_, whole.feature_factors_)
    model.save(tmp_path / "m.lw")
    np.testing.assert_array_equal(labelweave.load(tmp_path / "m.lw").predict(X), model.predict(X))


def test_wsabie_without_any_visit_is_interrupted(monkeypatch):
    _interrupt(monkeypatch, ranking_steps, "rank_pairs", 1)
    with pytest.raises(KeyboardInterrupt):
        WSABIE(rank=3).fit(*_data())


def test_the_number_of_visits_at_once_changes_no_bit(monkeypatch):
    X, Y = _data()
    whole = WSABIE(rank=3).fit(X, Y)
    monkeypatch.setattr(wsabie, "_VISITS_AT_ONCE", 7)
    parts = WSABIE(rank=3).fit(X, Y)
    np.testing.assert_array_equal(parts.feature_factors_, whole.feature_factors_)
    np.testing.assert_allclose([record.primal for record in parts.trace_],
                               [record.primal for record in whole.trace_])  # fmt: skip


def test_a_callback_ends_wsabie():

    with pytest.warns(ConvergenceWarning, match="interrupted after 3 of 10 epochs"):
        WSABIE(rank=3).set_callbacks(Count(3)).fit(*_data())


@pytest.mark.parametrize("kind", [PLST, CPLST])
@pytest.mark.parametrize("name", ["make_ridge", "leading_directions"])
def test_closed_forms_have_no_model_so_far(kind, name, monkeypatch):
    X, Y = _data()
    _interrupt(monkeypatch, label_space, name, 1)
    with pytest.raises(KeyboardInterrupt):
        kind(rank=2).fit(sp.csr_array(X), Y)
