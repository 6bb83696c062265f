"""The paper's inner solver as an option of LabelGraphClassifier."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import labelweave
from labelweave import LabelGraphClassifier
from labelweave.datasets import make_clique_toy
from labelweave.foundation.sklearn_compat import InvalidParameterError

GRAPHS = ["learn", "chow-liu", "full", "none", [(0, 1), (1, 2, 4)]]


def rows(n_rows=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    Y = (X @ rng.normal(size=(4, 5)) + rng.normal(size=(n_rows, 5)) > 0).astype(float)
    Y[:, 1] = np.where(rng.random(n_rows) < 0.9, Y[:, 0], Y[:, 1])
    return X, Y


def model(graph="learn", **parameters):
    options = {"regularization": 0.05, "max_rounds": 3, "tol": 0.005, "solver": "proximal"} | parameters
    return LabelGraphClassifier(graph, **options)


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("missing", [False, True])
def test_it_ends_at_the_optimum(graph, missing):
    X, Y = rows()
    if missing:
        Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    fitted = model(graph).fit(X, Y)
    assert (fitted.converged_, fitted.status_) == (True, "converged")
    assert fitted.objective_ == fitted.trace_[-1].primal
    proven = model(graph, solver="frank_wolfe", tol=1e-3).fit(X, Y)
    if not missing and graph != "learn":  # one convex problem for both
        assert proven.trace_[-1].dual <= fitted.objective_
        assert fitted.trace_[-1].dual <= proven.objective_
    if not missing:
        assert fitted.objective_ < (1.1 if graph == "learn" else 1.01) * proven.objective_
        assert np.mean(fitted.predict(X) != Y) < np.mean(proven.predict(X) != Y) + 0.05


def test_it_proves_how_near_the_optimum_is():
    X, Y = rows()
    fitted = model().fit(X, Y)
    assert fitted.label_graph_.n_cliques > 0
    assert 0 <= fitted.duality_gap_ <= 0.005
    assert fitted.duality_gap_ <= fitted.relaxation_gap_ < 0.5
    given = model("full").fit(X, Y)
    assert 0 <= given.duality_gap_ <= 0.005
    assert np.isnan(given.relaxation_gap_)
    Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    assert 0 <= model().fit(X, Y).duality_gap_ <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"early_stopping": True}, {"refit": True}, {"graph": "none"}])
def test_it_goes_with_the_other_parameters(parameters, tmp_path):
    X, Y = rows()
    fitted = model(**parameters).fit(sp.csr_array(X), Y)
    fitted.save(tmp_path / "m.lw")
    again = labelweave.load(tmp_path / "m.lw")
    assert again.solver == "proximal"
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(clone(again).fit(X, Y).predict(X), fitted.predict(X))


def test_it_finds_the_tied_labels_first():
    data, edges = make_clique_toy(500)
    fitted = model(regularization=1e-3, max_rounds=4, graph_tol=0.0).fit(data.X, data.Y)
    assert sorted(fitted.label_graph_.edges) == sorted(edges)


def test_too_few_passes_are_said():
    X, Y = rows()
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap met .* after 2 passes"):
        assert not model("full", max_iter=2).fit(X, Y).converged_


def test_a_large_penalty_ends_at_weights_of_nearly_zero():
    X, Y = rows()
    fitted = model("chow-liu", regularization=1e4).fit(X, Y)
    assert fitted.converged_
    assert fitted.objective_ <= 5  # one a label


def test_an_unknown_solver_is_refused():
    with pytest.raises(InvalidParameterError, match=r"'solver' parameter .*'frank_wolfe'"):
        model(solver="newton").fit(*rows())


@pytest.mark.parametrize("regularization", [1e-18, 1e-25])
def test_an_objective_at_the_level_of_rounding_is_said(regularization):
    X, Y = np.array([[1.0], [-1.0]] * 3), np.array([[1], [0]] * 3)
    with pytest.warns(ConvergenceWarning, match="at the level of rounding"):
        fitted = LabelGraphClassifier(graph="none", regularization=regularization).fit(X, Y)
    assert fitted.status_ == "stalled"
    assert fitted.n_iter_ < 20


def test_learned_graphs_are_bounded_by_the_relaxation():
    X, Y = rows()
    fitted = model(solver="frank_wolfe", graph_tol=0.0, max_rounds=20, tol=1e-3).fit(X, Y)
    assert fitted.duality_gap_ <= fitted.relaxation_gap_
    if fitted.graph_reason_.startswith(("no candidate", "all candidate")):
        assert fitted.relaxation_gap_ < 0.05


def test_weights_that_are_fitted_again_keep_the_bound_of_their_graph():
    X, Y = rows()
    once = model(solver="frank_wolfe").fit(X, Y)
    again = model(solver="frank_wolfe", refit=True).fit(X, Y)
    assert again.relaxation_gap_ == once.relaxation_gap_ > 0


@pytest.mark.parametrize("parameters", [{"validation_fraction": 0.3}, {"early_stopping": True}])
def test_weights_fitted_to_held_out_rows_too_are_bounded_by_the_relaxation(parameters):
    X, Y = rows()
    fitted = model(solver="frank_wolfe", **parameters).fit(X, Y)
    assert fitted.duality_gap_ <= fitted.relaxation_gap_ < 1
