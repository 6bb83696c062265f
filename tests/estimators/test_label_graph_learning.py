"""Learned label graphs: which cliques, when to stop, what an interrupt leaves."""

import numpy as np
import pytest
from attacks.small_fits import AtSubtask
from sklearn.exceptions import ConvergenceWarning

import labelweave
from labelweave import LabelGraphClassifier
from labelweave.datasets import make_clique_toy
from labelweave.metrics import hamming_loss
from labelweave.problems.structured_margin import GrowingMargin, StructuredMargin
from small_models import press


def model(**parameters):
    return LabelGraphClassifier(**({"regularization": 0.01, "tol": 0.02} | parameters))


@pytest.fixture(scope="module")
def toy():
    data, edges = make_clique_toy(400)
    return data.X[:300], data.Y[:300].to_dense(), data.X[300:], data.Y[300:].to_dense(), edges


def chosen(fitted):
    return [clique for record in fitted.graph_trace_ for clique in record.cliques]


def test_true_edges_are_found_and_help(toy):
    X, Y, X_test, Y_test, edges = toy
    fitted = model(regularization=1e-3, max_rounds=4).fit(X, Y)
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
    done = model(regularization=0.5, graph_tol=0.0).fit(X, Y)
    assert done.graph_reason_ == "no cliques outside the graph violate the optimum"
    few = model(max_rounds=9, graph_tol=0.0).fit(X, Y[:, :3])
    assert few.graph_reason_ == "all candidate cliques are in the graph"
    assert few.label_graph_.n_cliques == 3


def test_several_cliques_a_round_and_larger_cliques(toy):
    X, Y, *_ = toy
    fitted = model(cliques_per_round=3, max_rounds=2).fit(X, Y)
    assert [len(record.cliques) for record in fitted.graph_trace_] == [0, 3, 3]
    triples = model(clique_size=3, max_rounds=8, graph_tol=0.0, regularization=1e-3).fit(X[:, :3], Y[:, :3])
    assert triples.label_graph_.cliques[-1] == (0, 1, 2)
    assert triples.label_graph_.signs[-1] == 0
    assert len(triples.clique_coef_) == 3 * 4 + 8


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
    assert len(fitted.graph_trace_) == 7  # those that did not pay are there to be seen
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
    Y[:, 4] = np.where(X[:, 1] > 0, Y[:, 3], 1 - Y[:, 3])  # alike in half of the rows
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


def interrupted(method, call):
    """Raise KeyboardInterrupt in one of a method's calls; sweeps without inference do not count."""
    calls = []

    def wrapped(*arguments, **options):
        if options.get("search", True):
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
        return method(*arguments, **options)

    return wrapped


@pytest.mark.parametrize(
    ("place", "name", "call"),
    [
        (StructuredMargin, "sweep", 3),
        (StructuredMargin, "sweep", 12),
        (StructuredMargin, "evaluate", 4),
        (GrowingMargin, "propose", 2),
        (GrowingMargin, "activated", 2),
    ],
)
@pytest.mark.parametrize("parameters", [{}, {"early_stopping": True}])
def test_an_interrupt_leaves_the_model_so_far(toy, monkeypatch, tmp_path, place, name, call, parameters):
    X, Y, *_ = toy
    monkeypatch.setattr(place, name, interrupted(getattr(place, name), call))
    fitted = model(max_rounds=3, **parameters)
    with pytest.raises(KeyboardInterrupt, match="interrupted; the model is the one it had reached"):
        fitted.fit(X, Y)
    assert (fitted.status_, fitted.converged_) == ("interrupted", False)
    assert fitted.graph_reason_ == "interrupted"
    assert len(fitted.clique_coef_) == 4 * fitted.label_graph_.n_cliques
    assert hamming_loss(Y, fitted.predict(X)) < 0.4
    assert fitted.label_graph_.cliques == tuple(chosen(fitted))
    fitted.save(tmp_path / "m.lw")
    assert labelweave.load(tmp_path / "m.lw").status_ == "interrupted"


def test_an_interrupt_of_the_fit_to_all_rows_leaves_a_model(toy, monkeypatch):
    X, Y, *_ = toy
    whole = model(max_rounds=2, validation_fraction=0.2).fit(X, Y)
    part = sum(record.n_iter for record in whole.graph_trace_)
    monkeypatch.setattr(StructuredMargin, "sweep", interrupted(StructuredMargin.sweep, whole.n_iter_ - 2))
    fitted = model(max_rounds=2, validation_fraction=0.2)
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        fitted.fit(X, Y)
    assert fitted.status_ == "interrupted"
    assert fitted.n_iter_ > part
    assert fitted.label_graph_.n_cliques == 2


@pytest.mark.parametrize("graph", ["full", "none"])
def test_an_interrupt_of_a_fit_with_a_given_graph(toy, monkeypatch, graph):
    X, Y, *_ = toy
    monkeypatch.setattr(StructuredMargin, "sweep", interrupted(StructuredMargin.sweep, 5))
    fitted = model(graph=graph, tol=1e-9)
    with pytest.raises(KeyboardInterrupt, match=r"interrupted.* after 4 passes"):
        fitted.fit(X, Y)
    assert (fitted.status_, fitted.n_iter_) == ("interrupted", 4)


@pytest.mark.parametrize("by", ["wish", "interrupt"])
@pytest.mark.parametrize("graph", ["learn", "full"])
def test_a_callback_can_end_the_fit(toy, by, graph):
    X, Y, *_ = toy
    stop = AtSubtask(2) if by == "wish" else press(2)
    stopped = model(graph=graph, max_rounds=5).set_callbacks(stop)
    said = pytest.warns if by == "wish" else pytest.raises
    with said(ConvergenceWarning if by == "wish" else KeyboardInterrupt, match="interrupted"):
        stopped.fit(X, Y)
    assert stopped.status_ == "interrupted"
    assert stopped.label_graph_.n_cliques == (1 if graph == "learn" else 45)


def test_a_refit_is_the_fit_of_the_learned_graph():
    data, _ = make_clique_toy(200)
    parameters = {"regularization": 0.01, "max_rounds": 3, "random_state": 1}
    learned = LabelGraphClassifier(**parameters).fit(data.X, data.Y)
    refitted = LabelGraphClassifier(refit=True, **parameters).fit(data.X, data.Y)
    given = LabelGraphClassifier(learned.label_graph_, regularization=0.01, random_state=1)
    given.fit(data.X, data.Y)
    assert refitted.label_graph_.cliques == learned.label_graph_.cliques
    np.testing.assert_array_equal(refitted.clique_coef_, given.clique_coef_)
    assert [record.cliques for record in refitted.graph_trace_] == [
        record.cliques for record in learned.graph_trace_
    ]
    assert refitted.graph_reason_ == learned.graph_reason_
    assert refitted.n_iter_ > learned.n_iter_
