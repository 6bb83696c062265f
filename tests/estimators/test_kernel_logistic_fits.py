"""Fits of KernelLogisticClassifier as they run: files, threads, callbacks, interrupts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import labelweave
from labelweave import KernelLogisticClassifier, LabelCovariance, Taxonomy
from labelweave.estimators.kernel_logistic import fit as likelihood_fit
from labelweave.features import LinearKernel, RBFKernel
from watching import Count

TREE = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c", "d"]})


def data(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    scores = 2 * X @ random.normal(size=(4, 4)) + random.normal(size=(n, 4))
    return X, np.array(list("abcd"))[scores.argmax(axis=1)], (scores > 0.5).astype(float)


def classes(**options):
    X, y, _ = data()
    return KernelLogisticClassifier(max_learning_iter=2, **options), X, y


def labels(form=np.asarray, **options):
    X, _, Y = data()
    return KernelLogisticClassifier(max_learning_iter=2, **options), X, form(Y)


def partly():
    model, X, y = classes(taxonomy=TREE, tie="subtree", decision="best_parent")
    return model, X, np.where(np.arange(len(y)) % 3 == 0, TREE.parents_of(y.tolist()), y)


FORMS = {
    "shared": classes,
    "fixed": lambda: classes(hyperparameters="fixed"),
    "class": lambda: classes(tie="class"),
    "intercepts": lambda: classes(intercept_variance="learn"),
    "pair": lambda: classes(tie=("class", "shared")),
    "level": lambda: classes(taxonomy=TREE, tie="level", decision="least_expected_loss"),
    "nested": lambda: classes(taxonomy={"x": ["a", "b"], "y": ["c", "d"]}),
    "partial": partly,
    "covariance": lambda: classes(label_covariance=LabelCovariance.from_taxonomy(TREE, list("abcd"))),
    "matrix": lambda: classes(label_covariance=np.eye(4) + 1),
    "square": lambda: classes(coupling="full"),
    "loadings": lambda: classes(coupling=2),
    "low rank": lambda: classes(kernel_rank=15),
    "low rank tree": lambda: classes(kernel_rank=15, taxonomy=TREE, tie="level"),
    "linear": lambda: classes(kernel="linear"),
    "sum": lambda: classes(kernel=RBFKernel() + 0.5 * LinearKernel()),
    "precomputed": lambda: (classes(kernel="precomputed")[0], rbf_kernel(data()[0]), data()[1]),
    "sparse rows": lambda: (classes()[0], sp.csr_array(data()[0] * (data()[0] > 0)), data()[1]),
    "two classes": lambda: (classes()[0], data()[0], data()[1] < "c"),
    "two classes tied": lambda: (classes(coupling=1)[0], data()[0], data()[1] < "c"),
    "objects": lambda: (classes()[0], data()[0], np.where(data()[1] == "a", None, data()[1].astype(object))),
    "numbers and None": lambda: (classes()[0], data()[0], [None, 1, 2, 3] * 10),
    "labels": labels,
    "labels by class": lambda: labels(tie="class"),
    "labels coupled": lambda: labels(coupling=1),
    "frame": lambda: labels(lambda Y: pd.DataFrame(Y, columns=["hot", "mild", "red", "raw"])),
    "sparse": lambda: labels(sp.csr_array),
    "splitter": lambda: classes(random_state=np.random.RandomState(3)),
}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]()


def predictions(model, X):
    return [model.predict_proba(X), model.decision_function(X), np.asarray(as_array(model.predict(X)))]


def as_array(table):
    return table.toarray() if sp.issparse(table) else table


def test_files_and_threads(form, tmp_path):
    """A model read from its file, and one fitted by two threads, predict the same bits."""
    model, X, y = form
    twice = KernelLogisticClassifier(**model.get_params(deep=False)).set_params(n_jobs=2)
    if isinstance(model.random_state, np.random.RandomState):
        twice.set_params(random_state=np.random.RandomState(3))
    expected = predictions(model.fit(X, y), X)
    model.save(tmp_path / "model.lw")
    back = labelweave.load(tmp_path / "model.lw")
    for other in (back, twice.fit(X, y)):
        for one, another in zip(expected, predictions(other, X), strict=True):
            np.testing.assert_array_equal(one, another)
        assert other.hyperparameters_ == model.hyperparameters_
        assert [type(c) for c in other.classes_.tolist()] == [type(c) for c in model.classes_.tolist()]
    assert back.learning_trace_ == model.learning_trace_
    assert back.trace_ == model.trace_
    for name in ("learning_status_", "status_", "converged_", "n_iter_", "kernel_products_", "taxonomy_"):
        assert getattr(back, name) == getattr(model, name)
    assert back.cross_validation_loss_ == pytest.approx(model.cross_validation_loss_, rel=0, nan_ok=True)
    for one, another in zip(model.prior_.terms, back.prior_.terms, strict=True):
        np.testing.assert_array_equal(one.covariance.to_dense(), another.covariance.to_dense())
    if not isinstance(model.random_state, np.random.RandomState):
        again = back.fit(X, y)
        np.testing.assert_array_equal(predictions(again, X)[0], expected[0])


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
