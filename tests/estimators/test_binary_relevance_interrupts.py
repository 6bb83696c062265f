"""Ctrl-C while a model a label is fitted: those that were fitted stay."""

import itertools
import signal
import threading

import numpy as np
import pytest

import labelweave
from labelweave import BinaryRelevance
from labelweave.estimators.binary_relevance import fit

LOSSES = ("squared", "logistic", "squared_hinge")


def _data(n=60, d=5, n_labels=6, missing=0.0):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    Y = (X @ random.normal(size=(d, n_labels)) + random.normal(size=(n, n_labels)) > 0.3).astype(float)
    Y[random.random(Y.shape) < missing] = np.nan
    return X, Y


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
    _interrupt(monkeypatch, fit, "make_ridge" if loss == "squared" else "_fit_label", 4)
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
    original, calls, served = fit._fit_label, itertools.count(1), threading.Event()

    def interrupted(*arguments):
        number = next(calls)
        if number == 12:  # the other thread has one in hand: ten are done
            signal.raise_signal(signal.SIGINT)  # which the main thread is to serve
        if number >= 12:
            served.wait(2.0)
            served.set()
        return original(*arguments)

    monkeypatch.setattr(fit, "_fit_label", interrupted)
    model = BinaryRelevance("logistic", n_jobs=2)
    with pytest.raises(KeyboardInterrupt, match="interrupted after"):
        model.fit(X, Y)
    assert 10 <= model.labels_fitted_ < 40
    assert model.coef_.any(axis=1).sum() == model.labels_fitted_


@pytest.mark.parametrize("loss", LOSSES)
def test_binary_relevance_without_any_label_is_interrupted(loss, monkeypatch):
    _interrupt(monkeypatch, fit, "make_ridge" if loss == "squared" else "_fit_label", 1)
    with pytest.raises(KeyboardInterrupt):
        BinaryRelevance(loss).fit(*_data())
