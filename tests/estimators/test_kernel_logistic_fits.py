"""Fits of KernelLogisticClassifier as they run: callbacks, interrupts, solvers."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from labelweave import KernelLogisticClassifier
from labelweave.estimators.kernel_logistic import fit as likelihood_fit
from watching import Count


def data(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    scores = 2 * X @ random.normal(size=(4, 4)) + random.normal(size=(n, 4))
    return X, np.array(list("abcd"))[scores.argmax(axis=1)], (scores > 0.5).astype(float)


def test_a_function_is_not_stored(tmp_path):
    X, y, _ = data()
    model = KernelLogisticClassifier(lambda a, b: a @ b.T, hyperparameters="fixed").fit(X, y)
    with pytest.raises(TypeError, match="cannot be stored in a model file"):
        model.save(tmp_path / "model.lw")
    assert not list(tmp_path.iterdir())


def test_callbacks_follow_search_and_fit():
    X, y, _ = data()
    watch = Count()
    model = KernelLogisticClassifier(max_learning_iter=6, tol=1e-3).set_callbacks(watch).fit(X, y)
    assert watch.names.count("cross-validation") == 6
    assert watch.names.count("duality gap") == 30
    assert watch.names.index("duality gap") == 6
    assert model.converged_


def test_a_callback_ends_the_search():
    X, y, _ = data()
    watch = Count(2, "cross-validation")
    model = KernelLogisticClassifier(max_learning_iter=6).set_callbacks(watch)
    with pytest.warns(ConvergenceWarning, match="search for hyper-parameters was interrupted") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.learning_status_ == "interrupted"
    assert len(model.learning_trace_) == 2
    assert model.converged_


def interrupt_at(monkeypatch, place, name, call):
    """Raise KeyboardInterrupt in some call of a method, as Ctrl-C would."""
    true, calls = getattr(place, name), []

    def interrupted(*arguments, **options):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return true(*arguments, **options)

    monkeypatch.setattr(place, name, interrupted)
    return calls


@pytest.mark.parametrize("call", [1, 20, 60])
def test_an_interrupt_of_the_search(monkeypatch, call):
    """Whatever fold is being fitted, the search ends and the best hyper-parameters are used."""
    X, y, _ = data()
    calls = interrupt_at(monkeypatch, likelihood_fit.KernelLikelihood, "evaluate", call)
    model = KernelLogisticClassifier(max_learning_iter=30)
    with pytest.raises(KeyboardInterrupt, match="search for hyper-parameters was interrupted"):
        model.fit(X, y)
    assert len(calls) > call
    assert model.learning_status_ == "interrupted"
    assert model.converged_
    if model.learning_trace_:
        assert model.cross_validation_loss_ == min(record.value for record in model.learning_trace_)
    else:
        assert np.isnan(model.cross_validation_loss_)
        assert model.hyperparameters_["scale"] == pytest.approx(10.0)


def test_an_interrupt_of_the_first_of_two_searches(monkeypatch):
    X, y, _ = data(n=60)
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    interrupt_at(monkeypatch, likelihood_fit.KernelLikelihood, "evaluate", 20)
    model = KernelLogisticClassifier(max_learning_iter=30)
    with pytest.raises(KeyboardInterrupt, match="search for hyper-parameters was interrupted"):
        model.fit(X, y)
    assert model.learning_status_ == "interrupted"
    assert model.score(X, y) > 0.5


def test_many_rows_are_searched_twice(monkeypatch):
    """First some of them, then all from there; threads do not matter."""
    X, y, _ = data(n=60)
    at_once = KernelLogisticClassifier(tie="scale").fit(X, y)
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    models = [KernelLogisticClassifier(tie="scale", n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    assert models[0].hyperparameters_ == models[1].hyperparameters_
    assert models[0].learning_trace_[0].value != at_once.learning_trace_[0].value
    assert models[0].cross_validation_loss_ == pytest.approx(at_once.cross_validation_loss_, rel=0.02)


def test_the_trace_holds_the_optimum_between():
    X, y, _ = data()
    model = KernelLogisticClassifier(hyperparameters="fixed", tol=1e-8).fit(X, y)
    primal, dual = (np.array([getattr(r, name) for r in model.trace_]) for name in ("primal", "dual"))
    assert (primal >= dual[-1]).all()
    assert primal[-1] - dual[-1] <= 1e-8 * max(1, primal[-1])
    assert model.kernel_products_ > 0


def test_memory_budget_streams_the_kernel():
    X, y, _ = data(n=300)
    options = {"hyperparameters": "fixed", "tol": 1e-8}
    small = KernelLogisticClassifier(memory_budget=0.35, **options).fit(X, y)
    large = KernelLogisticClassifier(**options).fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("solver", ["symmetrized_gradients", "exact"])
def test_solvers_agree(solver):
    X, y, _ = data(n=60)
    fixed = {"hyperparameters": "fixed", "tol": 1e-10}
    models = [KernelLogisticClassifier(solver=name, **fixed).fit(X, y) for name in ("auto", solver)]
    assert models[1].predict_proba(X) == pytest.approx(models[0].predict_proba(X), abs=1e-4)


@pytest.mark.parametrize("solver", ["symmetrized_gradients", "exact"])
def test_solvers_learn_the_same(solver):
    """Scale and width of a kernel lie on a ridge, so the loss that is reached tells."""
    X, y, _ = data(n=60)
    models = [KernelLogisticClassifier(solver=name).fit(X, y) for name in ("auto", solver)]
    losses = [model.cross_validation_loss_ for model in models]
    assert losses[1] == pytest.approx(losses[0], rel=2e-3)


def test_exact_solves_are_for_labels_apart():
    X, y, _ = data(n=60)
    tree = {"left": ["a", "b"], "right": ["c", "d"]}
    model = KernelLogisticClassifier(taxonomy=tree, solver="exact", hyperparameters="fixed")
    with pytest.raises(ValueError, match="conjugate gradients"):
        model.fit(X, y)
