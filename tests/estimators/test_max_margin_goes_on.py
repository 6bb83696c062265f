"""Max-margin fits that begin where others ended: warm starts, checkpoints, more rows and labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from drawn import draw_labels
from labelweave import (
    LowRankClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    datasets,
)
from labelweave.estimators import journal
from labelweave.problems.hyperparameters.cross_validation import CrossValidationLikelihood
from labelweave.solvers import DualCoordinateAscent

R = 0.6 * np.eye(6) + 0.4
FITS = {
    "coordinates": {"solver": "coordinate_ascent"},
    "coordinates, coupled": {"solver": "coordinate_ascent", "label_covariance": R},
    "rbf": {"kernel": "rbf"},
    "rbf, coupled": {"kernel": "rbf", "label_covariance": R},
    "rbf, incomplete": {"kernel": "rbf", "factorization": "incomplete_cholesky", "memory_budget": 1.0},
    "rbf, blocks": {"kernel": "rbf", "solver": "block_ascent"},
    "rbf, pairs": {"kernel": "rbf", "solver": "working_set"},
    "features": {"solver": "alternating_directions"},
    "features, coordinates first": {"C": 10.0},
}


def _data(n=150):
    return draw_labels(n, 8, 6, above=0.5, missing=0.1)


@pytest.mark.parametrize("fit", ["coordinates", "rbf"])
def test_a_warm_start_with_another_c_reaches_the_same_optimum(fit):
    X, Y = _data()
    model = MaxMarginClassifier(tol=1e-5, warm_start=True, **FITS[fit]).fit(X, Y)
    warm = model.set_params(C=1.3).fit(X, Y)
    cold = MaxMarginClassifier(C=1.3, tol=1e-5, **FITS[fit]).fit(X, Y)
    assert warm.n_iter_ <= cold.n_iter_
    np.testing.assert_allclose(warm.trace_[-1].primal, cold.trace_[-1].primal, rtol=2e-5)


@pytest.mark.slow
def test_learned_hyperparameters_are_part_of_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_SECONDS", 0.0)
    X, Y = _data()
    path, write, evaluated = tmp_path / "fit.lwc", journal.Journal.write, []
    options = {"kernel": "rbf", "hyperparameters": "learn", "coupling": 2, "tol": 1e-5}
    evaluate = CrossValidationLikelihood.__call__

    def counted(criterion, theta):
        evaluated.append(theta)
        return evaluate(criterion, theta)

    monkeypatch.setattr(CrossValidationLikelihood, "__call__", counted)
    whole = MaxMarginClassifier(**options).fit(X, Y)
    needed = len(evaluated)
    for states in (6, needed + 1, needed + 4):  # within the search, the surrogate's fit and the last one
        evaluated.clear()
        calls = []

        def killed(self, calls=calls, states=states):
            write(self)
            calls.append(1)
            if len(calls) == states:
                raise SystemExit

        model = MaxMarginClassifier(**options, checkpoint=path)
        monkeypatch.setattr(journal.Journal, "write", killed)
        with pytest.raises(SystemExit):
            model.fit(X, Y)
        monkeypatch.setattr(journal.Journal, "write", write)
        assert path.exists()
        model.fit(X, Y)
        assert not path.exists()
        assert len(evaluated) == needed  # none was made twice
        assert model.C_ == whole.C_
        np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
def test_more_rows_and_more_labels_give_the_fit_to_all(sparse, coupled):
    X, Y = _data()
    X = sp.csr_array(X) if sparse else X
    kind = {"label_covariance": R} if coupled else {}
    known = Y.copy()
    known[:100, 4:] = np.nan  # two labels that nobody knew in the first rows
    model = MaxMarginClassifier(tol=1e-5)
    model.partial_fit(X[:60], Y[:60, :4])
    model.partial_fit(X[60:100], Y[60:100, :4])
    model.set_params(**kind).partial_fit(X[100:], Y[100:])
    whole = MaxMarginClassifier(tol=1e-5, **kind).fit(X, known)
    assert model.converged_
    assert model.predict(X).shape == (150, 6)
    np.testing.assert_allclose(model.trace_[-1].primal, whole.trace_[-1].primal, rtol=2e-5)


@pytest.mark.parametrize("fit", ["rbf", "rbf, blocks", "rbf, coupled"])
def test_kernel_models_take_more_rows_too(fit):
    X, Y = _data()
    model = MaxMarginClassifier(tol=1e-5, **FITS[fit])
    model.partial_fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])
    gamma = model.kernel_.gamma  # of all rows
    whole = MaxMarginClassifier(tol=1e-5, **FITS[fit]).fit(X, Y)
    assert gamma == whole.kernel_.gamma
    np.testing.assert_allclose(model.trace_[-1].primal, whole.trace_[-1].primal, rtol=2e-5)


def test_what_partial_fit_cannot_do_is_said():
    X, Y = _data()
    with pytest.raises(AttributeError, match="partial_fit"):
        MaxMarginClassifier(kernel="precomputed").partial_fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="8 features"):
        MaxMarginClassifier().partial_fit(X, Y).partial_fit(X[:, :5], Y)
    with pytest.warns(UserWarning, match="these rows alone"):
        MaxMarginClassifier().fit(X, Y).partial_fit(X, Y)
    model = MaxMarginClassifier(warm_start=True).fit(X[:80], Y[:80])
    model.partial_fit(X[80:], Y[80:])
    np.testing.assert_allclose(
        model.trace_[-1].primal, MaxMarginClassifier().fit(X, Y).trace_[-1].primal, rtol=2e-3
    )


def test_the_second_fit_of_thresholds_starts_from_the_first():
    X, Y = _data(600)
    plain = MaxMarginClassifier(tol=1e-2, solver="coordinate_ascent").fit(X, Y)
    tuned = MaxMarginClassifier(tol=1e-2, solver="coordinate_ascent", threshold="macro_f1").fit(X, Y)
    assert tuned.converged_
    assert tuned.n_iter_ < plain.n_iter_


@pytest.mark.parametrize("average", ["micro", "macro", "example"])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("folds", [False, True])
def test_thresholds_take_less_than_one_more_fit_but_for_folds(average, wrapped, folds, monkeypatch):
    data = datasets.make_text_like(1500, 500, 20)
    rounds, solve = [], DualCoordinateAscent.solve

    def counted(*given):
        result = solve(*given)
        rounds.append(result[0].n_iter)
        return result

    monkeypatch.setattr(DualCoordinateAscent, "solve", counted)
    MaxMarginClassifier().fit(data.X, data.Y)
    objective = f"{average}_f1"
    share = {"validation_fraction": "auto" if folds else 0.2 if wrapped else 0.1}
    tuned = TunedThresholdClassifier(MaxMarginClassifier(), objective, **share)
    (tuned if wrapped else MaxMarginClassifier(threshold=objective, **share)).fit(data.X, data.Y)
    plain, part, *others, whole = rounds
    assert part < plain
    assert whole < plain
    assert part + whole < 1.7 * plain
    assert len(others) == 4 * folds
    assert all(other <= part for other in others)  # each starts where the one before ended


@pytest.mark.parametrize("model", [MaxMarginClassifier(), LowRankClassifier(2)])
def test_rows_that_were_refused_have_not_been_seen(model):
    X, Y = _data()
    model.partial_fit(X[:80], Y[:80])
    with pytest.raises(ValueError, match="label_covariance is over 5 labels"):
        model.set_params(label_covariance=np.eye(5)).partial_fit(X[80:], Y[80:])
    model.set_params(label_covariance=None).partial_fit(X[80:], Y[80:])
    assert len(model._seen.weights) == 150


def test_a_refused_call_leaves_the_model_as_it_was():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    classes = (X[:, 0] > 0).astype(int)
    model = MaxMarginClassifier(threshold="f1").partial_fit(X, classes)
    before, kept = model.predict(X), dict(vars(model))
    with pytest.raises(ValueError, match="one of 3 classes a row"):
        model.partial_fit(X[:5], [2] * 5)
    np.testing.assert_array_equal(model.predict(X), before)
    assert all(vars(model)[name] is value for name, value in kept.items())
    factors = LowRankClassifier(2, label_covariance=np.eye(2) + 0.2)
    factors.partial_fit(X, pd.DataFrame({"a": classes, "b": 1 - classes}))
    scores = factors.decision_function(X)
    with pytest.raises(ValueError, match="label_covariance is over 2 labels"):
        factors.partial_fit(X, pd.DataFrame({"c": classes}))
    with pytest.raises(ValueError, match="X has 2 features"):
        factors.partial_fit(X[:, :2], pd.DataFrame({"a": classes}))
    np.testing.assert_array_equal(factors.decision_function(X), scores)


def test_global_steps_from_far_away_take_about_as_many_rounds_as_from_nothing():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 8))
    Y = (X @ random.normal(size=(8, 4)) + random.normal(size=(120, 4)) > 0.5).astype(int)
    model = MaxMarginClassifier(kernel="rbf", solver="alternating_directions", warm_start=True).fit(X, Y)
    model.set_params(C=10.0).fit(X, Y)
    fresh = MaxMarginClassifier(10.0, kernel="rbf", solver="alternating_directions").fit(X, Y)
    assert model.converged_
    assert model.n_iter_ <= 1.2 * fresh.n_iter_
