"""Learned label graphs: which cliques, when to stop; the inner solver of the paper."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import grouped
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score

from labelweave import GraphGrowth, LabelGraphClassifier, LabelMatrix
from labelweave.datasets import make_clique_toy
from labelweave.estimators.held_out import hold_out
from labelweave.foundation.arguments import ParameterError
from labelweave.metrics import hamming_loss
from labelweave.problems.structured_margin import growth


def model(**parameters):
    return grouped(LabelGraphClassifier, **({"alpha": 0.01, "tol": 0.02} | parameters))


@pytest.fixture(scope="module")
def toy():
    data, edges = make_clique_toy(400)
    return data.X[:300], data.Y[:300].to_dense(), data.X[300:], data.Y[300:].to_dense(), edges


def chosen(fitted):
    return [clique for record in fitted.graph_trace_ for clique in record.cliques]


def test_true_edges_are_found_and_help(toy):
    X, Y, X_test, Y_test, edges = toy
    fitted = model(alpha=1e-3, max_rounds=4).fit(X, Y)
    assert sorted(fitted.label_graph_.edges) == sorted(edges)
    assert chosen(fitted) == list(fitted.label_graph_.cliques)
    alone = LabelGraphClassifier("none", tol=0.02).fit(X, Y)
    learned_loss = hamming_loss(Y_test, fitted.predict(X_test))
    assert learned_loss < 0.6 * hamming_loss(Y_test, alone.predict(X_test))
    objectives = [record.primal for record in fitted.graph_trace_]
    assert len(objectives) == 5
    assert (np.diff(objectives) < 0).all()
    assert fitted.graph_reason_ == "the limit of rounds was reached"


def test_the_graph_ends_where_rounds_change_little_or_nothing_violates(toy):
    X, Y, *_ = toy
    little = model(graph_tol=0.2).fit(X, Y)
    assert little.graph_reason_ == "two rounds changed the objective by little"
    done = model(alpha=0.5, graph_tol=0.0).fit(X, Y)
    assert done.graph_reason_ == "no cliques outside the graph violate the optimum"
    few = model(max_rounds=9, graph_tol=0.0).fit(X, Y[:, :3])
    assert few.graph_reason_ == "all candidate cliques are in the graph"
    assert few.label_graph_.n_cliques == 3


def test_several_cliques_a_round_and_larger_cliques(toy):
    X, Y, *_ = toy
    fitted = model(cliques_per_round=3, max_rounds=2).fit(X, Y)
    assert [len(record.cliques) for record in fitted.graph_trace_] == [0, 3, 3]
    triples = model(clique_size=3, max_rounds=8, graph_tol=0.0, alpha=1e-3).fit(X[:, :3], Y[:, :3])
    graph = triples.label_graph_
    assert graph.signs[graph.cliques.index((0, 1, 2))] == 0
    assert len(triples.clique_coef_) == sum(2 ** len(clique) for clique in graph.cliques) > 8


def sample_f1(Y, found):
    return f1_score(Y, found, average="samples", zero_division=1)


def exclusive_or(n_rows=150):
    """Draw labels of which the third follows from two others, while pairs are uninformative."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n_rows, 3)), rng.integers(0, 2, (n_rows, 5))
    Y[:, 2] = Y[:, 0] != Y[:, 1]
    return X, Y


@pytest.mark.parametrize("options", [{"clique_size": 3}, {"candidates": [(0, 4), (0, 1, 2), (1, 2, 3)]}])
def test_a_triple_is_found_where_no_pair_violates(options):
    X, Y = exclusive_or()
    fitted = model(alpha=0.1, graph_tol=0.0, tol=1e-3, **options).fit(X, Y)
    given = LabelGraphClassifier([(0, 1, 2)], 0.1, tol=1e-3).fit(X, Y)
    pairs = model(alpha=0.1, graph_tol=0.0, tol=1e-3).fit(X, Y)
    assert chosen(fitted)[0] == (0, 1, 2)
    assert set(chosen(fitted)) <= set(options.get("candidates", chosen(fitted)))
    assert fitted.objective_ < 1.001 * given.objective_ < 0.9 * pairs.objective_
    assert fitted.relaxation_gap_ < 2e-3


def test_cliques_that_were_not_scored_are_told(monkeypatch):
    X, Y = exclusive_or()
    monkeypatch.setattr(growth, "MOST_CANDIDATES", 19)
    fitted = model(alpha=0.1, clique_size=3, max_rounds=2).fit(X, Y)
    assert np.isnan(fitted.relaxation_gap_)
    assert fitted.graph_reason_.endswith("; larger cliques were only scored if grown from chosen ones")


def test_candidates_are_named_kept_and_refused(reloaded):
    X, Y = exclusive_or()
    Y = pd.DataFrame(Y, columns=list("abcde"))
    fitted = model(candidates=[("a", "b", "c"), ("d", "e")], alpha=0.1).fit(X, Y)
    assert set(fitted.label_graph_.cliques) <= {(0, 1, 2), (3, 4)}
    again = clone(reloaded(fitted)).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    for candidates, said in (
        ([("a", "x")], r"candidates are not cliques:.* unknown label name 'x'"),
        ([list(range(9))], r"a clique of 9 labels; pass cliques of 2 to 8 labels"),
    ):
        with pytest.raises(ValueError, match=said):
            model(candidates=candidates).fit(np.ones((20, 1)), Y.join(Y.add_suffix("2")).iloc[:20])
    with pytest.raises(ParameterError, match="candidates are given, which define all cliques"):
        model(candidates=[("a", "b")], clique_size=3).fit(X, Y)


@pytest.mark.parametrize(("loss", "score"), [("subset", accuracy_score), ("f1", sample_f1)])
def test_held_out_rows_measure_the_loss_of_label_sets(toy, loss, score):
    X, Y, *_ = toy
    growth = {"validation_fraction": 0.3, "max_rounds": 2, "random_state": 1}
    fitted = model(loss=loss, **growth).fit(X, Y)
    seed = int(np.random.RandomState(1).randint(2**31 - 1))
    train, held_out = hold_out(LabelMatrix.from_any(Y), 0.3, seed)
    part = model(loss=loss, max_rounds=2, random_state=1).fit(X[train], Y[train])
    found = 1.0 - score(Y[held_out], part.predict(X[held_out]))
    assert fitted.graph_trace_[-1].held_out_loss == pytest.approx(found, abs=0.05)
    assert 0 < fitted.duality_gap_ <= 0.02


def test_held_out_rows_measure_every_round(toy):
    X, Y, *_ = toy
    fitted = model(validation_fraction=0.25, max_rounds=3).fit(X, Y)
    losses = [record.held_out_loss for record in fitted.graph_trace_]
    assert len(losses) == 4
    assert np.isfinite(losses).all()
    assert fitted.label_graph_.cliques == tuple(chosen(fitted))
    assert np.isnan([record.held_out_loss for record in model(max_rounds=1).fit(X, Y).graph_trace_]).all()


def test_early_stopping_keeps_the_rounds_up_to_the_least_loss(toy):
    X, Y, *_ = toy
    fitted = model(early_stopping=True, max_rounds=6, graph_tol=0.0).fit(X, Y)
    best = int(np.argmin([record.held_out_loss for record in fitted.graph_trace_]))
    assert fitted.label_graph_.cliques == tuple(chosen(fitted)[:best])
    assert len(fitted.graph_trace_) == 7  # rounds without a gain are in the trace
    assert fitted.graph_reason_ == "held-out rows chose the number of rounds"


def test_weights_of_measured_rounds_are_the_optimum_over_all_rows(toy):
    X, Y, *_ = toy
    measured = model(validation_fraction=0.2, max_rounds=2, tol=1e-3).fit(X, Y)
    plain = model(max_rounds=2, tol=1e-3).fit(X, Y)
    assert set(measured.label_graph_.cliques) == set(plain.label_graph_.cliques)
    assert measured.objective_ == pytest.approx(plain.objective_, rel=3e-3)


def test_signs_say_who_is_tied_to_whom():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    Y = (rng.normal(size=(150, 5)) + X[:, :1] > 0).astype(int)
    Y[:, 1] = np.where(rng.random(150) < 0.95, Y[:, 0], Y[:, 1])
    Y[:, 2] = np.where(rng.random(150) < 0.95, 1 - Y[:, 0], Y[:, 2])
    Y[:, 4] = np.where(X[:, 1] > 0, Y[:, 3], 1 - Y[:, 3])  # equal in half of the rows
    fitted = LabelGraphClassifier([(0, 1), (0, 2), (3, 4)], 1e-2, tol=0.02).fit(X, Y)
    assert fitted.label_graph_.signs.tolist() == [1, -1, 0]
    assert (fitted.label_graph_.weights > 0.1).all()


def test_pairs_whose_weights_say_nothing_have_no_sign():
    rng = np.random.default_rng(0)
    X, never = rng.normal(size=(80, 3)), np.zeros(80)
    on = (X[:, 0] > 0).astype(float)
    fitted = LabelGraphClassifier([(0, 1), (2, 3)], 1e-2, tol=0.02).fit(X, np.c_[on, on, never, never])
    assert fitted.label_graph_.signs.tolist() == [0, 0]
    assert (fitted.label_graph_.weights > 0.1).all()


def test_a_refit_is_the_fit_of_the_learned_graph():
    data, _ = make_clique_toy(200)
    parameters = {"alpha": 0.01, "max_rounds": 3, "random_state": 1}
    learned = grouped(LabelGraphClassifier, **parameters).fit(data.X, data.Y)
    refitted = grouped(LabelGraphClassifier, refit=True, **parameters).fit(data.X, data.Y)
    given = LabelGraphClassifier(learned.label_graph_, alpha=0.01, random_state=1)
    given.fit(data.X, data.Y)
    assert refitted.label_graph_.cliques == learned.label_graph_.cliques
    np.testing.assert_array_equal(refitted.clique_coef_, given.clique_coef_)
    assert [record.cliques for record in refitted.graph_trace_] == [
        record.cliques for record in learned.graph_trace_
    ]
    assert refitted.graph_reason_ == learned.graph_reason_
    assert refitted.n_iter_ > learned.n_iter_


GRAPHS = ["learn", "chow-liu", "full", "none", [(0, 1), (1, 2, 4)]]


def tied_rows(n_rows=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    Y = (X @ rng.normal(size=(4, 5)) + rng.normal(size=(n_rows, 5)) > 0).astype(float)
    Y[:, 1] = np.where(rng.random(n_rows) < 0.9, Y[:, 0], Y[:, 1])
    return X, Y


def proximal(graph="learn", **parameters):
    options = {"alpha": 0.05, "tol": 0.005, "solver": "proximal"} | parameters
    if isinstance(graph, str) and graph == "learn":
        own = signature(GraphGrowth).parameters
        graph = GraphGrowth(
            **{"max_rounds": 3} | {name: options.pop(name) for name in own if name in options}
        )
    return LabelGraphClassifier(graph, **options)


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("missing", [False, True])
def test_it_ends_at_the_optimum(graph, missing):
    X, Y = tied_rows()
    if missing:
        Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    fitted = proximal(graph).fit(X, Y)
    is_convex = not (missing and fitted.label_graph_.cliques)
    assert (fitted.converged_, fitted.status_) == (is_convex, "converged" if is_convex else "settled")
    assert fitted.objective_ == fitted.trace_[-1].primal
    proven = proximal(graph, solver="frank_wolfe", tol=1e-3).fit(X, Y)
    if not missing and graph != "learn":  # one convex problem for both
        assert proven.trace_[-1].dual <= fitted.objective_
        assert fitted.trace_[-1].dual <= proven.objective_
    if not missing:
        assert fitted.objective_ < (1.1 if graph == "learn" else 1.01) * proven.objective_
        assert np.mean(fitted.predict(X) != Y) < np.mean(proven.predict(X) != Y) + 0.05


def test_it_proves_how_near_the_optimum_is():
    X, Y = tied_rows()
    fitted = proximal().fit(X, Y)
    assert fitted.label_graph_.n_cliques > 0
    assert 0 <= fitted.duality_gap_ <= 0.005
    assert fitted.duality_gap_ <= fitted.relaxation_gap_ < 0.5
    given = proximal("full").fit(X, Y)
    assert 0 <= given.duality_gap_ <= 0.005
    assert np.isnan(given.relaxation_gap_)
    Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    assert 0 <= proximal().fit(X, Y).duality_gap_ <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"early_stopping": True}, {"refit": True}, {"graph": "none"}])
def test_it_goes_with_the_other_parameters(parameters, reloaded):
    X, Y = tied_rows()
    fitted = proximal(**parameters).fit(sp.csr_array(X), Y)
    again = reloaded(fitted)
    assert again.solver == "proximal"
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(clone(again).fit(X, Y).predict(X), fitted.predict(X))


def test_it_finds_the_tied_labels_first():
    data, edges = make_clique_toy(500)
    fitted = proximal(alpha=1e-3, max_rounds=4, graph_tol=0.0).fit(data.X, data.Y)
    assert sorted(fitted.label_graph_.edges) == sorted(edges)


def test_a_large_penalty_ends_at_weights_of_nearly_zero():
    X, Y = tied_rows()
    fitted = proximal("chow-liu", alpha=1e4).fit(X, Y)
    assert fitted.converged_
    assert fitted.objective_ <= 5  # one per label


@pytest.mark.parametrize("alpha", [1e-18, 1e-25])
def test_an_objective_at_the_level_of_rounding_is_said(alpha):
    X, Y = np.array([[1.0], [-1.0]] * 3), np.array([[1], [0]] * 3)
    with pytest.warns(ConvergenceWarning, match="at rounding level"):
        fitted = LabelGraphClassifier(graph="none", alpha=alpha).fit(X, Y)
    assert fitted.status_ == "stalled"
    assert fitted.n_iter_ < 20


def test_learned_graphs_are_bounded_by_the_relaxation():
    X, Y = tied_rows()
    fitted = proximal(solver="frank_wolfe", graph_tol=0.0, max_rounds=20, tol=1e-3).fit(X, Y)
    assert fitted.duality_gap_ <= fitted.relaxation_gap_
    if fitted.graph_reason_.startswith(("no candidate", "all candidate")):
        assert fitted.relaxation_gap_ < 0.05


def test_weights_that_are_fitted_again_keep_the_bound_of_their_graph():
    X, Y = tied_rows()
    once = proximal(solver="frank_wolfe").fit(X, Y)
    again = proximal(solver="frank_wolfe", refit=True).fit(X, Y)
    assert again.relaxation_gap_ == once.relaxation_gap_ > 0


@pytest.mark.parametrize("parameters", [{"validation_fraction": 0.3}, {"early_stopping": True}])
def test_weights_fitted_to_held_out_rows_too_are_bounded_by_the_relaxation(parameters):
    X, Y = tied_rows()
    fitted = proximal(solver="frank_wolfe", **parameters).fit(X, Y)
    assert fitted.duality_gap_ <= fitted.relaxation_gap_ < 1
