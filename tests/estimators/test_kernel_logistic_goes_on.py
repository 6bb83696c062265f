"""Kernel logistic fits that begin where others ended: warm starts and checkpoints."""

import numpy as np
import pytest

from labelweave import KernelLogisticClassifier
from labelweave.estimators import journal

TREE = {"x": ["a", "b"], "y": ["c", "d"]}
FITS = {
    "fixed": {"hyperparameters": "fixed", "tol": 1e-8},
    "fixed, symmetrized": {"hyperparameters": "fixed", "tol": 1e-8, "solver": "symmetrized_gradients"},
    "learned": {"max_learning_iter": 7},
    "learned, apart": {"max_learning_iter": 9, "tie": "class", "intercept_variance": "learn"},
    "learned, tree": {"max_learning_iter": 7, "taxonomy": TREE, "tie": "level"},
    "learned, widths": {"max_learning_iter": 7, "feature_widths": True},
    "learned, low rank": {"max_learning_iter": 7, "kernel_rank": 30},
    "labels": {"max_learning_iter": 7},
    "labels, coupled": {"max_learning_iter": 7, "coupling": 2},
    "labels, thresholds": {"max_learning_iter": 6, "threshold": "macro_f1"},
}


def _data(fit):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    scores = np.tanh(X) @ random.normal(size=(4, 4)) + 0.3 * random.normal(size=(90, 4))
    if fit.startswith("labels"):
        Y = (scores > 0.3).astype(float)
        Y[random.random(Y.shape) < 0.1] = np.nan
        return X, Y
    return X, np.array(list("abcd"))[scores.argmax(axis=1)]


def _model(fit, **options):
    return KernelLogisticClassifier(**FITS[fit], **options)


def _same(model, other):
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    assert model.hyperparameters_ == other.hyperparameters_
    np.testing.assert_array_equal(model.thresholds_, other.thresholds_)
    assert [r._replace(time=0) for r in model.trace_] == [r._replace(time=0) for r in other.trace_]
    mine, its = ([r._replace(time=0) for r in m.learning_trace_] for m in (model, other))
    np.testing.assert_array_equal(np.array(mine), np.array(its))


@pytest.mark.parametrize("fit", FITS)
def test_a_warm_start_from_the_optimum_needs_few_rounds(fit):
    X, y = _data(fit)
    model = _model(fit, warm_start=True).fit(X, y)
    rounds, evaluations = model.n_iter_, len(model.learning_trace_)
    loss, probabilities = model.cross_validation_loss_, model.predict_proba(X)
    model.fit(X, y)
    assert len(model.learning_trace_) <= evaluations
    if evaluations:  # of which the first are where the last search ended
        assert model.learning_trace_[0].value == pytest.approx(loss, rel=1e-3)
        assert model.cross_validation_loss_ <= loss * (1 + 1e-3)
    else:
        assert model.n_iter_ <= max(1, rounds // 4)
        np.testing.assert_allclose(model.predict_proba(X), probabilities, atol=1e-4)


def test_a_warm_start_reaches_the_optimum_of_other_parameters_and_rows():
    X, y = _data("fixed")
    model = _model("fixed", warm_start=True).fit(X, y)
    warm = model.set_params(scale=30.0).fit(X, y)
    cold = _model("fixed", scale=30.0).fit(X, y)
    np.testing.assert_allclose(warm.trace_[-1].primal, cold.trace_[-1].primal, rtol=1e-7)
    few = model.fit(X[:60], y[:60])
    _same(few, _model("fixed", scale=30.0).fit(X[:60], y[:60]))
    assert model.set_params(warm_start=False).fit(X, y)._last == (None, None)


@pytest.mark.parametrize("call", [3, 30])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupted_search_is_taken_up_again(tmp_path, monkeypatch, call):
    from labelweave.problems.kernel_likelihood import KernelLikelihood

    X, y = _data("learned")
    path, calls, evaluate = tmp_path / "fit.lwc", [], KernelLikelihood.evaluate

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return evaluate(self, *arguments)

    monkeypatch.setattr(KernelLikelihood, "evaluate", interrupted)
    try:
        stopped = _model("learned", checkpoint=path).fit(X, y)
        assert stopped.learning_status_ == "interrupted"
    except KeyboardInterrupt:
        pass
    assert path.exists()
    monkeypatch.setattr(KernelLikelihood, "evaluate", evaluate)
    _same(_model("learned", checkpoint=path).fit(X, y), _model("learned").fit(X, y))


def test_a_checkpoint_of_other_folds_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.lwc"
    monkeypatch.setattr(journal.Journal, "close", lambda self, is_done: self.write())
    X, y = _data("fixed")
    _model("fixed", checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match=r"of another fit: .*cv"):
        _model("fixed", checkpoint=path, cv=[(np.arange(50), np.arange(50, 90))]).fit(X, y)
