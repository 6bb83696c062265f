"""Low-rank fits that go on: from a checkpoint, from the last fit, with more rows and labels, from a part."""

import numpy as np
import pytest

from drawn import draw_labels
from labelweave import LowRankClassifier, LowRankClassifierCV

MORE_ROWS = ("linear", "rbf")
FITS = {
    "trace norm": {"rank": 3},
    "logistic": {"rank": 3, "loss": "logistic"},
    "kernel": {"rank": 3, "kernel": "rbf", "threshold": "f1"},
    "low-rank kernel": {"rank": 3, "kernel": "rbf", "kernel_rank": 20, "loss": "squared_hinge"},
    "ridge, learned": {
        "rank": 3, "penalty": "ridge", "kernel": "rbf", "hyperparameters": "learn", "max_learning_iter": 6,
    },
}  # fmt: skip


def _drawn(n=90, d=8, labels=6):
    return draw_labels(n, d, labels, size=0.5, rank=3, noise=0.2, missing=0.0)


def _assert_same(one, two):
    for name in ("feature_factors_", "label_factors_", "intercept_", "thresholds_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert [record.objective for record in one.trace_] == [record.objective for record in two.trace_]
    assert (one.n_iter_, one.objective_, one.regularization_) == (
        two.n_iter_,
        two.objective_,
        two.regularization_,
    )


def _make(parameters, **more):
    kind = LowRankClassifierCV if "ranks" in parameters else LowRankClassifier
    return kind(**parameters, **more)


@pytest.mark.parametrize("name", ["trace norm", "logistic", "kernel"])
@pytest.mark.parametrize("regularization", [0.3, 3.0])
def test_a_warm_start_from_the_optimum_takes_few_rounds(name, regularization):
    X, Y = _drawn()
    model = _make(FITS[name], warm_start=True, regularization=regularization, tol=1e-6, max_iter=1000)
    model.set_params(threshold="auto").fit(X, Y)
    objective, rounds = model.objective_, model.n_iter_
    model.fit(X, Y)
    assert model.objective_ <= objective * (1 + 1e-6)
    assert model.n_iter_ <= max(2, rounds // 4)


def test_a_warm_start_finds_columns_that_a_stronger_penalty_had_no_room_for():
    X, Y = _drawn()
    options = {"rank": 6, "tol": 1e-8, "max_iter": 2000}
    model = LowRankClassifier(**options, regularization=20.0, warm_start=True).fit(X, Y)
    sizes = np.linalg.norm(model.label_factors_, axis=0)
    assert (sizes < 1e-3 * sizes.max()).any()
    model.set_params(regularization=0.1).fit(X, Y)
    alone = LowRankClassifier(**options, regularization=0.1).fit(X, Y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-4)
    # other shapes start afresh
    other = LowRankClassifier(**options).fit(X[:, :5], Y[:, :4])
    model.set_params(regularization=1.0).fit(X[:, :5], Y[:, :4])
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)


@pytest.mark.parametrize("kernel", MORE_ROWS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_and_labels_of_all_calls_make_one_fit(kernel, loss):
    X, Y = _drawn()
    options = {"rank": 5, "loss": loss, "kernel": kernel, "gamma": 0.3, "tol": 1e-9, "max_iter": 3000}
    model = LowRankClassifier(**options)
    model.partial_fit(X[:40], Y[:40, :4])
    model.partial_fit(X[40:60], Y[40:60, :4])
    rounds = model.set_params(tol=1e-9).partial_fit(X[60:], Y[60:]).n_iter_
    assert rounds >= 1
    hidden = Y.copy()
    hidden[:60, 4:] = np.nan
    once = LowRankClassifier(**options).fit(X, hidden)
    assert model.classes_.tolist() == list(range(6))
    assert model.objective_ == pytest.approx(once.objective_, rel=1e-5)
    np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=0.03)


def test_more_rows_cost_less_than_a_fit_to_all():
    X, Y = _drawn(400, 30, 20)
    options = {"rank": 8, "loss": "logistic", "tol": 1e-5, "max_iter": 500}
    model = LowRankClassifier(**options).partial_fit(X[:380], Y[:380])
    model.partial_fit(X[380:], Y[380:])
    alone = LowRankClassifier(**options).fit(X, Y)
    work, all_work = (sum(record.feature_iterations for record in fit.trace_) for fit in (model, alone))
    assert work < 0.7 * all_work
    assert model.objective_ <= alone.objective_ * (1 + 1e-3)


def test_classes_may_come_later():
    X, _ = _drawn()
    classes = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    order = np.argsort(classes)
    model = LowRankClassifier(5, regularization=0.1)
    model.partial_fit(X[order[:10]], classes[order[:10]], classes=["a", "b"])
    assert set(model.predict(X)) <= {"a", "b"}
    model.partial_fit(X[order[10:]], classes[order[10:]])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(X, classes) > 0.8


def test_what_partial_fit_cannot_do_is_said():
    X, Y = _drawn()
    assert not hasattr(LowRankClassifier(kernel="precomputed"), "partial_fit")
    model = LowRankClassifier(3).partial_fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], Y)
    with pytest.raises(ValueError, match="classes is for y with one class a row"):
        LowRankClassifier(3).partial_fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize("name", ["trace norm", "logistic", "kernel", "low-rank kernel"])
def test_a_fit_goes_on_from_the_model_of_a_part(name):
    X, Y = _drawn(300, 20, 10)
    kept = np.sort(np.random.default_rng(0).permutation(300)[:270])
    parameters = FITS[name] | {"threshold": "auto", "tol": 1e-6, "max_iter": 2000}
    part = LowRankClassifier(**parameters).fit(X[kept], Y[kept])
    alone = LowRankClassifier(**parameters).fit(X, Y)
    fitted = LowRankClassifier(**parameters)._fit_from(part, kept, X, Y)
    assert fitted.objective_ <= alone.objective_ * (1 + 1e-3)
    assert fitted.n_iter_ <= alone.n_iter_
    assert fitted.warm_start is False
    weighted = LowRankClassifier(**parameters)._fit_from(part, kept, X, Y, sample_weight=np.ones(300))
    _assert_same(weighted, fitted)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_thresholds_know_nothing_of_an_earlier_fit(loss):
    """Whose factors have seen the rows that are held out now."""
    X, Y = _drawn()
    Y[::3] = 1 - Y[::3]  # noise, which factors remember
    model = LowRankClassifier(3, loss=loss, threshold="f1", warm_start=True, tol=1e-3).fit(X, Y)
    first = model.thresholds_
    np.testing.assert_array_equal(model.fit(X, Y).thresholds_, first)
